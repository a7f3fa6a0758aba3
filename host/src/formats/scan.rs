//! The one scan that checks JSON, and the skipping that needs no check any more.
//!
//! serde_json would do for structure, but not for what is asked here: exact byte spans of every value and
//! member, strings with lone surrogates, duplicate keys, and nesting of any depth without recursion.

use memchr::memchr2;

/// Where a scan stopped, and what it wanted there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) offset: usize,
    pub(crate) expected: &'static str,
}

const fn fault<T>(offset: usize, expected: &'static str) -> Result<T, Fault> {
    Err(Fault { offset, expected })
}

/// First byte at or after `at` that is not JSON white space.
pub(crate) fn skip_space(bytes: &[u8], mut at: usize) -> usize {
    while matches!(bytes.get(at), Some(b' ' | b'\n' | b'\r' | b'\t')) {
        at += 1;
    }
    at
}

/// A value that is not worth scanning twice: where it ends, and the mark of the first value after it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    pub(super) start: u32,
    pub(super) end: u32,
    pub(super) next: u32,
}

/// Shorter values are skipped by scanning; they and all inside them have no marks.
const MARKED: usize = 48;

/// Checks the value that starts at or after `start` and returns its end, leaving marks of what is long.
///
/// Iterative: a level of nesting costs eight bytes, and no stack.
pub(crate) fn check(bytes: &[u8], start: usize, marks: &mut Vec<Mark>) -> Result<usize, Fault> {
    let mut open: Vec<(u8, u32)> = Vec::new();
    let mut at = skip_space(bytes, start);
    'value: loop {
        match bytes.get(at) {
            Some(b'{') => {
                let mark = begin(marks, at);
                at = skip_space(bytes, at + 1);
                if bytes.get(at) == Some(&b'}') {
                    at += 1;
                    finish(marks, mark, at);
                } else {
                    open.push((b'}', mark));
                    at = check_key(bytes, at, marks)?;
                    continue 'value;
                }
            }
            Some(b'[') => {
                let mark = begin(marks, at);
                at = skip_space(bytes, at + 1);
                if bytes.get(at) == Some(&b']') {
                    at += 1;
                    finish(marks, mark, at);
                } else {
                    open.push((b']', mark));
                    continue 'value;
                }
            }
            Some(b'"') => at = check_string(bytes, at, marks)?,
            Some(b'-' | b'0'..=b'9') => at = check_number(bytes, at)?,
            _ => at = check_word(bytes, at)?,
        }
        loop {
            let Some(&(close, mark)) = open.last() else { return Ok(at) };
            at = skip_space(bytes, at);
            match bytes.get(at) {
                Some(b',') => {
                    at = skip_space(bytes, at + 1);
                    if close == b'}' {
                        at = check_key(bytes, at, marks)?;
                    }
                    continue 'value;
                }
                Some(&byte) if byte == close => {
                    open.pop();
                    at += 1;
                    finish(marks, mark, at);
                }
                _ => return fault(at, if close == b'}' { "`,` or `}`" } else { "`,` or `]`" }),
            }
        }
    }
}

fn begin(marks: &mut Vec<Mark>, at: usize) -> u32 {
    let mark = u32::try_from(marks.len()).unwrap_or(u32::MAX);
    marks.push(Mark { start: u32::try_from(at).unwrap_or(u32::MAX), end: 0, next: 0 });
    mark
}

fn finish(marks: &mut Vec<Mark>, mark: u32, end: usize) {
    let next = u32::try_from(marks.len()).unwrap_or(u32::MAX);
    if let Some(open) = marks.get_mut(mark as usize) {
        if end - (open.start as usize) < MARKED {
            marks.truncate(mark as usize);
        } else {
            (open.end, open.next) = (u32::try_from(end).unwrap_or(u32::MAX), next);
        }
    }
}

/// A key and its colon; returns where the value starts.
fn check_key(bytes: &[u8], at: usize, marks: &mut Vec<Mark>) -> Result<usize, Fault> {
    if bytes.get(at) != Some(&b'"') {
        return fault(at, "a key in double quotes");
    }
    let colon = skip_space(bytes, check_string(bytes, at, marks)?);
    if bytes.get(colon) != Some(&b':') {
        return fault(colon, "`:`");
    }
    Ok(skip_space(bytes, colon + 1))
}

/// Offset from `from` of the first byte that is a quote, a backslash or a control character: eight bytes a step.
fn plain_run(bytes: &[u8], from: usize) -> Option<usize> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let zero_bytes = |word: u64| word.wrapping_sub(ONES) & !word & HIGH;
    let rest = bytes.get(from..)?;
    let mut words = rest.chunks_exact(8);
    for (at, word) in words.by_ref().enumerate() {
        let word = u64::from_le_bytes(word.try_into().ok()?);
        // The lowest set bit is exact; higher ones may be borrow noise.
        let below_space = word.wrapping_sub(ONES * 0x20) & !word & HIGH;
        let found = zero_bytes(word ^ (ONES * 0x22)) | zero_bytes(word ^ (ONES * 0x5C)) | below_space;
        if found != 0 {
            return Some(at * 8 + found.trailing_zeros() as usize / 8);
        }
    }
    let tail = words.remainder();
    let at = tail.iter().position(|&byte| byte == b'"' || byte == b'\\' || byte < 0x20)?;
    Some(rest.len() - tail.len() + at)
}

