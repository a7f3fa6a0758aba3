//! Misbehaviour, and when it happens.

use std::time::Duration;

/// One misbehaviour and when it happens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// At which POST requests.
    pub when: When,
    /// Of which kind of requests.
    pub of: Of,
    /// What happens.
    pub fault: Fault,
}

impl Rule {
    /// `fault` at POST request `n`; the first is 1.
    #[must_use]
    pub const fn at(n: u64, fault: Fault) -> Self {
        Self { when: When::At(n), of: Of::All, fault }
    }

    /// `fault` at every `n`-th POST request.
    #[must_use]
    pub const fn every(n: u64, fault: Fault) -> Self {
        Self { when: When::Every(n), of: Of::All, fault }
    }

    /// `fault` at all POST requests from `first` to `last`, both included.
    #[must_use]
    pub const fn between(first: u64, last: u64, fault: Fault) -> Self {
        Self { when: When::Between(first, last), of: Of::All, fault }
    }

    /// A script: the n-th POST request gets the n-th fault, or none.
    #[must_use]
    pub fn script(faults: impl IntoIterator<Item = Option<Fault>>) -> Vec<Self> {
        (1..).zip(faults).filter_map(|(n, fault)| Some(Self::at(n, fault?))).collect()
    }

    /// The same for requests of one kind only. Counting stays that of all POST requests.
    #[must_use]
    pub const fn only(mut self, of: Of) -> Self {
        self.of = of;
        self
    }
}

/// When a rule applies, by number of the POST request (all protocols together, refused ones included, from 1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum When {
    /// At one request.
    At(u64),
    /// At these.
    In(Vec<u64>),
    /// At every n-th.
    Every(u64),
    /// From this one to that one, both included.
    Between(u64, u64),
    /// Always.
    Always,
}

impl When {
    pub(crate) fn holds(&self, n: u64) -> bool {
        match self {
            Self::At(at) => n == *at,
            Self::In(set) => set.contains(&n),
            Self::Every(period) => *period > 0 && n.is_multiple_of(*period),
            Self::Between(first, last) => (*first..=*last).contains(&n),
            Self::Always => true,
        }
    }
}

/// Kinds of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    /// Every one.
    All,
    /// Those that ask for a summary.
    Summaries,
    /// All others.
    Turns,
}

/// A misbehaviour. Those in a stream do to a plain answer what comes nearest: they cut or spoil its body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// 429.
    RateLimit {
        /// How long to wait, and how that is said.
        retry_after: RetryAfter,
        /// The words.
        wording: RateWording,
    },
    /// An error of the server: 500, 502, 503, 504 or 529 (overloaded), in the protocol's shape.
    Status(u16),
    /// The connection is reset before anything is answered.
    Reset,
    /// Nothing is answered for this long; then the connection is reset.
    Hang(Duration),
    /// Half of the answer, then nothing for this long; then the connection is reset.
    HangMidStream(Duration),
    /// Half of the answer, then the connection is reset.
    ResetMidStream,
    /// Half of the answer, then a proper end of the body: no terminal event.
    Truncated,
    /// Everything but the terminal event (`[DONE]` and the finish chunk, `response.completed`, `message_stop`).
    NoTerminalEvent,
    /// One event in the middle holds broken JSON; the others follow.
    InvalidJson,
    /// One event in the middle is an error (overloaded); nothing follows.
    ErrorEvent,
    /// Every piece of the answer is this late.
    Slow(Duration),
    /// Only the newest messages that fit in `keep` tokens are read; the answer is an ordinary one.
    Truncate {
        /// Tokens that are read.
        keep: u64,
        /// Whether the stop reason says so.
        say: bool,
    },
    /// The answer is right, its usage is not.
    Usage(UsageLie),
    /// Nothing in the answer: no text, no calls.
    EmptyAnswer,
    /// An error page of some gateway, in HTML.
    Html(u16),
    /// The answer's non-ASCII characters in another charset, so that the body is not UTF-8.
    ForeignCharset,
    /// The right body under the wrong `content-type`.
    WrongContentType,
    /// Any answer at all.
    Raw {
        /// HTTP status.
        status: u16,
        /// `content-type`.
        content_type: String,
        /// The body.
        body: Vec<u8>,
    },
}

/// How a 429 says when to come back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryAfter {
    /// Not at all.
    Unsaid,
    /// `retry-after: N`, in seconds.
    Seconds(u64),
    /// `retry-after-ms: N`.
    Millis(u64),
    /// Only in the message: `Please try again in 1.234s.`
    InText(u64),
}

/// The words of a 429.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RateWording {
    /// Too many requests.
    Requests,
    /// Tokens per minute: `Request too large … Limit N, Requested M`. Reads much like an overflow and is none.
    TokensPerMinute,
    /// The quota is used up. Waiting does not help.
    Quota,
}

/// What is wrong with the usage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UsageLie {
    /// All figures are zero.
    Zero,
    /// There is none (`null`, or no field).
    Missing,
    /// The prompt is a thousand times as long.
    Huge,
    /// The output is counted as input too.
    OutputAsInput,
}

impl Fault {
    /// The name under which the log has it.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::RateLimit { .. } => "rate_limit",
            Self::Status(_) => "status",
            Self::Reset => "reset",
            Self::Hang(_) => "hang",
            Self::HangMidStream(_) => "hang_mid_stream",
            Self::ResetMidStream => "reset_mid_stream",
            Self::Truncated => "truncated",
            Self::NoTerminalEvent => "no_terminal_event",
            Self::InvalidJson => "invalid_json",
            Self::ErrorEvent => "error_event",
            Self::Slow(_) => "slow",
            Self::Truncate { .. } => "truncate",
            Self::Usage(_) => "usage",
            Self::EmptyAnswer => "empty_answer",
            Self::Html(_) => "html",
            Self::ForeignCharset => "foreign_charset",
            Self::WrongContentType => "wrong_content_type",
            Self::Raw { .. } => "raw",
        }
    }

    /// Whether a client gets nothing it could go on with. What the model would have said is then said the next time,
    /// so that runs with and without faults can be compared.
    pub(crate) const fn spoils(&self) -> bool {
        !matches!(self, Self::Slow(_) | Self::Truncate { .. } | Self::Usage(_) | Self::WrongContentType)
    }

    /// Whether the fault stands in place of any look at the request.
    pub(crate) const fn comes_first(&self) -> bool {
        matches!(
            self,
            Self::RateLimit { .. } | Self::Status(_) | Self::Reset | Self::Hang(_) | Self::Html(_) | Self::Raw { .. }
        )
    }
}
