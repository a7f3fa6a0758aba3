//! Prompt caches: which prefixes of a request were sent before.

use std::collections::HashSet;

use crate::config::Protocol;
use crate::count::Segment;
use crate::digest;

/// Prefixes shorter than this are not cached by anybody.
const LEAST: u64 = 1_024;
/// OpenAI's steps.
const STEP: u64 = 128;
/// How many blocks before a breakpoint Anthropic looks for an earlier one.
const LOOK_BACK: usize = 20;

/// What the cache knew of a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Hit {
    /// Tokens read from the cache.
    pub(crate) read: u64,
    /// Tokens written to it (Anthropic).
    pub(crate) written: u64,
    /// Bytes from the first piece on that no earlier request began with, whether or not a provider would cache them.
    pub(crate) new_bytes: u64,
}

/// All prefixes sent so far. There is no expiry.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    prefixes: HashSet<u128>,
    written: HashSet<u128>,
}

impl Cache {
    /// Looks a request up. `count` says what a segment weighs in it.
    pub(crate) fn look_up(&self, protocol: Protocol, model: &str, pieces: &[(&Segment, u64)]) -> Hit {
        let ends = chains(protocol, model, pieces);
        let known = ends.iter().take_while(|end| self.prefixes.contains(end)).count();
        let new_bytes = pieces[known..].iter().map(|(segment, _)| segment.bytes).sum();
        let weight = |count: usize| pieces[..count].iter().map(|(_, tokens)| tokens).sum::<u64>();
        if protocol != Protocol::Messages {
            let read = weight(known) / STEP * STEP;
            return Hit { read: if read >= LEAST { read } else { 0 }, written: 0, new_bytes };
        }
        let marks = || pieces.iter().enumerate().filter(|(_, (segment, _))| segment.breakpoint).map(|(at, _)| at);
        let found = marks()
            .flat_map(|mark| (mark.saturating_sub(LOOK_BACK)..=mark).rev().find(|at| self.written.contains(&ends[*at])))
            .max();
        let read = found.map_or(0, |at| weight(at + 1));
        let last = marks().next_back().map_or(0, |at| weight(at + 1));
        Hit { read, written: if last >= LEAST { last.saturating_sub(read) } else { 0 }, new_bytes }
    }

    /// Remembers a request that was answered.
    pub(crate) fn remember(&mut self, protocol: Protocol, model: &str, pieces: &[(&Segment, u64)]) {
        let ends = chains(protocol, model, pieces);
        let mut weight = 0;
        for (end, (segment, tokens)) in ends.iter().zip(pieces) {
            weight += tokens;
            if segment.breakpoint && weight >= LEAST {
                self.written.insert(*end);
            }
        }
        self.prefixes.extend(ends);
    }
}

fn chains(protocol: Protocol, model: &str, pieces: &[(&Segment, u64)]) -> Vec<u128> {
    let start = digest::hash(&[&[protocol as u8], model.as_bytes()]);
    pieces
        .iter()
        .scan(start, |prefix, (segment, _)| {
            *prefix = digest::chain(*prefix, segment.identity);
            Some(*prefix)
        })
        .collect()
}
