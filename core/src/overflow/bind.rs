//! Finds the number that the wording binds to the window.
//!
//! Bindings come in ranks: a text may also state a derived limit (`resulting in a maximum input length of`), the
//! room left, or what was sent right after a limit phrase. The best rank that binds anything decides, and only if
//! all it binds is one and the same value.

use super::pattern::{match_at, matches};
use super::words::Text;
use super::{ErrorClass, Explanation};

/// A wording that binds a number to a limit.
struct Binding {
    rank: u8,
    /// The limit is on the input.
    input: bool,
    wording: &'static str,
}

const fn window(rank: u8, wording: &'static str) -> Binding {
    Binding { rank, input: false, wording }
}

const fn input(rank: u8, wording: &'static str) -> Binding {
    Binding { rank, input: true, wording }
}

/// The window itself, outright: also believed in a complaint about the output.
const OUTRIGHT: u8 = 1;
/// A maximum or a limit of something.
const LIMIT: u8 = 2;
/// A number that merely stands after `context length` and the like; it may also be what was sent.
const NEXT_CONTEXT: u8 = 3;
/// As before, after a vaguer phrase.
const NEXT: u8 = 4;

const BINDINGS: &[Binding] = &[
    // context length is N; context window of only N; maximum context length of Some-Model is N
    window(OUTRIGHT, "context @room ?@room &&7 <#>"),
    window(OUTRIGHT, "context @room of ~6 is <#>"),
    window(OUTRIGHT, "context @room ~3 limited to <#>"),
    window(OUTRIGHT, "max context ?@room ?token &7 <#>"),
    window(OUTRIGHT, "max model|sequence|seq @room &6 <#>"),
    window(OUTRIGHT, "window of ~3 is <#>"),
    window(OUTRIGHT, "@field ?is|of|:|= ?:|=|(|[ <#>"),
    window(OUTRIGHT, "model token limit &3 <#>"),
    window(OUTRIGHT, "*上下文长度为|*上下文窗口为|*最大长度为|*上下文长度是|*最大长度是 ?: <#>"),
    // N maximum context length; N token context window; > N maximum
    window(OUTRIGHT, "<#> ?token ?max context ?@room"),
    window(OUTRIGHT, "> <#> ?token max|limit"),
    window(LIMIT, "<#> token ?max @room|max"),
    window(LIMIT, "<#> max|limit !output|:|=|(|#|of|is"),
    window(LIMIT, "only <#> ?token ~1 available|allowed|supported"),
    window(LIMIT, "<#> ?token|tokens ?are|is allowed|available|supported !#"),
    // a maximum of the input
    input(LIMIT, "max ?allowed ?number ?of input|prompt ?token|sequence ?@room|token|count|allowed &6 <#>"),
    input(LIMIT, "max number of token allowed &4 <#>"),
    input(LIMIT, "max ?number ?of ?input token allowed &4 <#>"),
    input(LIMIT, "@infield ?is|of|:|= ?:|=|(|[ <#>"),
    input(LIMIT, "input|prompt ?token ?length|size limit|max &5 <#>"),
    input(LIMIT, "range of input|prompt ?token length|tokens|token ~3 [|( # ,|- <#>"),
    input(
        LIMIT,
        "input ?token ?length|size must|should ~4 less|fewer|most|under|below|<|exceed*|than ?than ?or ?equal ?to ?< <#>",
    ),
    input(LIMIT, "input|prompt ~~6 but ~4 supports ?only ?up ?at ?to ?most <#>"),
    input(LIMIT, "exceed* ~2 budget &3 <#>"),
    input(LIMIT, "prompt|input token ?count ~~6 exceed* ~3 limit|max !( &4 <#>"),
    input(LIMIT, "*最大输入长度为|*输入长度上限为|*最大输入长度是|*最大输入为 ?: <#>"),
    // a limit of something, in a text that speaks of the prompt
    window(LIMIT, "limit ~1 for ?this|the model &3 <#>"),
    window(LIMIT, "limit &&4 <#>"),
    window(LIMIT, "limit :|= <#>"),
    window(LIMIT, "limit <#>"),
    window(LIMIT, "max &&3 <#>"),
    window(LIMIT, "max ?token ?length|size|allowed|limit :|= <#>"),
    window(LIMIT, "max <#>"),
    window(LIMIT, "max token|length ?@room|allowed &&3 <#>"),
    window(LIMIT, "allowed ?max|limit|is|of &3 <#>"),
    window(LIMIT, "only supports|accepts|allows ?up ?at ?to ?most <#>"),
    window(LIMIT, "supports|support ?only|a ?max ?of ?up|at to|most|only|of <#>"),
    window(LIMIT, "must|should|cannot|may|can ?not ?be ~2 exceed|than|to|<|most|under|below ?or ?equal ?to <#>"),
    window(LIMIT, "no more than <#> ~1 token"),
    window(LIMIT, "limited to <#>"),
    window(LIMIT, "at most <#> token"),
    input(LIMIT, "accepts|supports|allows <#> input|prompt token"),
    window(LIMIT, "max ~2 length &&3 <#> token"),
    window(LIMIT, "*上限为|*限制为|*上限是|*限制是 ?: <#>"),
    window(LIMIT, "exceeds|exceed|exceeding|exceeded <#> token"),
    window(LIMIT, "longer|larger|greater|more than ?the <#> token"),
    window(LIMIT, "# ?) ?token ?) > ~1 <#>"),
    // the phrase, then a number
    window(NEXT_CONTEXT, "context ?@room ?@room &5 <#>"),
    window(NEXT, "max ?allowed length &4 <#>"),
    window(NEXT, "*上下文长度|*最大长度|*上限|*限制 ?: <#>"),
    window(NEXT, "window :|= <#>"),
    window(NEXT, "token limit &4 <#>"),
    window(NEXT, "limit|max ( <#> ?token )"),
];

