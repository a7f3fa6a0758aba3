//! JSON without copies: a checked scan once, lazy spans ever after.
//!
//! serde_json would do for structure, but not for what is asked here: exact byte spans of every value and
//! member, strings with lone surrogates, duplicate keys, and nesting of any depth without recursion.

use std::borrow::Cow;

use memchr::memchr2;

/// A stretch of the source, in bytes. Inputs above 4 GiB are refused, so 32 bits do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: u32,
    pub(crate) end: u32,
}

impl Span {
    /// No place: what has no bytes of its own in the source.
    pub(crate) const NONE: Self = Self { start: 0, end: 0 };

    pub(crate) fn new(start: usize, end: usize) -> Self {
        Self { start: u32::try_from(start).unwrap_or(u32::MAX), end: u32::try_from(end).unwrap_or(u32::MAX) }
    }

    pub(crate) const fn is_none(self) -> bool {
        self.end == 0
    }

    pub(crate) const fn contains(self, other: Self) -> bool {
        self.start <= other.start && other.end <= self.end
    }

    pub(crate) fn of(self, text: &str) -> &str {
        text.get(self.start as usize..self.end as usize).unwrap_or_default()
    }
}

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
    start: u32,
    end: u32,
    next: u32,
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
fn skip_value(bytes: &[u8], mut at: usize) -> usize {
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

/// A value in checked text: nothing is parsed until asked, and no question can fail.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Json<'a> {
    source: &'a str,
    marks: &'a [Mark],
    start: u32,
    end: u32,
    /// The first mark at or after the start.
    mark: u32,
}

/// A member of an object: the value, and the stretch from key to value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field<'a> {
    pub(crate) key: Json<'a>,
    pub(crate) value: Json<'a>,
}

impl Field<'_> {
    /// Key, colon and value: what goes when the member goes.
    pub(crate) fn item(&self) -> Span {
        Span { start: self.key.start, end: self.value.end }
    }
}

impl<'a> std::ops::Deref for Field<'a> {
    type Target = Json<'a>;
    fn deref(&self) -> &Json<'a> {
        &self.value
    }
}

impl<'a> Json<'a> {
    /// The checked value that starts at or after `start`, without marks.
    pub(crate) fn at(source: &'a str, start: usize) -> Self {
        Self::marked(source, &[], start, 0)
    }

    /// The checked value that starts at or after `start`; `mark` is the first mark at or after it.
    pub(crate) fn marked(source: &'a str, marks: &'a [Mark], start: usize, mark: usize) -> Self {
        let start = skip_space(source.as_bytes(), start);
        let mark = u32::try_from(mark).unwrap_or(u32::MAX);
        value_at(source, marks, u32::try_from(start).unwrap_or(u32::MAX), mark).0
    }

    /// The checked value that fills `span`, without marks.
    pub(crate) const fn spanning(source: &'a str, span: Span) -> Self {
        Self { source, marks: &[], start: span.start, end: span.end, mark: 0 }
    }

    pub(crate) const fn span(self) -> Span {
        Span { start: self.start, end: self.end }
    }

    pub(crate) const fn start(self) -> usize {
        self.start as usize
    }

    pub(crate) const fn end(self) -> usize {
        self.end as usize
    }

    pub(crate) const fn source(self) -> &'a str {
        self.source
    }

    /// The raw text of the value.
    pub(crate) fn raw(self) -> &'a str {
        self.span().of(self.source)
    }

    fn first(self) -> u8 {
        self.source.as_bytes().get(self.start as usize).copied().unwrap_or_default()
    }

    pub(crate) fn is_object(self) -> bool {
        self.first() == b'{'
    }

    pub(crate) fn is_array(self) -> bool {
        self.first() == b'['
    }

    pub(crate) fn is_string(self) -> bool {
        self.first() == b'"'
    }

    pub(crate) fn is_null(self) -> bool {
        self.first() == b'n'
    }

    pub(crate) fn is_true(self) -> bool {
        self.first() == b't'
    }

    /// The text between the quotes, escapes and all; `None` when this is no string.
    pub(crate) fn inner(self) -> Option<&'a str> {
        self.is_string().then(|| self.inner_span().of(self.source))
    }

    /// Where the text between the quotes stands.
    pub(crate) fn inner_span(self) -> Span {
        Span { start: self.start + 1, end: self.end.saturating_sub(1) }
    }

    /// The decoded string, borrowed when it has no escapes.
    pub(crate) fn string(self) -> Option<Cow<'a, str>> {
        self.inner().map(|raw| {
            if raw.contains('\\') {
                let mut out = Vec::new();
                unescape(raw, &mut out);
                Cow::Owned(String::from_utf8_lossy(&out).into_owned())
            } else {
                Cow::Borrowed(raw)
            }
        })
    }

    /// Whether this is the string `text`.
    pub(crate) fn is(self, text: &str) -> bool {
        match self.inner() {
            Some(raw) if raw == text => true,
            Some(raw) if raw.contains('\\') => self.string().as_deref() == Some(text),
            _ => false,
        }
    }

    /// A number without sign, fraction or exponent.
    pub(crate) fn integer(self) -> Option<u64> {
        self.raw().parse().ok()
    }

    /// The elements of an array; nothing for other values.
    pub(crate) fn items(self) -> Items<'a> {
        Items(self.inside(self.is_array()))
    }

    /// The members of an object, in order; nothing for other values.
    pub(crate) fn members(self) -> Members<'a> {
        Members(self.inside(self.is_object()))
    }

    fn inside(self, holds: bool) -> Walk<'a> {
        let own = self.marks.get(self.mark as usize).is_some_and(|mark| mark.start == self.start);
        let at = if holds { self.start + 1 } else { self.end };
        Walk { source: self.source, marks: self.marks, at, end: self.end, mark: self.mark + u32::from(own) }
    }

    /// The named members in one walk. Of a key that stands twice the last counts, as for every provider's parser.
    pub(crate) fn fields<const N: usize>(self, names: [&str; N]) -> [Option<Field<'a>>; N] {
        let mut found = [None; N];
        for field in self.members() {
            let key = field.key.inner().unwrap_or_default();
            let slot = if key.contains('\\') {
                let key = field.key.string().unwrap_or_default();
                names.iter().position(|name| *name == key)
            } else {
                names.iter().position(|name| *name == key)
            };
            if let Some(slot) = slot {
                found[slot] = Some(field);
            }
        }
        found
    }

    /// One named member's value.
    pub(crate) fn get(self, name: &str) -> Option<Self> {
        let [field] = self.fields([name]);
        field.map(|field| field.value)
    }

    /// The value at the end of a path of keys.
    pub(crate) fn path(self, names: &[&str]) -> Option<Self> {
        names.iter().try_fold(self, |value, name| value.get(name))
    }
}

