//! Entries that have no raw JSON of a protocol, written as its messages or items.
//!
//! What is said here is said once: the same entries always give the same bytes, so that a composed message is as
//! stable in a prefix as a copied one.

use foreshorten_core::transcript::{Entry, EntryKind, Part};

use super::Format;
use super::escape::quoted;
use super::json::Json;
use super::scan;

/// One composed message or item, and the entries (numbers within what was composed) it holds, in its own order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Composed {
    pub(crate) json: String,
    pub(crate) entries: Vec<usize>,
}

/// Writes the entries of one message, or of a run of messages that hold nothing but results.
pub(crate) fn compose(format: Format, entries: &[&Entry]) -> Vec<Composed> {
    let mut made = Vec::new();
    let mut at = 0;
    while at < entries.len() {
        let kind = entries[at].kind;
        let run = |same: fn(EntryKind, EntryKind) -> bool| {
            at + entries[at..].iter().take_while(|entry| same(entry.kind, kind)).count()
        };
        let end = match kind {
            _ if kind.is_assistant_side() => run(|kind, _| kind.is_assistant_side()),
            EntryKind::ToolResult => run(|kind, first| kind == first),
            _ => at + 1,
        };
        let numbered: Vec<(usize, &Entry)> = (at..end).map(|number| (number, entries[number])).collect();
        match (format, kind) {
            (Format::OpenAiResponses, _) => made.extend(numbered.iter().filter_map(|one| item(one.0, one.1))),
            (Format::AnthropicMessages, EntryKind::ToolResult) => made.push(anthropic_results(&numbered)),
            (Format::AnthropicMessages, _) if kind.is_assistant_side() => made.extend(anthropic_assistant(&numbered)),
            (_, EntryKind::ToolResult) => made.extend(numbered.iter().map(|one| chat_result(one.0, one.1))),
            (_, _) if kind.is_assistant_side() => made.extend(chat_assistant(&numbered)),
            _ => made.push(said(format, at, entries[at])),
        }
        at = end;
    }
    made
}