/// Every wording of the table, for the test that none is dead.
#[cfg(test)]
pub(super) fn wordings() -> impl Iterator<Item = &'static str> {
    BINDINGS.iter().map(|binding| binding.wording)
}

/// Gives `found` the window that `text` names, if it names one.
pub(super) fn bind(text: &Text, found: Explanation) -> Explanation {
    // A complaint about the output speaks of limits of the output; only a context is the window.
    let output = found.class == ErrorClass::OutputCap;
    let ranks: &[u8] = if output { &[OUTRIGHT, NEXT_CONTEXT] } else { &[OUTRIGHT, LIMIT, NEXT_CONTEXT, NEXT] };
    for &rank in ranks {
        let (value, input) = match of_rank(text, rank, found.class) {
            Bound::Nothing => continue,
            // Two readings of equal standing: no lower rank can be better.
            Bound::Disputed => return found,
            Bound::One { value, input } => (value, input),
        };
        // A text about a context length states the window, whatever else it calls it.
        let input = input || (rank == LIMIT && found.class == ErrorClass::Overflow && about_input(text));
        return Explanation { window: Some(value), input_limit: input, ..found };
    }
    if !output && let Some(value) = only_number(text) {
        return Explanation { window: Some(value), ..found };
    }
    found
}

enum Bound {
    Nothing,
    Disputed,
    One { value: u64, input: bool },
}

fn of_rank(text: &Text, rank: u8, class: ErrorClass) -> Bound {
    let mut bound = Bound::Nothing;
    for binding in BINDINGS.iter().filter(|binding| binding.rank == rank) {
        for matched in matches(text, binding.wording) {
            let Some(number) = matched.number else { continue };
            if !may_be_limit(text, matched.start, number, class)
                || (rank >= NEXT_CONTEXT && !smaller_than_the_rest(text, number))
            {
                continue;
            }
            // A number in the limit's place that says nothing exact: whatever else is bound is a guess.
            let Some(value) = text.number(number).and_then(|number| number.value).filter(|&value| value > 0) else {
                return Bound::Disputed;
            };
            match bound {
                Bound::One { value: other, .. } if other != value => return Bound::Disputed,
                Bound::One { input: true, .. } => {}
                _ => bound = Bound::One { value, input: binding.input },
            }
        }
    }
    bound
}