fn check_string(bytes: &[u8], quote: usize, marks: &mut Vec<Mark>) -> Result<usize, Fault> {
    let mut from = quote + 1;
    loop {
        let Some(run) = plain_run(bytes, from) else {
            return fault(bytes.len(), "the closing quote of a string");
        };
        let mark = from + run;
        from = match (bytes[mark], bytes.get(mark + 1)) {
            (b'"', _) => {
                if mark + 1 - quote >= MARKED {
                    let this = begin(marks, quote);
                    finish(marks, this, mark + 1);
                }
                return Ok(mark + 1);
            }
            (b'\\', Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't')) => mark + 2,
            (b'\\', Some(b'u'))
                if bytes.get(mark + 2..mark + 6).is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit)) =>
            {
                mark + 6
            }
            (b'\\', _) => return fault(mark, "a valid escape"),
            _ => return fault(mark, "no raw control character in a string"),
        };
    }
}

fn check_number(bytes: &[u8], start: usize) -> Result<usize, Fault> {
    let digits = |mut at: usize| {
        while bytes.get(at).is_some_and(u8::is_ascii_digit) {
            at += 1;
        }
        at
    };
    let mut at = start + usize::from(bytes[start] == b'-');
    let whole = digits(at);
    if whole == at || (whole > at + 1 && bytes[at] == b'0') {
        return fault(start, "a JSON number");
    }
    at = whole;
    if bytes.get(at) == Some(&b'.') {
        let end = digits(at + 1);
        if end == at + 1 {
            return fault(start, "a JSON number");
        }
        at = end;
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        let sign = at + 1 + usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
        let end = digits(sign);
        if end == sign {
            return fault(start, "a JSON number");
        }
        at = end;
    }
    Ok(at)
}

fn check_word(bytes: &[u8], at: usize) -> Result<usize, Fault> {
    let rest = bytes.get(at..).unwrap_or_default();
    for word in [&b"null"[..], b"true", b"false"] {
        if rest.starts_with(word) {
            return Ok(at + word.len());
        }
    }
    fault(at, "a JSON value")
}

/// End of the string whose opening quote is at `quote`, in checked text.
fn skip_string(bytes: &[u8], quote: usize) -> usize {
    let mut from = quote + 1;
    while let Some(run) = bytes.get(from..).and_then(|rest| memchr2(b'"', b'\\', rest)) {
        if bytes[from + run] == b'"' {
            return from + run + 1;
        }
        from += run + 2;
    }
    bytes.len()
}

/// End of the value at `at`, in checked text.
pub(super) fn skip_value(bytes: &[u8], mut at: usize) -> usize {
    match bytes.get(at) {
        Some(b'"') => skip_string(bytes, at),
        Some(b'{' | b'[') => {
            let mut depth = 0usize;
            while let Some(&byte) = bytes.get(at) {
                match byte {
                    b'"' => {
                        at = skip_string(bytes, at);
                        continue;
                    }
                    b'{' | b'[' => depth += 1,
                    b'}' | b']' => {
                        depth -= 1;
                        if depth == 0 {
                            return at + 1;
                        }
                    }
                    _ => {}
                }
                at += 1;
            }
            at
        }
        _ => {
            while bytes.get(at).is_some_and(|b| !matches!(b, b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t')) {
                at += 1;
            }
            at
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_json_and_what_is_not() {
        for good in [
            "null",
            "[]",
            "{}",
            "[ ]",
            "-0.5e+3",
            r#"{"a":[1,{"b":null}],"a":2}"#,
            r#""\ud800""#,
            "[[[[]]]]",
            "0",
            " 1 ",
        ] {
            assert!(check(good.as_bytes(), 0, &mut Vec::new()).is_ok(), "{good}");
        }
        for bad in [
            "",
            "[",
            "[1,]",
            "{\"a\"}",
            "{,}",
            "NaN",
            "01",
            "1.",
            "-",
            "\"\u{1}\"",
            "\"\\x\"",
            "\"\\u12g4\"",
            "{1:2}",
            "'a'",
            "[1 2]",
            "tru",
            "\"abc",
        ] {
            assert!(check(bad.as_bytes(), 0, &mut Vec::new()).is_err_and(|f| f.offset <= bad.len()), "{bad}");
        }
        let deep = "[".repeat(1_000_000);
        assert_eq!(check(deep.as_bytes(), 0, &mut Vec::new()), fault(1_000_000, "a JSON value"));
    }
}
