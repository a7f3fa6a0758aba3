//! JSON lines.

use super::body::start_of;
use super::error::FormatError;
use super::json::{Json, check, skip_space};

/// One line that is not blank.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line<'a> {
    text: &'a str,
    pub(crate) start: usize,
    end: usize,
    last: bool,
}

impl<'a> Line<'a> {
    /// The checked value that the line is.
    pub(crate) fn value(&self) -> Result<Json<'a>, FormatError> {
        let bytes = self.text.as_bytes();
        let within = bytes.get(..self.end).unwrap_or(bytes);
        let end = check(within, self.start).map_err(|fault| {
            let mut error = FormatError::here(bytes, fault.offset, fault.expected);
            if fault.offset >= self.end {
                error.found = "the end of the line".into();
            }
            error
        })?;
        let rest = skip_space(within, end);
        if rest < self.end {
            return Err(FormatError::here(bytes, rest, "one JSON value a line"));
        }
        Ok(Json::at(self.text, self.start))
    }

    /// Whether this is the last line and was cut before its line feed: a recorder that died while it wrote.
    pub(crate) const fn may_be_cut(&self) -> bool {
        self.last && self.end == self.text.len()
    }
}

/// All lines that are not blank.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    let bytes = text.as_bytes();
    let mut at = start_of(text);
    std::iter::from_fn(move || {
        while at < bytes.len() {
            let feed = memchr::memchr(b'\n', &bytes[at..]).map(|feed| at + feed);
            let end = feed.unwrap_or(bytes.len());
            let start = skip_space(&bytes[..end], at);
            at = end + 1;
            if start < end {
                return Some(Line { text, start, end, last: feed.is_none() });
            }
        }
        None
    })
}

/// Whether `text` is JSON lines rather than one document: a value ends in its first line and another line follows.
pub(crate) fn is_lines(text: &str) -> bool {
    let mut lines = lines(text);
    let (Some(first), Some(_)) = (lines.next(), lines.next()) else { return false };
    first.value().is_ok()
}
