//! `recall`: from a reference back to the exact original.

use std::path::PathBuf;
use std::process::ExitCode;

use foreshorten::{
    core::{
        Compactor, Policy,
        digest::Digest,
        recall::{self, Found, RecallError},
        state::History,
        transcript::{PartRef, Transcript as _, text_of},
    },
    formats::{Format, WireTranscript, decode_media, parse_body, read_session},
    store::{FileStore, Stored},
};

use super::{failure::Failure, files};

/// Bring back the exact original of what a marker, preview or note stands for.
///
/// REF is what stands in a marker, preview or note. The text parts of an entry are joined by a line feed; a note
/// yields its entries as JSON lines in the format of the transcript.
#[derive(Debug, clap::Args)]
#[command(allow_negative_numbers = true)]
pub(crate) struct Args {
    /// The reference.
    #[arg(value_name = "REF", required_unless_present = "search", conflicts_with = "search")]
    reference: Option<String>,
    /// Format of the transcript; recognised when not given.
    #[arg(long, value_name = "F")]
    format: Option<Format>,
    /// The whole conversation: a request body or a recorded session.
    #[arg(long, value_name = "FILE")]
    transcript: PathBuf,
    /// The state of the session.
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// The folder of stored content.
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,
    /// First byte to print, moved back to a character boundary.
    #[arg(long, value_name = "N", default_value_t = 0)]
    offset: usize,
    /// Most bytes to print.
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Print one part only, counted from 0; images and files as their bytes.
    #[arg(long, value_name = "N")]
    part: Option<usize>,
    /// List where TEXT occurs in everything that is no longer verbatim: reference, byte, excerpt.
    #[arg(long, value_name = "TEXT")]
    search: Option<String>,
    /// Ignore letter case in --search.
    #[arg(long, requires = "search")]
    ignore_case: bool,
}

/// Most places a search lists.
const MAX_HITS: usize = 1_000;

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let transcripts = read(args)?;
    let (state, reset) = files::state(args.state.as_deref())?;
    if let Some(reset) = reset {
        say!("{reset}");
    }
    let store = match &args.store {
        Some(root) if root.is_dir() => Some(FileStore::open(root)?),
        _ => None,
    };
    let policy = Policy::default();
    let mut sessions: Vec<Session<'_>> = Vec::new();
    for transcript in &transcripts {
        let mut compactor = match &state {
            Some(state) => Compactor::resume(&policy, state.clone()),
            None => Compactor::new(&policy),
        };
        let known = compactor.sync(transcript) != History::Foreign && state.is_some();
        sessions.push(Session { transcript, compactor, known });
    }
    // The conversation that the state belongs to is asked first, and alone when it knows the answer.
    sessions.sort_by_key(|session| !session.known);
    match (&args.search, &args.reference) {
        (Some(needle), _) => search(args, needle, &sessions),
        (None, reference) => bring_back(args, reference.as_deref().unwrap_or_default(), &sessions, store.as_ref()),
    }
}

/// A conversation of the transcript, with the decisions about it.
struct Session<'a> {
    transcript: &'a WireTranscript,
    compactor: Compactor<&'a Policy>,
    /// The state belongs to it.
    known: bool,
}

