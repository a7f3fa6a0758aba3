//! Times, side by side: ours and the other in turn, in CPU time of the thread, so that a busy machine disturbs less.
//!
//! `benches/run` runs it. `clock --smoke` does everything a few times only. `clock WORKLOAD.jsonl LOVIA.json` compares with the
//! peer: the session it was timed on, and its times (`benches/peer/run --times`).

#![allow(clippy::unwrap_used, reason = "a bench has nobody to tell but its reader")]

use std::time::Duration;

use foreshorten_benches::{
    Pairs,
    cpu::cpu_time,
    naive,
    sessions::{HEAD, ROUND, session},
    table::{Row, Table, thousands},
};
use foreshorten_core::{
    CompactionState, Compactor, Effect, Finish, PipelineStage, Policy, PolicyConfig, Step, SummaryReply, Turn,
    estimate::Weigher,
    plan::{ClearToolResults, OffloadToolResults},
    summary::REQUIRED_SECTIONS,
    transcript::{Entry, OwnedTranscript, Transcript, Until},
};
use serde_json::Value;

/// Entries that are new in a turn.
const NEW: usize = 20;
/// Bytes of a result: 100,000 entries are about 100 MB, as in a session of an agent that reads files.
const RESULT: usize = 2_800;

struct Scale {
    pairs: usize,
    large: usize,
}

fn main() {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let smoke = arguments.first().is_some_and(|first| first == "--smoke");
    if smoke {
        arguments.remove(0);
    }
    let scale = if smoke { Scale { pairs: 2, large: 3_000 } } else { Scale { pairs: 15, large: 100_000 } };
    let mut table = Table::default();
    println!("{}", Table::HEAD);
    turns(&mut table, &scale);
    states(&mut table, &scale);
    match arguments.as_slice() {
        [workload, times, ..] => against_lovia(&mut table, workload, times),
        _ => without_lovia(&mut table),
    }
}

fn us(time: Duration) -> String {
    format!("{:.1} µs", time.as_secs_f64() * 1e6)
}

/// Both ratios of pairs: of the least, and the median of all.
fn ratios(pairs: &Pairs) -> String {
    format!("{:.0}× of least, {:.0}× median", pairs.ratio_of_least(), pairs.median_ratio())
}

fn settle(compactor: &mut Compactor<&Policy>, record: &dyn Transcript, turn: Turn<'_>) {
    compactor.sync(record);
    compactor.begin(record, turn);
    while let Step::Effect(effect) = compactor.poll(record) {
        match effect {
            Effect::Summarize(_) => {
                let text: String = REQUIRED_SECTIONS.iter().map(|section| format!("{section}\nas it was\n")).collect();
                compactor.handle_summary(record, Ok(SummaryReply { text, finish: Finish::Complete }));
            }
            _ => compactor.handle_archived(true),
        }
    }
}

/// A session that grows by 20 entries a turn.
struct Growing<'p> {
    whole: OwnedTranscript,
    len: usize,
    compactor: Compactor<&'p Policy>,
}

impl<'p> Growing<'p> {
    fn new(policy: &'p Policy, entries: usize, turns: usize) -> Self {
        let len = (entries - HEAD) / ROUND * ROUND + HEAD;
        let whole = session(len + (turns + 1) * NEW + ROUND, RESULT);
        let mut compactor = Compactor::new(policy);
        compactor.reserve(whole.len());
        settle(&mut compactor, &Until { whole: &whole, len }, Turn::default());
        Self { whole, len, compactor }
    }

    fn turn(&mut self) -> Duration {
        self.len += NEW;
        let record = Until { whole: &self.whole, len: self.len };
        cpu_time(|| settle(&mut self.compactor, &record, Turn::default()))
    }
}

