//! A text as parsed: one JSON document, or JSON lines. Checked once, as a whole, before anything is read from it.

use super::error::FormatError;
use super::json::Json;
use super::scan::{Mark, check, skip_space};

/// A checked text. What it lends borrows from it and from the text it was made of.
#[derive(Debug)]
pub(crate) struct Parsed<'a> {
    text: &'a str,
    marks: Vec<Mark>,
    /// Start and first mark of every value.
    values: Vec<(u32, u32)>,
    lines: bool,
    cut: bool,
}

/// Where JSON starts: after a byte order mark.
fn start_of(text: &str) -> usize {
    if text.starts_with('\u{FEFF}') { 3 } else { 0 }
}

impl<'a> Parsed<'a> {
    /// Reads lines when a value ends in the first line and another line follows, else a document.
    pub(crate) fn new(text: &'a str) -> Result<Self, FormatError> {
        let mut lines = lines(text.as_bytes(), start_of(text));
        match (lines.next(), lines.next()) {
            (Some((start, end)), Some(_)) if line(text.as_bytes(), start, end, &mut Vec::new()).is_ok() => {
                Self::lines(text)
            }
            _ => Self::document(text),
        }
    }

    /// Reads the one value that the text is.
    pub(crate) fn document(text: &'a str) -> Result<Self, FormatError> {
        let bytes = text.as_bytes();
        let mut marks = Vec::new();
        let start = skip_space(bytes, start_of(text));
        let end =
            check(bytes, start, &mut marks).map_err(|fault| FormatError::here(bytes, fault.offset, fault.expected))?;
        let rest = skip_space(bytes, end);
        if rest < bytes.len() {
            return Err(FormatError::here(bytes, rest, "nothing after the JSON value"));
        }
        Ok(Self { text, marks, values: vec![(start as u32, 0)], lines: false, cut: false })
    }

    fn lines(text: &'a str) -> Result<Self, FormatError> {
        let bytes = text.as_bytes();
        let mut parsed = Self { text, marks: Vec::new(), values: Vec::new(), lines: true, cut: false };
        for (start, end) in lines(bytes, start_of(text)) {
            let before = parsed.marks.len();
            match line(bytes, start, end, &mut parsed.marks) {
                Ok(()) => parsed.values.push((start as u32, before as u32)),
                // A recorder that died while it wrote leaves half a line, without a line feed.
                Err(_) if end == bytes.len() => {
                    parsed.cut = true;
                    parsed.marks.truncate(before);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(parsed)
    }

    /// Whether these are lines.
    pub(crate) const fn is_lines(&self) -> bool {
        self.lines
    }

    /// Whether half a line at the end was left out.
    pub(crate) const fn is_cut(&self) -> bool {
        self.cut
    }

    /// The values: one a line, or the document.
    pub(crate) fn values(&self) -> impl Iterator<Item = Json<'_>> {
        self.values.iter().map(|&(start, mark)| Json::marked(self.text, &self.marks, start as usize, mark as usize))
    }

    /// The document, or the first line.
    pub(crate) fn root(&self) -> Json<'_> {
        self.values().next().unwrap_or_else(|| Json::at(self.text, self.text.len()))
    }
}

/// Start and end of all lines that are not blank.
fn lines(bytes: &[u8], from: usize) -> impl Iterator<Item = (usize, usize)> {
    let mut at = from;
    std::iter::from_fn(move || {
        while at < bytes.len() {
            let end = memchr::memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |feed| at + feed);
            let start = skip_space(&bytes[..end], at);
            at = end + 1;
            if start < end {
                return Some((start, end));
            }
        }
        None
    })
}

/// Checks that one value fills the line.
fn line(bytes: &[u8], start: usize, end: usize, marks: &mut Vec<Mark>) -> Result<(), FormatError> {
    let within = &bytes[..end];
    let stop = check(within, start, marks).map_err(|fault| {
        let mut error = FormatError::here(bytes, fault.offset, fault.expected);
        if fault.offset >= end {
            error.found = "the end of the line".into();
        }
        error
    })?;
    let rest = skip_space(within, stop);
    if rest < end {
        return Err(FormatError::here(bytes, rest, "one JSON value a line"));
    }
    Ok(())
}
