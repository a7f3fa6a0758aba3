//! Content parts. The part types of the three protocols do not clash, so one reader serves all.

use super::json::{Json, Span};
use super::wire::{Builder, Content, MediaMeta, Str};

/// Reads a `content`, `output` or the like into parts of the last entry: a string, a list of parts, one part, or nothing.
pub(crate) fn content(b: &mut Builder, value: Json<'_>) {
    if value.is_array() {
        for item in value.items() {
            part(b, item);
        }
    } else if value.is_object() {
        match recognise(b, value) {
            Some(content) => b.part(content, Span::NONE),
            None => b.text(value, Span::NONE),
        }
    } else if !value.is_null() {
        b.text(value, Span::NONE);
    }
}

/// Reads one element of a list of parts.
pub(crate) fn part(b: &mut Builder, item: Json<'_>) {
    let content = if item.is_string() {
        let text = b.str(Some(item));
        Content::Text(text)
    } else {
        recognise(b, item).unwrap_or_else(|| Content::Opaque(item.span()))
    };
    b.part(content, item.span());
}

/// A part of a known type.
fn recognise(b: &mut Builder, item: Json<'_>) -> Option<Content> {
    let [
        kind,
        text,
        refusal,
        image_url,
        source,
        title,
        file,
        filename,
        file_data,
        file_url,
        file_id,
        audio,
        image,
        inline,
    ] = item.fields([
        "type",
        "text",
        "refusal",
        "image_url",
        "source",
        "title",
        "file",
        "filename",
        "file_data",
        "file_url",
        "file_id",
        "input_audio",
        "image",
        "inlineData",
    ]);
    let text = text.filter(|text| text.is_string());
    let kind = match kind {
        Some(kind) => kind.word(),
        None if text.is_some() => "text".into(),
        None if inline.is_some() => "inline".into(),
        None => return None,
    };
    Some(match &*kind {
        "text" | "input_text" | "output_text" | "summary_text" | "reasoning_text" => {
            Content::Text(b.str(Some(text?.value)))
        }
        "refusal" => Content::Text(b.str(Some(refusal?.value))),
        "image_url" | "input_image" | "computer_screenshot" => {
            let url =
                image_url.map(|url| if url.is_object() { url.get("url").unwrap_or(url.value) } else { url.value });
            let url = url.filter(|url| url.is_string()).or_else(|| file_id.map(|id| id.value))?;
            Content::Image(media(b, url, Str::Empty))
        }
        "image" => match source {
            Some(source) => Content::Image(anthropic_source(b, source.value, Str::Empty)?),
            None => Content::Image(media(b, image?.value, Str::Empty)),
        },
        "document" => {
            let source = source?.value;
            if source.get("type").is_some_and(|kind| kind.is("text")) {
                Content::Text(b.str(Some(source.get("data")?)))
            } else {
                let name = b.str(title.map(|title| title.value));
                Content::File(anthropic_source(b, source, name)?)
            }
        }
        "input_audio" => {
            let data = audio?.get("data")?;
            Content::File(MediaMeta { media_type: Str::Fixed("audio"), name: Str::Empty, data: data.inner_span() })
        }
        "file" | "input_file" => {
            let [in_name, in_data, in_id] =
                file.map(|file| file.fields(["filename", "file_data", "file_id"])).unwrap_or_default();
            let data = file_data.or(in_data).or(file_url).or(file_id).or(in_id)?.value;
            let name = b.str(filename.or(in_name).map(|name| name.value));
            Content::File(media(b, data, name))
        }
        "inline" => {
            let [mime, data] = inline?.fields(["mimeType", "data"]);
            let media_type = b.str(mime.map(|mime| mime.value));
            Content::Image(MediaMeta { media_type, name: Str::Empty, data: data?.inner_span() })
        }
        _ => return None,
    })
}

/// The `source` of an Anthropic image or document.
fn anthropic_source(b: &mut Builder, source: Json<'_>, name: Str) -> Option<MediaMeta> {
    let [media_type, data, url, file_id] = source.fields(["media_type", "data", "url", "file_id"]);
    let data = data.or(url).or(file_id).filter(|data| data.is_string())?;
    let media_type = b.str(media_type.map(|kind| kind.value));
    Some(MediaMeta { media_type, name, data: data.inner_span() })
}

/// A URL, a data URL (then its type and its payload), or an id.
pub(crate) fn media(b: &mut Builder, url: Json<'_>, name: Str) -> MediaMeta {
    let whole = url.inner_span();
    let raw = url.inner().unwrap_or_default();
    let head = raw.as_bytes().get(..raw.len().min(256)).unwrap_or_default();
    match memchr::memchr(b',', head) {
        Some(comma) if raw.starts_with("data:") => {
            let start = whole.start as usize;
            let kind_end = head.iter().position(|&byte| byte == b';').filter(|&end| end < comma).unwrap_or(comma);
            let media_type = b.str_at(url.source(), Span::new(start + 5, start + kind_end));
            MediaMeta { media_type, name, data: Span::new(start + comma + 1, whole.end as usize) }
        }
        _ => MediaMeta { media_type: Str::Empty, name, data: whole },
    }
}

/// The bytes behind a part's payload when it is base64; `None` when it is a URL, an id or broken.
///
/// Escaped slashes, as some encoders write them, and white space are skipped.
#[must_use]
pub fn decode_media(data: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(data.len() / 4 * 3);
    let (mut bits, mut held) = (0u32, 0u32);
    for &byte in data {
        let six = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            b'=' => break,
            b'\\' | b' ' | b'\n' | b'\r' => continue,
            _ => return None,
        };
        bits = bits << 6 | u32::from(six);
        held += 6;
        if held >= 8 {
            held -= 8;
            out.push((bits >> held) as u8);
        }
    }
    (!out.is_empty()).then_some(out)
}
