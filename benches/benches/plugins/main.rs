//! What plugins cost: one table, goals beside what was measured.
//!
//! `benches/run` runs it. With `FORESHORTEN_BENCH_SMOKE=1` everything is done a few times only, to see that it works; the
//! figures mean nothing then.

#![allow(clippy::unwrap_used, reason = "a bench has nobody to tell but its reader")]

mod guests;
mod native;

use std::time::{Duration, Instant};

use foreshorten::plugin::{CodeCache, Limits, Loader, Settings, StagePlugin, dylib::DylibLoader, sha256, wasm::encode};
use foreshorten_benches::{Pairs, time};
use foreshorten_core::{
    Compactor, Effect, Policy, PolicyConfig, Step, Turn,
    budget::Watermark,
    config::PipelineStage,
    estimate::Weigher,
    transcript::{Entry, OwnedTranscript, Transcript as _},
};
use foreshorten_plugin::Stage as _;
use marginal_stage::Marginal;
use native::Native;

/// Counts of what is done, and rows.
struct Scale {
    pairs: usize,
    calls: usize,
    few: usize,
    many: usize,
    plan: usize,
}

/// A record and a pass over it that waits for a stage, again and again.
struct Bench<'p> {
    record: OwnedTranscript,
    compactor: Compactor<&'p Policy>,
    window: u64,
}

const NAME: &str = "marginal";

impl<'p> Bench<'p> {
    fn new(policy: &'p Policy, entries: usize) -> Self {
        let mut record = OwnedTranscript::default();
        record.push(Entry::user("look at everything"));
        let text = "some line of text, and another word\n";
        while record.len() + 3 <= entries {
            let call = record.len();
            let id = format!("c{call}");
            record.push(Entry::assistant("The next one."));
            record.push(Entry::tool_call(&id, ["read", "run"][call % 2], format!("{{\"path\":\"{}\"}}", call % 97)));
            record.push(Entry::tool_result(&id, text.repeat(2 + call % 7)));
        }
        let mut compactor = Compactor::new(policy);
        compactor.sync(&record);
        let weigher = Weigher::default();
        let whole: u64 = (0..record.len()).map(|entry| u64::from(weigher.entry(&record, entry))).sum();
        Self { record, compactor, window: whole.max(512) }
    }

    /// Until the pass waits for the stage.
    fn wait(&mut self) {
        self.compactor.begin(&self.record, Turn { window: Some(self.window), ..Turn::default() });
        match self.compactor.poll(&self.record) {
            Step::Effect(Effect::RunStage { .. }) => {}
            other => panic!("no stage is asked for: {other:?}"),
        }
    }

    fn native(&mut self, config: &str) -> Duration {
        self.wait();
        let (compactor, record) = (&mut self.compactor, &self.record);
        time(|| {
            compactor.with_stage(record, |stage| {
                let mut pass = Native { stage, config: config.into(), memo: Vec::new() };
                Marginal::plan(&mut pass).unwrap();
                assert!(config == NOTHING || pass.memo.len() == 8);
            });
            compactor.commit_stage();
        })
    }

    fn plugin(&mut self, plugin: &StagePlugin) -> Duration {
        self.wait();
        let (compactor, record) = (&mut self.compactor, &self.record);
        time(|| plugin.run(compactor, record).unwrap())
    }
}

const NOTHING: &str = "\"nothing\"";

/// Median and least of some runs.
fn times(calls: usize, mut run: impl FnMut() -> Duration) -> (Duration, Duration) {
    run();
    let mut all: Vec<Duration> = (0..calls).map(|_| run()).collect();
    all.sort_unstable();
    (all[0], all[all.len() / 2])
}

fn row(what: &str, goal: &str, measured: &str, pass: Option<bool>) {
    let pass = pass.map_or("", |pass| if pass { "yes" } else { "**no**" });
    println!("| {what} | {goal} | {measured} | {pass} |");
}

fn us((least, median): (Duration, Duration)) -> String {
    format!("{:.1} µs (median {:.1})", least.as_secs_f64() * 1e6, median.as_secs_f64() * 1e6)
}

/// What a row costs natively and as a plugin, and how often the one is the other.
fn marginal(
    few: &mut Bench<'_>,
    many: &mut Bench<'_>,
    plugin: Option<&StagePlugin>,
    scale: &Scale,
) -> (f64, f64, f64, f64) {
    let rows = (many.record.len() - few.record.len()) as f64;
    let (mut small, mut large) = (Vec::new(), Vec::new());
    let run = |bench: &mut Bench<'_>| match plugin {
        Some(plugin) => bench.plugin(plugin),
        None => bench.native("{}"),
    };
    let mut pairs = Vec::new();
    for pair in 0..=scale.pairs {
        let mut both = [(Duration::ZERO, Duration::ZERO); 2];
        for turn in 0..2 {
            // Every other pair the plugin goes first.
            let first = (turn + pair) % 2;
            both[first] = if first == 0 { (few.native("{}"), many.native("{}")) } else { (run(few), run(many)) };
        }
        // The first does not count.
        if pair > 0 {
            small.push((both[0].0, both[1].0));
            large.push((both[0].1, both[1].1));
            let of = |(few, many): (Duration, Duration)| many.saturating_sub(few).as_secs_f64();
            pairs.push(of(both[1]) / of(both[0]));
        }
    }
    let (small, large) = (Pairs { times: small }, Pairs { times: large });
    let per_row = |large: Duration, small: Duration| large.saturating_sub(small).as_secs_f64() / rows * 1e9;
    let native = per_row(large.least().0, small.least().0);
    let other = per_row(large.least().1, small.least().1);
    pairs.sort_unstable_by(f64::total_cmp);
    (native, other, other / native, pairs[pairs.len() / 2])
}