/// Whether nothing around the number says that it is something else.
fn may_be_limit(text: &Text, phrase: usize, number: usize, class: ErrorClass) -> bool {
    !is_sent(text, phrase, number)
        && !is_code(text, number)
        && !has_foreign_unit(text, number)
        && (class != ErrorClass::Overflow || !of_output(text, number))
}

/// What was sent, an excess, or part of a sum.
fn is_sent(text: &Text, phrase: usize, number: usize) -> bool {
    const AFTER: [&str; 6] = [
        "# ?) ?token ?) ?, ?which exceed|exceeds|exceeding|surpasses|>",
        "# ?) ?token ?) ?, ?which is too|greater|larger|longer|more|above|over|bigger",
        "# ?) ?token ?) +|/",
        "# 超过*|超出*|超過*",
        "# ?) ?token ?) must|should|cannot",
        "# requested|given|sent|received|used|provided",
    ];
    if AFTER.iter().any(|wording| match_at(text, number, wording).is_some()) {
        return true;
    }
    // The comparison's right side is the limit; a difference (`> 32768 - 5000`) is room left.
    if match_at(text, number, "# ?token - #|@field|input|prompt").is_some()
        && match_at(text, phrase, "@field").is_none()
    {
        return true;
    }
    if phrase_is_sent(text, phrase) {
        return true;
    }
    let mut at = number;
    while let Some(before) = at.checked_sub(1) {
        at = before;
        match text.mark(at) {
            Some(':' | '=' | '(' | '[') => continue,
            Some('+') => return true,
            _ => {}
        }
        return match text.word(at) {
            "about" | "approximately" | "roughly" | "around" | "least" | "by" => true,
            "requested" | "got" | "given" | "provided" | "passed" | "sent" | "received" | "contains" | "used"
            | "using" | "needs" | "take" | "takes" | "projected" | "estimated" | "actual" | "current" | "count"
            | "n_keep" | "prompt_tokens" | "input_tokens" | "n_prompt_tokens" | "total_tokens" | "contained"
            | "consumed" => true,
            "is" | "of" | "was" => {
                at.checked_sub(1).is_some_and(|at| matches!(text.word(at), "count" | "total" | "sum"))
            }
            "in" => at.checked_sub(1).is_some_and(|at| text.word(at) == "resulted"),
            _ => false,
        };
    }
    false
}

/// `your context length (N) ...`, `current context size N` are what was sent.
fn phrase_is_sent(text: &Text, phrase: usize) -> bool {
    let Some(before) = phrase.checked_sub(1) else { return false };
    match text.word(before) {
        "current" | "currently" | "actual" | "requested" | "estimated" | "required" | "needed" | "larger"
        | "bigger" => true,
        "your" | "the" => before.checked_sub(1).is_some_and(|at| text.word(at) == "increase"),
        _ => false,
    }
}

/// A status, a code, an id.
fn is_code(text: &Text, number: usize) -> bool {
    let mut at = number;
    for _ in 0..3 {
        let Some(before) = at.checked_sub(1) else { return false };
        at = before;
        if matches!(text.mark(at), Some(':' | '=' | '(' | '[')) || text.word(at) == "is" {
            continue;
        }
        let word = text.word(at);
        return matches!(
            word,
            "code"
                | "status"
                | "errno"
                | "http"
                | "id"
                | "line"
                | "column"
                | "index"
                | "position"
                | "version"
                | "port"
                | "error"
                | "statuscode"
                | "errorcode"
                | "timestamp"
                | "created"
                | "time"
                | "request_id"
                | "trace"
        ) || word.ends_with("_id")
            || word.ends_with("_code");
    }
    false
}

