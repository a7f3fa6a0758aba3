//! One `tracing` span for each call of a plugin.
//!
//! Target `foreshorten::plugin`, name `plugin`, level info. Known from the beginning: `plugin`, `digest` (16 digits of its
//! SHA-256), `call` (`plan`, `step`) and, of a stage, `turn` of the session. Recorded at the end: `outcome` (`ok`, `asks` for a
//! summarizer that wants an answer first, or the kind of fault), `fuel`, `wall_us`, `peak_memory` in bytes, `host_calls`,
//! `text_bytes`, `accepted` and `refused` decisions, `tokens_saved`. What the plugin logs is within it.

use tracing::Span;
use tracing::field::Empty;

use super::metrics::whole_micros;
use super::{Call, Fault, Spent};

/// A call that begins.
pub(super) fn of(plugin: &str, digest: &str, call: Call, turn: Option<u64>) -> Span {
    let call = match call {
        Call::Check => "check",
        Call::Plan => "plan",
        Call::Step => "step",
    };
    tracing::info_span!(
        target: "foreshorten::plugin",
        "plugin",
        plugin,
        digest = short(digest),
        call,
        turn,
        outcome = Empty,
        fuel = Empty,
        wall_us = Empty,
        peak_memory = Empty,
        host_calls = Empty,
        text_bytes = Empty,
        accepted = Empty,
        refused = Empty,
        tokens_saved = Empty,
    )
}

/// What tells one file from another for people.
pub(super) fn short(digest: &str) -> &str {
    digest.get(..16).unwrap_or(digest)
}

/// What a call used up.
pub(super) fn spent(span: &Span, spent: &Spent) {
    span.record("fuel", spent.fuel);
    span.record("wall_us", whole_micros(spent.wall));
    span.record("peak_memory", spent.peak_memory as u64);
    span.record("host_calls", spent.host_calls);
    span.record("text_bytes", spent.text_bytes);
}

/// How it ended.
pub(super) fn outcome(span: &Span, result: Result<&'static str, &Fault>) {
    span.record("outcome", result.unwrap_or_else(Fault::kind));
}
