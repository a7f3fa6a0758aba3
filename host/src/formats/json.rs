//! JSON without copies: lazy spans over text that was checked once.

use std::borrow::Cow;

use super::escape::unescape;
use super::scan::{Mark, skip_space, skip_value};

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

    /// A keyword: the decoded string, nothing for other values. Encoders may escape any letter.
    pub(crate) fn word(self) -> Cow<'a, str> {
        self.string().unwrap_or_default()
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
