//! One session under one setup.

use alloc::{
    borrow::Cow,
    string::{String, ToString as _},
    vec,
    vec::Vec,
};

use foreshorten_core::{
    CompactionState, Compactor, Effect, Finish, Policy, Step, SummaryFailure, SummaryReply, Turn,
    estimate::ByteEstimator,
    overflow::explain,
    plan::Proposal,
    recall::{self, Found, RecallError},
    state::History,
    summary::extractive_summary,
    transcript::{EntryKind, PartRef, Transcript},
    view::Piece,
};
use sha2::{Digest as _, Sha256};

use crate::{
    feed::Feed,
    record::{Entry, Part, Record},
    script::{Line, Session, expand, line},
    setups::{Answers, Setup},
    tally::{Played, Tally, Wrong},
};

struct Play<'p> {
    session: &'static str,
    line: usize,
    setup: &'p Setup,
    policy: &'p Policy,
    record: Record,
    compactor: Compactor<&'p Policy>,
    hash: Sha256,
    tally: Tally,
    /// Facts learned from a rejection, for the next turn.
    overflow: bool,
    named: Option<u64>,
    schemas: u64,
    /// The state of the second host.
    fork: Vec<u8>,
    lies: u32,
}

pub(crate) fn play(session: &Session, setup: &Setup, policy: &Policy) -> Result<Played, Wrong> {
    let mut play = Play {
        session: session.name,
        line: 0,
        setup,
        policy,
        record: Record::default(),
        compactor: Compactor::new(policy),
        hash: Sha256::new(),
        tally: Tally::default(),
        overflow: false,
        named: None,
        schemas: 0,
        fork: Vec::new(),
        lies: 0,
    };
    let mut lines = session.text.lines().enumerate();
    while let Some((at, text)) = lines.next() {
        play.line = at + 1;
        let Some(line) = line(text) else { continue };
        let line = line.map_err(|()| play.wrong())?;
        if line.verb != "repeat" {
            play.step(line, None)?;
            continue;
        }
        let rounds: u32 = line.value.parse().map_err(|_| play.wrong())?;
        let body = lines.clone();
        for round in 0..rounds {
            lines = body.clone();
            loop {
                let (at, text) = lines.next().ok_or_else(|| play.wrong())?;
                play.line = at + 1;
                let Some(line) = self::line(text) else { continue };
                let line = line.map_err(|()| play.wrong())?;
                if line.verb == "end" {
                    break;
                }
                play.step(line, Some(round))?;
            }
        }
    }
    play.weigh();
    Ok(Played { session: session.name, setup: setup.name, digest: play.hash.finalize().into(), tally: play.tally })
}

impl<'p> Play<'p> {
    fn wrong(&self) -> Wrong {
        Wrong::Line { session: self.session, line: self.line }
    }

    fn broken(&self, promise: &'static str) -> Wrong {
        Wrong::Broken { session: self.session, line: self.line, promise }
    }

    fn step(&mut self, line: Line, round: Option<u32>) -> Result<(), Wrong> {
        let id = |word: &'static str| if word == "-" { Cow::Borrowed("") } else { expand(word, round) };
        let text = || expand(line.value, round);
        let number = || line.value.trim().parse::<u64>().map_err(|_| self.wrong());
        let kind = match line.verb {
            "system" => Some(EntryKind::System),
            "user" => Some(EntryKind::User),
            "assistant" => Some(EntryKind::Assistant),
            "reasoning" | "sealed" => Some(EntryKind::Reasoning),
            "call" => Some(EntryKind::ToolCall),
            "result" | "error" => Some(EntryKind::ToolResult),
            _ => None,
        };
        if let Some(kind) = kind {
            self.record.entries.push(Entry {
                kind,
                call_id: id(line.first),
                name: Cow::Borrowed(line.second),
                is_error: line.verb == "error",
                sealed: line.verb == "sealed",
                parts: vec![Part::Text(text())],
            });
            return Ok(());
        }
        let part = match line.verb {
            "more" => Some(Part::Text(text())),
            "image" => Some(Part::Image { media_type: Cow::Borrowed(line.first), data: text() }),
            "file" => Some(Part::File {
                media_type: Cow::Borrowed(line.first),
                name: Cow::Borrowed(line.second),
                data: text(),
            }),
            "opaque" => Some(Part::Opaque(text())),
            _ => None,
        };
        if let Some(part) = part {
            let wrong = self.wrong();
            self.record.entries.last_mut().ok_or(wrong)?.parts.push(part);
            return Ok(());
        }
        match line.verb {
            "turn" => self.turn(line.value)?,
            "rejected" => {
                let found = explain(line.first.parse().ok(), &text());
                self.hash.text(found.class.as_str());
                self.hash.option(found.window);
                self.hash.text(found.why);
                self.overflow = found.is_overflow();
                self.named = found.window;
            }
            "usage" => {
                let percent = number()?;
                self.usage(self.compactor.tokens() * percent / 100);
            }
            "counted" => {
                let tokens = number()?;
                self.usage(tokens);
            }
            "pin" => {
                let entry = number()? as usize;
                let pinned = self.compactor.pin(entry);
                self.hash.number(u64::from(pinned.is_ok()));
                self.tally.refused += u32::from(pinned.is_err());
            }
            "unpin" => {
                let entry = number()? as usize;
                self.compactor.unpin(entry);
            }
            "restart" => self.restart()?,
            "fork" => self.fork()?,
            "merge" => self.merge()?,
            "rewind" => {
                let len = number()? as usize;
                self.record.entries.truncate(len);
                self.restart()?;
            }
            "stranger" => self.stranger(text())?,
            "recall" => self.recall(&text()),
            _ => return Err(self.wrong()),
        }
        Ok(())
    }

