//! What is checked of a stage.

use std::cell::{OnceCell, RefCell};

use foreshorten_core::{
    CompactionState, Compactor,
    plan::Refusal,
    transcript::{OwnedTranscript, Transcript as _},
};

use super::super::StagePlugin;
use super::play::{Played, Way, fallen, play, policy, turn};
use super::records::{Sample, grow, samples};
use super::report::{Costs, Finding};

/// A check: its id, what it is in words, and how it is done.
pub(super) struct StageCheck {
    pub(super) id: &'static str,
    pub(super) name: &'static str,
    pub(super) run: fn(&Bench<'_>) -> Finding,
}

/// All of them, in the order in which they are run.
pub(super) const CHECKS: [StageCheck; 11] = [
    StageCheck { id: "survives", name: "it fails on no record", run: survives },
    StageCheck {
        id: "deterministic",
        name: "of the same record it makes the same state, byte for byte",
        run: deterministic,
    },
    StageCheck { id: "tail", name: "it asks for nothing in the protected tail, and gets none of it", run: tail },
    StageCheck { id: "pairs", name: "no call is left without its result, nor the reverse", run: pairs },
    StageCheck { id: "monotone", name: "on top of its own decisions it takes none back", run: monotone },
    StageCheck { id: "settles", name: "asked again and again, it comes to an end", run: settles },
    StageCheck { id: "aggressive", name: "it works when the provider has rejected the view", run: aggressive },
    StageCheck { id: "growing", name: "30 turns of a session that is resumed from its state each time", run: growing },
    StageCheck { id: "limits", name: "within half of its limits", run: limits },
    StageCheck { id: "refusals", name: "most of what it asks for is granted", run: refusals },
    StageCheck { id: "log", name: "it logs no more than is kept", run: log },
];

/// A plugin, the records, and what was played once already.
pub(super) struct Bench<'a> {
    plugin: &'a StagePlugin,
    samples: OnceCell<Vec<(Sample, OnceCell<Played>)>>,
    costs: RefCell<Costs>,
}

impl<'a> Bench<'a> {
    pub(super) fn new(plugin: &'a StagePlugin) -> Self {
        Self { plugin, samples: OnceCell::new(), costs: RefCell::default() }
    }

    pub(super) fn costs(&self) -> Costs {
        *self.costs.borrow()
    }

    fn samples(&self) -> impl Iterator<Item = (&Sample, &OnceCell<Played>)> {
        let made = || samples().into_iter().map(|sample| (sample, OnceCell::new())).collect();
        self.samples.get_or_init(made).iter().map(|(sample, first)| (sample, first))
    }

    /// Every record with the first pass over it.
    fn first(&self) -> impl Iterator<Item = (&Sample, &Played)> {
        self.samples().map(|(sample, first)| {
            (sample, first.get_or_init(|| self.count(play(self.plugin, &sample.record, None, Way::Asked))))
        })
    }

    fn again(&self, record: &OwnedTranscript, state: Option<CompactionState>, way: Way) -> Played {
        self.count(play(self.plugin, record, state, way))
    }

    fn count(&self, played: Played) -> Played {
        let mut costs = self.costs.borrow_mut();
        *costs = costs.most(Costs::of(&played.metrics));
        played
    }
}

/// Above this many entries a record is gone over as few times as possible.
const LARGE: usize = 5_000;

fn fault(played: &Played) -> Option<String> {
    played.metrics.last_fault.as_ref().map(ToString::to_string)
}

fn survives(bench: &Bench<'_>) -> Finding {
    let (mut wrong, mut records, mut decisions) = (Vec::new(), 0, 0);
    for (sample, played) in bench.first() {
        records += 1;
        decisions += played.metrics.accepted;
        if let Some(fault) = fault(played) {
            wrong.push(format!("{}: {fault}", sample.name));
        }
    }
    let names: Vec<&str> = bench.samples().map(|(sample, _)| sample.name).collect();
    Finding::none(&wrong, format!("{records} records ({}), {decisions} decisions", names.join("; ")))
}

fn deterministic(bench: &Bench<'_>) -> Finding {
    let mut wrong = Vec::new();
    for (sample, first) in bench.first() {
        let second = bench.again(&sample.record, None, Way::Asked);
        if first.state.encode() != second.state.encode() {
            wrong.push(format!("{}: two calls, two states", sample.name));
        }
    }
    Finding::none(&wrong, "")
}

fn tail(bench: &Bench<'_>) -> Finding {
    let (mut wrong, mut refused) = (Vec::new(), Vec::new());
    let why = Refusal::Tail.to_string();
    for (sample, played) in bench.first() {
        if !played.taken.is_empty() {
            wrong.push(format!("{}: entries {:?} are protected and reduced", sample.name, played.taken));
        }
        if let Some(count) = played.metrics.refused.get(&why) {
            refused
                .push(format!("{}: {count} refused there; entries with bit 4 of `marks` are protected", sample.name));
        }
    }
    if wrong.is_empty() { Finding::few(&refused, "") } else { Finding::none(&wrong, "") }
}

