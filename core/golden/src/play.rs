//! One session under one setup.

mod hosts;
mod look;

use alloc::{borrow::Cow, string::String, vec, vec::Vec};

use foreshorten_core::{
    Compactor, Effect, Finish, Policy, Step, SummaryFailure, SummaryReply, Turn, overflow::explain, plan::Proposal,
    summary::extractive_summary, transcript::EntryKind,
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

    fn usage(&mut self, tokens: u64) {
        let believed = self.compactor.handle_usage(tokens).is_ok();
        self.hash.number(u64::from(believed));
        self.tally.counts += u32::from(believed);
        self.tally.refused_counts += u32::from(!believed);
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