fn main() {
    let smoke = std::env::var_os("FORESHORTEN_BENCH_SMOKE").is_some();
    let scale = if smoke {
        Scale { pairs: 2, calls: 5, few: 1_000, many: 3_000, plan: 2_000 }
    } else {
        Scale { pairs: 31, calls: 300, few: 10_000, many: 100_000, plan: 50_000 }
    };
    let stages = vec![PipelineStage::External(NAME.into())];
    // A window as large as the record is half too small: every pass asks for the stage.
    let (compact_at, compact_to) = (Watermark::BasisPoints(5_000), Watermark::BasisPoints(3_000));
    let policy = PolicyConfig { stages, compact_at, compact_to, ..PolicyConfig::default() }.build().unwrap();

    println!("| what | goal | measured | pass |\n|---|---|---|---|");
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let bytes = guests::library();
    let library = folder.join(format!("marginal{}", std::env::consts::DLL_SUFFIX));
    std::fs::write(&library, &bytes).unwrap();
    let settings =
        |bytes: &[u8]| Settings { sha256: Some(sha256(bytes)), limits: Limits::caps(), ..Settings::default() };
    let dylib = DylibLoader::new().stage_with(&library, &settings(&bytes)).unwrap().configured(NAME, "{}").unwrap();
    let component = guests::module().map(|module| encode(&module).unwrap());
    let loader = Loader::new(Limits::caps()).unwrap();
    let wasm = component.as_ref().map(|bytes| loader.stage_of(bytes, NAME, sha256(bytes), &settings(bytes)).unwrap());
    if wasm.is_none() {
        println!("SKIPPED: nothing here builds for wasm32, so no component was measured");
    }

    let mut small = Bench::new(&policy, 100);
    row("no-op call, native", "", &us(times(scale.calls, || small.native(NOTHING))), None);
    for (form, plugin) in [("library", Some(&dylib)), ("component", wasm.as_ref())] {
        let Some(plugin) = plugin else { continue };
        let plugin = plugin.configured(NAME, NOTHING).unwrap();
        row(&format!("no-op call, {form}"), "", &us(times(scale.calls, || small.plugin(&plugin))), None);
    }
    if let Some(bytes) = &component {
        let (least, median) = times(scale.calls.min(20), || {
            let start = Instant::now();
            drop(loader.stage_of(bytes, NAME, sha256(bytes), &settings(bytes)).unwrap());
            start.elapsed()
        });
        let what = format!("cold load, component in Rust of {} bytes: compile and check", bytes.len());
        row(&what, "", &us((least, median)), None);
        instantiate(bytes, &scale);
        let warm = Loader::new(Limits::caps()).unwrap().cached(CodeCache::at(folder.join("code-cache")));
        let load = || drop(warm.stage_of(bytes, NAME, sha256(bytes), &settings(bytes)).unwrap());
        load();
        let (least, median) = times(scale.calls.min(200), || time(load));
        assert!(warm.loads().from_cache > 0 && warm.loads().compiled <= 1, "{:?}", warm.loads());
        let goal = Duration::from_millis(5);
        row(
            "warm load of the same, from the cache: read, unseal, check",
            "≤ 5 ms",
            &us((least, median)),
            Some(least <= goal),
        );
    }
    let mut plan = Bench::new(&policy, scale.plan);
    let rows = plan.record.len();
    row(
        &format!("plan over {rows} entries, three columns, native"),
        "",
        &us(times(scale.pairs, || plan.native("{}"))),
        None,
    );
    for (form, plugin) in [("library", Some(&dylib)), ("component", wasm.as_ref())] {
        let Some(plugin) = plugin else { continue };
        let what = format!("plan over {rows} entries, three columns, {form}");
        row(&what, "", &us(times(scale.pairs, || plan.plugin(plugin))), None);
    }
    drop(plan);

    let (mut few, mut many) = (Bench::new(&policy, scale.few), Bench::new(&policy, scale.many));
    let (native, _, least, median) = marginal(&mut few, &mut many, None, &scale);
    row(
        "a row, native against itself",
        "1.0×",
        &format!("{native:.2} ns; {least:.2}× of least, {median:.2}× median"),
        None,
    );
    for (form, goal, plugin) in [("library", 1.1, Some(&dylib)), ("component", 3.0, wasm.as_ref())] {
        let Some(plugin) = plugin else { continue };
        let (native, other, least, median) = marginal(&mut few, &mut many, Some(plugin), &scale);
        let measured = format!("{other:.2} ns to {native:.2} ns native; {least:.2}× of least, {median:.2}× median");
        row(&format!("a row, {form}"), &format!("≤ {goal}×"), &measured, Some(least <= goal));
        assert_eq!(plugin.metrics().fault_count(), 0, "{:?}", plugin.metrics());
    }
}

/// A fresh instance, on an engine as the loader's, imports left out.
fn instantiate(component: &[u8], scale: &Scale) {
    let mut config = wasmtime::Config::new();
    config.consume_fuel(true).epoch_interruption(true);
    let engine = wasmtime::Engine::new(&config).unwrap();
    let component = wasmtime::component::Component::from_binary(&engine, component).unwrap();
    let mut linker = wasmtime::component::Linker::<()>::new(&engine);
    linker.define_unknown_imports_as_traps(&component).unwrap();
    let pre = linker.instantiate_pre(&component).unwrap();
    let measured = times(scale.calls, || {
        time(|| {
            let mut store = wasmtime::Store::new(&engine, ());
            store.set_fuel(1_000_000).unwrap();
            store.set_epoch_deadline(1_000);
            pre.instantiate(&mut store).unwrap();
        })
    });
    row("instantiate, with its store", "", &us(measured), None);
}
