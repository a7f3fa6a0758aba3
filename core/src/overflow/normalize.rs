//! Takes the wrappers off an error body: escapes, entities, typographic variants, case.
//!
//! Errors arrive as JSON inside a string inside JSON, through gateways that each add a level of
//! backslashes, as HTML pages, or out of Go servers that write `>` as `\u003e`. No level is parsed:
//! a body may be cut anywhere, and a strict parser would then see nothing. Escapes are undone where they
//! stand, whatever the depth, and what is left is plain words.

use alloc::string::String;

/// How much of a body is looked at. Real errors are below 4 KiB; a longer one echoes the request.
pub(super) const LOOKED_AT: usize = 64 * 1024;

/// A thousands separator that is a space but cannot be mistaken for one between two numbers.
pub(super) const NARROW_SPACE: char = '\u{a0}';

/// The longest prefix of `body` that is looked at.
pub(super) fn clip(body: &str) -> &str {
    let mut end = body.len().min(LOOKED_AT);
    while !body.is_char_boundary(end) {
        end -= 1;
    }
    body.get(..end).unwrap_or("")
}

/// `body` in lower case with escapes and entities undone at every depth.
pub(super) fn unwrap(body: &str) -> String {
    let body = clip(body);
    let mut out = String::with_capacity(body.len());
    let mut rest = body.chars();
    while let Some(c) = rest.next() {
        match c {
            '\\' => unescape(&mut rest, &mut out),
            '&' => entity(&mut rest, &mut out),
            _ => push(c, &mut out),
        }
    }
    out
}

/// Reads what follows a backslash. A run of backslashes is one escape that was escaped again.
fn unescape(rest: &mut core::str::Chars<'_>, out: &mut String) {
    while rest.as_str().starts_with('\\') {
        rest.next();
    }
    match rest.clone().next() {
        Some('n' | 't' | 'r') => {
            rest.next();
            out.push(' ');
        }
        Some('u') => {
            let code = rest.as_str().get(1..5).and_then(|hex| u32::from_str_radix(hex, 16).ok());
            // Half of a surrogate pair, or no hex at all: not a character that any rule reads.
            let Some(c) = code.and_then(char::from_u32) else { return out.push(' ') };
            for _ in 0..5 {
                rest.next();
            }
            push(c, out);
        }
        // A quote, a slash, the end: the character speaks for itself.
        _ => {}
    }
}

/// Reads what follows an ampersand. `&amp;gt;` is `&gt;` escaped again.
fn entity(rest: &mut core::str::Chars<'_>, out: &mut String) {
    const NAMED: [(&str, char); 9] = [
        ("gt;", '>'),
        ("lt;", '<'),
        ("ge;", '≥'),
        ("le;", '≤'),
        ("quot;", '"'),
        ("apos;", '\''),
        ("#39;", '\''),
        ("#x27;", '\''),
        ("nbsp;", ' '),
    ];
    while let Some(after) = rest.as_str().strip_prefix("amp;") {
        *rest = after.chars();
    }
    for (name, c) in NAMED {
        if let Some(after) = rest.as_str().strip_prefix(name) {
            *rest = after.chars();
            out.push(c);
            return;
        }
    }
    out.push(' ');
}

/// One character, in lower case, with the typographic variants of punctuation and digits made plain.
fn push(c: char, out: &mut String) {
    match c {
        '\u{2018}' | '\u{2019}' | '\u{02bc}' => out.push('\''),
        '"' | '\u{201c}' | '\u{201d}' | '\u{00ab}' | '\u{00bb}' | '\u{300c}' | '\u{300d}' => out.push('"'),
        '\u{2010}'..='\u{2015}' | '\u{2212}' => out.push('-'),
        '\u{00a0}' | '\u{2007}' | '\u{2009}' | '\u{202f}' => out.push(NARROW_SPACE),
        '。' | '．' => out.push('.'),
        '、' => out.push(','),
        '【' => out.push('['),
        '】' => out.push(']'),
        // The full-width copies of ASCII stand at a fixed distance from the originals.
        '\u{ff01}'..='\u{ff5e}' => {
            let plain = u32::from(c) - 0xfee0;
            out.extend(char::from_u32(plain).map(|c| c.to_ascii_lowercase()));
        }
        _ if c.is_ascii() => out.push(c.to_ascii_lowercase()),
        _ => out.extend(c.to_lowercase()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_undone_at_any_depth() {
        assert_eq!(unwrap(r#"{\\\"a\\\":1}"#), r#"{"a":1}"#);
        assert_eq!(unwrap(r"5 \u003e 4"), "5 > 4");
        assert_eq!(unwrap(r"5 \\u003E 4\\nnext"), "5 > 4 next");
        assert_eq!(unwrap("5 &amp;gt; 4 &#39;x&#39;"), "5 > 4 'x'");
        assert_eq!(unwrap("ＭＡＸ：４０９６"), "max:4096");
        assert_eq!(unwrap(r"\ud83d x \u00"), " ud83d x  u00");
    }

    #[test]
    fn a_long_body_is_cut_at_a_character() {
        let body = "é".repeat(LOOKED_AT);
        assert!(clip(&body).len() <= LOOKED_AT);
        assert!(clip(&("a".repeat(LOOKED_AT - 1) + "é")).len() == LOOKED_AT - 1);
    }
}
