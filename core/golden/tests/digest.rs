//! The digest over everything is what it was, and the sessions reach what they are meant to reach.

use foreshorten_golden::{DIGEST, Played, Tally, hex, run};

/// When this fails, what a live session is sent or what is stored of it has changed. If that was not meant, find
/// the session: `cargo run -p foreshorten-golden -- --each` on both revisions prints one digest for each. If it
/// was meant: say in CHANGELOG.md under "View bytes" what models read that is new, or under "State format" (with a new
/// `FORMAT_VERSION`) what is stored otherwise; then put the digest of this message into `DIGEST`, and run
/// `tools/golden`, which must print it for every target. A change to the golden sessions themselves changes the
/// digest too, and is said in the commit.
#[test]
fn views_and_states_are_what_they_were() {
    let digest = hex(&run(|_| {}).unwrap());
    assert_eq!(digest, DIGEST, "views or states have changed; the comment over this test says what to do");
}

#[test]
fn the_sessions_reach_everything() {
    let mut sum = Tally::default();
    let mut calm = 0;
    run(|played: &Played| {
        let one = &played.tally;
        sum.turns += one.turns;
        sum.passes += one.passes;
        sum.summaries += one.summaries;
        sum.archived += one.archived;
        sum.refused += one.refused;
        sum.last_resorts += one.last_resorts;
        sum.cannot_fit += one.cannot_fit;
        sum.retries += one.retries;
        sum.counts += one.counts;
        sum.refused_counts += one.refused_counts;
        sum.edited += one.edited;
        sum.foreign += one.foreign;
        sum.windows = sum.windows.max(one.windows);
        sum.joined += one.joined;
        sum.resolved += one.resolved;
        sum.ambiguous += one.ambiguous;
        sum.hits += one.hits;
        sum.orphans += one.orphans;
        for (all, one) in sum.pieces.iter_mut().zip(one.pieces) {
            *all += one;
        }
        for (all, one) in sum.levels.iter_mut().zip(one.levels) {
            *all += one;
        }
        sum.state_bytes = sum.state_bytes.max(one.state_bytes);
        sum.entries = sum.entries.max(one.entries);
        calm += u32::from(one.passes == 0);
    })
    .unwrap();
    println!("{sum:#?}\n{calm} played without a pass");
    let Tally { turns, passes, summaries, archived, refused, last_resorts, cannot_fit, retries, counts, .. } = sum;
    let Tally { refused_counts, edited, foreign, windows, joined, resolved, ambiguous, hits, orphans, .. } = sum;
    for (what, count, least) in [
        ("turns", turns, 900),
        ("passes", passes, 300),
        ("played without a pass", calm, 4),
        ("summaries", summaries, 100),
        ("archived", archived, 20),
        ("refused proposals", refused, 100),
        ("passes of the last resort", last_resorts, 30),
        ("views that cannot fit", cannot_fit, 10),
        ("second tries", retries, 8),
        ("usage figures believed", counts, 200),
        ("usage figures refused", refused_counts, 12),
        ("edited records", edited, 12),
        ("foreign records", foreign, 6),
        ("windows at one time", windows, 2),
        ("joins", joined, 12),
        ("resolved references", resolved, 50),
        ("ambiguous references", ambiguous, 3),
        ("hits", hits, 30),
        ("results without a call", orphans, 50),
        ("pieces: entries", sum.pieces[0], 5_000),
        ("pieces: texts", sum.pieces[1], 500),
        ("pieces: elided", sum.pieces[2], 20),
        ("pieces: arguments", sum.pieces[3], 15),
        ("pieces: notes", sum.pieces[4], 300),
        ("pieces: stand-ins", sum.pieces[5], 80),
        ("level: elided", sum.levels[1], 20),
        ("level: condensed", sum.levels[2], 5),
        ("level: preview", sum.levels[3], 20),
        ("level: cleared", sum.levels[4], 100),
        ("level: covered", sum.levels[5], 1_000),
    ] {
        assert!(count >= least, "{what}: {count}, where {least} or more are meant");
    }
}
