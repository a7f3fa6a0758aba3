//! The conformance kit: what a stage must do on records of every sort, and what it costs.

use std::fmt;
use std::path::Path;

use foreshorten_core::{
    CompactionState, Compactor, Effect, PolicyConfig, Step, Turn,
    config::PipelineStage,
    transcript::{Entry, OwnedTranscript, Part, Transcript as _},
};
use serde::Serialize;

use super::manifest::Settings;
use super::wasm::{Outline, World};
use super::{Limits, LoadError, Loader, Metrics, StagePlugin};

/// One check.
#[derive(Clone, Debug, Serialize)]
pub struct Check {
    /// What is checked, in words.
    pub name: String,
    /// Whether it holds.
    pub passed: bool,
    /// What was found.
    pub detail: String,
}

/// What the kit found.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// Bytes of the file.
    pub bytes: usize,
    /// Its SHA-256.
    pub sha256: String,
    /// Whether it is a stage or a summarizer.
    pub world: World,
    /// What was checked.
    pub checks: Vec<Check>,
    /// Most instructions of one call.
    pub most_fuel: u64,
    /// Most bytes of memory.
    pub most_memory: usize,
    /// Most milliseconds of one call.
    pub most_ms: u64,
    /// Most bytes of text read by one call.
    pub most_text: u64,
}

impl Report {
    /// Whether every check holds.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.checks.iter().all(|check| check.passed)
    }

    fn check(&mut self, name: impl Into<String>, passed: bool, detail: impl Into<String>) {
        self.checks.push(Check { name: name.into(), passed, detail: detail.into() });
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}, {} bytes, SHA-256 {}", self.world.name(), self.bytes, self.sha256)?;
        for check in &self.checks {
            let sign = if check.passed { "ok  " } else { "FAIL" };
            writeln!(f, "{sign}  {}{}{}", check.name, if check.detail.is_empty() { "" } else { ": " }, check.detail)?;
        }
        writeln!(
            f,
            "most of one call: {} fuel, {} KiB memory, {} ms, {} bytes of text read",
            self.most_fuel,
            self.most_memory >> 10,
            self.most_ms,
            self.most_text
        )?;
        writeln!(f, "{}", if self.passed() { "passed" } else { "failed" })
    }
}

/// Records of every sort, by name.
fn records() -> Vec<(&'static str, OwnedTranscript)> {
    let record = |entries: Vec<Entry>| {
        let mut record = OwnedTranscript::default();
        entries.into_iter().for_each(|entry| record.push(entry));
        record
    };
    let talk = |calls: usize, text: &str| {
        let mut entries = vec![Entry::system("Use the tools."), Entry::user("Go on.")];
        for call in 0..calls {
            let id = format!("call_{}", call % 50);
            entries.push(Entry::reasoning("Let me see."));
            entries.push(Entry::tool_call(&id, ["read", "run"][call % 2], format!("{{\"path\":\"{}\"}}", call % 7)));
            let result = Entry::tool_result(&id, text.repeat(10 + call % 40));
            entries.push(if call % 6 == 0 { result.failed() } else { result });
        }
        entries.push(Entry::user("And now?"));
        entries
    };
    let image = || Part::Image("image/png".into(), b"aGVsbG8=".to_vec());
    let mut odd = vec![Entry::tool_result("nobody", "asked ".repeat(400)), Entry::user("")];
    odd.push(Entry::reasoning("sealed ".repeat(300)).sealed());
    odd.push(Entry::tool_call("a", "", "not json"));
    odd.push(Entry::tool_call("a", "same id", "{}"));
    odd.push(Entry::tool_result("a", "one ".repeat(900)));
    odd.push(Entry::tool_call("b", "never answered", "{}"));
    odd.extend((0..9).map(|_| Entry::user("").with(image())));
    odd.push(Entry::assistant("done"));
    vec![
        ("one entry", record(vec![Entry::user("hello ".repeat(5_000))])),
        ("nothing but tail", record(vec![Entry::user("short"), Entry::tool_call("a", "run", "{}")])),
        ("a talk with tools", record(talk(60, "some line of output\n"))),
        ("scripts of the world", record(talk(30, "构建失败 — Fehler größer ошибка 🦀\n"))),
        ("orphans, repeated ids, images", record(odd)),
        ("one result of 4 MB", {
            let mut entries = talk(3, "x");
            entries.insert(2, Entry::tool_call("big", "run", "{}"));
            entries.insert(3, Entry::tool_result("big", "0123456789abcde\n".repeat(1 << 18)));
            record(entries)
        }),
        ("50,000 entries", record(talk(16_666, "line\n"))),
    ]
}

