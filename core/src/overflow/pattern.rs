//! A small language for wordings, and its matcher.
//!
//! A pattern is a row of elements with one space between them:
//!
//! | element | matches |
//! |---|---|
//! | `max\|limit` | one of these words or marks |
//! | `exceed*` | a word that starts so; `*为`: that ends so |
//! | `?token` | the same, or nothing |
//! | `!by` | nothing, where the next token is not this |
//! | `@out` | one word of a named set |
//! | `#` | any number; `#nz` above zero; `#neg` with a minus sign |
//! | `<#>` | any number, and it is the one the pattern is about |
//! | `~4` | up to four tokens, of which none is a number or ends a sentence |
//! | `~~4` | the same, numbers included |
//! | `&4` | up to four linking tokens (`is`, `of`, `:`, `(`, a model's name) |
//! | `&&4` | the same, and one of them states the value (`is`, `of`, `only`) |
//!
//! The first element is a word, a mark or a number. Patterns are constants of this crate; a text of n tokens is matched in O(n) because every gap is bounded.

use super::words::{Text, Token};

/// Named sets of words.
fn set(name: &str) -> &'static str {
    match name {
        // Parameters and words that speak of the reply.
        "out" => {
            "max_tokens|max_new_tokens|max_output_tokens|max_completion_tokens|max_tokens_to_sample|max_gen_tokens\
             |max_generated_tokens|maxoutputtokens|maxtokens|maxnewtokens|maxcompletiontokens|num_predict|n_predict\
             |output_tokens|completion_tokens|max_length_output|max_gen_len|maxtokencount"
        }
        "reply" => "output|completion|response|generation|generated|reply",
        // What a caller sends.
        "sent" => {
            "prompt|input|conversation|context|history|messages|transcript|chat|query|instructions|prompt_tokens\
             |input_tokens|prompt_length|input_length|prompt_len|input_len|n_prompt_tokens|num_tokens|token_count"
        }
        // Fields that hold the window and nothing else.
        "field" => {
            "n_ctx|num_ctx|max_model_len|context_window|context_length|max_context_length|context_size|contextlength\
             |contextwindow|max_context_tokens|model_context_length|max_position_embeddings|n_ctx_slot|max_seq_len\
             |max_context_len|context_limit|max_context_window|model_max_context|ctx_size|max_sequence_length\
             |model_context_window|max_context_size|max_total_tokens|max_seq_length"
        }
        // Fields that hold what may be sent.
        "infield" => {
            "max_input_tokens|max_prompt_tokens|max_input_length|max_prompt_length|input_token_limit|inputtokenlimit|maxinputtokens"
        }
        "room" => "length|size|window|limit|capacity|budget|len",
        _ => "",
    }
}

/// Where a pattern matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Match {
    /// The first token.
    pub(super) start: usize,
    /// The number that `<#>` stood for.
    pub(super) number: Option<usize>,
}

/// Everywhere that `pattern` matches. Its first element is tried once for all equal tokens: most patterns end there.
pub(super) fn matches<'t>(text: &'t Text, pattern: &'t str) -> impl Iterator<Item = Match> + 't {
    let first = pattern.split(' ').next().unwrap_or("");
    let groups =
        text.places().iter().filter(move |group| group.iter().take(1).any(|&at| token_matches(text, at, first)));
    groups.flatten().filter_map(move |&at| match_at(text, at, pattern))
}

/// Whether `pattern` occurs in `text`.
pub(super) fn occurs(text: &Text, pattern: &str) -> bool {
    matches(text, pattern).next().is_some()
}

/// The first of `patterns` that occurs in `text`.
pub(super) fn any<'p>(text: &Text, patterns: &[&'p str]) -> Option<&'p str> {
    patterns.iter().copied().find(|pattern| occurs(text, pattern))
}

/// Matches `pattern` at the token `at`.
pub(super) fn match_at(text: &Text, at: usize, pattern: &str) -> Option<Match> {
    let number = rest_matches(text, at, pattern, None)?;
    Some(Match { start: at, number: number.filter(|&n| n != usize::MAX) })
}

/// Matches the rest of a pattern; gives the captured number, or `usize::MAX` when there is none.
fn rest_matches(text: &Text, at: usize, pattern: &str, number: Option<usize>) -> Option<Option<usize>> {
    if pattern.is_empty() {
        return Some(number);
    }
    let (element, rest) = pattern.split_once(' ').unwrap_or((pattern, ""));
    if let Some(size) = element.strip_prefix("~~") {
        return gap(text, at, size, rest, number, |token| !stops(token));
    }
    if let Some(size) = element.strip_prefix('~') {
        return gap(text, at, size, rest, number, |token| !stops(token) && !matches!(token, Token::Number(_)));
    }
    if let Some(size) = element.strip_prefix('&') {
        return links(text, at, size, rest, number);
    }
    if let Some(words) = element.strip_prefix('!').filter(|words| !words.is_empty()) {
        return if token_matches(text, at, words) { None } else { rest_matches(text, at, rest, number) };
    }
    if let Some(words) = element.strip_prefix('?') {
        if token_matches(text, at, words)
            && let Some(found) = rest_matches(text, at + 1, rest, number)
        {
            return Some(found);
        }
        return rest_matches(text, at, rest, number);
    }
    if !token_matches(text, at, element) {
        return None;
    }
    rest_matches(text, at + 1, rest, if element == "<#>" { Some(at) } else { number })
}

