//! Asking for summaries, chunk by chunk, and judging what comes back.

use alloc::{string::String, vec::Vec};
use core::fmt;

use super::{RETRY_BELOW_PERCENT, ladder::body_start};
use crate::{
    budget::{Mode, TokenBudget},
    plan::{Refusal, SummarizeHistory},
    state::{Guard, Ledger, Note, NoteKind},
    summary::{self, REQUIRED_SECTIONS},
};

/// A summary the host is asked for.
#[derive(Clone, Debug)]
pub struct SummaryRequest {
    /// Entries to be summarized, in order.
    pub entries: Vec<usize>,
    /// Their text, bounded, as the view shows them: roles, call ids and error flags included.
    pub text: String,
    /// The summary so far, which the new one takes in.
    pub prior: Option<String>,
    /// Notes that stay in front of the new one as they are: context, not to be said again.
    pub earlier: Option<String>,
    /// Headings the summary must have, each with something under it.
    pub sections: &'static [&'static str],
    /// Longest summary accepted, in characters.
    pub max_chars: u32,
    /// Tokens the answer may take: a quarter of usable.
    pub max_output_tokens: u64,
    /// The provider rejected the view: be brief.
    pub aggressive: bool,
}

/// How a completion ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Finish {
    /// The model was done.
    #[default]
    Complete,
    /// It was cut off by a limit.
    Cut,
}

/// A summarizer's answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SummaryReply {
    /// The summary, without reasoning.
    pub text: String,
    /// How it ended.
    pub finish: Finish,
}

/// Why there is no summary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SummaryFailure {
    /// The call failed.
    #[default]
    Failed,
    /// The summarizer's own prompt was too long: a smaller piece is tried.
    Overflow,
}

/// Why a summary was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rejected {
    /// The summarizer failed.
    Failed,
    /// Its prompt was too long.
    Overflow,
    /// It is empty.
    Empty,
    /// It was cut off.
    Cut,
    /// A required section is missing or empty.
    Sections,
    /// It is longer than allowed.
    TooLong,
    /// The view would not get smaller.
    NotSmaller,
    /// The ledger refused its place.
    Refused(Refusal),
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed => f.write_str("the summarizer failed"),
            Self::Overflow => f.write_str("the summarizer's prompt was too long; a smaller piece is tried"),
            Self::Empty => f.write_str("the summary is empty"),
            Self::Cut => f.write_str("the summary was cut off"),
            Self::Sections => f.write_str("the summary lacks required sections"),
            Self::TooLong => f.write_str("the summary is longer than allowed"),
            Self::NotSmaller => f.write_str("the summary would not make the view smaller"),
            Self::Refused(why) => write!(f, "the summary was refused: {why}"),
        }
    }
}

/// One stage's summaries within a pass.
#[derive(Debug)]
pub(super) struct Summarizing {
    stage: SummarizeHistory,
    window: u64,
    calls: u32,
    /// Raw tokens a piece may have; halved when the summarizer overflows.
    cap: Option<u64>,
    /// First group of the note of this pass: the body's start, or that of a layer.
    from: Option<usize>,
    /// Groups the summary asked for would cover: from there to here.
    asked: Option<usize>,
    /// A stage asked for the groups before this one to be covered, whatever the target.
    until: Option<usize>,
    over: bool,
}

/// Tokens a first summary is expected to take, before there is one to measure.
pub(super) const EXPECTED: u64 = 600;
/// Raw tokens below which a piece is not halved any further.
const LEAST_PIECE: u64 = 64;

impl Summarizing {
    pub(super) const fn new(stage: SummarizeHistory, window: u64, until: Option<usize>) -> Self {
        Self { stage, window, calls: 0, cap: None, from: None, asked: None, until, over: false }
    }