fn pairs(bench: &Bench<'_>) -> Finding {
    let mut wrong = Vec::new();
    for (sample, played) in bench.first() {
        if !played.torn.is_empty() {
            wrong.push(format!("{}: entries {:?}", sample.name, played.torn));
        }
    }
    Finding::none(&wrong, "")
}

fn monotone(bench: &Bench<'_>) -> Finding {
    let mut wrong = Vec::new();
    for (sample, first) in bench.first() {
        let next = bench.again(&sample.record, Some(first.state.clone()), Way::Asked);
        let fallen = fallen(&first.levels, &next.levels);
        if !fallen.is_empty() {
            wrong.push(format!("{}: entries {fallen:?} show more again", sample.name));
        }
    }
    Finding::none(&wrong, "")
}

/// Passes after which nothing new may be decided: each costs the cache of the provider.
const PASSES: usize = 12;

fn settles(bench: &Bench<'_>) -> Finding {
    let (mut wrong, mut most) = (Vec::new(), 1);
    for (sample, first) in bench.first().filter(|(sample, _)| sample.record.len() <= LARGE) {
        let mut state = first.state.clone();
        let settled = (1..PASSES).find(|_| {
            let next = bench.again(&sample.record, Some(state.clone()), Way::Asked);
            let same = next.state.records() == state.records() && next.state.notes() == state.notes();
            state = next.state;
            same
        });
        match settled {
            Some(passes) => most = most.max(passes),
            None => wrong.push(format!("{}: pass {PASSES} still decided something", sample.name)),
        }
    }
    Finding::none(&wrong, format!("after {most} at most"))
}

fn aggressive(bench: &Bench<'_>) -> Finding {
    let mut wrong = Vec::new();
    for (sample, _) in bench.samples().filter(|(sample, _)| sample.record.len() <= LARGE) {
        let played = bench.again(&sample.record, None, Way::Overflow);
        if let Some(fault) = fault(&played) {
            wrong.push(format!("{}: {fault}", sample.name));
        }
    }
    Finding::none(&wrong, "")
}

fn growing(bench: &Bench<'_>) -> Finding {
    let Some(policy) = policy(bench.plugin) else { return Finding::failed("its name is no name of a stage") };
    let mut record = OwnedTranscript::default();
    let mut whole = Compactor::new(&policy);
    let mut state: Option<CompactionState> = None;
    let mut levels = Vec::new();
    let mut wrong = Vec::new();
    for at in 0..30 {
        grow(&mut record, at);
        // What a restart leaves of a session is its encoded state.
        let resumed = match state.take().map(|state| CompactionState::decode(&state.encode())) {
            Some(Ok(state)) => Some(state),
            Some(Err(error)) => return Finding::failed(format!("turn {}: its state cannot be read: {error}", at + 1)),
            None => None,
        };
        let played = bench.again(&record, resumed, Way::Asked);
        let same = bench.count(turn(bench.plugin, &mut whole, &record, Way::Asked));
        if let Some(fault) = fault(&played) {
            wrong.push(format!("turn {}: {fault}", at + 1));
        }
        if played.state.encode() != same.state.encode() {
            wrong.push(format!("turn {}: a session that was not interrupted decided otherwise", at + 1));
        }
        if !fallen(&levels, &played.levels).is_empty() {
            wrong.push(format!("turn {}: entries show more again", at + 1));
        }
        levels = played.levels;
        state = Some(played.state);
    }
    Finding::none(&wrong, "")
}

fn limits(bench: &Bench<'_>) -> Finding {
    let limits = &bench.plugin.limits;
    let mut near = Vec::new();
    for (sample, played) in bench.first() {
        let entries = sample.record.len() as u64;
        let metrics = &played.metrics;
        for (what, used, most) in [
            ("fuel", metrics.fuel, limits.fuel_for(entries)),
            ("memory_bytes", metrics.peak_memory as u64, limits.memory_bytes as u64),
            ("text_bytes", metrics.text_bytes, limits.text_bytes),
            ("host_calls", metrics.host_calls, limits.host_calls_for(entries)),
        ] {
            if used > most / 2 {
                near.push(format!("{}: {used} of {most} {what}", sample.name));
            }
        }
    }
    Finding::few(&near, "")
}

fn refusals(bench: &Bench<'_>) -> Finding {
    let mut many = Vec::new();
    for (sample, played) in bench.first() {
        let (accepted, refused) = (played.metrics.accepted, played.metrics.refused_count());
        if refused > 8 && refused > accepted {
            let most = played.metrics.refused.iter().max_by_key(|(_, count)| **count);
            let why = most.map(|(why, _)| why.as_str()).unwrap_or_default();
            many.push(format!(
                "{}: {refused} of {} were refused, most because: {why}",
                sample.name,
                accepted + refused
            ));
        }
    }
    Finding::few(&many, "")
}

fn log(bench: &Bench<'_>) -> Finding {
    let dropped = |(sample, played): (&Sample, &Played)| {
        let lines = played.metrics.log_dropped;
        (lines > 0).then(|| format!("{}: {lines} lines above the limit", sample.name))
    };
    Finding::few(&bench.first().filter_map(dropped).collect::<Vec<_>>(), "")
}
