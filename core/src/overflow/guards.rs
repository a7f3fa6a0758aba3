//! Decides what kind of rejection a text is, before any number is looked at.
//!
//! The order is the point. A tier gate speaks of contexts, a rate limit of prompt length and tokens, an output cap
//! of a model limit; each would pass for an overflow if the overflow wordings were tried first.

use super::pattern::{Match, any, matches, occurs};
use super::words::Text;
use super::{ErrorClass, Explanation};

/// A class, the sentence that explains it, and the wordings that mean it.
struct Guard {
    class: ErrorClass,
    why: &'static str,
    wordings: &'static [&'static str],
}

/// The account may not use the long window. Before rates, because the status is often 429.
const TIER: Guard = Guard {
    class: ErrorClass::Tier,
    why: "The account is not allowed the long context; the text names no window.",
    wordings: &[
        "extra usage",
        "long context ~4 beta",
        "long context ~8 subscription|plan|tier|account|organization|workspace|credits",
        "context ~6 not ~3 available|enabled|supported|included|allowed ~5 subscription|plan|tier|account|organization|workspace",
        "subscription|plan|tier|account|organization ~8 long|extended context",
        "context-1m* ~8 subscription|plan|tier|account|organization|usage|available|enabled|beta",
        "# m ~1 context ~8 subscription|plan|tier|account|organization|usage|available|enabled|beta",
        "credits|usage ~5 required ~4 context",
        "credits|usage ~5 required ~~3 context",
    ],
};

/// Per time.
const RATE: Guard = Guard {
    class: ErrorClass::Rate,
    why: "A limit per time, a quota or a throttle, which says nothing about the window.",
    wordings: &[
        "per min|minute|hour|day|second|sec|week|month",
        "per # second|seconds|minutes|hours|days|s",
        "token|tokens|request|requests|# / min|minute|hour|day|second|sec|s|m",
        "tpm|tpd|tph|rpm|rpd|rph|itpm|otpm",
        "rate limit*|limited|exceed*",
        "too many|much request*|concurrent|traffic",
        "please wait",
        "usage limit",
        "retry|again ~1 after|in #",
        "max ~2 concurren*",
        "concurren* ~2 request*|limit|connection*",
        "daily|hourly|weekly|monthly ~3 limit|cap|allowance|token|usage",
    ],
};

/// Characters of one field.
const CHARS: Guard = Guard {
    class: ErrorClass::Chars,
    why: "A limit on the characters of one field, not on tokens.",
    wordings: &[
        "string ~2 too long|large",
        "string_above_max_length*|string_too_long*|string_too_large*",
        "string ~~2 length",
        "# char|chars|character|characters",
        "character|characters|char|chars ~2 limit|max|length|count|exceed*|long",
        "max|exceed*|many ~3 character|characters|chars",
    ],
};

/// Sizes with a unit: no text about tokens has one.
const UNITS: Guard = Guard {
    class: ErrorClass::Bytes,
    why: "The size is in bytes, so it limits the body and not the tokens.",
    wordings: &[
        "# byte|bytes|kb|mb|gb|kib|mib|gib|megabyte|megabytes|kilobytes",
        "size|length ~2 bytes",
        "max|exceed* ~4 bytes",
    ],
};

/// Sizes of a body. They need a text that speaks neither of tokens nor of contexts.
const BODY: Guard = Guard {
    class: ErrorClass::Bytes,
    why: "The request body is too large for a front end; no tokens are mentioned.",
    wordings: &[
        "payload|entity|body|content|file|attachment|upload|uri|header|cookie ~2 too large|big|long",
        "message|request|body|payload|content ?body size|length ~~3 exceed*|over|larger|greater|limit|above|too",
        "exceed* ~4 message|request|body|payload|content ?body size",
        "max ~2 message|request|body|payload|content ?body size",
        "received message larger than max",
        "request body ~3 larger|exceed*|bigger",
    ],
};

