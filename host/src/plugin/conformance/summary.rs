//! What is checked of a summarizer.

use std::cell::{OnceCell, RefCell};

use foreshorten_core::{
    Compactor, Effect, Finish, PolicyConfig, Step, SummaryReply, SummaryRequest, Turn,
    config::PipelineStage,
    plan::SummarizeHistory,
    summary::{REQUIRED_SECTIONS, has_sections},
    transcript::{OwnedTranscript, Transcript as _},
};

use super::super::summary::{Step as Next, job_of};
use super::super::{Fault, SummaryPlugin};
use super::records::{Sample, samples};
use super::report::{Costs, Finding};

/// A check: its id, what it is in words, and how it is done.
pub(super) struct SummaryCheck {
    pub(super) id: &'static str,
    pub(super) name: &'static str,
    pub(super) run: fn(&Bench<'_>) -> Finding,
}

/// All of them, in the order in which they are run.
pub(super) const CHECKS: [SummaryCheck; 8] = [
    SummaryCheck { id: "survives", name: "it fails on no record", run: survives },
    SummaryCheck { id: "accepted", name: "its summaries are taken: all sections, and short enough", run: accepted },
    SummaryCheck {
        id: "deterministic",
        name: "of the same record and replies it makes the same summary",
        run: deterministic,
    },
    SummaryCheck { id: "prior", name: "it takes the summary so far in", run: prior },
    SummaryCheck { id: "empty", name: "it survives that there is nothing to summarize", run: empty },
    SummaryCheck { id: "garbage", name: "it survives replies of a model that are garbage", run: garbage },
    SummaryCheck { id: "asks", name: "it asks no more often than allowed, and never without a question", run: asks },
    SummaryCheck { id: "limits", name: "within half of its limits", run: limits },
];

/// What a model might answer to a good prompt.
const REPLY: &str = "## Session intent\nThe user wants the build mended.\n## Current state\nTwo of three parts are done; the last \
    one fails.\n## Key facts and decisions\nThe linker lacks a library; version 4.2 was chosen.\n## Artifacts\nsrc/main.rs, \
    build.log\n## Constraints\nNo new dependencies.\n## Next steps\nRun the tests again.";

/// What one summary came to.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Came {
    Written(String),
    Failed(Fault),
    /// It asked more often than it may.
    Endless,
    /// It asked an empty question.
    Blank,
}

struct Summed {
    came: Came,
    asked: u32,
    costs: Costs,
}

/// A summarizer, and what was summarized once already.
pub(super) struct Bench<'a> {
    plugin: &'a SummaryPlugin,
    samples: OnceCell<Vec<(Sample, SummaryRequest, OnceCell<Summed>)>>,
    costs: RefCell<Costs>,
}

impl<'a> Bench<'a> {
    pub(super) fn new(plugin: &'a SummaryPlugin) -> Self {
        Self { plugin, samples: OnceCell::new(), costs: RefCell::default() }
    }

    pub(super) fn costs(&self) -> Costs {
        *self.costs.borrow()
    }

    fn samples(&self) -> &[(Sample, SummaryRequest, OnceCell<Summed>)] {
        self.samples.get_or_init(|| {
            let asked = samples().into_iter().filter_map(|sample| Some((request(&sample.record)?, sample)));
            asked.map(|(request, sample)| (sample, request, OnceCell::new())).collect()
        })
    }

    /// Every record of which the core would ask a summary, with what came of a good model.
    fn first(&self) -> impl Iterator<Item = (&Sample, &SummaryRequest, &Summed)> {
        self.samples().iter().map(|(sample, request, first)| {
            (sample, request, first.get_or_init(|| self.sum(&sample.record, request, REPLY)))
        })
    }

    /// Writes one summary with a model that always answers `reply`.
    fn sum(&self, record: &OwnedTranscript, request: &SummaryRequest, reply: &str) -> Summed {
        let policy = foreshorten_core::Policy::default();
        let mut compactor = Compactor::new(&policy);
        compactor.sync(record);
        let mut replies = Vec::new();
        let mut costs = Costs::default();
        for asked in 0..self.plugin.limits.steps.max(1) {
            self.plugin.reset();
            let next =
                self.plugin.next(job_of(request, replies.clone()), record, compactor.columns(), compactor.ledger());
            let spent = Costs::of(&self.plugin.metrics());
            costs = costs.most(spent);
            self.costs.replace_with(|most| most.most(spent));
            let came = match next {
                Ok(Next::Written(text)) => Came::Written(text),
                Ok(Next::Ask(model)) if model.user.trim().is_empty() && model.system.trim().is_empty() => Came::Blank,
                Ok(Next::Ask(_)) => {
                    replies.push(reply.to_owned());
                    continue;
                }
                Err(fault) => Came::Failed(fault),
            };
            return Summed { came, asked, costs };
        }
        Summed { came: Came::Endless, asked: self.plugin.limits.steps, costs }
    }

