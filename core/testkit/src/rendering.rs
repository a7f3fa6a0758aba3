//! The kept view against one rendered from scratch.

use foreshorten_core::{
    Compactor, Effect, Finish, Policy, PolicyConfig, Step, SummaryReply, Turn, config,
    render::{RenderCache, render_view},
    state::History,
    transcript::OwnedTranscript,
};

use crate::{Script, cases, entries, materialize, session::assert_same};

/// Entries of one record at most: every entry is followed by a rendering from scratch.
const MAX_ENTRIES: usize = 96;

/// Pushes entries one by one, with passes in between, and compares the view kept with one rendered from scratch after
/// every step: its pieces, its counts, and that nothing before the place named has moved.
///
/// # Panics
/// When I2 or I4 does not hold.
pub fn rendering(bytes: &[u8]) {
    let mut script = Script::new(bytes);
    let stages = if script.one_in(2) { config::default_pipeline() } else { config::five_stage_pipeline() };
    let policy: Policy = cases::built(PolicyConfig { stages, ..PolicyConfig::default() });
    let window = [400, 1_000, 4_000][script.below(3)];
    let mut compactor = Compactor::new(&policy);
    let mut record = OwnedTranscript::default();
    let mut view: Vec<String> = Vec::new();
    let mut turn = 0;
    while !script.is_done() && record.entries().len() < MAX_ENTRIES {
        let mut new = Vec::new();
        entries(&mut script, turn, &mut new);
        for entry in new {
            let settled = compactor.view().settled();
            record.extend([entry]);
            let history = compactor.sync(&record);
            let now = compared(&compactor, &record);
            if history == History::Edited {
                assert!(compactor.view().settled() <= settled, "I4: a late result settles nothing");
            } else {
                assert!(now.starts_with(&view), "I4 prefix: a push changed what stood there");
                assert_eq!(compactor.view().settled(), settled, "a push settles nothing");
            }
            view = now;
        }
        let facts = Turn {
            window: Some(window),
            can_summarize: script.one_in(2),
            overflow: script.one_in(8),
            ..Turn::default()
        };
        compactor.begin(&record, facts);
        while let Step::Effect(effect) = compactor.poll(&record) {
            assert!(matches!(effect, Effect::Summarize(_)), "nothing else is in the pipeline");
            let reply = SummaryReply { text: cases::summary_text(70), finish: Finish::Complete };
            compactor.handle_summary(&record, Ok(reply));
        }
        let now = compared(&compactor, &record);
        let outcome = compactor.outcome();
        if outcome.compacted {
            assert_eq!(compactor.view().settled(), now.len(), "what a pass left is settled");
        } else {
            assert_same(&now, &view, "I4 prefix: a turn without a pass changed the view");
        }
        view = now;
        turn += 1;
    }
}

/// The pieces of the kept view, which are those of a view rendered from scratch, twice.
fn compared(compactor: &Compactor<&Policy>, record: &OwnedTranscript) -> Vec<String> {
    let kept = compactor.view();
    let scratch = render_view(record, compactor.state());
    let pieces = materialize(kept, record);
    assert_same(&pieces, &materialize(&scratch, record), "I2: the view kept is not the view rendered");
    let counts = |view: &RenderCache| {
        (view.len(), view.orphans(), view.stand_ins(), view.copied_bytes(), view.head(compactor.columns()))
    };
    assert_eq!(counts(kept), counts(&scratch), "I2: the view kept counts otherwise than the view rendered");
    for (index, piece) in kept.pieces().enumerate() {
        assert_eq!(kept.get(index), Some(piece));
    }
    assert!(kept.get(kept.len()).is_none() && kept.settled() <= kept.len());
    pieces
}
