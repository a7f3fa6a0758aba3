//! A stage that is a plugin, and how it takes part in a pass.

use std::borrow::Borrow;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::str::FromStr;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use foreshorten_core::{
    Compactor, Policy,
    budget::Mode,
    plan::{self, Stage},
    transcript::Transcript,
};
use tracing::Span;

use super::breaker::Breaker;
use super::desk::Desk;
use super::line::{Answering, Line, Message};
use super::{Call, Done, Fault, Guest, Job, Limits, LoadError, Metrics, span};

/// What is done when a plugin fails, or is left alone because it kept failing.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum OnFailure {
    /// The pipeline goes on without it. The default: the record is whole, other stages follow, and the ladder of last
    /// resorts makes any view fit.
    #[default]
    Skip,
    /// This built-in stage takes its place.
    Builtin(Arc<dyn Stage + Send + Sync>),
    /// The turn fails before the model is called: for a plugin that hides what must not be sent.
    Required,
}

impl std::fmt::Debug for OnFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Skip => f.write_str("skip"),
            Self::Builtin(stage) => write!(f, "builtin:{}", stage.name()),
            Self::Required => f.write_str("required"),
        }
    }
}

impl FromStr for OnFailure {
    type Err = String;

    /// `skip`, `required`, or `builtin:` and the name of a stage, with its default parameters.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text {
            "skip" => Self::Skip,
            "required" => Self::Required,
            "builtin:offload_tool_results" => Self::Builtin(Arc::new(plan::OffloadToolResults::default())),
            "builtin:clear_tool_results" => Self::Builtin(Arc::new(plan::ClearToolResults::default())),
            "builtin:drop_superseded" => Self::Builtin(Arc::new(plan::DropSuperseded::default())),
            "builtin:drop_old_images" => Self::Builtin(Arc::new(plan::DropOldImages::default())),
            "builtin:clip_tool_arguments" => Self::Builtin(Arc::new(plan::ClipToolArguments::default())),
            "builtin:clear_reasoning" => Self::Builtin(Arc::new(plan::ClearReasoning::default())),
            other => {
                return Err(format!(
                    "on_failure: `{other}` is none of skip, required, builtin:offload_tool_results, \
                     builtin:clear_tool_results, builtin:drop_superseded, builtin:drop_old_images, \
                     builtin:clip_tool_arguments, builtin:clear_reasoning"
                ));
            }
        })
    }
}

/// A required plugin failed: the turn must not go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Required {
    /// The plugin.
    pub name: String,
    /// What happened.
    pub why: String,
}

impl std::fmt::Display for Required {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the required plugin {} failed: {}", self.name, self.why)
    }
}

impl std::error::Error for Required {}

/// A loaded stage. One serves any number of sessions at once; everything about a session is in its state.
pub struct StagePlugin {
    pub(super) name: String,
    pub(super) digest: String,
    pub(super) major: String,
    pub(super) config: Arc<str>,
    pub(super) limits: Limits,
    pub(super) may_condense: bool,
    pub(super) on_failure: OnFailure,
    pub(super) guest: Arc<dyn Guest>,
    pub(super) metrics: Mutex<Metrics>,
}

impl std::fmt::Debug for StagePlugin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StagePlugin")
            .field("name", &self.name)
            .field("digest", &self.digest)
            .field("on_failure", &self.on_failure)
            .finish_non_exhaustive()
    }
}

/// What is to be done about a pending stage.
enum Begun {
    /// Call it, within this span.
    Call(Box<Job>, Span),
    /// It is over already: it was left out.
    Over(Result<(), Required>),
}

impl StagePlugin {
    /// Its name: in pipelines, notices and labels.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// SHA-256 of its file, in hexadecimal.
    #[must_use]
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// The same code under another name, with another configuration: loaded once, used in several places of a pipeline.
    ///
    /// # Errors
    /// Its `check` refuses the configuration.
    pub fn configured(&self, name: &str, config: &str) -> Result<Self, LoadError> {
        let config: Arc<str> = config.into();
        let checked = self.guest.call(Job::check(Arc::clone(&config), self.limits)).0;
        checked.result.map_err(|fault| LoadError::Check("check", fault))?;
        Ok(Self {
            name: name.into(),
            digest: self.digest.clone(),
            major: self.major.clone(),
            config,
            limits: self.limits,
            may_condense: self.may_condense,
            on_failure: self.on_failure.clone(),
            guest: Arc::clone(&self.guest),
            metrics: Mutex::new(Metrics::default()),
        })
    }

