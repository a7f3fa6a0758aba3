//! Requests as what changed: the form of `record.py`, which says it in words.

use std::io::Write;

use serde::{Deserialize, Serialize};

/// The first line of a trace.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Head {
    pub(crate) policy: String,
    pub(crate) window: u64,
}

/// One request.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Request {
    /// Leading messages that are those of the request before.
    pub(crate) keep: usize,
    /// The messages after them.
    pub(crate) messages: Vec<String>,
    /// The policy decided something.
    pub(crate) pass: bool,
    /// Calls of a summarizer: bytes it was given, bytes it gave.
    pub(crate) summaries: Vec<(u64, u64)>,
}

/// Writes requests, and answers each with its size.
pub(crate) struct Writer<W> {
    out: W,
    before: Vec<String>,
}

impl<W: Write> Writer<W> {
    pub(crate) fn new(mut out: W, head: &Head) -> Result<Self, String> {
        line(&mut out, head)?;
        Ok(Self { out, before: Vec::new() })
    }

    pub(crate) fn request(
        &mut self,
        messages: Vec<String>,
        pass: bool,
        summaries: Vec<(u64, u64)>,
    ) -> Result<(), String> {
        let keep = self.before.iter().zip(&messages).take_while(|(old, new)| old == new).count();
        let changed = messages.get(keep..).unwrap_or_default().to_vec();
        self.before = messages;
        line(&mut self.out, &Request { keep, messages: changed, pass, summaries })
    }
}

fn line<W: Write>(out: &mut W, value: &impl Serialize) -> Result<(), String> {
    let mut text = serde_json::to_string(value).map_err(|why| why.to_string())?;
    text.push('\n');
    out.write_all(text.as_bytes()).map_err(|why| format!("the trace cannot be written: {why}"))
}

/// Bytes of a request: its messages, and one byte between each two.
pub(crate) fn size(messages: &[String]) -> u64 {
    messages.iter().map(|message| message.len() as u64).sum::<u64>() + messages.len().saturating_sub(1) as u64
}