fn turns(table: &mut Table, scale: &Scale) {
    let policy = PolicyConfig { context_window: Some(20_000_000), ..PolicyConfig::default() };
    let policy = PolicyConfig { compact_at: foreshorten_core::budget::Watermark::Tokens(19_900_000), ..policy };
    let policy = policy.build().unwrap();
    // Two of a kind: what the machine does to a ratio that is 1.
    let (mut one, mut other) =
        (Growing::new(&policy, 1_000, 8 * scale.pairs + 8), Growing::new(&policy, 1_000, 8 * scale.pairs + 8));
    let several = |growing: &mut Growing<'_>| (0..4).map(|_| growing.turn()).sum::<Duration>();
    let same = Pairs::take(scale.pairs, || several(&mut one), || several(&mut other));
    let (least, median) = (same.ratio_of_least(), same.median_ratio());
    let quiet = (0.9..=1.1).contains(&least) && (0.9..=1.1).contains(&median);
    let verdict =
        if quiet { "quiet" } else { "**noisy**: ratios below are told, not judged, where the margin is small" };
    table.row(&Row::told(
        "– a calm turn against itself",
        format!("{least:.2}× of least, {median:.2}× median: {verdict}"),
    ));
    drop(other);

    let mut large = Growing::new(&policy, scale.large, 8 * scale.pairs + 8);
    let sizes = Pairs::take(scale.pairs, || several(&mut one), || several(&mut large));
    let measured = format!("{:.2}× of least, {:.2}× median", sizes.ratio_of_least(), sizes.median_ratio());
    let what = format!("1 calm turn, {} entries against 1,000, in time", thousands(scale.large as u64));
    let pass = sizes.ratio_of_least() <= 1.5;
    table.row(&if quiet {
        Row::new(what, measured, "≤ 1.5×", pass)
    } else {
        Row { pass: pass.then_some(true), ..Row::new(what, measured, "≤ 1.5×", pass) }
    });

    let weigher = Weigher { bytes: policy.config().weigher.bytes, ..Weigher::default() };
    let whole = session(scale.large, RESULT);
    let naive = || cpu_time(|| naive::view(&whole, &weigher, u64::MAX, 3));
    let against = Pairs::take(scale.pairs, || large.turn(), naive);
    let (ours, theirs) = against.least();
    let measured = format!("{} ({} to {:.1} ms)", ratios(&against), us(ours), theirs.as_secs_f64() * 1e3);
    let what = format!("2 weigh, plan and copy all, against a calm turn, {} entries", thousands(scale.large as u64));
    table.row(&Row::new(what, measured, "≥ 1,000×", against.ratio_of_least() >= 1_000.0));

    let record = Until { whole: &large.whole, len: large.len };
    // Each piece is handed out once, as to a host that writes them.
    let lend = || {
        cpu_time(|| {
            large.compactor.view().pieces().for_each(|piece| {
                std::hint::black_box(piece);
            })
        })
    };
    let copy = || cpu_time(|| (0..record.len).map(|entry| Entry::copy_of(&record, entry)).collect::<Vec<_>>());
    let views = Pairs::take(scale.pairs, lend, copy);
    let (ours, theirs) = views.least();
    let measured = format!("{} ({} to {:.1} ms)", ratios(&views), us(ours), theirs.as_secs_f64() * 1e3);
    table.row(&Row::new(
        "4 every entry of a view copied, against every piece of it lent",
        measured,
        "≥ 100×",
        views.ratio_of_least() >= 100.0,
    ));
}

fn states(table: &mut Table, scale: &Scale) {
    // Clearing alone, in a window that a pass leaves room in: thousands of decisions.
    let stages =
        vec![PipelineStage::plan(OffloadToolResults::default()), PipelineStage::plan(ClearToolResults::default())];
    let policy = PolicyConfig { context_window: Some(3_000_000), stages, ..PolicyConfig::default() }.build().unwrap();
    let whole = session(scale.large / 2, RESULT);
    let mut compactor = Compactor::new(&policy);
    settle(&mut compactor, &whole, Turn::default());
    let state = compactor.state();
    let (bytes, json) = (state.encode(), serde_json::to_vec(state).unwrap());
    let encode = Pairs::take(scale.pairs, || cpu_time(|| state.encode()), || cpu_time(|| serde_json::to_vec(state)));
    let decode = Pairs::take(
        scale.pairs,
        || cpu_time(|| CompactionState::decode(&bytes)),
        || cpu_time(|| serde_json::from_slice::<CompactionState>(&json)),
    );
    let told = format!(" of {} decisions", thousands(state.records().len() as u64));
    let ratio = |pairs: &Pairs| format!("{:.1}× of least, {:.1}× median", pairs.ratio_of_least(), pairs.median_ratio());
    table.row(&Row::new(
        format!("9 state{told} written, its JSON against it"),
        ratio(&encode),
        "≥ 4×",
        encode.ratio_of_least() >= 4.0,
    ));
    table.row(&Row::new(
        format!("9 state{told} read, likewise"),
        ratio(&decode),
        "≥ 1.5×",
        decode.ratio_of_least() >= 1.5,
    ));
}