    /// Whether it may put text of its own in place of results.
    #[must_use]
    pub const fn may_condense(&self) -> bool {
        self.may_condense
    }

    /// What it did so far.
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        self.metrics.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Starts its account afresh.
    pub fn reset(&self) {
        self.with_metrics(|metrics| *metrics = Metrics::default());
    }

    /// Answers the effect that asks for this stage, in this thread. The call of a component has one of its own; a library is
    /// called in this one, too.
    ///
    /// # Errors
    /// It failed and is required.
    pub fn run<P: Borrow<Policy>>(
        &self,
        compactor: &mut Compactor<P>,
        transcript: &dyn Transcript,
    ) -> Result<(), Required> {
        self.run_counted(compactor, transcript, &mut Metrics::default())
    }

    /// As [`run`](Self::run); what this call did is added to `account` too.
    ///
    /// # Errors
    /// It failed and is required.
    pub fn run_counted<P: Borrow<Policy>>(
        &self,
        compactor: &mut Compactor<P>,
        transcript: &dyn Transcript,
        account: &mut Metrics,
    ) -> Result<(), Required> {
        let (job, span) = match self.begin(compactor, transcript, account) {
            Begun::Call(job, span) => (job, span),
            Begun::Over(result) => return result,
        };
        let mut desk = Desk::default();
        // A panic of the record is its owner's, whoever asked; it must not pass through foreign frames.
        let mut panicked = None;
        let mut answer = |ask| {
            // After it, what is half done is not looked at again.
            if panicked.is_some() {
                return None;
            }
            let turn = compactor.state().turn();
            let answer = || compactor.with_stage(transcript, |stage| desk.answer(stage, turn, ask));
            catch_unwind(AssertUnwindSafe(answer)).unwrap_or_else(|payload| {
                panicked = Some(payload);
                None
            })
        };
        let done = match span.in_scope(|| self.guest.call_here(job, &mut answer)) {
            Ok(done) => done,
            Err(job) => self.call_beside(*job, &mut answer, &span),
        };
        if let Some(payload) = panicked {
            resume_unwind(payload);
        }
        self.finish(compactor, transcript, &desk, done, &span, account)
    }

    /// Makes a call in a thread of its own, and answers what it asks in this one.
    fn call_beside(&self, mut job: Job, answering: Answering<'_>, span: &Span) -> Done {
        let (send, messages) = channel();
        let (line, answers) = Line::new(move |message| send.send(message).is_ok());
        job.line = Some(line);
        let (guest, within) = (Arc::clone(&self.guest), span.clone());
        let call = move || within.in_scope(|| run_job(&*guest, job));
        if let Err(error) = std::thread::Builder::new().name("plugin".into()).spawn(call) {
            return Done::failed(Fault::Host(error.to_string()));
        }
        loop {
            match messages.recv() {
                Ok(Message::Ask(ask)) => match answering(ask) {
                    // A call that does not wait for it any more ends by itself.
                    Some(answer) => drop(answers.send(answer)),
                    None => return Done::failed(Fault::Host("no stage is pending".into())),
                },
                Ok(Message::Done(last)) => return *last,
                Err(_) => return Done::failed(Fault::Host("its thread ended".into())),
            }
        }
    }

    /// As [`run`](Self::run), without holding the thread: the call runs on the blocking pool of the runtime.
    ///
    /// # Errors
    /// It failed and is required.
    pub async fn run_async<P: Borrow<Policy> + Send>(
        &self,
        compactor: &mut Compactor<P>,
        transcript: &(dyn Transcript + Sync),
    ) -> Result<(), Required> {
        self.run_async_counted(compactor, transcript, &mut Metrics::default()).await
    }

