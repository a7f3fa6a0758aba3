//! What the requests of a trace were, and what they cost. One way of counting for every policy.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{BufRead as _, BufReader, Write as _, stdin, stdout};
use std::path::Path;

use foreshorten::economics::{Money, PriceTable, Request as Priced, Segment, Simulator, Totals};
use serde::Serialize;

use crate::trace::{Head, Request, size};
use crate::workload::{Workload, counted};

/// Figures of one policy at one window.
#[derive(Debug, Serialize)]
struct Figures {
    policy: String,
    window: u64,
    turns: u64,
    /// Turns on which the policy decided something, by its own account.
    passes: u64,
    /// Requests that did not begin with the whole request before.
    breaks: u64,
    /// Bytes that were new in the conversation, over all turns.
    new_bytes: u64,
    /// Bytes sent after the longest common prefix with the request before.
    uncovered_bytes: u64,
    /// Bytes sent.
    sent_bytes: u64,
    /// The largest request in tokens, as the provider counts.
    largest_tokens: u64,
    /// Requests above the window, which a provider would refuse.
    over_window: u64,
    /// Mean over the turns of the share of the history, in bytes, whose messages stand in the request as they came.
    verbatim_share: f64,
    /// The same after the last turn.
    verbatim_at_end: f64,
    /// Calls of a summarizer, and the bytes that went in and came out.
    summaries: u64,
    summary_input_bytes: u64,
    summary_output_bytes: u64,
    /// Each of those calls.
    #[serde(skip)]
    calls: Vec<(u64, u64)>,
    /// By price row: microdollars for input of the policy's requests, and for its summarizer's calls beside them.
    bills: Vec<Bill>,
}

#[derive(Debug, Serialize)]
struct Bill {
    row: String,
    microdollars: u64,
    summaries_microdollars: u64,
    cached_share: f64,
}

/// One price row's cache and till.
struct Till {
    simulator: Simulator,
    totals: Totals,
}

/// A request as the list of its messages.
#[derive(Default)]
struct Sent {
    messages: Vec<String>,
    /// Bytes up to the end of each message, separators included.
    ends: Vec<u64>,
    /// Up to where the last break left the prefix as it was: a client knows that place, and marks it for the cache.
    settled: usize,
}

/// Reads a trace from standard input and writes its figures.
pub(crate) fn bill(path: &Path, rows: &[String]) -> Result<(), String> {
    let workload = Workload::read(path)?;
    let table = PriceTable::builtin().map_err(|why| why.to_string())?;
    let mut tills = Vec::new();
    for row in rows {
        let row = table.row(row).map_err(|why| why.to_string())?;
        tills.push(Till { simulator: Simulator::new(row), totals: Totals::default() });
    }
    let mut lines = BufReader::new(stdin().lock()).lines();
    let mut next = || -> Result<Option<String>, String> {
        lines.next().transpose().map_err(|why| format!("the trace cannot be read: {why}"))
    };
    let head: Head = parse(&next()?.ok_or("an empty trace: the driver has failed")?)?;
    let mut figures = Figures {
        policy: head.policy,
        window: head.window,
        turns: 0,
        passes: 0,
        breaks: 0,
        new_bytes: 0,
        uncovered_bytes: 0,
        sent_bytes: 0,
        largest_tokens: 0,
        over_window: 0,
        verbatim_share: 0.0,
        verbatim_at_end: 0.0,
        summaries: 0,
        summary_input_bytes: 0,
        summary_output_bytes: 0,
        calls: Vec::new(),
        bills: Vec::new(),
    };
    let mut sent = Sent::default();
    let mut history = 0;
    // Messages of the record, by text; the workload never repeats one.
    let mut known: HashMap<u64, u64> = HashMap::new();
    for (at, turn) in workload.turns.iter().enumerate() {
        let new = turn.iter().map(|message| message.len() as u64 + 1).sum::<u64>() - u64::from(at == 0);
        history += new;
        figures.new_bytes += new;
        known.extend(turn.iter().map(|message| (hashed(message), message.len() as u64)));
        if at == 0 {
            continue;
        }
        let line = next()?.ok_or_else(|| format!("the trace ends after {} requests", at - 1))?;
        let request: Request = parse(&line)?;
        figures.take(&request, &mut sent, &mut tills)?;
        let verbatim: u64 = sent.messages.iter().filter_map(|message| known.get(&hashed(message))).sum();
        figures.verbatim_at_end = verbatim as f64 / history as f64;
        figures.verbatim_share += figures.verbatim_at_end;
    }
    if next()?.is_some() {
        return Err("the trace has more requests than the workload has turns".into());
    }
    figures.verbatim_share /= figures.turns as f64;
    figures.bills = tills.iter().map(|till| till.bill(&figures)).collect();
    let text = serde_json::to_string(&figures).map_err(|why| why.to_string())?;
    writeln!(stdout(), "{text}").map_err(|why| why.to_string())
}

