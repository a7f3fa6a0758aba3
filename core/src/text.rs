//! Cuts on character boundaries, counts, and the little JSON the core itself writes or reads.

use alloc::string::String;

/// The longest prefix of `text` of at most `bytes` bytes that ends on a character boundary.
///
/// ```
/// assert_eq!(foreshorten_core::text::head("añb", 2), "a");
/// ```
#[must_use]
pub fn head(text: &str, bytes: usize) -> &str {
    &text[..floor_boundary(text, bytes)]
}

/// The longest suffix of `text` of at most `bytes` bytes that starts on a character boundary.
#[must_use]
pub fn tail(text: &str, bytes: usize) -> &str {
    let mut start = text.len().saturating_sub(bytes);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    &text[start..]
}

/// The greatest character boundary of `text` at or before `at`.
#[must_use]
pub fn floor_boundary(text: &str, at: usize) -> usize {
    let mut end = at.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    end
}

/// The byte length of the first `chars` characters of `text`, moved back so that no character that joins
/// to the one before it (combining mark, variation selector, zero-width joiner) is torn from its base.
///
/// This is a small, table-free approximation of grapheme clusters: it keeps accents, emoji sequences joined
/// by U+200D and emoji with modifiers whole.
#[must_use]
pub fn head_chars(text: &str, chars: usize) -> usize {
    let mut ends = text.char_indices().map(|(at, _)| at).skip(chars);
    let Some(mut end) = ends.next() else { return text.len() };
    // At most a handful of steps back: a hostile run of joiners must not empty the cut.
    for _ in 0..16 {
        let next = text[end..].chars().next();
        let last = text[..end].chars().next_back();
        let joined = next.is_some_and(joins_left) || last == Some('\u{200d}');
        let (true, Some(last)) = (joined, last) else { break };
        end -= last.len_utf8();
    }
    end
}

const fn joins_left(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}' | '\u{20d0}'..='\u{20f0}' | '\u{1f3fb}'..='\u{1f3ff}' | '\u{e0020}'..='\u{e007f}')
}

/// Whether `text` has at least `chars` characters, looking at the text only when its length leaves a doubt.
#[must_use]
pub fn has_chars(text: &str, chars: usize) -> bool {
    if text.len() < chars {
        return false;
    }
    text.len() >= chars.saturating_mul(4) || text.chars().count() >= chars
}

/// Appends `value` with thousands separators.
pub fn push_number(out: &mut String, value: u64) {
    if value >= 1000 {
        push_number(out, value / 1000);
        out.push(',');
        let rest = value % 1000;
        for unit in [100, 10, 1] {
            out.push(char::from(b'0' + (rest / unit % 10) as u8));
        }
    } else {
        for unit in [100, 10, 1] {
            if value >= unit || unit == 1 {
                out.push(char::from(b'0' + (value / unit % 10) as u8));
            }
        }
    }
}

/// Appends `text` as the inside of a JSON string.
pub fn push_json_escaped(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c < ' ' => {
                out.push_str("\\u00");
                out.push(char::from(b'0' + (c as u8 >> 4)));
                out.push(char::from(b"0123456789abcdef"[usize::from(c as u8 & 15)]));
            }
            c => out.push(c),
        }
    }
}

/// The value of the first `"key": "…"` in a JSON text, when it holds no escapes.
///
/// Enough to read a reference out of a recall call's arguments; anything unusual is "not found".
#[must_use]
pub fn json_string_field<'a>(json: &'a str, key: &str) -> Option<&'a str> {
    let mut rest = json;
    loop {
        let open = rest.find('"')?;
        let body = &rest[open + 1..];
        let close = body.find(['"', '\\'])?;
        if body.as_bytes()[close] == b'\\' {
            return None;
        }
        let found = &body[..close] == key;
        rest = &body[close + 1..];
        if let (true, Some(value)) = (found, rest.trim_start().strip_prefix(':')) {
            let value = value.trim_start().strip_prefix('"')?;
            let end = value.find(['"', '\\'])?;
            return (value.as_bytes()[end] == b'"').then(|| &value[..end]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_never_split_a_character() {
        let text = "a\u{301}é漢🙂\u{200d}🙂z";
        for n in 0..=text.len() + 2 {
            assert!(text.starts_with(head(text, n)));
            assert!(text.ends_with(tail(text, n)));
        }
        assert_eq!(&text[..head_chars(text, 1)], "", "the accent stays with its letter");
        assert_eq!(&text[..head_chars(text, 5)], "a\u{301}é漢", "a joined emoji is whole or gone");
    }

    #[test]
    fn numbers_and_json() {
        let mut out = String::new();
        for value in [0, 7, 42, 999, 1000, 1_020_003] {
            push_number(&mut out, value);
            out.push(' ');
        }
        assert_eq!(out, "0 7 42 999 1,000 1,020,003 ");
        assert_eq!(json_string_field(r#"{"x":"ref","ref" : "call_4"}"#, "ref"), Some("call_4"));
        assert_eq!(json_string_field(r#"{"ref":"a\"b"}"#, "ref"), None);
        assert_eq!(json_string_field("{}", "ref"), None);
    }
}
