//! The log of a session: messages a line each, and after those of one commit the line that makes it one.
//!
//! ```text
//! {"session":"s1","format":1}
//! {"entries":[…]}                       a message, as Message::to_line writes it
//! {"commit":{"version":1,"run":"r1","messages":1,"bytes":…,"digest":"…",…}}
//! ```
//!
//! What stands after the last commit line was never acknowledged: it is not there.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use foreshorten_core::digest::Digest;
use serde::{Deserialize, Serialize};

use super::{Meta, Segment, Version};
use crate::record::Message;

/// The format of the log, in its first line.
const FORMAT: u32 = 1;
const COMMIT: &[u8] = b"{\"commit\":";

/// The line at the top.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Head {
    session: String,
    format: u32,
}

/// The line that ends a commit. It says all that the next one needs to know, so that none reads the whole log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct CommitLine {
    pub(super) version: Version,
    pub(super) run: String,
    /// Messages of this commit, and the bytes of their lines.
    pub(super) messages: usize,
    pub(super) bytes: u64,
    /// Digest of those bytes.
    pub(super) digest: Digest,
    /// They begin a segment; without it and without messages or meta no segment is touched.
    pub(super) begins: bool,
    /// Messages of the session, these included.
    pub(super) total: usize,
    /// The run whose segment is open for more.
    pub(super) open: Option<String>,
    /// The state at the end of the run.
    pub(super) meta: Option<Meta>,
    /// Where the checkpoint stands, if there is one.
    pub(super) checkpoint: Option<Pointer>,
}

#[derive(Deserialize)]
struct Wrapped {
    commit: CommitLine,
}

/// A checkpoint: which of the two files holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Pointer {
    pub(super) slot: u8,
    pub(super) bytes: u64,
    pub(super) digest: Digest,
}

/// The end of a log: its last commit, and the byte after it.
#[derive(Clone, Debug, Default)]
pub(super) struct End {
    pub(super) last: CommitLine,
    pub(super) at: u64,
}

/// A whole log.
#[derive(Debug, Default)]
pub(super) struct Replayed {
    pub(super) segments: Vec<Segment>,
    pub(super) end: End,
}

/// The first line of the log of a session.
pub(super) fn head(session: &str) -> String {
    let head = Head { session: session.into(), format: FORMAT };
    serde_json::to_string(&head).unwrap_or_default() + "\n"
}

/// The lines of messages, to which [`seal`] adds the one of the commit.
pub(super) fn lines(messages: &[Arc<Message>]) -> String {
    let mut out = String::new();
    for message in messages {
        out.push_str(&message.to_line());
        out.push('\n');
    }
    out
}

/// Ends the lines of a commit, which are those of `out` after `from`.
pub(super) fn seal(out: &mut String, from: usize, mut line: CommitLine) -> CommitLine {
    line.bytes = (out.len() - from) as u64;
    line.digest = Digest::of(&out.as_bytes()[from..]);
    out.push_str("{\"commit\":");
    out.push_str(&serde_json::to_string(&line).unwrap_or_default());
    out.push_str("}\n");
    line
}

/// Finds the last commit of a log from its end, reading little more than it and what was written after it.
pub(super) fn end(file: &mut File, path: &Path) -> io::Result<End> {
    let length = file.seek(SeekFrom::End(0))?;
    // Bytes of the file from `from` on, as far back as was needed.
    let (mut from, mut tail) = (length, Vec::new());
    let mut to = tail.len();
    loop {
        let feed = tail[..to].iter().rposition(|&byte| byte == b'\n');
        let start = tail[..feed.unwrap_or(0)].iter().rposition(|&byte| byte == b'\n');
        match (feed, start) {
            (Some(feed), start) if start.is_some() || from == 0 => {
                let start = start.map_or(0, |at| at + 1);
                let line = &tail[start..feed];
                let last = commit_line(line);
                if last.is_none() && line.starts_with(COMMIT) && !line.contains(&0) {
                    let what = format!("{}: the last commit was altered: `{}`", path.display(), shown(line));
                    return Err(io::Error::new(io::ErrorKind::InvalidData, what));
                }
                if let Some(last) = last {
                    let at = from + feed as u64 + 1;
                    let mut group = vec![0; usize::try_from(last.bytes).unwrap_or(usize::MAX).min(at as usize)];
                    let begin = (from + start as u64).saturating_sub(last.bytes);
                    file.seek(SeekFrom::Start(begin))?;
                    file.read_exact(&mut group)?;
                    if Digest::of(&group) == last.digest {
                        return Ok(End { last, at });
                    }
                    if !group.contains(&0) {
                        let what = format!("{}: the messages of commit {} were altered", path.display(), last.version);
                        return Err(io::Error::new(io::ErrorKind::InvalidData, what));
                    }
                }
                // Half of a commit, or what a power cut made of it: the one before counts.
                to = start;
                if from == 0 && start == 0 {
                    return Ok(End::default());
                }
            }
            _ if from == 0 => return Ok(End::default()),
            _ => {
                let more = CHUNK.max(tail.len() as u64).min(from);
                from -= more;
                let mut chunk = vec![0; more as usize];
                file.seek(SeekFrom::Start(from))?;
                file.read_exact(&mut chunk)?;
                to += chunk.len();
                chunk.append(&mut tail);
                tail = chunk;
            }
        }
    }
}

