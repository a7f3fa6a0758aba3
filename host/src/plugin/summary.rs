//! A summarizer that is a plugin: it asks a model, or writes; it never calls one itself.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use foreshorten_core::{
    CompactionState, Finish, SummaryRequest,
    estimate::{ByteEstimator, Weigher},
    marker::{MarkerStyle, SUMMARY_WRAPPER},
    state::{Guard, Ledger},
    transcript::{Columns, EntryKind, Transcript},
};
use tracing::Span;

use super::desk::{Desk, Settled};
use super::line::{Line, Message};
use super::stage::{CALLS, run_job};
use super::{Call, Done, Fault, Guest, Job, Limits, Metrics, ModelAsk, SummaryJob, span};
use crate::provider::{FinishReason, ModelRequest, ProviderError, Settings, Usage};
use crate::record::{Message as RecordMessage, Record};
use crate::summarizer::{Summarizer, Summary, SummaryAsk, SummaryError};
use crate::view::View;

/// A loaded summarizer.
pub struct SummaryPlugin {
    pub(super) name: String,
    pub(super) digest: String,
    pub(super) config: Arc<str>,
    pub(super) limits: Limits,
    pub(super) guest: Arc<dyn Guest>,
    pub(super) metrics: Mutex<Metrics>,
    /// It was seen to ask a model.
    pub(super) asks: AtomicBool,
}

impl std::fmt::Debug for SummaryPlugin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SummaryPlugin").field("name", &self.name).field("digest", &self.digest).finish_non_exhaustive()
    }
}

/// What a summarizer does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// It wants a model's answer first.
    Ask(ModelAsk),
    /// It wrote the summary.
    Written(String),
}

impl SummaryPlugin {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// SHA-256 of its file, in hexadecimal.
    #[must_use]
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// What it did so far.
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        self.metrics.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether it was seen to ask a model: in the run over a built-in record when it was loaded, or since. Where there is
    /// no model it is of no use then.
    #[must_use]
    pub fn asks_model(&self) -> bool {
        self.asks.load(Ordering::Relaxed)
    }

    /// Writes a summary where there is no model to ask.
    ///
    /// # Errors
    /// How it failed; [`Fault::NoModel`] when it asks a model.
    pub fn write(
        &self,
        request: &SummaryRequest,
        record: &dyn Transcript,
        columns: &Columns,
        ledger: &Ledger,
    ) -> Result<String, Fault> {
        self.write_counted(request, record, columns, ledger, &mut Metrics::default())
    }

    /// As [`write`](Self::write); what this call did is added to `account` too.
    ///
    /// # Errors
    /// As there.
    pub fn write_counted(
        &self,
        request: &SummaryRequest,
        record: &dyn Transcript,
        columns: &Columns,
        ledger: &Ledger,
        account: &mut Metrics,
    ) -> Result<String, Fault> {
        match self.step(job_of(request, Vec::new()), &Settled { record, columns, ledger }, account)? {
            Step::Written(text) => Ok(text),
            Step::Ask(_) => Err(Fault::NoModel),
        }
    }

    /// Starts its account afresh.
    pub fn reset(&self) {
        *self.metrics.lock().unwrap_or_else(PoisonError::into_inner) = Metrics::default();
    }

    /// One step over a record as it is.
    #[cfg(feature = "wasm")]
    pub(super) fn next(
        &self,
        job: SummaryJob,
        record: &dyn Transcript,
        columns: &Columns,
        ledger: &Ledger,
    ) -> Result<Step, Fault> {
        self.step(job, &Settled { record, columns, ledger }, &mut Metrics::default())
    }

