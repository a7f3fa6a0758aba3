//! What a provider's rejection means, and the context window it names.
//!
//! When a provider turns a request down because it is too long, its error text is often the only place where the true
//! context window is written. It is also the easiest place to learn a wrong one: rate limits, output caps, byte limits and
//! field lengths use the same words and carry numbers of the same size. The two mistakes do not weigh the same. A
//! window that is missed costs one more overflow; a window that is invented shrinks every later prompt of the session.
//! So [`explain`] learns exactly or not at all:
//!
//! 1. **Unwrap.** JSON in strings in JSON, entities, tags and gateway prefixes come off (no level is parsed).
//! 2. **Guards.** Tiers, rates, bytes, characters, images and output caps are recognised first, and each ends the search.
//! 3. **Limit phrases.** A number counts only when the wording binds it to the window: never the first, the last, the
//!    largest or the smallest. Where two readings of equal standing disagree, nothing is learned.
//!
//! Three things are left to the caller, because they cannot be seen in the text:
//!
//! - **Only the error channel may be passed.** Assistant text, tool output and summaries quote such sentences.
//!   A success status gives [`ErrorClass::None`]; for an error event inside a stream that began with 200, pass `None`
//!   as the status.
//! - **An empty 400 or 413 is called an overflow** ([`Explanation::body_missing`]), because some servers send exactly that. It is also
//!   what a plain bad request looks like: believe it only when the estimate is near the window.
//! - **What is learned caps the configured window and never raises it**, and only for this endpoint and model. A value below
//!   half of a prompt that the endpoint already accepted is a misreading.

mod bind;
mod guards;
mod normalize;
mod numbers;
mod pattern;
#[cfg(test)]
mod tests;
mod words;

use words::Text;

/// What a provider's rejection means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorClass {
    /// The prompt is longer than the window or the input limit.
    Overflow,
    /// The prompt and the requested output together are longer than the window; the prompt alone may fit.
    PromptPlusOutput,
    /// The requested output alone is not allowed. A shorter prompt changes nothing.
    OutputCap,
    /// Tokens or requests per time, a quota, a throttle. Says nothing about the window.
    Rate,
    /// The account may not use the long window.
    Tier,
    /// The body has too many bytes. Fewer tokens need not help: the weight is usually in images and files.
    Bytes,
    /// One field has too many characters.
    Chars,
    /// An error of another kind.
    Other,
    /// Not an error.
    None,
}

impl ErrorClass {
    /// The name used in files and on the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Overflow => "overflow",
            Self::PromptPlusOutput => "prompt_plus_output",
            Self::OutputCap => "output_cap",
            Self::Rate => "rate",
            Self::Tier => "tier",
            Self::Bytes => "bytes",
            Self::Chars => "chars",
            Self::Other => "other",
            Self::None => "none",
        }
    }
}

/// What [`explain`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// What the rejection means.
    pub class: ErrorClass,
    /// The context window, or input limit, that the text names.
    pub window: Option<u64>,
    /// [`window`](Self::window) is a limit on the input, already net of the output: subtract no reserve from it again.
    pub input_limit: bool,
    /// There was no text to judge: an overflow only if the prompt was near the window.
    pub body_missing: bool,
    /// The rule that decided, as one plain sentence.
    pub why: &'static str,
}

impl Explanation {
    const fn new(class: ErrorClass, why: &'static str) -> Self {
        Self { class, window: None, input_limit: false, body_missing: false, why }
    }

    /// The prompt has to become shorter, or at least may have to.
    pub const fn is_overflow(&self) -> bool {
        matches!(self.class, ErrorClass::Overflow | ErrorClass::PromptPlusOutput)
    }
}

/// Reads the HTTP status and the body (or message) of a provider's error.
///
/// Pass what the error channel gave, unparsed: JSON, HTML, a client library's message. Only the first 64 KiB are
/// looked at; no input panics.
///
/// ```
/// use foreshorten_core::overflow::{ErrorClass, explain};
///
/// let found = explain(Some(400), r#"{"error":{"message":"prompt is too long: 214,315 tokens > 204,798 maximum"}}"#);
/// assert_eq!((found.class, found.window), (ErrorClass::Overflow, Some(204_798)));
///
/// let found = explain(Some(413), "Request too large on tokens per minute (TPM): Limit 8100, Requested 12000");
/// assert_eq!((found.class, found.window), (ErrorClass::Rate, None));
/// ```
pub fn explain(status: Option<u16>, body: &str) -> Explanation {
    if status.is_some_and(|status| (200..300).contains(&status)) {
        return Explanation::new(ErrorClass::None, "The status says success, so there is no error to explain.");
    }
    let text = Text::new(normalize::unwrap(body));
    if text.len() == 0 {
        return no_body(status);
    }
    let found = guards::classify(&text).unwrap_or_else(|| by_status(status, &text));
    match found.class {
        ErrorClass::Overflow if found.body_missing => no_body(status_in(&text).or(status)),
        ErrorClass::Overflow | ErrorClass::PromptPlusOutput | ErrorClass::OutputCap => bind::bind(&text, found),
        _ => found,
    }
}

/// The status a client library wrote before `status code (no body)`.
fn status_in(text: &Text) -> Option<u16> {
    let at = (0..text.len()).find(|&at| pattern::match_at(text, at, "# ?status ?code ( no body").is_some())?;
    text.number(at).and_then(|number| number.value).and_then(|value| u16::try_from(value).ok())
}

fn no_body(status: Option<u16>) -> Explanation {
    match status {
        Some(400 | 413) => Explanation {
            body_missing: true,
            ..Explanation::new(
                ErrorClass::Overflow,
                "A 400 or 413 without a body: some servers answer an overflow so; believe it only near the window.",
            )
        },
        Some(429) => Explanation::new(ErrorClass::Rate, "A 429 without a body: the status means too many requests."),
        _ => {
            Explanation::new(ErrorClass::Other, "There is no text to judge and the status does not point at the size.")
        }
    }
}

/// No wording was recognised: what the status alone says.
fn by_status(status: Option<u16>, text: &Text) -> Explanation {
    // A client library that passes no status often starts its message with it.
    let leading = text.number(0).and_then(|number| number.value).and_then(|n| u16::try_from(n).ok());
    match status.or(leading) {
        Some(429) => {
            Explanation::new(ErrorClass::Rate, "No known wording, and the status 429 means too many requests.")
        }
        Some(413) => {
            Explanation::new(ErrorClass::Bytes, "No known wording, and the status 413 is about the body's size.")
        }
        _ => Explanation::new(ErrorClass::Other, "Nothing in the text speaks of a limit on the prompt."),
    }
}