/// Read at once from the end of a log: more than a commit line without meta takes.
const CHUNK: u64 = 4 << 10;

/// Reads a whole log.
pub(super) fn replay(file: &mut File, path: &Path, session: &str) -> io::Result<Replayed> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    file.read_to_end(&mut bytes)?;
    let wrong = |number: usize, what: &dyn std::fmt::Display| {
        io::Error::new(io::ErrorKind::InvalidData, format!("{}:{number}: {what}", path.display()))
    };
    let mut replayed = Replayed::default();
    let (mut at, mut group, mut pending) = (0usize, 0usize, Vec::new());
    let mut number = 0;
    while let Some(length) = bytes[at..].iter().position(|&byte| byte == b'\n') {
        let line = &bytes[at..at + length];
        number += 1;
        let start = at;
        at += length + 1;
        if number == 1 {
            let head: Head = match serde_json::from_slice(line) {
                Ok(head) => head,
                // The very first write, half done.
                Err(_) if !bytes.windows(COMMIT.len()).any(|window| window == COMMIT) => return Ok(replayed),
                Err(error) => return Err(wrong(1, &format!("not the head of a session: {error}"))),
            };
            if head.format != FORMAT {
                return Err(wrong(1, &format!("a session of format {}, where {FORMAT} is read", head.format)));
            }
            if head.session != session {
                return Err(wrong(1, &"this is the log of another session"));
            }
            group = at;
            continue;
        }
        if !line.starts_with(COMMIT) {
            pending.push((number, line));
            continue;
        }
        let last_line = !bytes[at..].contains(&b'\n');
        let commit = commit_line(line).ok_or_else(|| wrong(number, &"not a commit"));
        let commit = match commit {
            Err(_) if last_line && line.contains(&0) => return Ok(replayed),
            commit => commit?,
        };
        if commit.bytes != (start - group) as u64 || Digest::of(&bytes[group..start]) != commit.digest {
            if last_line && bytes[group..start].contains(&0) {
                return Ok(replayed);
            }
            // The line that can be read least is likely the one.
            let place = pending.iter().find(|(_, line)| message(line).is_err()).map_or(number, |bad| bad.0);
            return Err(wrong(place, &format!("the messages of commit {} were altered", commit.version)));
        }
        if commit.begins {
            replayed.segments.push(Segment { run: commit.run.clone(), ..Segment::default() });
        }
        if commit.messages != pending.len() {
            return Err(wrong(number, &format!("a commit of {} messages after {}", commit.messages, pending.len())));
        }
        match replayed.segments.last_mut() {
            Some(segment) => {
                for (number, line) in pending.drain(..) {
                    segment.messages.push(Arc::new(message(line).map_err(|what| wrong(number, &what))?));
                }
                if commit.meta.is_some() {
                    segment.meta.clone_from(&commit.meta);
                }
            }
            None if !pending.is_empty() => return Err(wrong(number, &"messages that belong to no run")),
            None => {}
        }
        replayed.end = End { last: commit, at: at as u64 };
        group = at;
    }
    Ok(replayed)
}

fn message(line: &[u8]) -> Result<Message, String> {
    let text = std::str::from_utf8(line).map_err(|error| error.to_string())?;
    Message::from_line(text).map_err(|error| error.to_string())
}

fn commit_line(line: &[u8]) -> Option<CommitLine> {
    line.starts_with(COMMIT).then(|| serde_json::from_slice::<Wrapped>(line).ok()).flatten().map(|line| line.commit)
}

/// The beginning of a line, for an error.
fn shown(line: &[u8]) -> String {
    String::from_utf8_lossy(line).chars().take(60).collect()
}
