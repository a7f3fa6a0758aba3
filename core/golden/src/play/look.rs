//! What is seen goes into the digest: views, notices and states after a turn, what recall finds, what estimators say.

use alloc::{
    string::{String, ToString as _},
    vec,
    vec::Vec,
};

use foreshorten_core::{
    estimate::ByteEstimator,
    recall::{self, Found, RecallError},
    state::History,
    transcript::{PartRef, Transcript},
    view::Piece,
};
use sha2::Sha256;

use super::Play;
use crate::{
    feed::Feed,
    record::{Part, Record},
};

impl Play<'_> {
    /// Hashes all that can be seen after a turn.
    pub(super) fn look(&mut self) {
        let compactor = &self.compactor;
        let outcome = compactor.outcome();
        let hash = &mut self.hash;
        hash.text("turn");
        hash.number(u64::from(outcome.compacted));
        hash.number(outcome.tokens_before);
        hash.number(outcome.tokens_after);
        hash.option(outcome.first_changed.map(|piece| piece as u64));
        hash.option(outcome.retry.map(u64::from));
        hash.number(u64::from(outcome.refused));
        hash.number(u64::from(outcome.archive_failures));
        if let Some(fit) = &outcome.cannot_fit {
            for part in [fit.over, fit.system, fit.tools, fit.pinned, fit.newest, fit.notes] {
                hash.number(part);
            }
            hash.text(fit.largest());
        }
        if let Some(notice) = &outcome.notice {
            for line in notice.reasons.iter().chain(&notice.detail) {
                hash.text(line);
            }
            hash.number(u64::from(notice.prefix_kept_percent));
            hash.text(notice.summary.as_deref().unwrap_or("none"));
        }
        let tally = &mut self.tally;
        tally.turns += 1;
        tally.passes += u32::from(outcome.compacted);
        tally.refused += outcome.refused;
        tally.cannot_fit += u32::from(outcome.cannot_fit.is_some());
        tally.retries += u32::from(outcome.retry == Some(true));
        tally.last_resorts += u32::from(outcome.notice.as_ref().is_some_and(|notice| notice.last_resort));
        tally.windows = tally.windows.max(compactor.state().windows().len() as u32);
        tally.orphans += compactor.view().orphans() as u32;
        tally.entries = tally.entries.max(self.record.entries.len() as u32);
        hash.count(compactor.view().len());
        hash.count(compactor.view().settled());
        for piece in compactor.view().pieces() {
            let shape = match piece {
                Piece::Entry { entry } => {
                    feed_entry(hash, &self.record, entry);
                    0
                }
                Piece::Text { entry, text } => {
                    hash.count(entry);
                    hash.text(text);
                    1
                }
                Piece::Elided { entry, parts, text } => {
                    feed_entry(hash, &self.record, entry);
                    for &part in parts {
                        hash.number(u64::from(part));
                    }
                    hash.text(text);
                    2
                }
                Piece::Arguments { entry, json } => {
                    hash.count(entry);
                    hash.text(json);
                    3
                }
                Piece::Note { text } => {
                    hash.text(text);
                    4
                }
                Piece::StandIn { call, text } => {
                    hash.count(call);
                    hash.text(text);
                    5
                }
            };
            hash.number(shape);
            tally.pieces[shape as usize] += 1;
        }
        if outcome.compacted {
            let columns = compactor.columns();
            for entry in 0..columns.len() {
                tally.levels[compactor.ledger().level(columns, entry) as usize] += 1;
            }
        }
        let bytes = compactor.state().encode();
        hash.field(&bytes);
        tally.state_bytes = tally.state_bytes.max(bytes.len() as u32);
    }

    pub(super) fn history(&mut self, history: History) {
        self.tally.edited += u32::from(history == History::Edited);
        self.tally.foreign += u32::from(history == History::Foreign);
        self.hash.text(match history {
            History::New => "new",
            History::Grown => "grown",
            History::Edited => "edited",
            History::Foreign => "foreign",
            _ => "a history this program does not know",
        });
    }

    /// Looks up every reference there is, the text as a reference, and the text in what is gone from the view.
    pub(super) fn recall(&mut self, text: &str) {
        let compactor = &self.compactor;
        let (columns, ledger) = (compactor.columns(), compactor.ledger());
        let mut references: Vec<String> = vec![text.to_string()];
        references.extend(ledger.state().records().iter().filter_map(|r| r.reference(&self.record, columns)));
        references.extend(ledger.state().notes().iter().map(|n| foreshorten_core::marker::note_reference(n.span)));
        for reference in references {
            self.hash.text(&reference);
            match recall::resolve(&reference, &self.record, columns, ledger) {
                Ok(Found::Entry { entry, digest, exact }) => {
                    self.tally.resolved += 1;
                    self.hash.count(entry);
                    self.hash.field(&digest.0);
                    self.hash.number(u64::from(exact));
                }
                Ok(Found::Note { entries }) => {
                    self.tally.resolved += 1;
                    for entry in entries {
                        self.hash.count(entry);
                    }
                }
                Err(RecallError::Ambiguous(entries)) => {
                    self.tally.ambiguous += 1;
                    self.hash.count(entries.len());
                }
                Err(_) | Ok(_) => self.hash.text("nothing"),
            }
        }
        for hit in recall::search(text, true, 20, &self.record, columns, ledger) {
            self.tally.hits += 1;
            self.hash.count(hit.entry);
            self.hash.count(hit.offset);
            self.hash.text(&hit.excerpt);
        }
    }

    /// What every estimator says of every text.
    pub(super) fn weigh(&mut self) {
        for entry in &self.record.entries {
            for part in &entry.parts {
                let Part::Text(text) = part else { continue };
                for estimator in ByteEstimator::all() {
                    self.hash.number(u64::from(estimator.tokens(text)));
                }
            }
        }
    }
}

fn feed_entry(hash: &mut Sha256, record: &Record, index: usize) {
    let entry = record.entry(index);
    hash.count(index);
    hash.number(entry.kind as u64);
    hash.text(entry.call_id);
    hash.text(entry.name);
    hash.number(u64::from(entry.is_error));
    for part in 0..entry.parts as usize {
        match record.part(index, part) {
            PartRef::Text(text) => hash.text(text),
            PartRef::Image(media) | PartRef::File(media) => {
                hash.text(media.media_type);
                hash.text(media.name);
                hash.field(media.data);
            }
            PartRef::Opaque(data) => hash.field(data),
        }
    }
}