    /// One step. The call has a thread of its own; this one answers what it asks.
    fn step(&self, job: SummaryJob, sight: &Settled<'_>, account: &mut Metrics) -> Result<Step, Fault> {
        let span = span::of(&self.name, &self.digest, Call::Step, Some(sight.ledger.state().turn()));
        let (send, messages) = channel();
        let (line, answers) = Line::new(move |message| send.send(message).is_ok());
        let job = self.job(job, line, sight.columns.len());
        let (guest, within) = (Arc::clone(&self.guest), span.clone());
        std::thread::Builder::new()
            .name("plugin".into())
            .spawn(move || within.in_scope(|| run_job(&*guest, job)))
            .map_err(|error| Fault::Host(error.to_string()))?;
        let mut desk = Desk::default();
        loop {
            match messages.recv() {
                Ok(Message::Ask(ask)) => {
                    let _ = answers.send(desk.look(sight, ask));
                }
                Ok(Message::Done(done)) => return self.judge(*done, &span, account),
                Err(_) => return self.judge(Done::failed(Fault::Host("its thread ended".into())), &span, account),
            }
        }
    }

    /// As [`step`](Self::step), without holding the thread.
    async fn step_async(
        &self,
        job: SummaryJob,
        record: &Record,
        columns: &Columns,
        ledger: &Ledger,
        account: &mut Metrics,
    ) -> Result<Step, Fault> {
        // Which turn it is the runner does not say to summarizers.
        let span = span::of(&self.name, &self.digest, Call::Step, None);
        let (send, mut messages) = tokio::sync::mpsc::unbounded_channel();
        let (line, answers) = Line::new(move |message| send.send(message).is_ok());
        let job = self.job(job, line, columns.len());
        let (guest, within) = (Arc::clone(&self.guest), span.clone());
        let _turn = CALLS.acquire().await;
        drop(tokio::task::spawn_blocking(move || within.in_scope(|| run_job(&*guest, job))));
        let mut desk = Desk::default();
        while let Some(message) = messages.recv().await {
            match message {
                Message::Ask(ask) => {
                    let _ = answers.send(desk.look(&Settled { record, columns, ledger }, ask));
                }
                Message::Done(done) => return self.judge(*done, &span, account),
            }
        }
        self.judge(Done::failed(Fault::Host("its thread ended".into())), &span, account)
    }

    fn job(&self, summary: SummaryJob, line: Line, entries: usize) -> Job {
        Job {
            call: Call::Step,
            line: Some(line),
            entries: u32::try_from(entries).unwrap_or(u32::MAX),
            config: Arc::clone(&self.config),
            memo: Vec::new(),
            summary: Some(Arc::new(summary)),
            limits: self.limits,
            condenses_as: None,
        }
    }

    fn judge(&self, done: Done, span: &Span, account: &mut Metrics) -> Result<Step, Fault> {
        let Done { result, asked, sections, spent, .. } = done;
        let result = result.and_then(|()| match (asked, sections.is_empty()) {
            (Some(ask), true) => Ok(Step::Ask(ask)),
            (None, false) => Ok(Step::Written(joined(&sections))),
            _ => Err(Fault::NoAnswer),
        });
        let mut call = Metrics::default();
        call.spent(&spent);
        if let Err(fault) = &result {
            call.fault(fault);
        }
        self.asks.fetch_or(matches!(result, Ok(Step::Ask(_))), Ordering::Relaxed);
        span::spent(span, &spent);
        span::outcome(span, result.as_ref().map(|step| if matches!(step, Step::Ask(_)) { "asks" } else { "ok" }));
        self.metrics.lock().unwrap_or_else(PoisonError::into_inner).add(&call);
        account.add(&call);
        result
    }
}

/// The sections as one text, headings as the core looks for them.
fn joined(sections: &[(String, String)]) -> String {
    let mut out = String::new();
    for (heading, text) in sections {
        // A heading is one line; more would be text under it.
        let heading = heading.lines().next().unwrap_or_default().trim();
        if !heading.is_empty() {
            out.push_str("## ");
            out.push_str(heading);
            out.push('\n');
        }
        out.push_str(text.trim());
        out.push('\n');
    }
    out
}