/// What one pass came to.
struct Played {
    state: CompactionState,
    metrics: Metrics,
}

fn play(plugin: &StagePlugin, record: &OwnedTranscript, state: Option<CompactionState>) -> Result<Played, LoadError> {
    let config = PolicyConfig {
        stages: vec![PipelineStage::External(plugin.name().into())],
        may_condense: plugin.may_condense(),
        min_gain_percent: 0,
        ..PolicyConfig::default()
    };
    let policy = config.build().map_err(|error| LoadError::Compile(error.to_string()))?;
    let mut compactor = match state {
        Some(state) => Compactor::resume(&policy, state),
        None => Compactor::new(&policy),
    };
    compactor.sync(record);
    // Half of what the record holds, so that there is work to do.
    let window = (compactor.tokens() / 2).max(1_000);
    compactor.begin(record, Turn { window: Some(window), manual: true, ..Turn::default() });
    plugin.reset();
    loop {
        match compactor.poll(record) {
            Step::Effect(Effect::RunStage { .. }) => drop(plugin.run(&mut compactor, record)),
            Step::Effect(_) => compactor.handle_archived(false),
            Step::Done(_) => break,
        }
    }
    Ok(Played { state: compactor.state().clone(), metrics: plugin.metrics() })
}

/// Runs the kit.
///
/// # Errors
/// The plugin cannot even be loaded.
pub fn check(loader: &Loader, path: &Path) -> Result<Report, LoadError> {
    let (file, settings) = Settings::find(path)?;
    let (bytes, sha256) = super::load::read(&file, settings.sha256.as_deref(), Limits::caps().file_bytes)?;
    let outline = Outline::read(&bytes)?;
    let world = outline.worlds.first().copied().unwrap_or(World::Stage);
    let mut report = Report {
        bytes: bytes.len(),
        sha256,
        world,
        checks: Vec::new(),
        most_fuel: 0,
        most_memory: 0,
        most_ms: 0,
        most_text: 0,
    };
    if world == World::Summarizer {
        let plugin = loader.summarizer(path)?;
        report.check("it loads, imports nothing foreign, and steps over a built-in record", true, plugin.name());
        return Ok(report);
    }
    let plugin = loader.stage(path)?;
    report.check("it loads, imports nothing foreign, and plans a built-in record", true, plugin.name());
    for (name, record) in records() {
        let first = play(&plugin, &record, None)?;
        let m = &first.metrics;
        report.most_fuel = report.most_fuel.max(m.fuel);
        report.most_memory = report.most_memory.max(m.peak_memory);
        report.most_ms = report.most_ms.max(u64::try_from(m.wall.as_millis()).unwrap_or(u64::MAX));
        report.most_text = report.most_text.max(m.text_bytes);
        let detail = match &m.last_fault {
            Some(fault) => fault.to_string(),
            None => format!("{} decisions, {} refused", m.accepted, m.refused_count()),
        };
        report.check(format!("{name}: it does not fail"), m.last_fault.is_none(), detail);
        let again = play(&plugin, &record, None)?;
        report.check(
            format!("{name}: twice the same, byte for byte"),
            first.state.encode() == again.state.encode(),
            "",
        );
        let half = plugin.limits.fuel_for(record.len() as u64) / 2;
        report.check(format!("{name}: within half of the fuel"), m.fuel <= half, format!("{} of {half}", m.fuel));
        let next = play(&plugin, &record, Some(again.state.clone()))?;
        let falls = again.state.records().iter().any(|had| {
            let now = next.state.record(had.place.index as usize);
            now.is_some_and(|now| now.action.level() < had.action.level())
        });
        report.check(format!("{name}: on top of its own decisions none is taken back"), !falls, "");
    }
    Ok(report)
}
