//! Cuts an unwrapped error into words, numbers and marks.

use super::numbers::Number;
use alloc::{string::String, vec::Vec};
use core::ops::Range;

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
    /// The places of the tokens, grouped by what the tokens say; each group in ascending order.
    places: Vec<Vec<usize>>,
    error: bool,
}

/// Labels of a message: they say where it stands and are none of its words.
const LABELS: [&str; 12] = [
    "message",
    "msg",
    "detail",
    "details",
    "error",
    "errors",
    "text",
    "content",
    "reason",
    "description",
    "title",
    "desc",
];

/// Tags that are dropped. A list, because an error may also set its own words in angle brackets.
const TAGS: [&str; 26] = [
    "a", "b", "body", "br", "center", "code", "div", "em", "font", "footer", "h1", "h2", "h3", "head", "html", "hr",
    "li", "meta", "p", "pre", "script", "span", "strong", "style", "title", "ul",
];

/// Longest tag that is looked through for its end, so that a text full of `<` costs no quadratic time.
const TAG_LENGTH: usize = 256;

impl Text {
    /// Cuts `source`, which must be in lower case.
    pub(super) fn new(source: String) -> Self {
        let mut lexer = Lexer { source: &source, at: 0, tokens: Vec::new(), error: false };
        while lexer.step() {}
        let (tokens, error) = (lexer.tokens, lexer.error);
        let mut text = Self { source, tokens, places: Vec::new(), error };
        let mut order: Vec<usize> = (0..text.len()).collect();
        order.sort_by(|&a, &b| text.says(a).cmp(&text.says(b)).then(a.cmp(&b)));
        let groups = order.chunk_by(|&a, &b| text.says(a) == text.says(b)).map(<[usize]>::to_vec);
        text.places = groups.collect();
        text
    }

    /// What the token at `at` says, so far as a pattern's element can tell.
    fn says(&self, at: usize) -> (&str, Option<char>, Option<(bool, bool)>) {
        let number = self.number(at).map(|number| (number.value.is_none_or(|value| value > 0), number.negative));
        (self.word(at), self.mark(at), number)
    }

    /// The places of equal tokens, group by group.
    pub(super) fn places(&self) -> &[Vec<usize>] {
        &self.places
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

/// Reads the text from the front.
pub(super) struct Lexer<'t> {
    pub(super) source: &'t str,
    pub(super) at: usize,
    pub(super) tokens: Vec<Token>,
    error: bool,
}

impl Lexer<'_> {
    pub(super) fn rest(&self) -> &str {
        self.source.get(self.at..).unwrap_or("")
    }

    pub(super) fn byte(&self, at: usize) -> u8 {
        self.source.as_bytes().get(at).copied().unwrap_or(0)
    }

    pub(super) fn before(&self) -> u8 {
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
            // Ends nothing in the texts seen; as a token it is the border of a field.
            ';' => self.mark(',', 1),
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
            let inside = match ascii {
                true => c.is_ascii_alphanumeric() || c == '_' || joins || c.is_alphabetic() && c < '\u{250}',
                false => !c.is_ascii() && c.is_alphabetic(),
            };
            if !inside {
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
        if self.byte(self.at) == b'\''
            && self.byte(self.at + 1) == b's'
            && !self.byte(self.at + 2).is_ascii_alphanumeric()
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn pages_are_read_without_their_tags() {
        let text = Text::new("<html><style>p{max:1}</style><h1>413 too large</h1> a < b".to_string());
        let words: Vec<_> = (0..text.len()).map(|at| text.word(at)).filter(|w| !w.is_empty()).collect();
        assert_eq!(words, ["too", "large", "a", "b"]);
        assert!(Text::new("<p".repeat(20_000)).len() <= 40_000);
    }
}