/// Tries the rest of the pattern after each of the next `size` tokens that `passes`.
fn gap(
    text: &Text,
    at: usize,
    size: &str,
    rest: &str,
    number: Option<usize>,
    passes: impl Fn(&Token) -> bool,
) -> Option<Option<usize>> {
    let size = size.parse().unwrap_or(0_usize);
    for skipped in 0..=size {
        if let Some(found) = rest_matches(text, at + skipped, rest, number) {
            return Some(found);
        }
        if !text.token(at + skipped).is_some_and(&passes) {
            return None;
        }
    }
    None
}

/// Goes over linking tokens as far as they reach, then matches the rest.
fn links(text: &Text, at: usize, size: &str, rest: &str, number: Option<usize>) -> Option<Option<usize>> {
    let states = size.starts_with('&');
    let size = size.trim_start_matches('&').parse().unwrap_or(0_usize);
    let mut stated = false;
    let mut end = at;
    while end < at + size {
        let link = match text.token(end) {
            Some(Token::Mark(mark)) => matches!(mark, ':' | '=' | '(' | ')' | '['),
            Some(Token::Name(_)) => true,
            Some(Token::Word(_)) => {
                let word = text.word(end);
                stated |= matches!(word, "is" | "of" | "only" | "was");
                LINKS.contains(&word)
            }
            _ => false,
        };
        if !link {
            break;
        }
        end += 1;
    }
    if states && !stated {
        return None;
    }
    rest_matches(text, end, rest, number)
}

const LINKS: [&str; 22] = [
    "is",
    "of",
    "only",
    "was",
    "at",
    "most",
    "token",
    "this",
    "the",
    "model",
    "for",
    "has",
    "been",
    "set",
    "currently",
    "configured",
    "limited",
    "exactly",
    "a",
    "an",
    "in",
    "supported",
];

/// Ends a sentence, a field or an object.
fn stops(token: &Token) -> bool {
    matches!(token, Token::Mark('.' | ';' | '{' | '}' | '?' | '!'))
}

/// Whether the token at `at` is one of `alternatives`.
fn token_matches(text: &Text, at: usize, alternatives: &str) -> bool {
    let Some(token) = text.token(at) else { return false };
    match token {
        Token::Number(number) => alternatives.split('|').any(|alternative| match alternative {
            "#" | "<#>" => true,
            "#nz" => number.value.is_none_or(|value| value > 0) && !number.negative,
            "#neg" => number.negative,
            _ => false,
        }),
        Token::Mark(mark) => alternatives.split('|').any(|one| one.len() == 1 && one.starts_with(*mark)),
        Token::Word(_) | Token::Name(_) => word_matches(text.word(at), alternatives),
    }
}

fn word_matches(word: &str, alternatives: &str) -> bool {
    alternatives.split('|').any(|alternative| {
        if let Some(name) = alternative.strip_prefix('@') {
            return !name.is_empty() && word_matches(word, set(name));
        }
        if let Some(stem) = alternative.strip_suffix('*') {
            return !stem.is_empty() && word.starts_with(stem);
        }
        match alternative.strip_prefix('*') {
            Some(end) => !end.is_empty() && word.ends_with(end),
            None => alternative == word,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    fn found(text: &str, pattern: &str) -> Option<Option<u64>> {
        let text = Text::new(text.to_string());
        (0..text.len())
            .find_map(|at| match_at(&text, at, pattern))
            .map(|found| found.number.and_then(|at| text.number(at)).and_then(|number| number.value))
    }

    #[test]
    fn elements_match_what_the_table_says() {
        assert_eq!(found("the maximum tokens", "max|limit token"), Some(None));
        assert_eq!(found("prompt exceeds the limit", "exceed* ?the limit"), Some(None));
        assert_eq!(found("exceeded by 5", "exceed* !by #"), None);
        assert_eq!(found("limit of 4096 tokens", "limit of <#>"), Some(Some(4096)));
        assert_eq!(found("got -5", "got #neg"), Some(None));
        assert_eq!(found("0 tokens", "#nz token"), None);
        assert_eq!(found("a b c d", "a ~2 d"), Some(None));
        assert_eq!(found("a b. d", "a ~2 d"), None);
        assert_eq!(found("a 1 d", "a ~2 d"), None);
        assert_eq!(found("a 1 d", "a ~~2 d"), Some(None));
        assert_eq!(found("length of model-v3 is 9", "length &&4 <#>"), Some(Some(9)));
        assert_eq!(found("length (9)", "length &&4 <#>"), None);
        assert_eq!(found("length (9)", "length &4 <#>"), Some(Some(9)));
        assert_eq!(found("max_new_tokens", "@out"), Some(None));
    }
}
