//! JSON strings, both ways.

/// Decodes the escapes of a checked string. A lone surrogate becomes U+FFFD: Rust text cannot hold it, and the
/// raw bytes, which can, are what is copied.
pub(crate) fn unescape(raw: &str, out: &mut Vec<u8>) {
    let bytes = raw.as_bytes();
    out.reserve(bytes.len());
    let mut at = 0;
    while let Some(run) = bytes.get(at..).and_then(|rest| memchr::memchr(b'\\', rest)) {
        out.extend_from_slice(&bytes[at..at + run]);
        let mark = at + run;
        at = mark + 2;
        match bytes.get(mark + 1) {
            Some(b'n') => out.push(b'\n'),
            Some(b't') => out.push(b'\t'),
            Some(b'r') => out.push(b'\r'),
            Some(b'b') => out.push(8),
            Some(b'f') => out.push(12),
            Some(b'u') => {
                let unit = hex4(raw, mark + 2);
                at = mark + 6;
                let mut code = unit;
                if (0xD800..0xDC00).contains(&unit) && raw.get(at..at + 2) == Some("\\u") {
                    let low = hex4(raw, at + 2);
                    if (0xDC00..0xE000).contains(&low) {
                        at += 6;
                        code = 0x1_0000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
                    }
                }
                let decoded = char::from_u32(code).unwrap_or('\u{FFFD}');
                out.extend_from_slice(decoded.encode_utf8(&mut [0; 4]).as_bytes());
            }
            Some(&byte) => out.push(byte),
            None => out.push(b'\\'),
        }
    }
    out.extend_from_slice(bytes.get(at..).unwrap_or_default());
}

fn hex4(text: &str, at: usize) -> u32 {
    text.get(at..at + 4).and_then(|hex| u32::from_str_radix(hex, 16).ok()).unwrap_or(0xFFFD)
}

/// Appends `text` as a JSON string. Only what must be escaped is, so that the bytes are the same everywhere.
pub(crate) fn push_string(text: &str, out: &mut String) {
    out.push('"');
    let mut from = 0;
    for (at, byte) in text.bytes().enumerate() {
        let escape = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0..=0x1F => "",
            _ => continue,
        };
        out.push_str(text.get(from..at).unwrap_or_default());
        if escape.is_empty() {
            out.push_str(&format!("\\u{byte:04x}"));
        } else {
            out.push_str(escape);
        }
        from = at + 1;
    }
    out.push_str(text.get(from..).unwrap_or_default());
    out.push('"');
}

/// `text` as a JSON string.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    push_string(text, &mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::json::Json;

    #[test]
    fn escapes_decode_and_lone_surrogates_become_the_replacement() {
        let decode = |raw: &str| {
            let mut out = Vec::new();
            unescape(raw, &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(decode(r#"a\n\"\/\\\u00e9"#), "a\n\"/\\é");
        assert_eq!(decode(r"\ud83d\ude00"), "😀");
        assert_eq!(decode(r"\ud83dx\ude00\ud83d\u0041"), "\u{FFFD}x\u{FFFD}\u{FFFD}A");
        let text = "q\"\\\n\r\t\u{1}é😀";
        assert_eq!(Json::at(&quoted(text), 0).string().as_deref(), Some(text));
    }
}