    /// One turn, the way a host drives it.
    fn turn(&mut self, words: &str) -> Result<(), Wrong> {
        let mut turn = Turn {
            window: Some(self.setup.window),
            scope: "golden/model",
            overflow: self.overflow,
            reported_window: self.named,
            can_summarize: self.setup.answers != Answers::None,
            ..Turn::default()
        };
        let mut words = words.split_whitespace();
        while let Some(word) = words.next() {
            match word {
                "cold" => turn.cache_cold = true,
                "manual" => turn.manual = true,
                "overflow" => turn.overflow = true,
                "scope" => turn.scope = words.next().map_or_else(|| Err(self.wrong()), Ok)?,
                "schemas" | "named" => {
                    let value = words.next().and_then(|value| value.parse().ok()).ok_or_else(|| self.wrong())?;
                    if word == "schemas" {
                        self.schemas = value;
                    } else {
                        turn.reported_window = Some(value);
                    }
                }
                _ => return Err(self.wrong()),
            }
        }
        turn.schema_tokens = self.schemas;
        (self.overflow, self.named) = (false, None);
        let history = self.compactor.sync(&self.record);
        self.history(history);
        self.compactor.begin(&self.record, turn);
        self.drive();
        self.look();
        Ok(())
    }

    fn drive(&mut self) {
        loop {
            let effect = match self.compactor.poll(&self.record) {
                Step::Done(_) => return,
                Step::Effect(effect) => effect,
            };
            match effect {
                Effect::Summarize(request) => {
                    self.tally.summaries += 1;
                    self.hash.text("summarize");
                    for &entry in &request.entries {
                        self.hash.count(entry);
                    }
                    self.hash.text(&request.text);
                    self.hash.text(request.prior.as_deref().unwrap_or("none"));
                    self.hash.number(u64::from(request.max_chars));
                    self.hash.number(request.max_output_tokens);
                    self.lies += 1;
                    let extractive = |chars: usize| {
                        let guard = self.compactor.guard(&self.record);
                        let chars = chars.min(request.max_chars as usize);
                        extractive_summary(&guard, &request.entries, request.prior.as_deref(), chars)
                    };
                    let good = |text: String| Ok(SummaryReply { text, finish: Finish::Complete });
                    let reply = match self.setup.answers {
                        Answers::None | Answers::Failing => Err(SummaryFailure::Failed),
                        Answers::Overflowing if self.lies % 2 == 1 => Err(SummaryFailure::Overflow),
                        Answers::Extractive | Answers::Overflowing => good(extractive(1_500)),
                        Answers::Lying => match self.lies % 6 {
                            0 => good(String::new()),
                            1 => Ok(SummaryReply { text: extractive(900), finish: Finish::Cut }),
                            2 => good("I cannot help with that.".into()),
                            3 => good("## Session intent\nlong\n".repeat(1_000)),
                            _ => good(extractive(900)),
                        },
                    };
                    self.compactor.handle_summary(&self.record, reply);
                }
                Effect::Archive { entry, digest } => {
                    self.tally.archived += 1;
                    self.hash.text("archive");
                    self.hash.count(entry);
                    self.hash.field(&digest.0);
                    self.compactor.handle_archived(entry % 2 == 0);
                }
                Effect::RunStage { name } => {
                    self.hash.text(&name);
                    let proposals = everything(self.record.entries.len(), self.tally.turns);
                    self.compactor.handle_proposals(&self.record, proposals);
                }
                _ => self.hash.text("an effect this program does not know"),
            }
        }
    }

