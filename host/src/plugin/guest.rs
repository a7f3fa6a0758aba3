//! What both kinds of plugin file come down to: something that can be called.

use std::sync::Arc;
use std::time::Duration;

use super::line::{Answering, Line};
use super::{Fault, Limits};

/// Which of its functions is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// `check`, of either world.
    Check,
    /// `plan` of a stage.
    Plan,
    /// `step` of a summarizer.
    Step,
}

/// One call.
#[derive(Debug)]
pub struct Job {
    /// What is called.
    pub call: Call,
    /// The way to the pass; `None` for a call without a record, which then is empty.
    pub line: Option<Line>,
    /// Entries of the record.
    pub entries: u32,
    /// The plugin's configuration, as JSON.
    pub config: Arc<str>,
    /// What it kept.
    pub memo: Vec<u8>,
    /// What is to be summarized.
    pub summary: Option<Arc<SummaryJob>>,
    /// Bounds.
    pub limits: Limits,
    /// The name under which its own text is labelled; `None` without the grant.
    pub condenses_as: Option<String>,
}

impl Job {
    /// A call of `check`: without a record.
    #[must_use]
    pub fn check(config: Arc<str>, limits: Limits) -> Self {
        Self {
            call: Call::Check,
            line: None,
            entries: 0,
            config,
            memo: Vec::new(),
            summary: None,
            limits,
            condenses_as: None,
        }
    }
}

/// A summary to be written.
#[derive(Clone, Debug, Default)]
pub struct SummaryJob {
    /// Entries, in order.
    pub span: Vec<u32>,
    /// Their text, as a prompt can hold it.
    pub text: String,
    /// The summary so far.
    pub prior: String,
    /// Headings it must have.
    pub sections: Vec<String>,
    /// Longest summary, in characters.
    pub max_chars: u32,
    /// Tokens an answer may take.
    pub max_output_tokens: u32,
    /// Answers so far.
    pub replies: Vec<String>,
}

/// What a summarizer asks a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelAsk {
    /// System prompt.
    pub system: String,
    /// User message.
    pub user: String,
    /// Most tokens of the answer.
    pub max_output_tokens: u32,
}

/// What a call came to.
#[derive(Debug)]
pub struct Done {
    /// Whether it went well.
    pub result: Result<(), Fault>,
    /// What it keeps from now on, when it said so.
    pub memo: Option<Vec<u8>>,
    /// Lines for the notice.
    pub lines: Vec<String>,
    /// What it asks a model.
    pub asked: Option<ModelAsk>,
    /// What it wrote: heading, text.
    pub sections: Vec<(String, String)>,
    /// What it used up.
    pub spent: Spent,
}

impl Done {
    /// A call that failed before it began.
    #[must_use]
    pub fn failed(fault: Fault) -> Self {
        Self {
            result: Err(fault),
            memo: None,
            lines: Vec::new(),
            asked: None,
            sections: Vec::new(),
            spent: Spent::default(),
        }
    }
}

/// What a call used up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Instructions.
    pub fuel: u64,
    /// Wall clock.
    pub wall: Duration,
    /// Most bytes of linear memory.
    pub peak_memory: usize,
    /// Calls of the host.
    pub host_calls: u64,
    /// Bytes of text read.
    pub text_bytes: u64,
    /// Lines of log above the limit.
    pub log_dropped: u64,
}

/// Something that can be called. The adapter for components is in [`super::wasm`].
pub trait Guest: Send + Sync {
    /// Makes one call and answers through what the job brings; blocks until the call is over, and is always over in
    /// bounded time.
    fn call(&self, job: Job) -> (Done, Option<Line>);

    /// Makes one call of a job without a line in the thread of the pass, which answers by `answering` what is asked.
    ///
    /// # Errors
    /// The job comes back where a call needs a thread of its own, since it may have to be ended from outside.
    fn call_here(&self, job: Box<Job>, answering: Answering<'_>) -> Result<Done, Box<Job>> {
        _ = answering;
        Err(job)
    }
}