/// As [`BODY`], in words that overflows use as well: only after the overflow wordings had their turn.
const TOO_LARGE: Guard = Guard {
    class: ErrorClass::Bytes,
    why: "Something is too large, and neither tokens nor a context are mentioned.",
    wordings: &["request_too_large", "request ~3 too large|big|long", "exceed* ~3 max ?allowed ?request size"],
};

/// Limits on other things, and other failures in the same words.
const OTHER: Guard = Guard {
    class: ErrorClass::Other,
    why: "A limit on something other than the prompt's tokens, or an error of another kind.",
    wordings: &[
        "pixel|pixels|px",
        "image|images ~2 dimension*|resolution",
        "too many image*|tool|tools|file|files|document*|page|pages|item|items|element*|stop|messages|function*|input|texts !token",
        "max|most|limit|than ?of|is|: # ~1 image*|tool|tools|file|files|document*|page|pages|item|items|element*|stop|function*|messages|texts|rows",
        "array ~2 too long|large|short",
        "array_above_max_length*|array_too_long*",
        "batch ~1 size ~~4 exceed*|max|limit|than|more|should|must|larger|invalid",
        // Go's word for a time-out.
        "context deadline|canceled|cancelled",
        "deadline exceeded",
        // A client's own check of its settings.
        "context ?@room too small ~~4 min|minimum",
        "max ~2 retries|redirects|recursion|depth",
        "credit|credits|billing|payment|afford|balance|funds",
        "tool|function ~3 name|names|description ~3 too|exceed*|longer|max",
        "cost|spend ~~8 budget",
    ],
};

/// The reply asked for is too long on its own.
const OUTPUT: Guard = Guard {
    class: ErrorClass::OutputCap,
    why: "The requested output alone is not allowed; the prompt is not the problem.",
    wordings: &[
        "@out ~~5 exceed*|cannot|must|should|>|<",
        "@out ~~5 too large|high|big|many",
        "@out ~~5 greater|higher|larger|above|more|bigger",
        "@out ~~8 supported|valid|allowed range|values|value",
        "@out ~~8 supports",
        "@out ~3 out of range",
        "range|value|values|invalid ~2 @out",
        "max token you ?have requested exceed*",
        "max ?allowed ?number ?of ?allowed output|completion|generation|new token|tokens|length ~3 limit|cap|exceed*|reached|is|allowed|for",
        "exceed* ~4 max ?allowed ?number ?of output|completion|new token|length|limit",
        "max allowed number of output|completion|new token",
        "at most # output|completion|new|generated token",
        "up to # output|completion|new|generated token",
        "model|max output limit",
        "# output|completion token ~3 model allows|supports|accepts",
        "max token must|should|cannot",
        "output|completion ?token|length limit|cap",
        "requested|# output|completion|new token|length ~4 exceed*|above|greater|larger|over",
        "output|completion ?token|length exceed*",
    ],
};

