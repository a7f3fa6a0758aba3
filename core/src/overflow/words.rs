//! Cuts an unwrapped error into words, numbers and marks.
//!
//! The reader of numbers is where an exact window is won or lost: `131,072` and `131_072` are one number,
//! `[1, 8192]` is two, `V3-0324` is none, and `128k`, `1.5`, `128 000` or `-7600` are numbers that say
//! nothing exact.

use super::normalize::NARROW_SPACE;
use alloc::{string::String, vec::Vec};
use core::ops::Range;

/// A number as it stands in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Number {
    /// Its value, unless it is rounded, grouped in a way that can be read twice, or part of something else.
    pub(super) value: Option<u64>,
    /// It has a minus sign.
    pub(super) negative: bool,
}

/// One unit of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// A word or an identifier, in lower case.
    Word(Range<usize>),
    /// A word with digits in it: a model, a version, a path, an id.
    Name(Range<usize>),
    /// A number that stands alone.
    Number(Number),
    /// Punctuation; `;` also stands for the border between two JSON fields.
    Mark(char),
}

/// The tokens of one error text.
#[derive(Debug)]
pub(super) struct Text {
    source: String,
    tokens: Vec<Token>,
    error: bool,
}

/// Labels of a message: they say where it stands and are none of its words.
const LABELS: [&str; 12] = [
    "message", "msg", "detail", "details", "error", "errors", "text", "content", "reason", "description", "title", "desc",
];

/// Tags that are dropped. A list, because an error may also set its own words in angle brackets.
const TAGS: [&str; 26] = [
    "a", "b", "body", "br", "center", "code", "div", "em", "font", "footer", "h1", "h2", "h3", "head", "html", "hr",
    "li", "meta", "p", "pre", "script", "span", "strong", "style", "title", "ul",
];

/// Longest tag that is looked through for its end, so that a text full of `<` costs no quadratic time.
const TAG_LENGTH: usize = 1024;

impl Text {
    /// Cuts `source`, which must be in lower case.
    pub(super) fn new(source: String) -> Self {
        let mut lexer = Lexer { source: &source, at: 0, tokens: Vec::new(), error: false };
        while lexer.step() {}
        let (tokens, error) = (lexer.tokens, lexer.error);
        Self { source, tokens, error }
    }

    /// How many tokens there are.
    pub(super) fn len(&self) -> usize {
        self.tokens.len()
    }

    /// The token at `at`.
    pub(super) fn token(&self, at: usize) -> Option<&Token> {
        self.tokens.get(at)
    }

    /// The word at `at`, in the one spelling rules use; empty for anything else.
    pub(super) fn word(&self, at: usize) -> &str {
        match self.tokens.get(at) {
            Some(Token::Word(range) | Token::Name(range)) => canonical(self.source.get(range.clone()).unwrap_or("")),
            _ => "",
        }
    }

    /// The mark at `at`.
    pub(super) fn mark(&self, at: usize) -> Option<char> {
        match self.tokens.get(at) {
            Some(Token::Mark(mark)) => Some(*mark),
            _ => None,
        }
    }

    /// The number at `at`.
    pub(super) fn number(&self, at: usize) -> Option<Number> {
        match self.tokens.get(at) {
            Some(Token::Number(number)) => Some(*number),
            _ => None,
        }
    }

    /// There is a field named `error`.
    pub(super) fn has_error_field(&self) -> bool {
        self.error
    }

    /// The unwrapped text.
    pub(super) fn source(&self) -> &str {
        &self.source
    }

    /// Whether some word is one of `words`.
    pub(super) fn has(&self, words: &[&str]) -> bool {
        (0..self.len()).any(|at| words.contains(&self.word(at)))
    }
}

/// One spelling for words that providers spell in several ways.
fn canonical(word: &str) -> &str {
    match word {
        "maximum" | "maximal" => "max",
        "tokens" | "tok" | "toks" => "token",
        "lenght" | "lengh" | "legnth" | "lengths" => "length",
        "prompts" => "prompt",
        "inputs" => "input",
        "outputs" => "output",
        "windows" => "window",
        "contexts" | "ctx" => "context",
        "limits" | "limitation" => "limit",
        "completions" => "completion",
        _ => word,
    }
}

struct Lexer<'t> {
    source: &'t str,
    at: usize,
    tokens: Vec<Token>,
    error: bool,
}