    pub(super) const fn name(&self) -> &'static str {
        self.stage.name
    }

    pub(super) const fn calls(&self) -> u32 {
        self.calls
    }

    /// The next request, or `None` when the stage has nothing (more) to ask. `deep` is how far a summary folds that the
    /// target needs, in calibrated tokens.
    pub(super) fn next(
        &mut self,
        ledger: &Ledger,
        guard: &Guard<'_>,
        budget: &TokenBudget,
        deep: u64,
        mode: Mode,
        schema_tokens: u64,
    ) -> Option<SummaryRequest> {
        let state = ledger.state();
        let calibration = state.calibration();
        let view = ledger.view_raw() + schema_tokens;
        let tokens = calibration.tokens(view);
        let first = ledger.next_open_group(guard.columns, body_start(guard.columns));
        let until = self.until.map_or(0, |until| until.min(guard.tail_start));
        // It is asked for where the target needs it, and then folds deeper, in as many pieces as that takes. None is asked
        // for the last bit, by which estimates are off.
        let goal = if self.calls == 0 { budget.target } else { deep + budget.target.saturating_sub(deep) / 4 };
        let stop = self.over
            || self.calls >= self.stage.max_calls
            || (tokens <= goal && first >= until)
            || (self.stage.aggressive_only && mode != Mode::Aggressive)
            || !(state.breaker().allows(state.turn(), self.stage.max_failures) || mode == Mode::Aggressive);
        if stop {
            return None;
        }
        let columns = guard.columns;
        let from = *self.from.get_or_insert_with(|| {
            let layered = mode == Mode::Proactive && is_layer(ledger, guard, budget, &self.stage, first);
            if layered { first } else { body_start(columns) }
        });
        // The notes that the new one takes in, and those that stay in front of it.
        let (start, end) = (columns.group_start(from), columns.group_start(first));
        let notes = || state.notes().iter().enumerate();
        let prior =
            || notes().filter(|(_, note)| (start..end).contains(&(note.from as usize)) && note.to as usize <= end);
        let prior_cost: u64 = prior().map(|(at, _)| ledger.note_cost(at)).sum();
        let expected = EXPECTED.max(prior_cost + prior_cost / 4).min(u64::from(self.stage.max_summary_chars) / 4);
        let needed = calibration.raw_for(tokens.saturating_sub(deep)) + expected;

        // How far: the first open group after which the depth is met, no further than the tail.
        let window = self.window.saturating_sub(budget.reserve.min(self.window / 2));
        let first_cap = (calibration.raw_for(window).saturating_sub(prior_cost) / 2).max(LEAST_PIECE);
        let cap = *self.cap.get_or_insert(first_cap);
        let mut covered = prior_cost;
        let mut piece = 0u64;
        let mut entries = Vec::new();
        // What was kept beside an old note because it was pinned then, and is not any more.
        for place in prior().flat_map(|(_, note)| &note.kept) {
            let group = columns.group(place.index as usize);
            if !is_pinned(ledger, guard, group) {
                let weight = ledger.group_weight(guard, group);
                covered += weight;
                piece += weight;
                entries.extend(columns.members(group));
            }
        }
        let mut to = None;
        let mut group = first;
        while group < guard.tail_start && (covered < needed || group < until) {
            let weight = if is_pinned(ledger, guard, group) { 0 } else { ledger.group_weight(guard, group) };
            // One group is taken whatever its size (its text is cut to fit); a pinned one is none.
            if to.is_some() && !entries.is_empty() && piece + weight > cap {
                break;
            }
            if weight > 0 {
                entries.extend(columns.members(group));
            }
            covered += weight;
            piece += weight;
            group = ledger.next_open_group(columns, group + 1);
            to = Some(group.min(guard.tail_start));
        }
        let to = to?;
        if entries.is_empty() {
            return None;
        }
        // Worth a call? Not asked of a view that does not fit, nor of the user.
        let percent = match mode {
            Mode::Proactive if tokens <= budget.usable => u64::from(self.stage.min_savings_percent),
            Mode::Aggressive if tokens <= budget.usable => 100 - RETRY_BELOW_PERCENT,
            _ => 0,
        };
        let saving = covered.saturating_sub(expected);
        if self.calls == 0 && (saving + self.rest(ledger, guard, group)) * 100 < view * percent {
            return None;
        }
        self.calls += 1;
        self.asked = Some(to);
        let text_of = |(_, note): (usize, &Note)| {
            if note.kind == NoteKind::Summary && !note.shortest {
                note.summary.text.clone()
            } else {
                note.text(guard.style, guard.summary_wrapper)
            }
        };
        let joined = |texts: Vec<String>| (!texts.is_empty()).then(|| texts.join("\n\n"));
        let earlier = notes().filter(|(_, note)| (note.from as usize) < start).map(text_of).collect();
        let prior = prior().map(text_of).collect();
        let text = summary::transcript_to_text(guard, state, &entries, cap.saturating_mul(4));
        Some(SummaryRequest {
            entries,
            text,
            prior: joined(prior),
            earlier: joined(earlier),
            sections: if self.stage.require_sections { REQUIRED_SECTIONS } else { &[] },
            max_chars: self.stage.max_summary_chars,
            max_output_tokens: (budget.usable / 4).max(1),
            aggressive: mode == Mode::Aggressive,
        })
    }

    /// Raw tokens that later pieces of this pass could still cover.
    fn rest(&self, ledger: &Ledger, guard: &Guard<'_>, mut group: usize) -> u64 {
        let mut raw = 0;
        while group < guard.tail_start {
            if !is_pinned(ledger, guard, group) {
                raw += ledger.group_weight(guard, group);
            }
            group = ledger.next_open_group(guard.columns, group + 1);
        }
        raw
    }

    /// Judges an answer and puts it in place. Answers the entries covered.
    pub(super) fn answer(
        &mut self,
        ledger: &mut Ledger,
        guard: &Guard<'_>,
        budget: &TokenBudget,
        reply: Result<SummaryReply, SummaryFailure>,
    ) -> Result<u32, Rejected> {
        let Some(to) = self.asked.take() else { return Err(Rejected::Failed) };
        let result = self.judge(ledger, guard, budget, to, reply);
        let turn = ledger.state().turn();
        match &result {
            Ok(_) => ledger.state.breaker.succeed(),
            Err(Rejected::Overflow) if self.calls < self.stage.max_calls => {}
            Err(_) => {
                ledger.state.breaker.fail(turn);
                self.over = true;
            }
        }
        result
    }

    fn judge(
        &mut self,
        ledger: &mut Ledger,
        guard: &Guard<'_>,
        budget: &TokenBudget,
        to: usize,
        reply: Result<SummaryReply, SummaryFailure>,
    ) -> Result<u32, Rejected> {
        let reply = match reply {
            Ok(reply) => reply,
            Err(SummaryFailure::Overflow) => {
                let cap = self.cap.unwrap_or(LEAST_PIECE);
                self.over |= cap <= LEAST_PIECE;
                self.cap = Some((cap / 2).max(LEAST_PIECE));
                return Err(Rejected::Overflow);
            }
            Err(SummaryFailure::Failed) => return Err(Rejected::Failed),
        };
        let text = summary::strip_wrapper(&reply.text, guard.summary_wrapper);
        if text.is_empty() {
            return Err(Rejected::Empty);
        }
        if reply.finish == Finish::Cut {
            return Err(Rejected::Cut);
        }
        if self.stage.require_sections && !summary::has_sections(text, REQUIRED_SECTIONS) {
            return Err(Rejected::Sections);
        }
        let calibration = *ledger.state().calibration();
        let cost = calibration.ratio().scale(u64::from(guard.weigher.text(text)));
        if text.chars().count() > self.stage.max_summary_chars as usize || cost > (budget.usable / 4).max(1) {
            return Err(Rejected::TooLong);
        }
        let from = self.from.unwrap_or_else(|| body_start(guard.columns));
        let note = ledger.draft_note(guard, from, to, Some(text)).map_err(Rejected::Refused)?;
        let total = note.counts.total();
        let before: u32 = ledger.state().notes().iter().filter(|n| note.contains(n)).map(|n| n.counts.total()).sum();
        match ledger.accept_note(guard, note) {
            Ok(_) => Ok(total.saturating_sub(before).max(1)),
            Err(Refusal::NotSmaller) => Err(Rejected::NotSmaller),
            Err(why) => Err(Rejected::Refused(why)),
        }
    }
}

