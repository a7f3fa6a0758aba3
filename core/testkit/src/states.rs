//! States from outside: arbitrary, damaged, forged under a right checksum, joined.

use foreshorten_core::{
    CompactionState, Compactor, Policy, Step, Turn,
    digest::Digest,
    recall,
    render::render_view,
    state::{FORMAT_VERSION, History},
    transcript::{OwnedTranscript, Transcript as _},
};

use crate::{Answers, Reference, Script, Session, check_legal, entries, materialize, session::assert_same};

/// Bytes before the payload of an encoded state.
const HEADER: usize = 14;

/// `payload` under a right header: the checksum keeps accidents out, not attackers.
#[must_use]
pub fn forged(payload: &[u8]) -> Vec<u8> {
    let mut bytes = b"FSTa".to_vec();
    bytes.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
    bytes.extend_from_slice(&Digest::of(payload).0[..8]);
    bytes.extend_from_slice(payload);
    bytes
}

/// The encoding of `state` with some bytes of its payload changed, under a right checksum.
#[must_use]
pub fn damaged(state: &CompactionState, damage: &[(u16, u8)]) -> Vec<u8> {
    let mut payload = state.encode().split_off(HEADER);
    for &(at, value) in damage {
        let length = payload.len().max(1);
        if let Some(byte) = payload.get_mut(usize::from(at) % length) {
            *byte = value;
        }
    }
    forged(&payload)
}

/// A session of some turns, and its record.
fn grown(script: &mut Script<'_>, policy: &Policy, turns: usize) -> (OwnedTranscript, CompactionState) {
    let answers = [Answers::NoSummarizer, Answers::Extractive][script.below(2)];
    let mut session = Session::new(policy, OwnedTranscript::default(), 3_000, answers);
    session.stride = 16;
    for turn in 0..turns {
        let mut new = Vec::new();
        entries(script, turn, &mut new);
        session.step(new);
    }
    let state = session.state().clone();
    (session.transcript, state)
}

/// Fits a state to a record, goes on for a turn, and looks whether the view is legal and the totals are true.
///
/// # Panics
/// When a state from outside breaks an invariant.
pub fn meet(state: &CompactionState, record: &OwnedTranscript) {
    let policy = Policy::default();
    // Read without being fitted to the record, as a careless embedder does.
    let _ = render_view(record, state).pieces().count();
    let mut compactor = Compactor::resume(&policy, state.clone());
    let history = compactor.sync(record);
    for note in compactor.ledger().state().notes() {
        let _ = recall::resolve(&note.reference(), record, compactor.columns(), compactor.ledger());
    }
    if matches!(history, History::Foreign | History::Beginning) {
        assert_eq!(compactor.state(), &state.clone().sane(), "a record that is not the session's changed the state");
        return;
    }
    compactor.begin(record, Turn { window: Some(8_000), ..Turn::default() });
    while !matches!(compactor.poll(record), Step::Done(_)) {}
    let pieces = compactor.view().pieces();
    check_legal(pieces, record, compactor.columns()).unwrap_or_else(|wrong| panic!("I5 pairs: {wrong}"));
    let reference = Reference::read(record, policy.config());
    let (view, laid) = (materialize(compactor.view(), record), compactor.ledger().state());
    assert_same(&view, &reference.view(laid), "second opinion: a state from outside, another view");
    assert_eq!(compactor.ledger().view_raw(), reference.raw(laid), "second opinion: the view weighs something else");
    let encoded = compactor.state().encode();
    let decoded = CompactionState::decode(&encoded).unwrap_or_else(|error| panic!("I11: {error}"));
    let mut again = Compactor::resume(&policy, decoded);
    again.sync(record);
    let (one, other) = (materialize(again.view(), record), materialize(compactor.view(), record));
    assert_same(&one, &other, "I11: resumed from a hostile state, another view");
    assert_eq!(again.ledger().view_raw(), compactor.ledger().view_raw(), "the running total differs from a recount");
    for record_of in compactor.ledger().state().records() {
        if let Some(reference) = record_of.reference(record, compactor.columns()) {
            let _ = recall::resolve(&reference, record, compactor.columns(), compactor.ledger());
        }
    }
}

/// Decodes, or names the error; a second round changes nothing.
fn decode(bytes: &[u8]) -> Option<CompactionState> {
    let state = CompactionState::decode(bytes).ok()?;
    let again = CompactionState::decode(&state.encode());
    assert_eq!(again.as_ref(), Ok(&state), "I11: decode(encode(state)) = state");
    Some(state)
}

/// Bytes as a state: as they are, under a right header, as damage to a true state, as JSON; what decodes meets a
/// record and is joined with a true state.
///
/// # Panics
/// When an invariant does not hold.
pub fn state_decode(bytes: &[u8]) {
    let mut script = Script::new(bytes);
    let mode = script.below(5);
    let policy = Policy::default();
    match mode {
        0 => drop(decode(script.rest())),
        1 => {
            let turns = script.below(8);
            let (record, own) = grown(&mut Script::new(&bytes[..bytes.len().min(96)]), &policy, turns);
            if let Some(state) = decode(&forged(script.rest())) {
                meet(&state, &record);
                join(&own, &state, &record);
            }
        }
        2 | 3 => {
            let count = 1 + script.below(8);
            let damage: Vec<(u16, u8)> =
                (0..count).map(|_| (u16::from_le_bytes([script.byte(), script.byte()]), script.byte())).collect();
            let turns = 4 + script.below(16);
            let (record, own) = grown(&mut script, &policy, turns);
            if let Some(state) = decode(&damaged(&own, &damage)) {
                meet(&state, &record);
                join(&own, &state, &record);
                // The same state, and the end of its own record.
                let front = record.len() / 3;
                meet(&state, &OwnedTranscript::from(record.entries()[front..].to_vec()));
            }
        }
        _ => {
            let text = String::from_utf8_lossy(script.rest());
            if let Ok(state) = serde_json::from_str::<CompactionState>(&text) {
                let state = state.sane();
                let text = serde_json::to_string(&state).expect("a state is JSON");
                let again = serde_json::from_str::<CompactionState>(&text).expect("a state is JSON").sane();
                assert_eq!(again, state, "I11: a state read from its own JSON is another");
                meet(&state, &OwnedTranscript::default());
            }
        }
    }
}

/// I12 with one side from outside.
fn join(own: &CompactionState, other: &CompactionState, record: &OwnedTranscript) {
    let joint = own.clone().join(other);
    assert_eq!(joint, other.clone().join(own), "I12: does not commute");
    assert_eq!(joint.clone().join(own), joint, "I12: joining again changes something");
    meet(&joint, record);
}
