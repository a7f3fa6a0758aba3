//! Recorded sessions.

use std::collections::BTreeMap;
use std::sync::Arc;

use foreshorten_core::transcript::{EntryKind, Transcript as _};

use super::body::text_of;
use super::error::FormatError;
use super::json::Json;
use super::wire::{Builder, WireTranscript};
use super::{Format, capture, claude_code, codex, detect, gemini, openhands, swe_agent};

/// One recorded conversation.
#[derive(Clone, Debug)]
pub struct Conversation {
    /// What tells it from others of the file: a session id, a sub-agent's id, a task.
    pub name: String,
    /// Format of its messages.
    pub format: Format,
    /// "looks like … because …".
    pub reason: String,
    /// The record.
    pub transcript: WireTranscript,
    /// The model calls in the record: for each, how many entries existed when it was made. Ascending; each stands just
    /// before a run of entries on the assistant's side, or at the end, when the answer was not recorded.
    pub calls: Vec<usize>,
    /// For every call, the prompt tokens the provider counted, cached ones included.
    pub usage: Vec<Option<u64>>,
    /// Raw schemas of the tools offered, where they were recorded.
    pub tools: Vec<String>,
    /// The model, where recorded; of several the last.
    pub model: Option<String>,
    /// Records that are no part of what the model was sent: type and count.
    pub skipped: Vec<(String, usize)>,
}

/// A conversation while it is read.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) b: Builder,
    pub(crate) name: String,
    pub(crate) model: Option<String>,
    pub(crate) tools: Vec<String>,
    /// Prompt tokens of the call that gave the entry of this index.
    pub(crate) usage: Vec<(usize, u64)>,
    /// Whether one more call was made with all entries.
    pub(crate) asks: bool,
    skipped: BTreeMap<String, usize>,
}

impl Draft {
    pub(crate) fn new(source: &Arc<String>, name: impl Into<String>) -> Self {
        Self::from(Builder::new(source), name)
    }

    pub(crate) fn from(b: Builder, name: impl Into<String>) -> Self {
        let (model, tools, usage, skipped) = (None, Vec::new(), Vec::new(), BTreeMap::new());
        Self { b, name: name.into(), model, tools, usage, asks: false, skipped }
    }

    pub(crate) fn skip(&mut self, kind: &str) {
        self.skip_many(kind, 1);
    }

    pub(crate) fn skip_many(&mut self, kind: &str, count: usize) {
        if let Some(so_far) = self.skipped.get_mut(kind) {
            *so_far += count;
        } else if count > 0 {
            self.skipped.insert(kind.into(), count);
        }
    }

    /// Notes what the provider counted for the call that gave the entry `entry`.
    pub(crate) fn used(&mut self, entry: usize, usage: Option<Json<'_>>) {
        if let Some(tokens) = usage.and_then(prompt_tokens) {
            self.usage.push((entry, tokens));
        }
    }

    /// Notes the model, unless it is a made-up one.
    pub(crate) fn by(&mut self, model: Option<Json<'_>>) {
        if let Some(model) = model.and_then(Json::string).filter(|model| *model != "<synthetic>") {
            self.model = Some(model.into_owned());
        }
    }

    pub(crate) fn finish(self, format: Format) -> Conversation {
        let transcript = self.b.finish();
        // What the server compacted stands among what the model wrote.
        let assistant_side = |index: usize| {
            let entry = &transcript.entries[index];
            entry.kind.is_assistant_side() || (entry.kind == EntryKind::System && entry.sealed)
        };
        // A run at the very start is a greeting: nothing had been sent.
        let mut calls: Vec<usize> =
            (1..transcript.len()).filter(|&index| assistant_side(index) && !assistant_side(index - 1)).collect();
        if self.asks && transcript.len().checked_sub(1).is_some_and(|last| !assistant_side(last)) {
            calls.push(transcript.len());
        }
        let mut usage = vec![None; calls.len()];
        for (entry, tokens) in self.usage {
            if let Some(call) = calls.partition_point(|&call| call <= entry).checked_sub(1) {
                let slot: &mut Option<u64> = &mut usage[call];
                // Of several messages in one run, the first was sent what stands before the run.
                *slot = slot.or(Some(tokens));
            }
        }
        Conversation {
            name: self.name,
            format,
            reason: String::new(),
            transcript,
            calls,
            usage,
            tools: self.tools,
            model: self.model,
            skipped: self.skipped.into_iter().collect(),
        }
    }
}

/// Prompt tokens in a usage object, cached ones included.
pub(crate) fn prompt_tokens(usage: Json<'_>) -> Option<u64> {
    let [prompt, input, written, read] =
        usage.fields(["prompt_tokens", "input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"]);
    let number = |field: Option<super::json::Field<'_>>| field.and_then(|field| field.integer());
    // Anthropic counts cached tokens beside the others, everyone else among them.
    let sum = number(prompt).or_else(|| {
        let cached = number(written).unwrap_or(0).saturating_add(number(read).unwrap_or(0));
        number(input).map(|input| input.saturating_add(cached))
    });
    sum.filter(|&tokens| tokens > 0)
}

/// Reads every conversation of a recorded session, or of a request body.
///
/// Without a `format` it is recognised by its shape; [`Format::Jsonl`] leaves the protocol of the lines to be recognised.
///
/// # Errors
/// When the bytes are not what `format` asks for, or none of the formats that are read.
pub fn read_session(bytes: Vec<u8>, format: Option<Format>) -> Result<Vec<Conversation>, FormatError> {
    let text = text_of(bytes)?;
    let parsed = detect::parse(&text)?;
    let asked = format.filter(|format| *format != Format::Jsonl);
    let (format, reason) = match asked {
        Some(format) => (format, format!("read as {format} because it was asked for")),
        None => {
            let found = detect::shape(&text, &parsed)?;
            (found.format, found.reason)
        }
    };
    let mut found = match format {
        Format::ClaudeCode => claude_code::read(&text, &parsed),
        Format::Codex => codex::read(&text, &parsed),
        Format::GeminiCli => gemini::read(&text, &parsed)?,
        Format::SweAgent => swe_agent::read(&text, &parsed)?,
        Format::OpenHands => openhands::read(&text, &parsed)?,
        _ if parsed.is_lines() => capture::lines(&text, &parsed, format)?,
        _ => capture::document(&text, parsed.root(), format)?,
    };
    // Readers skip what they do not know, so a wrong format shows as nothing read.
    let nothing = found.iter().all(|conversation| conversation.transcript.is_empty());
    if asked.is_some() && nothing && (parsed.is_lines() || !format.is_protocol()) {
        let other = detect::shape(&text, &parsed)?;
        if other.format != format {
            let found = format!("nothing of that kind; it {}", other.reason);
            return Err(FormatError::at(
                text.as_bytes(),
                parsed.root().start(),
                format!("a session of {format}"),
                found,
            ));
        }
    }
    for (at, conversation) in found.iter_mut().enumerate() {
        conversation.reason.clone_from(&reason);
        if at == 0 && parsed.is_cut() {
            conversation.skipped.push(("line cut at the end of the file".into(), 1));
        }
    }
    Ok(found)
}