    /// As [`run_async`](Self::run_async); what this call did is added to `account` too.
    ///
    /// # Errors
    /// It failed and is required.
    pub async fn run_async_counted<P: Borrow<Policy> + Send>(
        &self,
        compactor: &mut Compactor<P>,
        transcript: &(dyn Transcript + Sync),
        account: &mut Metrics,
    ) -> Result<(), Required> {
        let (mut job, span) = match self.begin(compactor, transcript, account) {
            Begun::Call(job, span) => (job, span),
            Begun::Over(result) => return result,
        };
        let (send, mut messages) = tokio::sync::mpsc::unbounded_channel();
        let (line, answers) = Line::new(move |message| send.send(message).is_ok());
        job.line = Some(line);
        let _turn = CALLS.acquire().await;
        let (guest, within) = (Arc::clone(&self.guest), span.clone());
        let call = tokio::task::spawn_blocking(move || within.in_scope(|| run_job(&*guest, *job)));
        let mut desk = Desk::default();
        let mut done = None;
        while let Some(message) = messages.recv().await {
            match message {
                Message::Ask(ask) => {
                    let turn = compactor.state().turn();
                    match compactor.with_stage(transcript, |stage| desk.answer(stage, turn, ask)) {
                        Some(answer) => drop(answers.send(answer)),
                        None => break,
                    }
                }
                Message::Done(last) => {
                    done = Some(*last);
                    break;
                }
            }
        }
        drop(call);
        let done = done.unwrap_or_else(|| Done::failed(Fault::Host("its call was cut off".into())));
        self.finish(compactor, transcript, &desk, done, &span, account)
    }

    fn breaker_label(&self) -> String {
        format!("plugin.{}.breaker", &self.digest[..self.digest.len().min(16)])
    }

    fn memo_label(&self) -> String {
        format!("plugin.{}@{}.memo", self.name, self.major)
    }

    fn begin<P: Borrow<Policy>>(
        &self,
        compactor: &mut Compactor<P>,
        transcript: &dyn Transcript,
        account: &mut Metrics,
    ) -> Begun {
        let state = compactor.state();
        let turn = state.turn();
        let breaker = state.label(&self.breaker_label()).map(Breaker::parse).unwrap_or_default();
        let aggressive = compactor.pass_mode() == Some(Mode::Aggressive);
        if !breaker.allows(turn, aggressive) {
            self.count(account, &Metrics { skipped: 1, ..Metrics::default() });
            let why = format!("left alone after {} failures, until turn {}", breaker.faults(), breaker.next_try());
            return Begun::Over(self.give_up(compactor, transcript, &why));
        }
        let memo = state.label(&self.memo_label()).and_then(|label| STANDARD.decode(label.get(20..)?).ok());
        let job = Job {
            call: Call::Plan,
            line: None,
            entries: u32::try_from(transcript.len()).unwrap_or(u32::MAX),
            config: Arc::clone(&self.config),
            memo: memo.unwrap_or_default(),
            summary: None,
            limits: self.limits,
            condenses_as: self.may_condense.then(|| self.name.clone()),
        };
        Begun::Call(Box::new(job), span::of(&self.name, &self.digest, Call::Plan, Some(turn)))
    }

