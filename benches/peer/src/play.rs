//! This project's policy, driven as an agent drives it: a view, the provider's count of it, the next turn.

use std::io::{BufWriter, stdout};
use std::path::Path;

use foreshorten::formats::{Format, ToolsEdit, parse_body};
use foreshorten::options::PolicyOptions;
use foreshorten_core::transcript::{Transcript, Until};
use foreshorten_core::{Compactor, Effect, Finish, Step, SummaryReply, Turn};

use crate::trace::{Head, Writer, size};
use crate::workload::{Workload, counted};

/// Characters of every summary, for all policies.
const SUMMARY_CHARS: usize = 4_000;

/// What fills a summary: words, since a tokenizer does not take a run of one letter for text.
const FILLER: &str = "what was done so far is noted here, and what is still to do; ";

/// Plays the workload and writes the trace to standard output.
pub(crate) fn play(path: &Path, name: &str, window: u64, options: &PolicyOptions) -> Result<(), String> {
    let workload = Workload::read(path)?;
    let policy = options.build(Some(window), "stub-model", true, true).map_err(|why| why.to_string())?;
    let body = parse_body(workload.body(), Some(Format::OpenAiChat)).map_err(|why| why.to_string())?;
    let whole = body.transcript();
    let mut trace = Writer::new(BufWriter::new(stdout().lock()), &Head { policy: name.into(), window })?;
    let mut compactor = Compactor::new(&policy);
    let mut written = 0;
    let mut refused = Vec::new();
    let mut messages: usize = workload.turns.first().map_or(0, Vec::len);
    let mut entries = 0;
    for turn in workload.turns.iter().skip(1) {
        messages += turn.len();
        while entries < whole.len() && whole.message_of(entries).is_some_and(|message| message < messages) {
            entries += 1;
        }
        let record = Until { whole, len: entries };
        compactor.sync(&record);
        compactor.begin(&record, Turn { scope: "peer", window: Some(window), can_summarize: true, ..Turn::default() });
        let mut summaries = Vec::new();
        loop {
            match compactor.poll(&record) {
                Step::Done(_) => break,
                Step::Effect(Effect::Summarize(request)) => {
                    written += 1;
                    let prior = request.prior.as_ref().map_or(0, String::len);
                    summaries.push(((request.text.len() + prior) as u64, SUMMARY_CHARS as u64));
                    let text = summary(request.sections, written, (request.max_chars as usize).min(SUMMARY_CHARS));
                    compactor.handle_summary(&record, Ok(SummaryReply { text, finish: Finish::Complete }));
                }
                Step::Effect(Effect::Archive { .. }) => compactor.handle_archived(true),
                Step::Effect(_) => compactor.handle_proposals(&record, Vec::new()),
            }
        }
        let pieces: Vec<_> = compactor.view().pieces().collect();
        let view = body.write(&pieces, ToolsEdit::Keep);
        let sent = split(&view.bytes, &view.message_starts)?;
        let count = counted(size(&sent));
        trace.request(sent, compactor.outcome().compacted, summaries)?;
        // As in an agent that runs: what is refused teaches nothing, and the turns go on.
        if let Err(why) = compactor.handle_usage(count) {
            refused.push(format!("{count} ({why:?})"));
        }
    }
    if let Some(first) = refused.first() {
        eprintln!("{name} at {window}: {} counts of the provider were refused, the first {first}", refused.len());
    }
    Ok(())
}

/// The messages of a written chat body, whose last member is the list of them.
fn split(bytes: &[u8], starts: &[usize]) -> Result<Vec<String>, String> {
    let ends = starts.iter().skip(1).map(|next| next - 1).chain([bytes.len().saturating_sub(2)]);
    let message = |(start, end): (&usize, usize)| {
        let bytes = bytes.get(*start..end).unwrap_or_default();
        String::from_utf8(bytes.to_vec()).map_err(|_| "a message that is no UTF-8".to_owned())
    };
    starts.iter().zip(ends).map(message).collect()
}

/// A summary that every judge of summaries takes, of exactly so many characters, different each time.
fn summary(sections: &[&str], number: usize, chars: usize) -> String {
    let mut text = String::new();
    for section in sections {
        text.push_str(&format!("## {section}\nfold {number}\n"));
    }
    text.extend(FILLER.chars().cycle().take(chars.saturating_sub(text.len())));
    text.truncate(chars);
    text
}