fn search(args: &Args, needle: &str, sessions: &[Session<'_>]) -> Result<ExitCode, Failure> {
    let mut lines = String::new();
    for Session { transcript, compactor, .. } in sessions {
        let (columns, ledger) = (compactor.columns(), compactor.ledger());
        let hits = recall::search(needle, args.ignore_case, MAX_HITS, *transcript, columns, ledger);
        if hits.len() == MAX_HITS {
            say!("only the first {MAX_HITS} places are listed");
        }
        for hit in hits {
            let reference = Digest::of_entry(*transcript, hit.entry);
            lines.push_str(&format!("{reference}\t{}\t{}\n", hit.offset, hit.excerpt));
        }
    }
    files::print(lines.as_bytes())
}

fn bring_back(
    args: &Args,
    reference: &str,
    sessions: &[Session<'_>],
    store: Option<&FileStore>,
) -> Result<ExitCode, Failure> {
    let mut found: Vec<(&WireTranscript, usize, Digest, bool)> = Vec::new();
    for Session { transcript, compactor, known } in sessions {
        match recall::resolve(reference, *transcript, compactor.columns(), compactor.ledger()) {
            Ok(Found::Note { .. }) if args.part.is_some() => {
                return Err(Failure::Usage(
                    "--part does not apply to a note: it stands for entries, not for parts".into(),
                ));
            }
            Ok(Found::Note { entries }) => {
                let text: String = transcript.entries_as_json(&entries).into_iter().map(|line| line + "\n").collect();
                return page(args, text.as_bytes());
            }
            Ok(Found::Entry { entry, exact, digest }) => {
                found.push((*transcript, entry, digest, exact));
                if *known {
                    break;
                }
            }
            // Several that say the same are not ambiguous: any of them is what was meant.
            Err(RecallError::Ambiguous(entries)) => {
                found.extend(
                    entries.into_iter().map(|entry| (*transcript, entry, Digest::of_entry(*transcript, entry), true)),
                );
            }
            _ => {}
        }
    }
    let mut seen = std::collections::HashSet::new();
    let mut candidates: Vec<Digest> = found.iter().map(|found| found.2).collect();
    candidates.retain(|digest| seen.insert(*digest));
    if candidates.len() > 1 {
        let digests: Vec<String> = candidates.iter().map(ToString::to_string).collect();
        return Err(Failure::Ambiguous(format!(
            "`{reference}` stands for {} results; ask for one of {}",
            digests.len(),
            digests.join(", ")
        )));
    }
    if let Some(&(transcript, entry, ..)) = found.iter().find(|found| found.3) {
        return match args.part {
            Some(part) => one_part(transcript, entry, part),
            None => page(args, text_of(transcript, entry).as_bytes()),
        };
    }
    let digest = candidates.first().copied().or_else(|| Digest::parse(reference));
    if let (Some(store), Some(digest)) = (store, digest)
        && let Some(stored) = store.get_entry(&digest)?
    {
        return match args.part {
            Some(part) => stored_part(&stored, part),
            None => page(args, stored.text()),
        };
    }
    Err(Failure::NotFound(if candidates.is_empty() {
        format!("nothing is known under `{reference}`")
    } else {
        format!("`{reference}` stood for content that the transcript no longer holds, and no store has it")
    }))
}

/// The conversations of the file: of a request body one, of a session any number.
fn read(args: &Args) -> Result<Vec<WireTranscript>, Failure> {
    let bytes = files::read(&args.transcript)?;
    if let Ok(body) = parse_body(bytes.clone(), args.format) {
        return Ok(vec![body.transcript().clone()]);
    }
    let read = read_session(bytes, args.format)
        .map_err(|error| Failure::Input(format!("{}: {error}", args.transcript.display())))?;
    Ok(read.into_iter().map(|conversation| conversation.transcript).collect())
}

fn one_part(transcript: &WireTranscript, entry: usize, part: usize) -> Result<ExitCode, Failure> {
    let parts = transcript.entry(entry).parts as usize;
    if part >= parts {
        return Err(no_part(part, parts));
    }
    match transcript.part(entry, part) {
        PartRef::Text(text) => files::print(text.as_bytes()),
        // A URL or the id of an upload has no media type, and is printed as it stands.
        PartRef::Image(media) | PartRef::File(media) if media.media_type.is_empty() => files::print(media.data),
        PartRef::Image(media) | PartRef::File(media) => payload(media.data),
        PartRef::Opaque(data) => files::print(data),
    }
}

fn stored_part(stored: &Stored, part: usize) -> Result<ExitCode, Failure> {
    match stored.part(part) {
        Some((text, true)) => files::print(text),
        Some((data, false)) => payload(data),
        None => Err(no_part(part, stored.parts())),
    }
}

fn payload(data: &[u8]) -> Result<ExitCode, Failure> {
    files::print(&decode_media(data).unwrap_or_else(|| data.to_vec()))
}

fn no_part(part: usize, parts: usize) -> Failure {
    Failure::NotFound(format!("there is no part {part}; there are {parts}"))
}

/// Prints the page asked for; where the next one begins goes to stderr.
fn page(args: &Args, content: &[u8]) -> Result<ExitCode, Failure> {
    let Ok(text) = std::str::from_utf8(content) else { return files::print(content) };
    let page = recall::page(text, args.offset, args.limit.unwrap_or(usize::MAX));
    if let Some(next) = page.next {
        say!("{} of {} bytes; the next page begins at --offset {next}", page.text.len(), page.total);
    }
    files::print(page.text.as_bytes())
}
