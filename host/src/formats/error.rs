//! The one error of reading: where, what was expected, what stands there.

use std::fmt;

/// Input that cannot be read, with its place. The program puts the file's name in front.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormatError {
    /// Byte offset in the input, counted from 0.
    pub offset: usize,
    /// Line of that byte, counted from 1.
    pub line: usize,
    /// What would have been right there.
    pub expected: String,
    /// What stands there instead.
    pub found: String,
}

impl FormatError {
    /// An error at `offset` of `bytes`; the line is counted here, since it is needed only now.
    pub(crate) fn at(bytes: &[u8], offset: usize, expected: impl Into<String>, found: impl Into<String>) -> Self {
        let offset = offset.min(bytes.len());
        let line = 1 + memchr::memchr_iter(b'\n', &bytes[..offset]).count();
        Self { offset, line, expected: expected.into(), found: found.into() }
    }

    /// The same, with what stands there read off the bytes.
    pub(crate) fn here(bytes: &[u8], offset: usize, expected: impl Into<String>) -> Self {
        Self::at(bytes, offset, expected, glimpse(bytes, offset))
    }
}

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {} (byte {}): expected {}, found {}", self.line, self.offset, self.expected, self.found)
    }
}

impl std::error::Error for FormatError {}

/// A few printable characters of what stands at `offset`.
fn glimpse(bytes: &[u8], offset: usize) -> String {
    let Some(rest) = bytes.get(offset..).filter(|rest| !rest.is_empty()) else {
        return "the end of the input".into();
    };
    let shown: String =
        String::from_utf8_lossy(&rest[..rest.len().min(64)]).chars().take_while(|c| !c.is_control()).take(24).collect();
    if shown.is_empty() { format!("byte 0x{:02x}", rest[0]) } else { format!("`{shown}`") }
}
