//! The reader of numbers, where an exact window is won or lost.
//!
//! `131,072` and `131_072` are one number, `[1, 8192]` is two, `V3-0324` is none, and `128k`, `1.5`, `128 000` or
//! `-7600` are numbers that say nothing exact.

use super::normalize::NARROW_SPACE;
use super::words::{Lexer, Token};

/// A number as it stands in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Number {
    /// Its value, unless it is rounded, grouped in a way that can be read twice, or part of something else.
    pub(super) value: Option<u64>,
    /// It has a minus sign.
    pub(super) negative: bool,
}

impl Lexer<'_> {
    /// Reads a number with its separators and decides whether it says anything exact.
    pub(super) fn number(&mut self) {
        let before = self.before();
        let start = self.at;
        let length = self.digits(start);
        self.at += length;
        // A number with a leading zero is part of a name or a date.
        let mut exact = !(self.byte(start) == b'0' && length > 1);
        exact &= !matches!(before, b'#' | b'$' | b'@' | b'~' | b'.') && !self.is_index(start);
        let mut value = self.digits_value(Some(0), start, length);

        // Groups of three after one separator, which stays the same.
        let separator = self.rest().chars().next().filter(|c| matches!(*c, ',' | '_' | '\'' | '.' | NARROW_SPACE));
        let mut groups = 0;
        if let Some(separator) = separator.filter(|_| length <= 3) {
            while self.rest().starts_with(separator) && self.digits(self.at + separator.len_utf8()) == 3 {
                let group = self.at + separator.len_utf8();
                // `[1,131,072]` can be read twice; `[1,048,576]` cannot.
                let lower = length == 1 && matches!(self.byte(start), b'0' | b'1') && before == b'[';
                exact &= !(groups == 0 && lower && self.byte(group) != b'0');
                value = self.digits_value(value, group, 3);
                self.at = group + 3;
                groups += 1;
            }
        }
        // `131.072` is a decimal in one country and grouped in the next.
        exact &= !(separator == Some('.') && groups == 1);
        // Whatever else joins digits makes a date, an address, a fraction or a foreign grouping: one unit,
        // and nothing exact. Only the comma of an interval separates two numbers.
        while matches!(self.byte(self.at), b'.' | b',' | b'/' | b':' | b'-' | b'_' | b'\'')
            && self.byte(self.at + 1).is_ascii_digit()
            && !(self.byte(self.at) == b',' && self.in_interval())
        {
            self.at += 1;
            self.at += self.digits(self.at);
            exact = false;
        }
        // `128 000`: one number, or two?
        while groups == 0 && length <= 3 && self.byte(self.at) == b' ' && self.digits(self.at + 1) == 3 {
            self.at += 4;
            exact = false;
        }
        exact &= !self.suffixed();
        // `32768-token limit` is two words.
        if ["-token", "-tok", "-context"].iter().any(|joined| self.rest().starts_with(joined)) {
            self.at += 1;
        }
        self.tokens.push(Token::Number(Number { value: value.filter(|_| exact), negative: false }));
    }

    /// How many digits stand at `at`.
    fn digits(&self, at: usize) -> usize {
        self.source.as_bytes().get(at..).unwrap_or(&[]).iter().take_while(|b| b.is_ascii_digit()).count()
    }

    /// Appends `length` digits to `value`; nothing when they do not fit.
    fn digits_value(&self, value: Option<u64>, at: usize, length: usize) -> Option<u64> {
        let digits = self.source.as_bytes().get(at..at + length)?;
        digits.iter().try_fold(value?, |value, b| value.checked_mul(10)?.checked_add(u64::from(b - b'0')))
    }

    /// The number being read is the first in brackets.
    fn in_interval(&self) -> bool {
        matches!(self.tokens.last(), Some(Token::Mark('[' | '(')))
    }

    /// `input[15]` counts elements.
    fn is_index(&self, at: usize) -> bool {
        let before = |back: usize| at.checked_sub(back).map_or(0, |at| self.byte(at));
        before(1) == b'[' && (before(2).is_ascii_alphanumeric() || matches!(before(2), b'_' | b']' | b'\'' | b'"'))
    }

    /// A suffix rounds (`128k`), measures something else (`30MB`), or makes a name (`01-ai`).
    fn suffixed(&self) -> bool {
        let rest = self.rest();
        let word = rest.strip_prefix('-').unwrap_or(rest);
        let letters = word.find(|c: char| !c.is_ascii_lowercase() && c != '_').unwrap_or(word.len());
        match word.get(..letters).unwrap_or("") {
            "" => rest.starts_with(['%', '万', '千', '亿', '萬', '億']),
            "token" | "tokens" | "tok" | "toks" | "context" => false,
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::overflow::words::Text;
    use alloc::{string::ToString, vec::Vec};

    fn numbers(text: &str) -> Vec<Option<u64>> {
        let text = Text::new(text.to_string());
        (0..text.len()).filter_map(|at| text.number(at)).map(|n| n.value).collect()
    }

    #[test]
    fn separators_do_not_split_a_number() {
        for text in ["131072", "131,072", "131_072", "131'072", "131\u{a0}072", "(131072)", "131072.", "131072tokens"] {
            assert_eq!(numbers(text), [Some(131_072)], "{text}");
        }
        assert_eq!(numbers("1,048,576"), [Some(1_048_576)]);
        assert_eq!(numbers("1.048.576"), [Some(1_048_576)]);
        assert_eq!(numbers("max_tokens=8192-token"), [Some(8192)]);
    }

    #[test]
    fn what_is_not_exact_has_no_value() {
        for text in [
            "128k",
            "1.5",
            "131.072",
            "128 000",
            "-7600",
            "1,31,072",
            "2024-10-22",
            "12:30",
            "5000/4096",
            "30mb",
            "5%",
            "input[15]",
            "99999999999999999999999",
            "0324",
            "#99",
            "12.8万",
            "$100",
            "1e5",
        ] {
            assert_eq!(numbers(text), [None], "{text}");
        }
        assert_eq!(numbers("some-model-v3-0324 gpt-4.1 req_01abc"), []);
    }

    #[test]
    fn intervals_are_two_numbers() {
        assert_eq!(numbers("[1, 8192]"), [Some(1), Some(8192)]);
        assert_eq!(numbers("[1,66000]"), [Some(1), Some(66_000)]);
        assert_eq!(numbers("[1, 131,072]"), [Some(1), Some(131_072)]);
        assert_eq!(numbers("[1,131,072]"), [None]);
        assert_eq!(numbers("[1,048,576]"), [Some(1_048_576)]);
    }
}