/// The prompt is too long, whether or not a number says how long it may be.
const OVERFLOW: Guard = Guard {
    class: ErrorClass::Overflow,
    why: "The wording says that the prompt is longer than the model takes.",
    wordings: &[
        // too long
        "@sent|text|message ~4 too long",
        "@sent ~4 too large|big",
        "too long|large|big ~3 context|model|prompt|input",
        "too many ?input|prompt|context|total token",
        "token ~4 too large|many|long|high",
        "length ~2 all messages ~2 too long",
        // exceeds
        "@sent ~~8 exceed*|exceeding|over|above|surpass* ~~6 max|limit|length|context|window|token|budget|capacity|allowed|size",
        "request|message|messages|tokens|token|total|text|length ~~8 exceed* ~~6 context|window|token|budget|max_model_len|n_ctx|length",
        "token ~~8 exceed* ~~6 limit|max|allowed|budget|capacity",
        "exceed* ~~6 context|n_ctx|max_model_len ?@room",
        "exceed* ~4 model ~3 @room|token",
        "exceed* ~4 token limit|count|budget|max",
        "exceed* # token",
        "exceed* ~3 max token|input|prompt|number",
        "context ?@room ~~4 exceed*|overflow*|full|exhausted|reached|surpass*",
        "context ~2 @room|overflow*|overflowed exceed*|error",
        "max context|model|sequence|prompt|input ?@room ~~3 exceed*|reached",
        "token limit ~3 exceed*|reached|hit",
        "max token ?of ?# exceed*",
        "max token ?limit|length|count exceed*",
        // longer than
        "@sent|token|request|text ~~10 longer|larger|greater|bigger|more|higher than ~~6 max|limit|context|window|model|length|allowed|@field",
        "@sent|length|token|max_total_tokens|total_tokens ~~8 must|cannot|should|greater|larger|longer ~6 @field",
        "@sent ~2 # ?token ,|; ~2 max|limit &3 #",
        "longer|larger|greater|more than ~4 context|max ?model @room",
        "token ~4 more than ~2 max token",
        "# token ~2 > ~2 #",
        "@sent ~~5 # ?token > ~3 #",
        // limits that are stated
        "max ?allowed ?total context|model|sequence|prompt|input ?token @room ~~8 #",
        "context ?@room &&6 #",
        "context|prompt|input @room : #",
        "limit ~2 this model is # token",
        "token count ~~6 but ~4 supports|support|limit|max|allowed",
        "@sent ~~8 only supports|accepts|allows ~3 #",
        "@sent|token must|should|may|can ?not ~~5 less|fewer|exceed*|most|more|under|below|<|max ~3 # token",
        "input must|should ~3 less|fewer|most|under|below|< ~2 # token",
        "range of input length",
        "input|prompt length|tokens|token|size should|must|cannot|may",
        "token + @out must|should|cannot|exceed*",
        "input|prompt ~2 and|plus|+ ~2 @out|@reply ?token ~~6 exceed*|must|cannot|greater|larger|over|above|>",
        "no more than # ~1 token",
        "@sent|token limit|max &4 # ~4 requested|got|given|received|sent|used|current*|actual|you",
        "requested|sent|got|received|used|contains|has ~~3 token ~5 limit|max|allowed|only &4 #",
        "current length is # ~2 limit is #",
        "n_keep",
        "@field ~~2 exceed*|reached",
        "exceed* ~3 @field",
        "prompt_tokens|n_prompt_tokens|input_tokens ~~3 @field",
        "@sent ~2 # token ~~6 context @room",
        "@sent ~2 # token long",
        "@sent token exceeded",
        "> ~2 context @room",
        "token ~1 in|of ~2 @sent ~~4 must|should|cannot",
        "sequence ~~8 exceed* ~~6 max|limit|length",
        "@sent ~3 longer|larger|greater|more than # token",
        "truncate ~2 prompt",
        // does not fit
        "not|doesnt|dont|cannot|cant|wont|t fit ~5 context|window|limit",
        "ran|run|running|out out|of ?of context",
        "not|insufficient|enough|no ~3 context ?@room ~4 space|room|left|remaining|available",
        "context ?@room ~3 too small|short",
        // advice that is given for nothing else
        "reduce|shorten|shortening|reducing|trim|decrease ~4 length|size|number|tokens|token ~6 @sent|messages|message",
        "reduce|shorten|shortening|reducing|trim ~2 prompt|input|messages|conversation|context|history",
    ],
};

/// The output is counted in.
const WITH_OUTPUT: &[&str] = &[
    "#nz ?token in|for|of|as ?the|your @reply",
    "#nz ?requested|max ?token @reply|new|@out ?token",
    "@reply token|budget ~2 :|=|( #nz",
    "@out :|=|( #nz",
    "@out|@reply ?token ?( # ) ?> ~3 exceed*",
    "+|and|plus ~2 @out",
    "+|and|plus @reply ?token ?( #nz",
    "@out|@reply ?token +|and|plus ~2 input|prompt|messages ?token ~~4 exceed*|must|cannot|greater|larger|longer",
    "input|prompt ?token|tokens|length and|plus|+ ~2 @reply ?token ~~5 exceed*|greater|larger|longer|is|are|must|cannot",
    "# + # >|exceed*",
    "answering your request",
    "@reply budget",
];