/// Facts about a record as they are before any decision.
fn beginning(record: &Record) -> (Columns, Ledger) {
    // What entries weigh is not looked at here: the cheapest rule.
    let weigher = Weigher { bytes: ByteEstimator::BytesPer4, ..Weigher::default() };
    let mut columns = Columns::new();
    for index in 0..record.len() {
        columns.push(record, weigher.entry(record, index));
    }
    let guard = Guard {
        transcript: record,
        columns: &columns,
        weigher: &weigher,
        style: MarkerStyle::default(),
        summary_wrapper: SUMMARY_WRAPPER,
        tools: &[],
        may_condense: false,
        tail_start: columns.groups(),
        last_resort: false,
    };
    let ledger = Ledger::new(CompactionState::new(), &guard);
    (columns, ledger)
}

pub(super) fn job_of(request: &SummaryRequest, replies: Vec<String>) -> SummaryJob {
    SummaryJob {
        span: request.entries.iter().map(|&entry| u32::try_from(entry).unwrap_or(u32::MAX)).collect(),
        text: request.text.clone(),
        prior: request.prior.clone().unwrap_or_default(),
        sections: request.sections.iter().map(|&section| section.to_owned()).collect(),
        max_chars: request.max_chars,
        max_output_tokens: u32::try_from(request.max_output_tokens).unwrap_or(u32::MAX),
        replies,
    }
}

#[async_trait]
impl Summarizer for SummaryPlugin {
    async fn summarize(&self, ask: SummaryAsk<'_>) -> Result<Summary, SummaryError> {
        let (columns, ledger) = beginning(ask.record);
        let mut usage = Usage::default();
        let mut replies = Vec::new();
        for _ in 0..self.limits.steps.max(1) {
            let job = job_of(ask.request, replies.clone());
            let mut call = Metrics::default();
            let step = self.step_async(job, ask.record, &columns, &ledger, &mut call).await;
            ask.account.lock().unwrap_or_else(PoisonError::into_inner).add(&self.name, &call);
            match step.map_err(|fault| SummaryError::Other(format!("{}: {fault}", self.name)))? {
                Step::Written(text) => return Ok(Summary { text, finish: Finish::Complete, usage }),
                Step::Ask(model) => {
                    let (text, cost) = complete(&ask, &model).await?;
                    usage += cost;
                    replies.push(text);
                }
            }
        }
        Err(SummaryError::Other(format!("{}: it asked {} times and wrote nothing", self.name, self.limits.steps)))
    }
}

/// Puts a summarizer's question to the run's own model, without tools.
async fn complete(ask: &SummaryAsk<'_>, model: &ModelAsk) -> Result<(String, Usage), SummaryError> {
    let limit = ask.request.max_output_tokens.max(1).min(u64::from(model.max_output_tokens.max(1)));
    let settings = Settings { temperature: Some(0.0), max_tokens: Some(limit), extra: ask.settings.extra.clone() };
    let messages = [RecordMessage::system(model.system.as_str()), RecordMessage::user(model.user.as_str())];
    let record: Record = messages.into_iter().collect();
    let view = View::of(&record).settled_at(1, 1);
    let request = ModelRequest::new(ask.model, &record, &view, &settings);
    let reply = ask.provider.complete(&request.for_summary(None), &|_| {}).await.map_err(|error| match error {
        ProviderError::Overflow(rejection) => SummaryError::Overflow(rejection.window),
        other => SummaryError::Provider(other),
    })?;
    match reply.finish {
        FinishReason::Stop | FinishReason::Other(_) => {}
        _ => return Err(SummaryError::Other("the model did not finish its answer to a summarizer".into())),
    }
    let text: Vec<String> = reply.messages.iter().map(|message| message.text_of(EntryKind::Assistant)).collect();
    Ok((text.join("\n").trim().to_owned(), reply.usage.unwrap_or_default()))
}