/// Whether a summary from `first` on becomes a layer: notes cover all before it, and together with one more as large as the
/// largest, and what they keep beside them, they stay within their share of the target.
fn is_layer(ledger: &Ledger, guard: &Guard<'_>, budget: &TokenBudget, stage: &SummarizeHistory, first: usize) -> bool {
    let columns = guard.columns;
    let notes = ledger.state().notes();
    let start = columns.group_start(first);
    // Groups between notes, as after a join of two states: one note takes in all.
    let seamless = ledger.next_open_group(columns, body_start(columns)) == first;
    if stage.layers_percent == 0 || !seamless || notes.is_empty() || notes.iter().any(|note| note.to as usize > start) {
        return false;
    }
    let least = if notes.iter().any(|note| note.kind == NoteKind::Summary) { 0 } else { EXPECTED };
    let costs = || (0..notes.len()).map(|at| ledger.note_cost(at));
    let kept = notes.iter().flat_map(|note| &note.kept).map(|place| columns.group(place.index as usize));
    let kept: u64 =
        kept.filter(|&group| !is_pinned(ledger, guard, group)).map(|group| ledger.group_weight(guard, group)).sum();
    let raw = costs().sum::<u64>() + kept + costs().max().unwrap_or_default().max(least);
    let tokens = ledger.state().calibration().ratio().scale(raw);
    tokens.saturating_mul(100) <= budget.target.saturating_mul(u64::from(stage.layers_percent))
}

fn is_pinned(ledger: &Ledger, guard: &Guard<'_>, group: usize) -> bool {
    guard.columns.members(group).any(|entry| ledger.is_pinned(guard.columns, entry))
}