    /// A record that is neither small nor large.
    fn usual(&self) -> Option<&(Sample, SummaryRequest, OnceCell<Summed>)> {
        self.samples().iter().find(|(sample, ..)| sample.name == "a talk with tools")
    }
}

/// What the core would ask a summarizer about this record; `None` where it would not.
fn request(record: &OwnedTranscript) -> Option<SummaryRequest> {
    let stages = vec![PipelineStage::Summarize(SummarizeHistory::default())];
    let policy = PolicyConfig { stages, ..PolicyConfig::default() }.build().ok()?;
    let mut compactor = Compactor::new(&policy);
    compactor.sync(record);
    let window = (compactor.tokens() / 2).max(1_000);
    compactor.begin(record, Turn { window: Some(window), manual: true, can_summarize: true, ..Turn::default() });
    loop {
        match compactor.poll(record) {
            Step::Effect(Effect::Summarize(request)) => return Some(request),
            Step::Effect(_) => compactor.handle_archived(false),
            Step::Done(_) => return None,
        }
    }
}

/// Why the core does not take a summary, in its own words; `None` where it does.
fn rejected(record: &OwnedTranscript, text: &str) -> Option<String> {
    let stages = vec![PipelineStage::Summarize(SummarizeHistory::default())];
    let policy = PolicyConfig { stages, ..PolicyConfig::default() }.build().ok()?;
    let mut compactor = Compactor::new(&policy);
    compactor.sync(record);
    // With room to spare, so that what is judged is the summary and not how small the window is.
    let window = compactor.tokens().max(100_000);
    compactor.begin(record, Turn { window: Some(window), manual: true, can_summarize: true, ..Turn::default() });
    let mut notes = None;
    loop {
        match compactor.poll(record) {
            Step::Effect(Effect::Summarize(_)) => {
                let reply = SummaryReply { text: text.to_owned(), finish: Finish::Complete };
                compactor.handle_summary(record, Ok(reply));
                notes = Some(());
            }
            Step::Effect(_) => compactor.handle_archived(false),
            Step::Done(outcome) => {
                let lines = outcome.notice.as_ref().map(|notice| notice.detail.join(", ")).unwrap_or_default();
                notes?;
                break if compactor.state().notes().is_empty() { Some(lines) } else { None };
            }
        }
    }
}

fn survives(bench: &Bench<'_>) -> Finding {
    let (mut wrong, mut names) = (Vec::new(), Vec::new());
    for (sample, _, summed) in bench.first() {
        names.push(sample.name);
        if let Came::Failed(fault) = &summed.came {
            wrong.push(format!("{}: {fault}", sample.name));
        }
    }
    Finding::none(&wrong, format!("{} records ({})", names.len(), names.join("; ")))
}

fn accepted(bench: &Bench<'_>) -> Finding {
    let (mut wrong, mut longest) = (Vec::new(), 0);
    for (sample, request, summed) in bench.first() {
        let Came::Written(text) = &summed.came else { continue };
        let chars = text.chars().count();
        longest = longest.max(chars);
        if !has_sections(text, REQUIRED_SECTIONS) {
            let missing: Vec<&str> =
                REQUIRED_SECTIONS.iter().filter(|section| !text.contains(**section)).copied().collect();
            let what = if missing.is_empty() { "one with nothing under it".to_owned() } else { missing.join(", ") };
            wrong.push(format!("{}: a heading is missing or empty: {what}", sample.name));
        } else if chars > request.max_chars as usize {
            wrong.push(format!("{}: {chars} characters, where {} are allowed", sample.name, request.max_chars));
        }
    }
    // The core has the last word, over a record in which a summary is worth it.
    if let Some((sample, request, _)) = bench.usual()
        && let Came::Written(text) = bench.sum(&sample.record, request, REPLY).came
        && wrong.is_empty()
        && let Some(why) = rejected(&sample.record, &text)
    {
        wrong.push(format!("{}: the core does not take it: {why}", sample.name));
    }
    Finding::none(&wrong, format!("{longest} characters at most"))
}