const WARM: (&str, &str) = ("2 lovia's warm `compact()`, 50,000 entries, against a turn of ours", "≥ 1,000×");
const FIRST: (&str, &str) = ("2 lovia's first call, 50,000 entries, against ours", "≥ 100×");
const STATE: (&str, &str) = ("9 lovia's state, 50,000 entries, against ours", "≥ 20×");

fn without_lovia(table: &mut Table) {
    for (what, asked) in [WARM, FIRST, STATE] {
        table.row(&Row::missing(what, asked, "`benches/peer/run --times` gave nothing"));
    }
}

/// The peer's session as entries, and the entries there are after every turn.
fn workload(path: &str) -> (OwnedTranscript, Vec<usize>) {
    let (mut all, mut turns) = (Vec::new(), Vec::new());
    for line in std::fs::read_to_string(path).unwrap().lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        for message in line["messages"].as_array().unwrap() {
            let text = message["content"].as_str().unwrap_or_default();
            match message["role"].as_str() {
                Some("system") => all.push(Entry::system(text)),
                Some("user") => all.push(Entry::user(text)),
                Some("tool") => {
                    all.push(Entry::tool_result(message["tool_call_id"].as_str().unwrap_or_default(), text))
                }
                _ => all.push(Entry::assistant(text)),
            }
            for call in message["tool_calls"].as_array().into_iter().flatten() {
                let of = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                let function = &call["function"];
                all.push(Entry::tool_call(of(&call["id"]), of(&function["name"]), of(&function["arguments"])));
            }
        }
        turns.push(all.len());
    }
    (OwnedTranscript::from(all), turns)
}

fn against_lovia(table: &mut Table, session: &str, times: &str) {
    let theirs: Value = serde_json::from_str(&std::fs::read_to_string(times).unwrap()).unwrap();
    let cases = &theirs["cases"];
    let entries = cases["default"]["entries"].as_u64().unwrap_or_default() as usize;
    let (whole, turns) = workload(session);
    let known = turns.partition_point(|&len| len < entries.saturating_sub(60));
    let policy = PolicyConfig { context_window: Some(200_000), ..PolicyConfig::default() }.build().unwrap();
    let turn = Turn { can_summarize: true, ..Turn::default() };
    let mut first = Duration::MAX;
    let mut compactor = Compactor::new(&policy);
    for _ in 0..3 {
        compactor = Compactor::new(&policy);
        let record = Until { whole: &whole, len: turns[known] };
        first = first.min(cpu_time(|| settle(&mut compactor, &record, turn)));
    }
    let mut warm = Vec::new();
    for &len in &turns[known + 1..] {
        let record = Until { whole: &whole, len };
        let spent = cpu_time(|| settle(&mut compactor, &record, turn));
        if !compactor.outcome().compacted {
            warm.push(spent);
        }
    }
    warm.sort_unstable();
    let (least, median) = (warm[0], warm[warm.len() / 2]);
    let ms = |case: &str, field: &str| cases[case][field].as_f64().unwrap_or(f64::NAN) / 1e3;
    // Both cases are of its first three stages; the one in which it has less to do is the harder one to beat.
    let (their_least, their_median) = (ms("default", "warm_ms"), ms("default", "warm_median_ms"));
    let ratio = their_least / least.as_secs_f64();
    let measured = format!(
        "{ratio:.0}× of least, {:.0}× median ({} to {:.1} ms)",
        their_median / median.as_secs_f64(),
        us(least),
        their_least * 1e3
    );
    table.row(&Row::new(WARM.0, measured, WARM.1, ratio >= 1_000.0));
    let theirs_first = ms("default", "first_ms");
    let ratio = theirs_first / first.as_secs_f64();
    let measured = format!("{ratio:.0}× ({:.1} ms to {:.0} ms)", first.as_secs_f64() * 1e3, theirs_first * 1e3);
    table.row(&Row::new(FIRST.0, measured, FIRST.1, ratio >= 100.0));
    let bytes = compactor.state().encode().len() as f64;
    let json = cases["default"]["state_bytes"].as_f64().unwrap_or(f64::NAN);
    let measured = format!("{:.0}× ({} to {} bytes)", json / bytes, thousands(bytes as u64), thousands(json as u64));
    table.row(&Row::new(STATE.0, measured, STATE.1, json / bytes >= 20.0));
}