    /// Hashes all that can be seen after a turn.
    fn look(&mut self) {
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

    fn history(&mut self, history: History) {
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

    fn usage(&mut self, tokens: u64) {
        let believed = self.compactor.handle_usage(tokens).is_ok();
        self.hash.number(u64::from(believed));
        self.tally.counts += u32::from(believed);
        self.tally.refused_counts += u32::from(!believed);
    }

    fn stored(&self, bytes: &[u8]) -> Result<CompactionState, Wrong> {
        CompactionState::decode(bytes).map_err(|_| self.broken("an encoded state decodes"))
    }

    fn restart(&mut self) -> Result<(), Wrong> {
        let bytes = self.compactor.state().encode();
        let state = self.stored(&bytes)?;
        if state.encode() != bytes {
            return Err(self.broken("a state decoded and encoded is the same bytes"));
        }
        self.compactor = Compactor::resume(self.policy, state);
        let history = self.compactor.sync(&self.record);
        self.history(history);
        Ok(())
    }

    /// Another host takes the state over, and the user asks it to compact.
    fn fork(&mut self) -> Result<(), Wrong> {
        let state = self.stored(&self.compactor.state().encode())?;
        let mut other = Compactor::resume(self.policy, state);
        other.sync(&self.record);
        other.begin(&self.record, Turn { window: Some(self.setup.window), manual: true, ..Turn::default() });
        while let Step::Effect(effect) = other.poll(&self.record) {
            match effect {
                Effect::Summarize(_) => other.handle_summary(&self.record, Err(SummaryFailure::Failed)),
                Effect::Archive { .. } => other.handle_archived(true),
                _ => other.handle_proposals(&self.record, Vec::new()),
            }
        }
        other.set_label("host", "second");
        other.learn_window("other/model", 8_192);
        self.fork = other.state().encode();
        self.hash.field(&self.fork);
        Ok(())
    }

    fn merge(&mut self) -> Result<(), Wrong> {
        let bytes = core::mem::take(&mut self.fork);
        let other = self.stored(&bytes)?;
        let mine = self.compactor.state().clone();
        let joined = mine.clone().join(&other);
        if other.join(&mine) != joined {
            return Err(self.broken("two states join to one, whichever comes first"));
        }
        self.hash.field(&joined.encode());
        self.tally.joined += 1;
        self.compactor = Compactor::resume(self.policy, joined);
        let history = self.compactor.sync(&self.record);
        self.history(history);
        Ok(())
    }

    fn stranger(&mut self, text: crate::record::Text) -> Result<(), Wrong> {
        let bytes = self.compactor.state().encode();
        let mut other = Compactor::resume(self.policy, self.stored(&bytes)?);
        let entry = Entry {
            kind: EntryKind::User,
            call_id: Cow::Borrowed(""),
            name: Cow::Borrowed(""),
            is_error: false,
            sealed: false,
            parts: vec![Part::Text(text)],
        };
        let record = Record { entries: vec![entry] };
        let history = other.sync(&record);
        self.history(history);
        if history == History::Foreign && other.state().encode() != bytes {
            return Err(self.broken("a foreign record leaves the state alone"));
        }
        Ok(())
    }

    /// Looks up every reference there is, the text as a reference, and the text in what is gone from the view.
    fn recall(&mut self, text: &str) {
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
    fn weigh(&mut self) {
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

/// Every kind of proposal about entries and groups that are there, and some that are not.
fn everything(len: usize, turn: u32) -> Vec<Proposal> {
    let mut out = Vec::new();
    for entry in 0..len + 2 {
        out.push(match (entry + turn as usize) % 8 {
            0 => Proposal::Clear { entry },
            1 => Proposal::ClearSuperseded { entry },
            2 => Proposal::Offload { entry, head: 60, tail: 30 },
            3 => Proposal::Persist { entry, head: 80 },
            4 => Proposal::ElideMedia { entry, parts: [None, Some(vec![1]), Some(vec![1, 9])][entry % 3].clone() },
            5 => Proposal::ClipArguments { entry },
            6 => Proposal::OmitReasoning { entry },
            _ => {
                Proposal::Condense { entry, by: "golden".into(), text: "what a plugin says </context-summary>".into() }
            }
        });
    }
    if turn % 5 == 4 {
        out.push(Proposal::Snip { from: len / 8, to: len / 4 });
        out.push(Proposal::Snip { from: 3, to: 1 });
        out.push(Proposal::Snip { from: 0, to: usize::from(u16::MAX) });
    }
    out
}