    fn finish<P: Borrow<Policy>>(
        &self,
        compactor: &mut Compactor<P>,
        transcript: &dyn Transcript,
        desk: &Desk,
        done: Done,
        span: &Span,
        account: &mut Metrics,
    ) -> Result<(), Required> {
        let _within = span.enter();
        let turn = compactor.state().turn();
        let label = self.breaker_label();
        let mut breaker = compactor.state().label(&label).map(Breaker::parse).unwrap_or_default();
        let mut call = Metrics::default();
        call.spent(&done.spent);
        call.refusals(&desk.refused);
        span::spent(span, &done.spent);
        span.record("refused", call.refused_count());
        let fault = match done.result {
            Ok(()) => {
                let tried = desk.accepted + desk.refused.iter().map(|(_, count)| count).sum::<u64>();
                if tried > 8 && desk.accepted * 2 < tried {
                    let why = desk.refused.iter().max_by_key(|(_, count)| *count).map(|(why, _)| why.to_string());
                    tracing::warn!(plugin = %self.name, tried, accepted = desk.accepted, most = why, "most decisions were refused");
                }
                compactor.with_stage(transcript, |stage| {
                    for line in done.lines {
                        stage.explain(format!("{}: {line}", self.name));
                    }
                });
                if let Some(memo) = done.memo {
                    // The turn comes first and in equal width: of two states that join, the later memo holds.
                    compactor.set_label(&self.memo_label(), &format!("{turn:020}{}", STANDARD.encode(memo)));
                }
                if breaker.succeed() {
                    compactor.set_label(&label, &breaker.label());
                }
                let saved = compactor.commit_stage();
                (call.accepted, call.tokens_saved) = (desk.accepted, saved);
                span.record("accepted", call.accepted);
                span.record("tokens_saved", saved);
                span::outcome(span, Ok("ok"));
                self.count(account, &call);
                return Ok(());
            }
            Err(fault) => fault,
        };
        breaker.fail(turn);
        compactor.set_label(&label, &breaker.label());
        call.fault(&fault);
        self.count(account, &call);
        span.record("accepted", 0);
        span::outcome(span, Err(&fault));
        tracing::warn!(plugin = %self.name, kind = fault.kind(), %fault, "a plugin failed");
        self.give_up(compactor, transcript, &fault.to_string())
    }

    /// What happens in place of a stage that failed.
    fn give_up<P: Borrow<Policy>>(
        &self,
        compactor: &mut Compactor<P>,
        transcript: &dyn Transcript,
        why: &str,
    ) -> Result<(), Required> {
        match &self.on_failure {
            OnFailure::Skip => compactor.abandon_stage(&format!("{}: {why}; left out", self.name)),
            OnFailure::Builtin(stage) => {
                compactor.restart_stage(&format!("{}: {why}; {} takes its place", self.name, stage.name()));
                compactor.with_stage(transcript, |context| stage.plan(context));
                compactor.commit_stage();
            }
            OnFailure::Required => {
                compactor.abandon_stage(&format!("{}: {why}", self.name));
                return Err(Required { name: self.name.clone(), why: why.into() });
            }
        }
        Ok(())
    }

    /// Adds what one call did, here and to the account of who asked.
    fn count(&self, account: &mut Metrics, call: &Metrics) {
        self.with_metrics(|metrics| metrics.add(call));
        account.add(call);
    }

    pub(super) fn with_metrics(&self, change: impl FnOnce(&mut Metrics)) {
        change(&mut self.metrics.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// Calls of plugins that run at once in async hosts; more would only make each slower.
pub(super) static CALLS: tokio::sync::Semaphore = tokio::sync::Semaphore::const_new(8);

/// Makes the call; whatever happens, an answer comes over the line.
pub(super) fn run_job(guest: &dyn Guest, job: Job) {
    // A panic in a function of the host is the host's bug, not a reason to take the session along.
    let called = catch_unwind(AssertUnwindSafe(|| guest.call(job)));
    if let Ok((done, Some(line))) = called {
        line.done(done);
    }
}

/// The plugins of a pipeline, by name.
#[derive(Clone, Debug, Default)]
pub struct Stages(Vec<Arc<StagePlugin>>);

impl Stages {
    /// Adds one; a name that is taken gets a number.
    pub fn push(&mut self, plugin: StagePlugin) -> Arc<StagePlugin> {
        let mut plugin = plugin;
        let base = plugin.name.clone();
        let mut number = 2;
        while self.get(&plugin.name).is_some() {
            plugin.name = format!("{base}-{number}");
            number += 1;
        }
        let plugin = Arc::new(plugin);
        self.0.push(Arc::clone(&plugin));
        plugin
    }

    /// One, by name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<StagePlugin>> {
        self.0.iter().find(|plugin| plugin.name == name)
    }

    /// All, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<StagePlugin>> {
        self.0.iter()
    }

    /// Whether any may put text of its own in place of results.
    #[must_use]
    pub fn may_condense(&self) -> bool {
        self.0.iter().any(|plugin| plugin.may_condense)
    }
}

impl FromIterator<Arc<StagePlugin>> for Stages {
    fn from_iter<T: IntoIterator<Item = Arc<StagePlugin>>>(plugins: T) -> Self {
        Self(plugins.into_iter().collect())
    }
}
