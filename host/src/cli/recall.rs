//! `recall`: from a reference back to the exact original.

use std::path::PathBuf;
use std::process::ExitCode;

use foreshorten::{
    core::{
        Compactor, Policy,
        digest::Digest,
        recall::{self, Found, RecallError},
        transcript::{PartRef, Transcript as _, text_of},
    },
    formats::{Format, WireTranscript, decode_media, parse_body, read_session},
    store::FileStore,
};

use super::{failure::Failure, files};

/// Prints the exact original of what a reference replaced.
///
/// REF is what stands in a marker, preview or note. The text parts of an entry are joined by a line feed; a note
/// yields its entries as JSON lines in the format of the transcript.
#[derive(Debug, clap::Args)]
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
        eprintln!("foreshorten: {reset}");
    }
    let store = match &args.store {
        Some(root) if root.is_dir() => Some(FileStore::open(root)?),
        _ => None,
    };
    let policy = Policy::default();
    let mut missing = None;
    let mut lines = String::new();
    for transcript in &transcripts {
        let mut compactor = match &state {
            Some(state) => Compactor::resume(&policy, state.clone()),
            None => Compactor::new(&policy),
        };
        compactor.sync(transcript);
        let (columns, ledger) = (compactor.columns(), compactor.ledger());
        if let Some(needle) = &args.search {
            for hit in recall::search(needle, args.ignore_case, MAX_HITS, transcript, columns, ledger) {
                lines.push_str(&format!(
                    "{}\t{}\t{}\n",
                    Digest::of_entry(transcript, hit.entry),
                    hit.offset,
                    hit.excerpt
                ));
            }
            continue;
        }
        let reference = args.reference.as_deref().unwrap_or_default();
        match recall::resolve(reference, transcript, columns, ledger) {
            Ok(Found::Note { entries }) => {
                let text: String = transcript.entries_as_json(&entries).into_iter().map(|line| line + "\n").collect();
                return page(args, text.as_bytes());
            }
            Ok(Found::Entry { entry, exact, digest }) => {
                if let Some(part) = args.part {
                    return one_part(transcript, entry, part);
                }
                if exact {
                    return page(args, text_of(transcript, entry).as_bytes());
                }
                if let Some(content) = store.as_ref().map(|store| store.get(&digest)).transpose()?.flatten() {
                    return page(args, &content);
                }
                missing = Some(Failure::NotFound(format!(
                    "`{reference}` stood for content that the transcript no longer holds, and no store has it"
                )));
            }
            Ok(_) => {}
            Err(RecallError::Ambiguous(entries)) => {
                let digests: Vec<String> =
                    entries.iter().map(|&entry| Digest::of_entry(transcript, entry).to_string()).collect();
                missing = Some(Failure::Ambiguous(format!(
                    "`{reference}` stands for {} results; ask for one of {}",
                    entries.len(),
                    digests.join(", ")
                )));
            }
            Err(_) => {}
        }
    }
    if args.search.is_some() {
        return files::print(lines.as_bytes());
    }
    if missing.is_none()
        && let (Some(store), Some(digest)) = (&store, args.reference.as_deref().and_then(Digest::parse))
        && let Some(content) = store.get(&digest)?
    {
        return page(args, &content);
    }
    Err(missing.unwrap_or_else(|| {
        Failure::NotFound(format!("nothing is known under `{}`", args.reference.as_deref().unwrap_or_default()))
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
    if part >= transcript.entry(entry).parts as usize {
        return Err(Failure::NotFound(format!("there is no part {part}; there are {}", transcript.entry(entry).parts)));
    }
    match transcript.part(entry, part) {
        PartRef::Text(text) => files::print(text.as_bytes()),
        PartRef::Image(media) | PartRef::File(media) => {
            files::print(&decode_media(media.data).unwrap_or_else(|| media.data.to_vec()))
        }
        PartRef::Opaque(data) => files::print(data),
    }
}

/// Prints the page asked for; where the next one begins goes to stderr.
fn page(args: &Args, content: &[u8]) -> Result<ExitCode, Failure> {
    let Ok(text) = std::str::from_utf8(content) else { return files::print(content) };
    let page = recall::page(text, args.offset, args.limit.unwrap_or(usize::MAX));
    if let Some(next) = page.next {
        eprintln!("foreshorten: {} of {} bytes; the next page begins at --offset {next}", page.text.len(), page.total);
    }
    files::print(page.text.as_bytes())
}
