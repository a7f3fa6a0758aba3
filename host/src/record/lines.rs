//! Messages as lines of a file: one JSON object each, raw messages byte for byte.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use foreshorten_core::transcript::{Entry, EntryKind, Part};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::Message;
use crate::formats::Format;

/// Why a line is no message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineError(String);

impl fmt::Display for LineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not a recorded message: {}", self.0)
    }
}

impl std::error::Error for LineError {}

/// A line: a raw message as JSON (or as text when it has line breaks of its own), or neutral entries.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<String>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    raw: Option<&'a RawValue>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    entries: Vec<EntryLine>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct EntryLine {
    kind: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    call_id: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    name: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_error: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    sealed: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    parts: Vec<PartLine>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum PartLine {
    Text(String),
    Image { media_type: String, data: String },
    File { media_type: String, name: String, data: String },
    Opaque(String),
}

impl Message {
    /// The message on one line, without the line feed.
    #[must_use]
    pub fn to_line(&self) -> String {
        let mut line = Line { format: None, raw: None, text: None, entries: Vec::new() };
        if let Some(raw) = &self.raw {
            line.format = Some(raw.format.name().into());
            match serde_json::from_str::<&RawValue>(&raw.json) {
                Ok(json) if !raw.json.contains(['\n', '\r']) && json.get().len() == raw.json.len() => {
                    line.raw = Some(json);
                }
                _ => line.text = Some(raw.json.clone()),
            }
        } else {
            line.entries = self.entries.iter().map(entry_line).collect();
        }
        serde_json::to_string(&line).unwrap_or_default()
    }

    /// Reads a line back.
    ///
    /// # Errors
    /// What stands there instead.
    pub fn from_line(line: &str) -> Result<Self, LineError> {
        let wrong = |what: &dyn fmt::Display| LineError(what.to_string());
        let line: Line<'_> = serde_json::from_str(line).map_err(|error| wrong(&error))?;
        let Some(format) = line.format else {
            let entries = line.entries.into_iter().map(entry).collect::<Result<_, _>>()?;
            return Ok(Self::of(entries));
        };
        let format: Format = format.parse().map_err(|error| wrong(&error))?;
        let json = match (line.raw, line.text) {
            (Some(raw), _) => raw.get().to_owned(),
            (None, Some(text)) => text,
            (None, None) => return Err(wrong(&"a format, and no message")),
        };
        Self::raw(format, json).map_err(|error| wrong(&error))
    }
}

fn entry_line(entry: &Entry) -> EntryLine {
    // Payloads are base64 text or URLs; bytes that are neither are encoded once more, under `opaque`.
    let part = |part: &Part| match part {
        Part::Text(text) => PartLine::Text(text.clone()),
        Part::Image(kind, data) if let Ok(data) = std::str::from_utf8(data) => {
            PartLine::Image { media_type: kind.clone(), data: data.into() }
        }
        Part::File(kind, name, data) if let Ok(data) = std::str::from_utf8(data) => {
            PartLine::File { media_type: kind.clone(), name: name.clone(), data: data.into() }
        }
        Part::Image(_, data) | Part::File(_, _, data) | Part::Opaque(data) => PartLine::Opaque(STANDARD.encode(data)),
        _ => PartLine::Opaque(String::new()),
    };
    EntryLine {
        kind: entry.kind.as_str().into(),
        call_id: entry.call_id.clone(),
        name: entry.name.clone(),
        is_error: entry.is_error,
        sealed: entry.sealed,
        parts: entry.parts.iter().map(part).collect(),
    }
}

fn entry(line: EntryLine) -> Result<Entry, LineError> {
    let kind = EntryKind::ALL.into_iter().find(|kind| kind.as_str() == line.kind);
    let kind = kind.ok_or_else(|| LineError(format!("`{}` is no kind of entry", line.kind)))?;
    let part = |part: PartLine| {
        Ok(match part {
            PartLine::Text(text) => Part::Text(text),
            PartLine::Image { media_type, data } => Part::Image(media_type, data.into_bytes()),
            PartLine::File { media_type, name, data } => Part::File(media_type, name, data.into_bytes()),
            PartLine::Opaque(data) => {
                Part::Opaque(STANDARD.decode(data).map_err(|error| LineError(error.to_string()))?)
            }
        })
    };
    let parts = line.parts.into_iter().map(part).collect::<Result<_, _>>()?;
    let EntryLine { call_id, name, is_error, sealed, .. } = line;
    Ok(Entry { kind, call_id, name, is_error, sealed, parts })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_back_from_their_lines_byte_for_byte() {
        let mut image = Entry::tool_result("c", "seen").failed();
        image.parts.push(Part::Image("image/png".into(), b"aGk=".to_vec()));
        image.parts.push(Part::File("application/pdf".into(), "a.pdf".into(), b"aGk=".to_vec()));
        image.parts.push(Part::Opaque(vec![0, 255]));
        let raw = [
            r#"{"role":"assistant","content":"x","n": 1.50,"lone":"\ud800"}"#,
            "{\n  \"role\": \"assistant\", \"content\": \"two lines\"\r\n}",
        ];
        let mut all = vec![Message::of(vec![image]), Message::user("a\nb\u{2028}"), Message::of(Vec::new())];
        all.extend(raw.map(|raw| Message::raw(Format::OpenAiChat, raw).unwrap()));
        for message in all {
            let line = message.to_line();
            assert!(!line.contains('\n'), "{line}");
            assert_eq!(Message::from_line(&line).unwrap(), message, "{line}");
        }
    }

    #[test]
    fn what_is_no_message_is_refused_with_a_reason() {
        for wrong in ["", "{", "[]", r#"{"format":"x","raw":{}}"#, r#"{"entries":[{"kind":"x"}]}"#, r#"{"surplus":1}"#]
        {
            assert!(Message::from_line(wrong).is_err(), "{wrong}");
        }
    }
}