fn parse<'a, T: serde::Deserialize<'a>>(line: &'a str) -> Result<T, String> {
    serde_json::from_str(line).map_err(|why| format!("a line of the trace: {why}"))
}

fn hashed(text: &str) -> u64 {
    let mut hash = DefaultHasher::new();
    text.hash(&mut hash);
    hash.finish()
}

impl Figures {
    /// Takes in one request.
    fn take(&mut self, request: &Request, sent: &mut Sent, tills: &mut [Till]) -> Result<(), String> {
        let keep = request.keep;
        if keep > sent.messages.len() {
            return Err(format!("request {} keeps more messages than there were", self.turns + 1));
        }
        let broken = keep < sent.messages.len();
        let before = size(&sent.messages);
        // Two messages that differ may begin alike.
        let alike = match (sent.messages.get(keep), request.messages.first()) {
            (Some(old), Some(new)) => old.bytes().zip(new.bytes()).take_while(|(a, b)| a == b).count() as u64,
            _ => 0,
        };
        let kept_end = keep.checked_sub(1).and_then(|last| sent.ends.get(last)).copied().unwrap_or(0);
        sent.messages.truncate(keep);
        sent.ends.truncate(keep);
        if broken {
            sent.settled = keep;
        }
        let mut segments = Vec::with_capacity(request.messages.len());
        let mut end = kept_end;
        for message in &request.messages {
            let start = end;
            end += message.len() as u64 + 1;
            segments.push(Segment {
                hash: hashed(message),
                bytes: end - start,
                // Differences of the count of a prefix, so that the sum is the count of the whole.
                tokens: counted(end - 1) - counted(start.saturating_sub(1)),
            });
            sent.ends.push(end);
            sent.messages.push(message.clone());
        }
        let bytes = size(&sent.messages);
        let covered = if broken { kept_end + alike } else { before };
        self.turns += 1;
        self.passes += u64::from(request.pass);
        self.breaks += u64::from(broken);
        self.sent_bytes += bytes;
        self.uncovered_bytes += bytes.saturating_sub(covered);
        self.largest_tokens = self.largest_tokens.max(counted(bytes));
        self.over_window += u64::from(counted(bytes) > self.window);
        self.summaries += request.summaries.len() as u64;
        self.calls.extend(&request.summaries);
        for (input, output) in &request.summaries {
            self.summary_input_bytes += input;
            self.summary_output_bytes += output;
        }
        let system = sent.messages.iter().take_while(|message| message.starts_with(r#"{"role":"system""#)).count();
        let marks = [system, sent.settled];
        for till in tills {
            let priced = Priced { common: keep, segments: &segments, marks: &marks, ..Priced::default() };
            let bill = till.simulator.feed(&priced);
            till.totals.add(&bill, self.window);
        }
        Ok(())
    }
}

impl Till {
    /// The bill, and what the summarizer's calls come to beside it: fresh prompts at the plain price, and their output.
    fn bill(&self, figures: &Figures) -> Bill {
        let row = self.simulator.row();
        let call = |(input, output): &(u64, u64)| {
            let input = counted(*input);
            row.input_cost(0, 0, input) + row.output_cost(counted(*output), input)
        };
        let summaries: Money = figures.calls.iter().map(call).sum();
        Bill {
            row: row.id.clone(),
            microdollars: self.totals.cost.microdollars(),
            summaries_microdollars: summaries.microdollars(),
            cached_share: self.totals.cached as f64 / self.totals.sent_tokens.max(1) as f64,
        }
    }
}
