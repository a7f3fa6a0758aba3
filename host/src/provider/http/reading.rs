//! What the three protocols' answers have in common: JSON that may be odd, and errors within.

use serde_json::Value;

use crate::provider::ProviderError;

/// One event's data as JSON.
///
/// A server may cut a character in two, and Rust text cannot hold half of one: it is read as the replacement character.
/// What is copied is not touched by that.
pub(super) fn parsed(data: &str) -> Result<Value, ProviderError> {
    match serde_json::from_str(data) {
        Ok(value) => Ok(value),
        Err(error) => serde_json::from_str(&without_halves(data)).map_err(|_| unreadable(&error, data)),
    }
}

/// The text with escapes of lone surrogates replaced.
fn without_halves(text: &str) -> String {
    let unit = |at: usize| -> Option<u16> {
        let hex = text.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(hex, 16).ok()
    };
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let Some(plain) = rest.find('\\') else {
            out.push_str(rest);
            break;
        };
        out.push_str(&rest[..plain]);
        at += plain;
        let step = match unit(at) {
            Some(0xD800..=0xDBFF) if matches!(unit(at + 6), Some(0xDC00..=0xDFFF)) => 12,
            Some(0xD800..=0xDFFF) => {
                out.push('\u{FFFD}');
                at += 6;
                continue;
            }
            Some(_) => 6,
            // The backslash and the character it is about.
            None => 1 + text[at + 1..].chars().next().map_or(0, char::len_utf8),
        };
        out.push_str(text.get(at..at + step).unwrap_or_default());
        at += step;
    }
    out
}

pub(super) fn unreadable(error: &serde_json::Error, data: &str) -> ProviderError {
    let glimpse: String = data.chars().take(80).collect();
    ProviderError::Garbled(format!("{error} in `{glimpse}`"))
}

/// The error that an error event, or an error under a status of success, is. Gateways put the status inside.
pub(super) fn failure(chunk: &Value, data: &str) -> ProviderError {
    let inside = chunk.get("error").unwrap_or(chunk);
    let code = ["code", "status", "http_code"].iter().find_map(|name| {
        let code = inside.get(*name)?;
        code.as_u64().or_else(|| code.as_str().and_then(|text| text.parse().ok()))
    });
    let status = code.filter(|code| (400..600).contains(code)).and_then(|code| u16::try_from(code).ok());
    ProviderError::from_answer(status, data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_character_does_not_spoil_the_rest() {
        for (data, text) in [
            (r#""a\ud83db""#, "a\u{FFFD}b"),
            (r#""\udE00\\ud83d\ud83d\ude00""#, "\u{FFFD}\\ud83d😀"),
            (r#""é\u00e9\ud83d""#, "éé\u{FFFD}"),
        ] {
            assert_eq!(parsed(data).unwrap(), text, "{data}");
        }
        for odd in ["\"\\", "\"\\u12", "\"\\ué", "{\"a\":", ""] {
            assert!(parsed(odd).is_err(), "{odd}");
        }
    }

    #[test]
    fn gateways_put_the_status_inside_the_error() {
        let of = |json: &str| failure(&parsed(json).unwrap(), json);
        assert!(matches!(
            of(r#"{"error":{"code":502,"message":"x"}}"#),
            ProviderError::Unavailable { status: Some(502), .. }
        ));
        assert!(matches!(of(r#"{"error":{"code":"429","message":"x"}}"#), ProviderError::RateLimited { .. }));
        assert!(matches!(
            of(r#"{"error":{"code":"no_such","message":"x"}}"#),
            ProviderError::Invalid { status: None, .. }
        ));
    }
}