fn deterministic(bench: &Bench<'_>) -> Finding {
    let mut wrong = Vec::new();
    for (sample, request, first) in bench.first() {
        if bench.sum(&sample.record, request, REPLY).came != first.came {
            wrong.push(format!("{}: two calls, two summaries", sample.name));
        }
    }
    Finding::none(&wrong, "")
}

fn prior(bench: &Bench<'_>) -> Finding {
    const FACT: &str = "The port is 48613.";
    let Some((sample, request, _)) = bench.usual() else { return Finding::passed("") };
    let mut request = request.clone();
    request.prior = Some(REPLY.replace("The linker lacks a library", FACT));
    match bench.sum(&sample.record, &request, REPLY) {
        Summed { came: Came::Failed(fault), .. } => Finding::failed(fault.to_string()),
        Summed { came: Came::Written(text), .. } if text.contains("48613") => Finding::passed(""),
        // Who asks a model has put it into the question, or has not: the reply is ours.
        Summed { came: Came::Written(_), asked, .. } if asked > 0 => {
            let told = bench.asks_about(&sample.record, &request, "48613");
            if told { Finding::passed("") } else { Finding::warned("the model is not told of the summary so far") }
        }
        _ => Finding::warned("what stood in the summary so far is not in the new one"),
    }
}

impl Bench<'_> {
    /// Whether the first question holds `what`.
    fn asks_about(&self, record: &OwnedTranscript, request: &SummaryRequest, what: &str) -> bool {
        let policy = foreshorten_core::Policy::default();
        let mut compactor = Compactor::new(&policy);
        compactor.sync(record);
        let next = self.plugin.next(job_of(request, Vec::new()), record, compactor.columns(), compactor.ledger());
        matches!(next, Ok(Next::Ask(model)) if model.user.contains(what) || model.system.contains(what))
    }
}

fn empty(bench: &Bench<'_>) -> Finding {
    let request = SummaryRequest {
        entries: Vec::new(),
        text: String::new(),
        prior: None,
        earlier: None,
        sections: REQUIRED_SECTIONS,
        max_chars: 16_000,
        max_output_tokens: 1_000,
        aggressive: false,
    };
    survived(&bench.sum(&OwnedTranscript::default(), &request, REPLY).came)
}

/// An error in words is an answer too; a trap is not.
fn survived(came: &Came) -> Finding {
    match came {
        Came::Failed(Fault::Refused(why)) => Finding::passed(format!("it says: {why}")),
        Came::Failed(fault) => Finding::failed(fault.to_string()),
        _ => Finding::passed(""),
    }
}

fn garbage(bench: &Bench<'_>) -> Finding {
    let Some((sample, request, _)) = bench.usual() else { return Finding::passed("") };
    let long = "word ".repeat(10_000);
    for reply in ["", "\0\u{202e}🦀", "I cannot help with that.", "## \n## \n##", long.as_str()] {
        let found = survived(&bench.sum(&sample.record, request, reply).came);
        if found.verdict == super::Verdict::Failed {
            let shown: String = reply.chars().take(20).collect();
            return Finding::failed(format!("to {shown:?}: {}", found.detail));
        }
    }
    Finding::passed("")
}

fn asks(bench: &Bench<'_>) -> Finding {
    let (mut wrong, mut most) = (Vec::new(), 0);
    for (sample, _, summed) in bench.first() {
        most = most.max(summed.asked);
        match summed.came {
            Came::Endless => wrong.push(format!("{}: it asked {} times and wrote nothing", sample.name, summed.asked)),
            Came::Blank => wrong.push(format!("{}: it asks nothing", sample.name)),
            _ => {}
        }
    }
    Finding::none(&wrong, format!("{most} at most"))
}

fn limits(bench: &Bench<'_>) -> Finding {
    let limits = &bench.plugin.limits;
    let mut near = Vec::new();
    for (sample, _, summed) in bench.first() {
        let entries = sample.record.len() as u64;
        for (what, used, most) in [
            ("fuel", summed.costs.fuel, limits.fuel_for(entries)),
            ("memory_bytes", summed.costs.memory_bytes as u64, limits.memory_bytes as u64),
            ("text_bytes", summed.costs.text_bytes, limits.text_bytes),
            ("host_calls", summed.costs.host_calls, limits.host_calls_for(entries)),
        ] {
            if used > most / 2 {
                near.push(format!("{}: {used} of {most} {what}", sample.name));
            }
        }
    }
    Finding::few(&near, "")
}
