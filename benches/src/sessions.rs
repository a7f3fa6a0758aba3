//! Sessions made up for measuring: the same from run to run, and of any length.

use foreshorten_core::transcript::{Entry, OwnedTranscript};

/// Entries of one round: what the assistant says, its call, and the result.
pub const ROUND: usize = 3;
/// Entries before the first round: instructions, and the task.
pub const HEAD: usize = 2;

/// A session of `entries` entries (rounded down to whole rounds), whose results are of `result` bytes.
///
/// What round `k` says goes by `k` alone and repeats every 64 rounds, so that the newest rounds of a long session weigh and
/// hash as those of a short one do. Call ids count up.
#[must_use]
pub fn session(entries: usize, result: usize) -> OwnedTranscript {
    let mut all =
        vec![Entry::system("You are careful. ".repeat(40)), Entry::user("Find out why the build fails, and mend it.")];
    let rounds = entries.saturating_sub(HEAD) / ROUND;
    all.reserve(rounds * ROUND);
    for round in 0..rounds {
        let id = format!("call_{round:08}");
        let said = round % 64;
        all.push(Entry::assistant(format!("Step {said:02}: I look at the next file before I change anything.")));
        all.push(Entry::tool_call(&id, "read_file", format!(r#"{{"path":"src/part_{said:02}.rs","from":1}}"#)));
        all.push(Entry::tool_result(&id, output(said, result)));
    }
    OwnedTranscript::from(all)
}

/// As [`session`], with every second result equal to the one before it.
#[must_use]
pub fn session_with_duplicates(rounds: usize, result: usize) -> OwnedTranscript {
    let mut all = vec![Entry::system("You are careful."), Entry::user("Go on until it works.")];
    for round in 0..rounds {
        let id = format!("call_{round:08}");
        all.push(Entry::tool_call(&id, "run", format!(r#"{{"command":"make check","try":{round}}}"#)));
        all.push(Entry::tool_result(&id, format!("attempt {}\n{}", round / 2, output(round / 2, result))));
    }
    OwnedTranscript::from(all)
}

/// Lines as a tool prints them.
#[must_use]
pub fn output(seed: usize, bytes: usize) -> String {
    let mut text = String::with_capacity(bytes + 80);
    let mut state = seed as u64 * 0x9e37_79b9_7f4a_7c15 + 1;
    while text.len() < bytes {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let word = ["error", "warning", "note", "finished", "checking", "running"][(state >> 33) as usize % 6];
        text.push_str(&format!(
            "{word}: src/module_{:03}.rs:{}: expected one of the values\n",
            state >> 54,
            state >> 50 & 511
        ));
    }
    text.truncate(bytes);
    text
}
