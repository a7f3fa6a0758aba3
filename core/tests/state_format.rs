//! The example in the description of the state format is a state, byte for byte.

#![allow(clippy::unwrap_used, reason = "what this reads is part of the repository")]

use foreshorten_core::{
    digest::Digest,
    state::{CompactionState, FORMAT_VERSION, StateError},
};

const PAGE: &str = include_str!("../../docs/state-format.md");

/// The first block of the page in this language.
fn block(language: &str) -> &'static str {
    let (_, after) = PAGE.split_once(&format!("```{language}\n")).unwrap();
    after.split_once("\n```").unwrap().0
}

fn bytes() -> Vec<u8> {
    let hex = block("hex").lines().flat_map(|line| line.split('#').next().unwrap().split_whitespace());
    hex.map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}

#[test]
fn the_example_decodes_to_its_json_and_encodes_to_its_bytes() {
    let state = CompactionState::decode(&bytes()).unwrap();
    let json: serde_json::Value = serde_json::from_str(block("json")).unwrap();
    assert_eq!(serde_json::to_value(&state).unwrap(), json);
    assert_eq!(state.encode(), bytes());
    assert_eq!(serde_json::from_value::<CompactionState>(json).unwrap(), state);
}

#[test]
fn every_other_outcome_is_the_one_described() {
    let good = bytes();
    let other = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = good.clone();
        change(&mut bytes);
        CompactionState::decode(&bytes).unwrap_err()
    };
    assert_eq!(other(&|bytes| bytes[0] = b'f'), StateError::NotAState);
    assert_eq!(other(&|bytes| bytes.truncate(3)), StateError::NotAState);
    let next = FORMAT_VERSION + 1;
    assert_eq!(other(&|bytes| bytes[4..6].copy_from_slice(&next.to_le_bytes())), StateError::Version { found: next });
    for length in 4..good.len() {
        assert_eq!(other(&|bytes| bytes.truncate(length)), StateError::Corrupt, "cut to {length} bytes");
    }
    assert_eq!(other(&|bytes| bytes.push(0)), StateError::Corrupt);
    let with_checksum = |bytes: &mut Vec<u8>| {
        let sum = Digest::of(&bytes[14..]);
        bytes[6..14].copy_from_slice(&sum.0[..8]);
    };
    let more = |bytes: &mut Vec<u8>| {
        bytes.push(0);
        with_checksum(bytes);
    };
    assert_eq!(other(&more), StateError::Malformed);
    let less = |bytes: &mut Vec<u8>| {
        bytes.pop();
        with_checksum(bytes);
    };
    assert_eq!(other(&less), StateError::Malformed);
}

/// The example as an earlier version had it: without its last `less` bytes.
fn older(version: u16, less: usize) -> CompactionState {
    let mut old = bytes();
    old.truncate(old.len() - less);
    old[4..6].copy_from_slice(&version.to_le_bytes());
    let sum = Digest::of(&old[14..]);
    old[6..14].copy_from_slice(&sum.0[..8]);
    CompactionState::decode(&old).unwrap()
}

/// The example as JSON, with what is at `path` as it is in a new state.
fn without(path: &str) -> serde_json::Value {
    let mut json: serde_json::Value = serde_json::from_str(block("json")).unwrap();
    let new = serde_json::to_value(CompactionState::new()).unwrap();
    *json.pointer_mut(path).unwrap() = new.pointer(path).unwrap().clone();
    json
}

#[test]
fn earlier_versions_are_read_as_if_what_they_lack_had_not_been_learned() {
    // What markers weigh: four figures.
    assert_eq!(serde_json::to_value(older(2, 7)).unwrap(), without("/measured/written"));
    // And what was measured: four more, and one run.
    assert_eq!(serde_json::to_value(older(1, 7 + 8)).unwrap(), without("/measured"));
}
