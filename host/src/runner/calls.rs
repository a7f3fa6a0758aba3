//! The tool loop: calls of one batch, side by side.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use foreshorten_core::transcript::{EntryKind, Part};
use futures_util::FutureExt as _;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tracing::Instrument as _;

use super::turn::Posture;
use super::{Event, RunError, Runner, Session};
use crate::context::STATE_KEY;
use crate::record::Message;
use crate::tool::{ToolCall, ToolOutput, limit_output};

/// One call of a batch.
struct Call {
    id: String,
    name: String,
    arguments: String,
}

fn calls(messages: &[Arc<Message>]) -> Vec<Call> {
    let entries = messages.iter().flat_map(|message| message.entries());
    let of = |entry: &foreshorten_core::transcript::Entry| Call {
        id: entry.call_id.clone(),
        name: entry.name.clone(),
        arguments: match entry.parts.first() {
            Some(Part::Text(text)) => text.clone(),
            _ => String::new(),
        },
    };
    entries.filter(|entry| entry.kind == EntryKind::ToolCall).map(of).collect()
}

impl Runner {
    /// Carries out the calls of an answer. Each result is recorded when it comes, so that what has had its effect is
    /// known even if the run ends then. Answers whether there were any.
    pub(super) async fn call_tools(
        &self,
        posture: &Posture<'_>,
        session: &mut Session,
        messages: &[Arc<Message>],
    ) -> Result<bool, RunError> {
        let calls = calls(messages);
        if calls.is_empty() {
            return Ok(false);
        }
        // The record as it stands now, for tools that look into it; what comes meanwhile is appended to the session's.
        let record = session.record.clone();
        let state = session.scratch.meta.0.get(STATE_KEY).cloned().unwrap_or_default();
        let id = session.id.clone();
        let mut running: FuturesUnordered<_> = calls
            .iter()
            .enumerate()
            .map(|(number, call)| {
                let at = posture.specs.iter().position(|spec| spec.name == call.name);
                let context =
                    ToolCall { session: &id, state: &state, ..ToolCall::new(&call.id, &call.arguments, &record) };
                let span = tracing::info_span!(
                    "execute_tool",
                    gen_ai.operation.name = "execute_tool",
                    gen_ai.tool.name = %call.name,
                    gen_ai.tool.call.id = %call.id,
                );
                async move {
                    let output = match at {
                        // A tool that panics has failed, and nothing else has.
                        Some(at) => {
                            let called = AssertUnwindSafe(posture.tools[at].call(context)).catch_unwind().await;
                            called.unwrap_or_else(|_| ToolOutput::error("The tool failed: it panicked."))
                        }
                        None => unknown(posture, call),
                    };
                    (number, output)
                }
                .instrument(span)
            })
            .collect();
        // A result is told from another by the id of its call alone: those of equal ids wait for their turn.
        let mut done: Vec<Option<ToolOutput>> = calls.iter().map(|_| None).collect();
        let mut recorded = vec![false; calls.len()];
        while let Some((at, output)) = running.next().await {
            done[at] = Some(output);
            for (at, call) in calls.iter().enumerate() {
                let waits = |(before, it): (usize, &Call)| !recorded[before] && it.id == call.id;
                if calls[..at].iter().enumerate().any(waits) {
                    continue;
                }
                let Some(output) = done[at].take() else { continue };
                recorded[at] = true;
                let output = match posture.agent.output_limit {
                    Some(chars) => limit_output(output, chars),
                    None => output,
                };
                let is_error = output.is_error;
                let message = Arc::new(Message::of(vec![output.into_entry(&call.id)]));
                self.step(session, &**posture.policy, vec![message], false).await?;
                self.tell(Event::ToolCalled {
                    session: id.clone(),
                    name: call.name.clone(),
                    call_id: call.id.clone(),
                    is_error,
                });
            }
        }
        Ok(true)
    }
}

fn unknown(posture: &Posture<'_>, call: &Call) -> ToolOutput {
    let names: Vec<&str> = posture.specs.iter().map(|spec| spec.name.as_str()).collect();
    ToolOutput::error(format!("There is no tool `{}`. There are: {}.", call.name, names.join(", ")))
}