impl Lexer<'_> {
    fn rest(&self) -> &str {
        self.source.get(self.at..).unwrap_or("")
    }

    fn byte(&self, at: usize) -> u8 {
        self.source.as_bytes().get(at).copied().unwrap_or(0)
    }

    fn before(&self) -> u8 {
        self.at.checked_sub(1).map_or(0, |at| self.byte(at))
    }

    fn mark(&mut self, mark: char, bytes: usize) {
        self.tokens.push(Token::Mark(mark));
        self.at += bytes;
    }

    /// Reads one token or skips one character; false at the end.
    fn step(&mut self) -> bool {
        let Some(c) = self.rest().chars().next() else { return false };
        match c {
            '0'..='9' => self.number(),
            '-' if self.byte(self.at + 1).is_ascii_digit() && self.may_be_sign() => {
                self.at += 1;
                self.number();
                if let Some(Token::Number(number)) = self.tokens.last_mut() {
                    *number = Number { value: None, negative: true };
                }
            }
            '<' if self.tag() => {}
            '>' | '≥' | '<' | '≤' => {
                let skip = c.len_utf8() + usize::from(self.byte(self.at + c.len_utf8()) == b'=');
                self.mark(if matches!(c, '>' | '≥') { '>' } else { '<' }, skip);
            }
            // An arrow compares nothing.
            '-' | '=' if self.byte(self.at + 1) == b'>' => self.mark(':', 2),
            // The comma between two fields of an object is a border no phrase reaches over.
            ',' if self.field_follows() => self.mark(';', 1),
            '"' | '`' | '\'' | '*' => self.at += 1,
            _ if c.is_alphabetic() || c == '_' => self.run(),
            _ if c.is_ascii_punctuation() => self.mark(c, 1),
            _ => self.at += c.len_utf8(),
        }
        true
    }

    fn field_follows(&self) -> bool {
        let after = self.source.get(self.at + 1..).unwrap_or("").trim_start_matches([' ', '\n', '\r', '\t']);
        after.starts_with(['"', '\''])
    }

    /// `got -5` and `(-5)` have a sign; `4096-8192` and `4096 -5` do not.
    fn may_be_sign(&self) -> bool {
        !self.before().is_ascii_alphanumeric() && !matches!(self.tokens.last(), Some(Token::Number(_)))
    }

    /// Skips an HTML tag; false when this is not one.
    fn tag(&mut self) -> bool {
        let rest = self.source.as_bytes().get(self.at..).unwrap_or(&[]);
        let from = 1 + usize::from(rest.get(1) == Some(&b'/'));
        let named = rest.get(from..).unwrap_or(&[]);
        let length = named.iter().take_while(|b| b.is_ascii_alphanumeric()).count();
        let name = core::str::from_utf8(named.get(..length).unwrap_or(&[])).unwrap_or("");
        let known = TAGS.contains(&name) || named.starts_with(b"!doctype") || named.starts_with(b"!--");
        let end = rest.iter().take(TAG_LENGTH).position(|&b| b == b'>');
        let Some(end) = end.filter(|_| known) else { return false };
        self.at += end + 1;
        if from == 1 && matches!(name, "script" | "style") {
            // Code and styles are full of limits that are none. Without an end nothing else follows either.
            let close = if name == "script" { "</script" } else { "</style" };
            self.at = self.rest().find(close).map_or(self.source.len(), |found| self.at + found);
        }
        // Whatever stood before a tag is finished: `<h1>413</h1>` binds nothing after it.
        self.tokens.push(Token::Mark(';'));
        true
    }

    /// Reads a word, an identifier, or a name with digits in it.
    fn run(&mut self) {
        let start = self.at;
        let rest = self.rest();
        if rest.starts_with("http://") || rest.starts_with("https://") {
            let end = rest.find([' ', '"', '\'', '<', '>', '(', ')', '\n', '\t']).unwrap_or(rest.len());
            self.at += end;
            return;
        }
        // The longest run of letters, digits and the marks that join them in a name.
        let mut end = 0;
        let mut digits = false;
        let mut chars = rest.char_indices().peekable();
        let ascii = rest.starts_with(|c: char| c.is_ascii());
        while let Some((at, c)) = chars.next() {
            let joins = matches!(c, '-' | '.' | '/' | '@')
                && chars.peek().is_some_and(|(_, next)| next.is_ascii_alphanumeric() || *next == '_');
            // A script without spaces runs into ASCII words and numbers: there the word ends.
            let inside = if ascii { c.is_ascii_alphanumeric() || c == '_' || joins } else { !c.is_ascii() && c.is_alphabetic() };
            if !inside && !(ascii && c.is_alphabetic() && c < '\u{250}') {
                break;
            }
            digits |= c.is_ascii_digit();
            end = at + c.len_utf8();
        }
        self.at = start + end.max(1);
        let run = start..self.at;
        let text = self.source.get(run.clone()).unwrap_or("");
        if digits || text.starts_with("x-") {
            self.tokens.push(Token::Name(run));
            return;
        }
        if let Some(end) = self.label_end(text) {
            self.error |= text == "error";
            self.at = end;
            self.tokens.push(Token::Mark(';'));
            return;
        }
        let mut from = start;
        for (at, c) in text.char_indices() {
            if matches!(c, '-' | '.' | '/' | '@') {
                self.tokens.push(Token::Word(from..start + at));
                from = start + at + 1;
                if c != '-' {
                    self.tokens.push(Token::Mark(c));
                }
            }
        }
        self.tokens.push(Token::Word(from..self.at));
        // `model's` is the model; the rest of `can't` is a word of its own, which no rule reads.
        if self.byte(self.at) == b'\'' && self.byte(self.at + 1) == b's' && !self.byte(self.at + 2).is_ascii_alphanumeric()
        {
            self.at += 2;
        }
    }

    /// Where the text after the label `word` begins; nothing when `word` is none.
    fn label_end(&self, word: &str) -> Option<usize> {
        if !LABELS.contains(&word) {
            return None;
        }
        let after = self.rest().trim_start_matches(['"', '\'', ' ']);
        after.starts_with([':', '=']).then_some(self.source.len() - after.len() + 1)
    }

    /// Reads a number with its separators and decides whether it says anything exact.
    fn number(&mut self) {
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
    use super::*;
    use alloc::string::ToString;

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
            "128k", "1.5", "131.072", "128 000", "-7600", "1,31,072", "2024-10-22", "12:30", "5000/4096", "30mb", "5%",
            "input[15]", "99999999999999999999999", "0324", "#99", "12.8万", "$100", "1e5",
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

    #[test]
    fn pages_are_read_without_their_tags() {
        let text = Text::new("<html><style>p{max:1}</style><h1>413 too large</h1> a < b".to_string());
        let words: Vec<_> = (0..text.len()).map(|at| text.word(at)).filter(|w| !w.is_empty()).collect();
        assert_eq!(words, ["too", "large", "a", "b"]);
        assert!(Text::new("<p".repeat(20_000)).len() <= 40_000);
    }
}