/// What a reply says at its end. It is no error, though `model_context_window_exceeded` sounds like one.
const REPLY: &[&str] = &[
    "finish|finish_reason|finishreason|stop_reason|stopreason|done_reason|usage|stop_details :|=|.",
    "usage ~1 prompt_tokens|input_tokens|total_tokens|completion_tokens|input|output|figures",
];

/// Somebody tells of an error.
const NARRATION: &[&str] = &[
    "( assistant|tool|user ?text|output|message|result|prose )",
    "api|server|provider|it|error|he|she|they said|says|told|complained",
    "so|because|then|and|but|which i",
    "i ?just|already|then split|will|think|saw|read|found|tried|got|have|did|guess|believe|need",
];

/// Every wording of every table, for the test that none is dead.
#[cfg(test)]
pub(super) fn wordings() -> impl Iterator<Item = &'static str> {
    [TIER, RATE, CHARS, UNITS, BODY, TOO_LARGE, OTHER, OUTPUT, OVERFLOW]
        .into_iter()
        .flat_map(|guard| guard.wordings)
        .chain(WITH_OUTPUT)
        .chain(REPLY)
        .chain(NARRATION)
        .copied()
}

/// The class of `text`, without its window; nothing when no wording is known.
pub(super) fn classify(text: &Text) -> Option<Explanation> {
    if occurs(text, "no|empty body") || occurs(text, "body is empty|missing") {
        let mut found = Explanation::new(ErrorClass::Overflow, "");
        found.body_missing = true;
        return Some(found);
    }
    if any(text, REPLY).is_some() && !speaks_of_error(text) {
        return Some(Explanation::new(
            ErrorClass::None,
            "These are the figures or the stop reason of a reply, not an error.",
        ));
    }
    if any(text, NARRATION).is_some() {
        return Some(Explanation::new(
            ErrorClass::Other,
            "The text tells of an error; it is not the error channel's own.",
        ));
    }
    let tokens = text.has(&["token", "context", "n_ctx", "prompt"]) || overflow_code(text);
    let fires = |guard: &Guard| any(text, guard.wordings).is_some();
    let found = if fires(&TIER) {
        TIER.found()
    } else if fires(&RATE) || rate_code(text) || foreign(text, &FOREIGN_RATE) {
        RATE.found()
    } else if fires(&CHARS) || foreign(text, &["字符"]) {
        CHARS.found()
    } else if fires(&UNITS) || foreign(text, &["字节", "请求体", "請求體"]) {
        UNITS.found()
    } else if !tokens && (fires(&BODY) || body_code(text)) {
        BODY.found()
    } else if fires(&OTHER) || per_request(text) {
        OTHER.found()
    } else if occurs(text, "@out ~~8 #neg") || (occurs(text, "@out must|should") && occurs(text, "got|given ?: #neg")) {
        Explanation::new(
            ErrorClass::Overflow,
            "The room left for the output is negative, so the prompt fills more than the window.",
        )
    } else if output_alone(text) || (foreign(text, &["输出", "輸出"]) && !foreign(text, &["输入", "輸入", "上下文"]))
    {
        OUTPUT.found()
    } else if overflow_code(text) {
        with_output(text, "A code of the error names the context as exceeded.")
    } else if fires(&OVERFLOW) || foreign_overflow(text) {
        with_output(text, OVERFLOW.why)
    } else if fires(&TOO_LARGE) {
        TOO_LARGE.found()
    } else if occurs(text, "resource_exhausted") || occurs(text, "resource ~2 exhausted") {
        RATE.found()
    } else {
        return None;
    };
    Some(found)
}

impl Guard {
    const fn found(&self) -> Explanation {
        Explanation::new(self.class, self.why)
    }
}

fn with_output(text: &Text, why: &'static str) -> Explanation {
    match any(text, WITH_OUTPUT) {
        Some(_) => Explanation::new(
            ErrorClass::PromptPlusOutput,
            "The requested output is counted in; the prompt alone may fit, and asking for less output may be enough.",
        ),
        None => Explanation::new(ErrorClass::Overflow, why),
    }
}