/// A rounded number or one that counts something else.
fn has_foreign_unit(text: &Text, number: usize) -> bool {
    let after = text.word(number + 1);
    matches!(
        after,
        "k" | "m"
            | "b"
            | "g"
            | "thousand"
            | "million"
            | "percent"
            | "byte"
            | "bytes"
            | "kb"
            | "mb"
            | "gb"
            | "kib"
            | "mib"
            | "pixels"
            | "px"
            | "characters"
            | "chars"
            | "image"
            | "images"
            | "page"
            | "pages"
            | "file"
            | "files"
            | "messages"
            | "items"
            | "tools"
            | "documents"
            | "requests"
            | "seconds"
            | "ms"
            | "s"
            | "minutes"
            | "hours"
            | "days"
            | "words"
            | "times"
            | "turns"
            | "credits"
            | "usd"
            | "parameters"
            | "dimensions"
            | "layers"
    )
}

/// The words before the number, back to the border of the clause, speak of the reply.
fn of_output(text: &Text, number: usize) -> bool {
    for at in (0..number).rev().take(8) {
        if matches!(text.mark(at), Some('.' | ';' | '{' | '}' | ',')) {
            return false;
        }
        if matches!(text.word(at), "output" | "completion" | "generation" | "generated")
            || match_at(text, at, "@out").is_some()
        {
            return true;
        }
    }
    matches!(text.word(number + 1), "output" | "completion")
        || (text.word(number + 1) == "token" && matches!(text.word(number + 2), "output" | "completion"))
}

/// Right after a phrase may also stand what was sent (`exceeds context length (5000), 4096 available`). The limit is
/// not the largest number of a text that has several.
fn smaller_than_the_rest(text: &Text, number: usize) -> bool {
    let Some(value) = text.number(number).and_then(|number| number.value) else { return true };
    let mut others = (0..text.len()).filter(|&at| at != number && !is_code(text, at) && !is_status(text, at));
    let mut seen = false;
    let larger = others.any(|at| {
        let other = text.number(at).and_then(|number| number.value).filter(|&other| other != value);
        let prompt = at.checked_sub(1).is_some_and(|at| match_at(text, at, "prompt|input # token").is_some());
        let named_as_sent = other.is_some() && (prompt || is_sent(text, at, at));
        seen |= other.is_some() && !named_as_sent;
        named_as_sent || other.is_some_and(|other| other > value)
    });
    if larger {
        return true;
    }
    // Alone in brackets after a bare `limit`, it may be an error code.
    let bare = match_at(text, number.saturating_sub(2), "limit|max ( # )").is_some();
    // `exceeds context length: N`, and no other number: what was sent as likely as the limit. A maximum is a limit.
    let label = number.checked_sub(1).is_some_and(|at| matches!(text.mark(at), Some(':' | '(')));
    let near = |wording| (number.saturating_sub(8)..number).any(|at| match_at(text, at, wording).is_some());
    let exceeded = label && near("exceed*|longer|larger") && !near("max|available|model|allowed|supported|configured");
    !seen && !bare && !exceeded
}

/// `400 {...}`, `503 Service...`: a status in front.
fn is_status(text: &Text, at: usize) -> bool {
    at == 0 && text.number(at).and_then(|number| number.value).is_some_and(|value| (400..600).contains(&value))
}

/// `context_length_exceeded: N`: the value after a code, when no other number could be meant.
fn only_number(text: &Text) -> Option<u64> {
    let mut numbers =
        (0..text.len()).filter(|&at| text.number(at).is_some() && !is_code(text, at) && !is_status(text, at));
    let (first, second) = (numbers.next()?, numbers.next());
    let code = first.checked_sub(2).map(|at| text.word(at))?;
    let named = code.contains("context") && code.contains('_') && code.contains("exceed");
    text.number(first)?.value.filter(|&value| second.is_none() && named && value > 0)
}

fn about_input(text: &Text) -> bool {
    text.has(&["input", "prompt"]) && !text.has(&["context", "window", "max_model_len", "n_ctx"])
}
