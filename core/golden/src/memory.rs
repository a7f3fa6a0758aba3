//! What entries cost, measured with a record that costs nothing itself.

use std::alloc::System;

use foreshorten_core::{
    Compactor, Effect, Policy, Step, Turn,
    render::RenderCache,
    state::Record,
    transcript::{Columns, EntryKind, EntryRef, PartRef, Transcript},
};
use foreshorten_golden::heap::Counting;

/// A tool loop: a user who speaks once in a while, calls, results of about 80 tokens.
struct Loop<'a> {
    ids: &'a [String],
    text: &'a str,
    len: usize,
}

impl Transcript for Loop<'_> {
    fn len(&self) -> usize {
        self.len
    }

    fn entry(&self, index: usize) -> EntryRef<'_> {
        let kind = match index % 20 {
            0 => EntryKind::User,
            odd if odd % 2 == 1 => EntryKind::ToolCall,
            19 => EntryKind::Assistant,
            _ => EntryKind::ToolResult,
        };
        let is_call = kind == EntryKind::ToolCall;
        EntryRef {
            call_id: if is_call || kind == EntryKind::ToolResult { &self.ids[index.div_ceil(2)] } else { "" },
            name: if is_call { "read" } else { "" },
            ..EntryRef::new(kind, 1)
        }
    }

    fn part(&self, index: usize, _: usize) -> PartRef<'_> {
        PartRef::Text(match index % 20 {
            0 => "Go on.",
            odd if odd % 2 == 1 => "{}",
            _ => self.text,
        })
    }
}

pub(crate) fn print(heap: &Counting<System>) {
    let (entry, piece) = (Columns::bytes_per_entry(), RenderCache::bytes_per_piece());
    println!("columns {entry} bytes an entry by length, view {piece} a piece, {} a decision", size_of::<Record>());
    println!("entries   grown   reserved   a pass on top   decisions   state   (bytes; the first two by entry)");
    let policy = Policy::default();
    let text = "a line of some result or other\n".repeat(10);
    for entries in [100, 1_000, 10_000, 100_000] {
        let ids: Vec<String> = (0..=entries / 2).map(|n| format!("call_{n}")).collect();
        let mut record = Loop { ids: &ids, text: &text, len: 0 };
        let held = |reserve: bool, record: &mut Loop<'_>| {
            let before = heap.now();
            let mut compactor = Compactor::new(&policy);
            if reserve {
                compactor.reserve(entries);
            }
            for len in (20..=entries).step_by(20) {
                record.len = len;
                compactor.sync(record);
            }
            (heap.now() - before, compactor)
        };
        let (reserved, _) = held(true, &mut record);
        let (grown, mut compactor) = held(false, &mut record);
        let held = heap.now();
        heap.restart();
        compactor.begin(&record, Turn { window: Some(32_768), manual: true, ..Turn::default() });
        while let Step::Effect(effect) = compactor.poll(&record) {
            match effect {
                Effect::Archive { .. } => compactor.handle_archived(true),
                _ => compactor.handle_proposals(&record, Vec::new()),
            }
        }
        println!(
            "{entries:>7} {:>7} {:>10} {:>15} {:>11} {:>7}",
            grown / entries,
            reserved / entries,
            heap.peak() - held,
            compactor.state().records().len(),
            compactor.state().encode().len(),
        );
    }
}
