//! A session through the whole core, without a host: passes, a summary, an overflow, a stored state, recall.
//!
//! Built for wasm32 it shows that the core imports nothing; played there and here it gives one fingerprint (I2).
#![cfg_attr(target_arch = "wasm32", no_std)]

extern crate alloc;

use alloc::{format, string::String, vec::Vec};

use foreshorten_core::{
    CompactionState, Compactor, Effect, Finish, Policy, Step, SummaryReply, Turn, overflow::explain, recall, summary,
    transcript::{Entry, OwnedTranscript, Transcript, text_of},
    view::Piece,
};

#[cfg(target_arch = "wasm32")]
#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

#[cfg(target_arch = "wasm32")]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    core::arch::wasm32::unreachable()
}

/// Plays `turns` turns; answers a fingerprint of every view and of the state at the end.
#[unsafe(no_mangle)]
pub extern "C" fn play(turns: u32) -> u64 {
    let policy = Policy::default();
    let mut transcript = OwnedTranscript::default();
    let mut compactor = Compactor::new(&policy);
    let mut seen: Vec<u8> = Vec::new();
    transcript.push(Entry::system("You are an agent."));
    for number in 0..turns {
        transcript.push(Entry::user(format!("question {number}")));
        transcript.push(Entry::tool_call(format!("call_{number}"), "read", format!("{{\"line\":{number}}}")));
        transcript.push(Entry::tool_result(format!("call_{number}"), "line\n".repeat(800)));
        compactor.sync(&transcript);
        let error = explain(Some(400), "This model's maximum context length is 8192 tokens.");
        let overflow = number == turns / 2 && error.is_overflow();
        let reported_window = error.window.filter(|_| overflow);
        let turn =
            Turn { window: Some(16_000), overflow, reported_window, can_summarize: true, ..Turn::default() };
        compactor.begin(&transcript, turn);
        loop {
            match compactor.poll(&transcript) {
                Step::Effect(Effect::Summarize(request)) => {
                    let guard = compactor.guard(&transcript);
                    let text = summary::extractive_summary(&guard, &request.entries, request.prior.as_deref(), 2_000);
                    compactor.handle_summary(&transcript, Ok(SummaryReply { text, finish: Finish::Complete }));
                }
                Step::Effect(Effect::Archive { .. }) => compactor.handle_archived(true),
                Step::Effect(_) => compactor.handle_proposals(&transcript, Vec::new()),
                Step::Done(_) => break,
            }
        }
        for piece in compactor.view().pieces() {
            match piece {
                Piece::Entry { entry } => seen.extend_from_slice(text_of(&transcript, entry).as_bytes()),
                Piece::Text { text, .. } | Piece::Elided { text, .. } | Piece::Note { text } => {
                    seen.extend_from_slice(text.as_bytes());
                }
                Piece::Arguments { json, .. } => seen.extend_from_slice(json.as_bytes()),
                Piece::StandIn { text, .. } => seen.extend_from_slice(text.as_bytes()),
            }
        }
        seen = foreshorten_core::digest::Digest::of(&seen).0.to_vec();
    }
    let bytes = compactor.state().encode();
    let Ok(state) = CompactionState::decode(&bytes) else { return 0 };
    for record in state.records() {
        let reference: Option<String> = record.reference(&transcript, compactor.columns());
        let found = reference.map(|r| recall::resolve(&r, &transcript, compactor.columns(), compactor.ledger()));
        if !matches!(found, Some(Ok(_))) {
            return 0;
        }
    }
    seen.extend_from_slice(&bytes);
    seen.extend_from_slice(&(transcript.len() as u64).to_le_bytes());
    foreshorten_core::digest::Digest::of(&seen).short()
}
