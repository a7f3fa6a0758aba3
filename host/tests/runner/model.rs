//! A model in this process, for tests of the runner: it counts by a rule of its own, has a window, and does what a script
//! says.
#![allow(dead_code, reason = "every test crate uses its own part")]
#![allow(clippy::unwrap_used, clippy::or_fun_call, reason = "this is test code")]

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use foreshorten::provider::{
    Delta, FinishReason, ModelReply, ModelRequest, OnDelta, Provider, ProviderError, Purpose, Usage,
};
use foreshorten::record::Message;
use foreshorten::tool::{Tool, ToolCall, ToolOutput, ToolSpec};
use foreshorten_core::transcript::{Entry, EntryKind, Part};

/// What the model does when it is called.
pub(crate) type Script = dyn Fn(u32, &[Entry]) -> Vec<Entry> + Send + Sync;

/// What a call was sent.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) purpose: Purpose,
    pub(crate) entries: Vec<Entry>,
    pub(crate) instruction: Option<String>,
    pub(crate) tools: Vec<String>,
    pub(crate) max_tokens: Option<u64>,
    pub(crate) temperature: Option<f32>,
    pub(crate) tokens: u64,
    pub(crate) refused: bool,
}

/// The model.
pub(crate) struct Model {
    /// Tokens it can take; above it, prompts are turned down.
    pub(crate) window: AtomicU64,
    /// What it says when it turns one down; `{window}` and `{tokens}` are filled in.
    pub(crate) refusal: &'static str,
    pub(crate) listed: Mutex<VecDeque<Result<Option<u64>, ProviderError>>>,
    /// Counts above this are cut to it without a word.
    pub(crate) truncates_to: AtomicU64,
    pub(crate) failures: Mutex<VecDeque<ProviderError>>,
    pub(crate) summary: Mutex<Option<String>>,
    pub(crate) calls: Mutex<Vec<Call>>,
    pub(crate) made: AtomicU32,
    pub(crate) listings: AtomicU32,
    script: Box<Script>,
}

pub(crate) const SUMMARY: &str = "## Session intent\nThe user wants the long task finished.\n## Current state\nHalf of the \
    files were read.\n## Key facts and decisions\nThe answer is 42, in src/main.rs.\n## Artifacts\nnotes.md\n## \
    Constraints\nNone.\n## Next steps\nRead the rest.";

impl Model {
    pub(crate) fn new(script: impl Fn(u32, &[Entry]) -> Vec<Entry> + Send + Sync + 'static) -> Self {
        Self {
            window: AtomicU64::new(u64::MAX),
            refusal: "This model's maximum context length is {window} tokens. However, your messages resulted in {tokens} tokens.",
            listed: Mutex::default(),
            truncates_to: AtomicU64::new(u64::MAX),
            failures: Mutex::default(),
            summary: Mutex::new(Some(SUMMARY.into())),
            calls: Mutex::default(),
            made: AtomicU32::new(0),
            listings: AtomicU32::new(0),
            script: Box::new(script),
        }
    }

    pub(crate) fn windowed(self, tokens: u64) -> Self {
        self.window.store(tokens, Ordering::SeqCst);
        self
    }

    pub(crate) fn turns(&self) -> Vec<Call> {
        self.calls.lock().unwrap().iter().filter(|call| call.purpose == Purpose::Turn).cloned().collect()
    }

    pub(crate) fn refused(&self) -> usize {
        self.calls.lock().unwrap().iter().filter(|call| call.refused).count()
    }

    pub(crate) fn summaries(&self) -> Vec<Call> {
        self.calls.lock().unwrap().iter().filter(|call| call.purpose == Purpose::Summary).cloned().collect()
    }
}

/// Not the rule of the estimate: three bytes a token, five an entry, and a hidden prompt.
pub(crate) fn count(entries: &[Entry]) -> u64 {
    let part = |part: &Part| match part {
        Part::Text(text) => text.len() as u64 / 3,
        _ => 1_000,
    };
    137 + entries.iter().map(|entry| 5 + entry.parts.iter().map(part).sum::<u64>()).sum::<u64>()
}

#[async_trait::async_trait]
impl Provider for Model {
    fn endpoint(&self) -> &str {
        "test://model"
    }