/// A message of the user or of the developer.
fn said(format: Format, number: usize, entry: &Entry) -> Composed {
    let role = match (format, entry.kind) {
        (Format::AnthropicMessages, _) | (_, EntryKind::User) => "user",
        _ => "system",
    };
    let content = match (format, entry.parts.as_slice()) {
        (Format::OpenAiChat, [Part::Text(text)]) => quoted(text),
        _ => parts(format, entry),
    };
    Composed { json: format!(r#"{{"role":"{role}","content":{content}}}"#), entries: vec![number] }
}

/// The parts of an entry as a list. No provider takes an empty one, nor an empty text in it.
pub(crate) fn parts(format: Format, entry: &Entry) -> String {
    let list: Vec<String> = entry.parts.iter().filter_map(|one| part(format, one)).collect();
    match list.is_empty() {
        true => format!("[{}]", text_part(format, "(empty)")),
        false => format!("[{}]", list.join(",")),
    }
}

fn text_part(format: Format, text: &str) -> String {
    let kind = if format == Format::OpenAiResponses { "input_text" } else { "text" };
    format!(r#"{{"type":"{kind}","text":{}}}"#, quoted(text))
}

fn part(format: Format, part: &Part) -> Option<String> {
    let lossy = |data: &[u8]| String::from_utf8_lossy(data).into_owned();
    // A payload without a media type is a URL, or the id of an upload.
    let url = |kind: &str, data: &[u8]| match kind {
        "" => lossy(data),
        kind => format!("data:{kind};base64,{}", lossy(data)),
    };
    let source = |kind: &str, data: &[u8]| match kind {
        "" => format!(r#"{{"type":"url","url":{}}}"#, quoted(&lossy(data))),
        kind => {
            format!(r#"{{"type":"base64","media_type":{},"data":{}}}"#, quoted(kind), quoted(&lossy(data)))
        }
    };
    Some(match (part, format) {
        (Part::Text(text), _) if text.trim().is_empty() => return None,
        (Part::Text(text), _) => text_part(format, text),
        (Part::Image(kind, data), Format::OpenAiResponses) => {
            format!(r#"{{"type":"input_image","image_url":{}}}"#, quoted(&url(kind, data)))
        }
        (Part::Image(kind, data), Format::AnthropicMessages) => {
            format!(r#"{{"type":"image","source":{}}}"#, source(kind, data))
        }
        (Part::Image(kind, data), _) => {
            format!(r#"{{"type":"image_url","image_url":{{"url":{}}}}}"#, quoted(&url(kind, data)))
        }
        (Part::File(kind, name, data), Format::OpenAiResponses) => {
            let name = if name.is_empty() { "file" } else { name };
            let (key, data) = if kind.is_empty() { ("file_url", lossy(data)) } else { ("file_data", url(kind, data)) };
            format!(r#"{{"type":"input_file","filename":{},"{key}":{}}}"#, quoted(name), quoted(&data))
        }
        (Part::File(kind, name, data), Format::AnthropicMessages) => {
            let title = if name.is_empty() { String::new() } else { format!(r#","title":{}"#, quoted(name)) };
            format!(r#"{{"type":"document","source":{}{title}}}"#, source(kind, data))
        }
        (Part::File(kind, name, data), _) => {
            let name = if name.is_empty() { "file" } else { name };
            let file = format!(r#"{{"filename":{},"file_data":{}}}"#, quoted(name), quoted(&url(kind, data)));
            format!(r#"{{"type":"file","file":{file}}}"#)
        }
        // Bytes that only another provider can read.
        _ => return None,
    })
}

/// All text of an entry; what is no text is named.
fn plain(entry: &Entry) -> String {
    let mut out = String::new();
    for part in &entry.parts {
        if !out.is_empty() {
            out.push('\n');
        }
        match part {
            Part::Text(text) => out.push_str(text),
            Part::Image(kind, _) => out.push_str(&format!("[image {kind}]")),
            Part::File(kind, name, _) => out.push_str(&format!("[file {name} {kind}]")),
            _ => {}
        }
    }
    out
}

/// The text of a result where the protocol has no flag for errors: a failure says so in words.
fn flagged(entry: &Entry, text: String) -> String {
    let says_so = |text: &str| text.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("error"));
    if entry.is_error && !says_so(&text) { format!("Error: {text}") } else { text }
}

fn chat_result(number: usize, entry: &Entry) -> Composed {
    // Tool messages of this protocol hold text alone.
    let text = flagged(entry, plain(entry));
    let json = format!(r#"{{"role":"tool","tool_call_id":{},"content":{}}}"#, quoted(&entry.call_id), quoted(&text));
    Composed { json, entries: vec![number] }
}

fn chat_assistant(entries: &[(usize, &Entry)]) -> Option<Composed> {
    let texts: Vec<_> = entries.iter().filter(|(_, entry)| entry.kind == EntryKind::Assistant).collect();
    let calls: Vec<_> = entries.iter().filter(|(_, entry)| entry.kind == EntryKind::ToolCall).collect();
    let text: Vec<String> = texts.iter().map(|(_, entry)| plain(entry)).filter(|text| !text.is_empty()).collect();
    let mut order = Vec::new();
    let mut json = String::from(r#"{"role":"assistant","content":"#);
    if text.is_empty() {
        json.push_str("null");
    } else {
        json.push_str(&quoted(&text.join("\n\n")));
        order.extend(texts.first().map(|(number, _)| *number));
    }
    if !calls.is_empty() {
        let call = |(_, entry): &&(usize, &Entry)| {
            let arguments = quoted(&arguments(entry));
            let function = format!(r#"{{"name":{},"arguments":{arguments}}}"#, quoted(&entry.name));
            format!(r#"{{"id":{},"type":"function","function":{function}}}"#, quoted(&entry.call_id))
        };
        let list: Vec<String> = calls.iter().map(call).collect();
        json.push_str(&format!(r#","tool_calls":[{}]"#, list.join(",")));
        order.extend(calls.iter().map(|(number, _)| *number));
    }
    json.push('}');
    (!order.is_empty()).then_some(Composed { json, entries: order })
}

/// The arguments of a call as a JSON object in text. What a model wrote that is none is kept under one key.
fn arguments(entry: &Entry) -> String {
    let text = match entry.parts.first() {
        Some(Part::Text(text)) if !text.trim().is_empty() => text.as_str(),
        _ => "{}",
    };
    let whole = scan::check(text.as_bytes(), 0, &mut Vec::new())
        .is_ok_and(|end| scan::skip_space(text.as_bytes(), end) == text.len());
    if whole && Json::at(text, 0).is_object() { text.into() } else { format!(r#"{{"_raw":{}}}"#, quoted(text)) }
}

/// Anthropic takes letters, digits, `_` and `-` in ids; other servers also use `:` and `.`.
pub(super) fn anthropic_id(id: &str) -> String {
    id.chars().map(|c| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' }).collect()
}

fn anthropic_results(entries: &[(usize, &Entry)]) -> Composed {
    let block = |(_, entry): &(usize, &Entry)| {
        let content = match entry.parts.as_slice() {
            [Part::Text(text)] => quoted(text),
            [] => quoted(""),
            _ => parts(Format::AnthropicMessages, entry),
        };
        let failed = if entry.is_error { r#","is_error":true"# } else { "" };
        let id = quoted(&anthropic_id(&entry.call_id));
        format!(r#"{{"type":"tool_result","tool_use_id":{id},"content":{content}{failed}}}"#)
    };
    let blocks: Vec<String> = entries.iter().map(block).collect();
    Composed {
        json: format!(r#"{{"role":"user","content":[{}]}}"#, blocks.join(",")),
        entries: entries.iter().map(|(number, _)| *number).collect(),
    }
}

fn anthropic_assistant(entries: &[(usize, &Entry)]) -> Option<Composed> {
    let (mut blocks, mut order): (Vec<String>, Vec<usize>) = (Vec::new(), Vec::new());
    let mut in_text = false;
    for (number, entry) in entries {
        match entry.kind {
            EntryKind::Assistant => {
                let text = plain(entry);
                if text.trim().is_empty() {
                    continue;
                }
                blocks.push(text_part(Format::AnthropicMessages, &text));
                // Text blocks side by side are read back as one entry.
                if !in_text {
                    order.push(*number);
                }
                in_text = true;
            }
            EntryKind::ToolCall => {
                let (id, name) = (quoted(&anthropic_id(&entry.call_id)), quoted(&entry.name));
                let input = arguments(entry);
                blocks.push(format!(r#"{{"type":"tool_use","id":{id},"name":{name},"input":{input}}}"#));
                order.push(*number);
                in_text = false;
            }
            // Reasoning goes back only to who wrote it, and then as raw JSON.
            _ => {}
        }
    }
    let json = format!(r#"{{"role":"assistant","content":[{}]}}"#, blocks.join(","));
    (!blocks.is_empty()).then_some(Composed { json, entries: order })
}

/// A Responses item.
fn item(number: usize, entry: &Entry) -> Option<Composed> {
    let message = |role: &str, content: String| format!(r#"{{"type":"message","role":"{role}","content":{content}}}"#);
    let json = match entry.kind {
        EntryKind::System => message("developer", parts(Format::OpenAiResponses, entry)),
        EntryKind::User => message("user", parts(Format::OpenAiResponses, entry)),
        EntryKind::Assistant => {
            let text = plain(entry);
            if text.is_empty() {
                return None;
            }
            message("assistant", format!(r#"[{{"type":"output_text","text":{}}}]"#, quoted(&text)))
        }
        EntryKind::Reasoning => return None,
        EntryKind::ToolCall => format!(
            r#"{{"type":"function_call","call_id":{},"name":{},"arguments":{}}}"#,
            quoted(&entry.call_id),
            quoted(&entry.name),
            quoted(&arguments(entry))
        ),
        EntryKind::ToolResult => {
            let output = match entry.parts.iter().all(|part| matches!(part, Part::Text(_))) {
                true => quoted(&flagged(entry, plain(entry))),
                false => parts(Format::OpenAiResponses, entry),
            };
            format!(r#"{{"type":"function_call_output","call_id":{},"output":{output}}}"#, quoted(&entry.call_id))
        }
    };
    Some(Composed { json, entries: vec![number] })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::{Body, parse_body};
    use foreshorten_core::transcript::Transcript as _;

    fn conversation() -> Vec<Entry> {
        vec![
            Entry::user("look").with(Part::Image("image/png".into(), b"aGk=".to_vec())),
            Entry::assistant("one"),
            Entry::tool_call("a:1", "read", "{\"p\": 1}"),
            Entry::reasoning("elsewhere"),
            Entry::assistant("two"),
            Entry::tool_call("b", "read", "not json"),
            Entry::tool_result("a:1", "text"),
            Entry::tool_result("b", "boom").failed(),
            Entry::system("later rule"),
            Entry::user("and now?"),
        ]
    }

    #[test]
    fn every_protocol_reads_back_the_entries_in_the_order_said() {
        let entries = conversation();
        let all: Vec<&Entry> = entries.iter().collect();
        for format in [Format::OpenAiChat, Format::OpenAiResponses, Format::AnthropicMessages] {
            let made = compose(format, &all);
            let list = format!("[{}]", made.iter().map(|one| one.json.clone()).collect::<Vec<_>>().join(","));
            let body: Body = parse_body(list.clone().into_bytes(), Some(format)).unwrap();
            let order: Vec<usize> = made.iter().flat_map(|one| one.entries.clone()).collect();
            assert_eq!(body.transcript().len(), order.len(), "{list}");
            for (at, number) in order.into_iter().enumerate() {
                let read = body.transcript().entry(at);
                let said = &entries[number];
                if said.kind != EntryKind::System {
                    assert_eq!(read.kind, said.kind, "{list}");
                }
                assert_eq!(read.name, said.name, "{list}");
            }
        }
    }

    #[test]
    fn arguments_that_are_no_object_are_kept_under_a_key() {
        assert_eq!(arguments(&Entry::tool_call("c", "t", "[1]")), r#"{"_raw":"[1]"}"#);
        assert_eq!(arguments(&Entry::tool_call("c", "t", " ")), "{}");
        assert_eq!(arguments(&Entry::tool_call("c", "t", "{\"a\":1} ")), "{\"a\":1} ");
    }
}