/// An output wording that is not the second half of a sum (`input length and max_tokens exceed`).
fn output_alone(text: &Text) -> bool {
    let joined = |at: usize| matches!(text.word(at), "and" | "plus") || text.mark(at) == Some('+');
    let alone = |found: Match| !found.start.checked_sub(1).is_some_and(joined);
    OUTPUT.wordings.iter().any(|wording| matches(text, wording).any(alone))
}

/// A cap of an endpoint that takes many inputs; a chat gateway may use the words for its prompt.
fn per_request(text: &Text) -> bool {
    occurs(text, "# token per request") && !text.has(&["prompt", "context", "conversation", "messages", "chat"])
}

fn speaks_of_error(text: &Text) -> bool {
    let words =
        ["error", "exceeds", "exceeded", "exceed", "invalid", "max", "too", "cannot", "failed", "exception", "message"];
    text.has_error_field() || text.has(&words)
}

/// An identifier such as `context_length_exceeded`, `ContextWindowExceededError` or `prompt_too_long`.
pub(super) fn overflow_code(text: &Text) -> bool {
    codes(text).any(|code| {
        let what =
            ["context", "prompt", "input", "n_ctx", "token_limit", "max_tokens"].iter().any(|stem| code.contains(stem));
        let how = ["exceed", "too_long", "toolong", "too_large", "overflow"].iter().any(|stem| code.contains(stem));
        what && how && !code.contains("deadline") && !code.contains("output")
    })
}

fn rate_code(text: &Text) -> bool {
    codes(text).any(|code| {
        ["rate_limit", "ratelimit", "throttl", "quota", "toomanyrequests", "too_many_requests"]
            .iter()
            .any(|stem| code.contains(stem))
    }) || text.has(&["quota", "quotas", "throttled", "throttling", "ratelimit", "throttle"])
}

fn body_code(text: &Text) -> bool {
    codes(text).any(|code| {
        ["entity", "payload", "body", "content"].iter().any(|stem| code.contains(stem))
            && ["too_large", "toolarge"].iter().any(|stem| code.contains(stem))
    })
}

/// Words that are identifiers: joined by underscores, or grown together in capitals.
fn codes(text: &Text) -> impl Iterator<Item = &str> {
    (0..text.len())
        .map(|at| text.word(at))
        .filter(|word| (word.contains('_') || word.len() > 11) && word.is_ascii())
        .filter(|word| !word.contains(['-', '/', '.', '@']))
}

const FOREIGN_RATE: [&str; 9] = ["速率", "频率", "限流", "频繁", "额度", "配额", "并发", "頻繁", "レート制限"];

fn foreign(text: &Text, phrases: &[&str]) -> bool {
    phrases.iter().any(|phrase| text.source().contains(phrase))
}

/// Chinese, Japanese and Korean gateways: a thing that is sent, and that it is too long or above a limit. The two need
/// not be near each other, so a text of many sentences, which is no error message, does not count.
fn foreign_overflow(text: &Text) -> bool {
    const SENT: [&str; 15] = [
        "上下文",
        "输入",
        "輸入",
        "提示",
        "长度",
        "長度",
        "prompt",
        "token",
        "消息",
        "请求",
        "コンテキスト",
        "入力",
        "トークン",
        "컨텍스트",
        "입력",
    ];
    const LONG: [&str; 8] = ["过长", "過長", "超长", "超長", "太长", "超限", "長すぎ", "초과"];
    const ABOVE: [&str; 4] = ["超出", "超过", "超過", "超え"];
    const LIMIT: [&str; 10] =
        ["限制", "上限", "最大", "模型", "长度", "長度", "窗口", "上下文", "制限", "コンテキスト"];
    let sentences = (0..text.len()).filter(|&at| text.mark(at) == Some('.')).count();
    let contains = |at: usize, stems: &[&str]| stems.iter().any(|stem| text.word(at).contains(stem));
    // A sentence without spaces is one word; a term in Latin letters cuts it in two.
    let above = || (0..text.len()).any(|at| contains(at, &ABOVE) && (contains(at, &LIMIT) || contains(at + 1, &LIMIT)));
    sentences < 5 && foreign(text, &SENT) && (foreign(text, &LONG) || above())
}