    async fn complete(&self, request: &ModelRequest<'_>, on_delta: &OnDelta<'_>) -> Result<ModelReply, ProviderError> {
        tokio::task::yield_now().await;
        let mut entries = request.view.entries(request.record);
        if let Some(instruction) = request.instruction {
            entries.push(Entry::user(instruction));
        }
        let schemas: u64 = request.tools.iter().map(|tool| tool.parameters.to_string().len() as u64 / 3).sum();
        let tokens = count(&entries) + schemas;
        let window = self.window.load(Ordering::SeqCst);
        let refused = tokens + request.settings.max_tokens.unwrap_or(0) > window;
        self.calls.lock().unwrap().push(Call {
            purpose: request.purpose,
            entries: entries.clone(),
            instruction: request.instruction.map(Into::into),
            tools: request.tools.iter().map(|tool| tool.name.clone()).collect(),
            max_tokens: request.settings.max_tokens,
            temperature: request.settings.temperature,
            tokens,
            refused,
        });
        if let Some(error) = self.failures.lock().unwrap().pop_front() {
            return Err(error);
        }
        if refused {
            let text = self.refusal.replace("{window}", &window.to_string()).replace("{tokens}", &tokens.to_string());
            return Err(ProviderError::from_answer(Some(400), &text));
        }
        tokio::task::yield_now().await;
        let made = match request.purpose {
            Purpose::Summary => {
                let text = self.summary.lock().unwrap().clone();
                let text = text.ok_or(ProviderError::Unavailable { status: Some(503), message: "down".into() })?;
                vec![Entry::assistant(text)]
            }
            _ => (self.script)(self.made.fetch_add(1, Ordering::SeqCst), &entries),
        };
        for entry in &made {
            if let (EntryKind::Assistant, Some(Part::Text(text))) = (entry.kind, entry.parts.first()) {
                on_delta(Delta::Text(text));
            }
        }
        let calls = made.iter().any(|entry| entry.kind == EntryKind::ToolCall);
        let usage = Usage {
            input_tokens: tokens.min(self.truncates_to.load(Ordering::SeqCst)),
            output_tokens: count(&made),
            ..Usage::default()
        };
        let finish = if calls { FinishReason::ToolCalls } else { FinishReason::Stop };
        Ok(ModelReply::new(vec![Message::of(made)], finish).counted(usage))
    }

    async fn listed_window(&self, _model: &str) -> Result<Option<u64>, ProviderError> {
        self.listings.fetch_add(1, Ordering::SeqCst);
        self.listed.lock().unwrap().pop_front().unwrap_or(Ok(None))
    }
}

/// A tool that answers with many lines.
pub(crate) struct Reads {
    pub(crate) bytes: usize,
}

#[async_trait::async_trait]
impl Tool for Reads {
    fn spec(&self) -> ToolSpec {
        let path = serde_json::json!({"type": "object", "properties": {"path": {"type": "string"}}});
        ToolSpec::new("read", "Reads a file.", path)
    }

    async fn call(&self, call: ToolCall<'_>) -> ToolOutput {
        tokio::task::yield_now().await;
        ToolOutput::text(lines(call.arguments, self.bytes))
    }
}

/// Lines that differ from those of any other name.
pub(crate) fn lines(name: &str, bytes: usize) -> String {
    let mut text = String::new();
    let mut number = 0;
    while text.len() < bytes {
        number += 1;
        text.push_str(&format!("line {number} of {name}: the quick brown fox jumps over the lazy dog\n"));
    }
    text.truncate(bytes);
    text
}

/// Works through `rounds` calls of `read`, two at a time, then says that it is done.
pub(crate) fn worker(rounds: u32) -> impl Fn(u32, &[Entry]) -> Vec<Entry> + Send + Sync {
    move |made, _| {
        let round = made % (rounds + 1);
        if round == rounds {
            return vec![Entry::assistant(format!("done after {made}"))];
        }
        let call = |side: &str| {
            let id = format!("call_{made}{side}");
            Entry::tool_call(id, "read", format!("{{\"path\":\"{made}{side}.txt\"}}"))
        };
        vec![Entry::assistant(format!("reading {made}")), call("a"), call("b")]
    }
}
