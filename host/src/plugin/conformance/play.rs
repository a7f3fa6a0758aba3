//! One pass of a stage, and what came of it.

use foreshorten_core::{
    CompactionState, Compactor, Effect, Policy, PolicyConfig, Step, Turn,
    config::PipelineStage,
    plan::Level,
    transcript::{Columns, NONE, OwnedTranscript},
};

use super::super::{Metrics, StagePlugin};

/// What one pass came to.
#[derive(Debug)]
pub(super) struct Played {
    pub(super) state: CompactionState,
    pub(super) metrics: Metrics,
    /// Entries that were protected, and are reduced all the same.
    pub(super) taken: Vec<usize>,
    /// Calls without their result in the view, and the reverse, which had it before.
    pub(super) torn: Vec<usize>,
    /// Level of every entry.
    pub(super) levels: Vec<Level>,
}

/// How a pass comes about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Somebody asks for it, so the stage is called whatever the view weighs.
    Asked,
    /// The provider rejected the view.
    Overflow,
}

/// A stage that only looks at what the one before it left: what comes after stages, the ladder of last resorts, may cut
/// what no stage may. No plugin has a dot in its name.
const WITNESS: &str = "looks.on";

pub(super) fn policy(plugin: &StagePlugin) -> Option<Policy> {
    let config = PolicyConfig {
        stages: vec![PipelineStage::External(plugin.name().into()), PipelineStage::External(WITNESS.into())],
        may_condense: plugin.may_condense(),
        min_gain_percent: 0,
        ..PolicyConfig::default()
    };
    // A name of letters, digits, `-` and `_` is a stage's; `None` cannot come of it.
    config.build().ok()
}

/// One pass over `record`.
pub(super) fn play(plugin: &StagePlugin, record: &OwnedTranscript, state: Option<CompactionState>, way: Way) -> Played {
    let Some(policy) = policy(plugin) else {
        let metrics = plugin.metrics();
        let state = state.unwrap_or_default();
        return Played { state, metrics, taken: Vec::new(), torn: Vec::new(), levels: Vec::new() };
    };
    let mut compactor = match state {
        Some(state) => Compactor::resume(&policy, state),
        None => Compactor::new(&policy),
    };
    turn(plugin, &mut compactor, record, way)
}

/// One turn of a compactor.
pub(super) fn turn(
    plugin: &StagePlugin,
    compactor: &mut Compactor<&Policy>,
    record: &OwnedTranscript,
    way: Way,
) -> Played {
    compactor.sync(record);
    // Room for a fifth more than the record, so that nothing but the stage reduces anything; the target, three fifths of
    // that, leaves it work to do. It depends on the record alone: at the target there is nothing left to be done.
    let usable = compactor.columns().total_weight() * 6 / 5;
    let window = Some((usable + usable.min(16_000)).max(1_000));
    let plain = Turn { window, ..Turn::default() };
    compactor.begin(
        record,
        match way {
            Way::Asked => Turn { manual: true, ..plain },
            Way::Overflow => Turn { overflow: true, ..plain },
        },
    );
    plugin.reset();
    let mut protected = Vec::new();
    let mut before = Vec::new();
    let mut after = None;
    loop {
        match compactor.poll(record) {
            Step::Effect(Effect::RunStage { name }) if name == WITNESS => {
                after = compactor.with_stage(record, |stage| {
                    (0..stage.columns().len()).map(|entry| stage.level(entry)).collect::<Vec<Level>>()
                });
                compactor.commit_stage();
            }
            Step::Effect(Effect::RunStage { .. }) => {
                compactor.with_stage(record, |stage| {
                    let entries = 0..stage.columns().len();
                    before = entries.clone().map(|entry| stage.level(entry)).collect();
                    protected = entries.filter(|&entry| stage.is_protected(entry)).collect();
                });
                drop(plugin.run(compactor, record));
            }
            Step::Effect(_) => compactor.handle_archived(false),
            Step::Done(_) => break,
        }
    }
    let columns = compactor.columns();
    let levels: Vec<Level> = (0..columns.len()).map(|entry| compactor.ledger().level(columns, entry)).collect();
    Played {
        // A pass ends with the stage that reaches the target: then nothing came after it.
        taken: taken(&protected, &before, after.as_ref().unwrap_or(&levels)),
        torn: torn(columns, &levels),
        levels,
        state: compactor.state().clone(),
        metrics: plugin.metrics(),
    }
}

/// Protected entries whose level changed.
pub(super) fn taken(protected: &[usize], before: &[Level], after: &[Level]) -> Vec<usize> {
    let changed = |&entry: &usize| after.get(entry).is_some_and(|now| before.get(entry) != Some(now));
    protected.iter().copied().filter(changed).collect()
}

/// Entries that are in the view without the call or result that belongs to them.
fn torn(columns: &Columns, levels: &[Level]) -> Vec<usize> {
    let pairs: Vec<u32> = (0..levels.len()).map(|entry| columns.pair(entry)).collect();
    alone(&pairs, levels)
}

pub(super) fn alone(pairs: &[u32], levels: &[Level]) -> Vec<usize> {
    let shown = |entry: usize| levels.get(entry).is_some_and(|level| *level != Level::Covered);
    let lonely = |&entry: &usize| pairs[entry] != NONE && shown(entry) && !shown(pairs[entry] as usize);
    (0..pairs.len()).filter(lonely).collect()
}

/// Entries whose level fell.
pub(super) fn fallen(before: &[Level], after: &[Level]) -> Vec<usize> {
    (0..before.len().min(after.len())).filter(|&entry| after[entry] < before[entry]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ledger does not let these happen, so that no plugin can show that they would be seen.
    #[test]
    fn what_the_ledger_prevents_would_be_seen() {
        use Level::{Cleared, Covered, Preview, Verbatim};
        assert_eq!(taken(&[1, 2], &[Verbatim; 3], &[Cleared, Verbatim, Cleared]), [2]);
        assert_eq!(taken(&[1], &[Verbatim; 3], &[]), [0; 0], "the stage was not called");
        assert_eq!(alone(&[1, 0, NONE], &[Verbatim, Covered, Covered]), [0]);
        assert_eq!(alone(&[1, 0, NONE], &[Cleared, Cleared, Verbatim]), [0; 0]);
        assert_eq!(fallen(&[Cleared, Verbatim], &[Preview, Cleared]), [0]);
    }
}