/// The value at `start`, and the first mark after it.
fn value_at<'a>(source: &'a str, marks: &'a [Mark], start: u32, mark: u32) -> (Json<'a>, u32) {
    let (end, next) = match marks.get(mark as usize) {
        Some(found) if found.start == start => (found.end, found.next),
        _ => (u32::try_from(skip_value(source.as_bytes(), start as usize)).unwrap_or(u32::MAX), mark),
    };
    (Json { source, marks, start, end, mark }, next)
}

/// A walk over what a container holds.
#[derive(Clone, Debug)]
struct Walk<'a> {
    source: &'a str,
    marks: &'a [Mark],
    at: u32,
    end: u32,
    mark: u32,
}

impl<'a> Walk<'a> {
    /// Where the next element or key starts, if there is one.
    fn start(&mut self) -> Option<u32> {
        let bytes = self.source.as_bytes();
        let mut at = skip_space(bytes, self.at as usize);
        if bytes.get(at) == Some(&b',') {
            at = skip_space(bytes, at + 1);
        }
        let start = u32::try_from(at).unwrap_or(u32::MAX);
        if start.saturating_add(1) >= self.end || matches!(bytes.get(at), None | Some(b']' | b'}')) {
            self.at = self.end;
            return None;
        }
        Some(start)
    }

    fn value(&mut self, start: u32) -> Json<'a> {
        let (value, next) = value_at(self.source, self.marks, start, self.mark);
        (self.at, self.mark) = (value.end, next);
        value
    }
}

/// Elements of an array.
#[derive(Clone, Debug)]
pub(crate) struct Items<'a>(Walk<'a>);

impl<'a> Iterator for Items<'a> {
    type Item = Json<'a>;

    fn next(&mut self) -> Option<Json<'a>> {
        let start = self.0.start()?;
        Some(self.0.value(start))
    }
}

/// Members of an object.
#[derive(Clone, Debug)]
pub(crate) struct Members<'a>(Walk<'a>);

impl<'a> Iterator for Members<'a> {
    type Item = Field<'a>;

    fn next(&mut self) -> Option<Field<'a>> {
        let start = self.0.start()?;
        let key = self.0.value(start);
        let bytes = self.0.source.as_bytes();
        let colon = skip_space(bytes, key.end());
        let value = u32::try_from(skip_space(bytes, colon + 1)).unwrap_or(u32::MAX);
        Some(Field { key, value: self.0.value(value) })
    }
}

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

    #[test]
    fn spans_are_exact_and_the_last_of_a_double_key_counts() {
        let source = r#" { "a" : [ 1 , "x" ] , "b\u0063" : {} , "a" : true } "#;
        let json = Json::at(source, 0);
        let [a, bc] = json.fields(["a", "bc"]);
        assert!(a.is_some_and(|a| a.is_true()));
        assert_eq!(bc.map(|bc| bc.item().of(source)), Some(r#""b\u0063" : {}"#));
        let first = json.members().next().map(|f| f.value.items().map(Json::raw).collect::<Vec<_>>());
        assert_eq!(first, Some(vec!["1", "\"x\""]));
        assert_eq!(Json::at("[]", 0).items().count() + Json::at("{ }", 0).members().count(), 0);
        assert_eq!(Json::at("[1]", 0).items().count(), 1);
    }

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
