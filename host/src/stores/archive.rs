//! Transcripts and tool results as files for people.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use foreshorten_core::digest::Digest;
use foreshorten_core::transcript::Part;
use serde_json::json;

use super::atomic::{about, open_plain, private_folder, sync_folder};
use super::file::blocking;
use super::names::{loose_name, strict_name, with_digest};
use super::{ArchiveContext, ArchiveRef, CompactionArchive, StoreError, Stored};
use crate::formats::decode_media;
use crate::record::{Message, Record};

/// An archive in a folder, laid out as the earlier proposal has it:
///
/// ```text
/// {root}/transcripts/{session_id}/{run_id}-{timestamp}.jsonl
/// {root}/tool-results/{session_id}/{call_id}.txt
/// ```
///
/// Ids that are no plain names are made into such, without collisions. Nothing is ever overwritten: other content
/// under a reused call id goes to `{call_id}~{digest}.txt`, equal content is kept once. Images and files of a result
/// lie beside its text, `{call_id}.1.png`. Files are whole or not there, mode 0600 in folders of mode 0700, and hold
/// what the tools printed, unredacted.
///
/// A transcript is a line that says whose it is and why it was saved, then a message a line, as
/// [`Message::to_line`] writes them; [`read_archived`] reads it back.
///
/// ```
/// use foreshorten::record::{Message, Record};
/// use foreshorten::stores::{ArchiveContext, CompactionArchive, FileArchive, read_archived};
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let folder = tempfile::tempdir()?;
/// let archive = FileArchive::open(folder.path())?;
/// let record: Record = [Message::user("hi")].into_iter().collect();
/// let place = archive.save_transcript(&record, ArchiveContext::new("s1", "r1"), "summarize_history").await?;
/// assert_eq!(read_archived(place.0.as_ref())?.messages(), record.messages());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct FileArchive {
    root: PathBuf,
    clock: fn() -> SystemTime,
}

impl FileArchive {
    /// Opens the archive at `root`, making the folder when it is not there.
    ///
    /// # Errors
    /// When the folder cannot be made.
    pub fn open(root: &Path) -> io::Result<Self> {
        private_folder(root).map_err(about(root))?;
        Ok(Self { root: root.into(), clock: SystemTime::now })
    }

    /// The same archive by another clock: for tests, and for what must be repeatable.
    #[must_use]
    pub fn with_clock(mut self, clock: fn() -> SystemTime) -> Self {
        self.clock = clock;
        self
    }
}

#[async_trait]
impl CompactionArchive for FileArchive {
    async fn save_transcript(
        &self,
        record: &Record,
        context: ArchiveContext<'_>,
        reason: &str,
    ) -> Result<ArchiveRef, StoreError> {
        let time = timestamp((self.clock)());
        let head = json!({"archived": {
            "session": context.session, "run": context.run, "reason": reason, "time": time,
            "messages": record.messages().len(),
        }});
        let folder = self.root.join("transcripts").join(strict_name(context.session));
        let name = format!("{}-{time}", loose_name(context.run));
        // A copy of a record costs a pointer a message.
        let record = record.clone();
        let save = move || {
            let mut lines = format!("{head}\n");
            for message in record.messages() {
                lines.push_str(&message.to_line());
                lines.push('\n');
            }
            save(&folder, &name, "jsonl", lines.as_bytes())
        };
        Ok(reference(&blocking(save).await??))
    }

    async fn save_tool_result(
        &self,
        output: &Stored,
        call_id: &str,
        context: ArchiveContext<'_>,
    ) -> Result<ArchiveRef, StoreError> {
        let folder = self.root.join("tool-results").join(strict_name(context.session));
        let (name, output) = (loose_name(call_id), output.clone());
        let save = move || {
            // What belongs to a result is there before the result is.
            for (number, part) in output.media().iter().enumerate() {
                let (kind, data) = match part {
                    Part::Image(kind, data) | Part::File(kind, _, data) => (kind.as_str(), data),
                    Part::Opaque(data) => ("", data),
                    _ => continue,
                };
                let bytes = decode_media(data).filter(|_| !kind.is_empty());
                let name = format!("{name}.{}", number + 1);
                save(&folder, &name, extension(kind), bytes.as_ref().unwrap_or(data))?;
            }
            save(&folder, &name, "txt", output.text())
        };
        Ok(reference(&blocking(save).await??))
    }
}

/// Reads a transcript that [`FileArchive`] saved.
///
/// # Errors
/// When it cannot be read, or a line is no message; the error names file and line.
pub fn read_archived(path: &Path) -> io::Result<Record> {
    let text = fs::read_to_string(path).map_err(about(path))?;
    let message = |(number, line): (usize, &str)| {
        Message::from_line(line).map_err(|error| {
            let what = format!("{}:{}: {error}", path.display(), number + 1);
            io::Error::new(io::ErrorKind::InvalidData, what)
        })
    };
    text.lines().enumerate().filter(|line| line.0 > 0 || !line.1.starts_with("{\"archived\"")).map(message).collect()
}

fn reference(path: &Path) -> ArchiveRef {
    ArchiveRef(path.to_string_lossy().into_owned())
}

/// Writes a new file; one that holds the same already is taken for it, one that holds something else stays.
fn save(folder: &Path, name: &str, extension: &str, content: &[u8]) -> io::Result<PathBuf> {
    private_folder(folder).map_err(about(folder))?;
    let names = [name.to_owned(), with_digest(name, &Digest::of(content))];
    for name in names {
        let path = folder.join(format!("{name}.{extension}"));
        if holds(&path, content)? {
            return Ok(path);
        }
        let mut file = tempfile::Builder::new().prefix(".save-").tempfile_in(folder).map_err(about(folder))?;
        file.write_all(content).and_then(|()| file.as_file().sync_all()).map_err(about(&path))?;
        match file.persist_noclobber(&path) {
            Ok(_) => {
                sync_folder(folder).map_err(about(folder))?;
                return Ok(path);
            }
            Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => {
                if holds(&path, content)? {
                    return Ok(path);
                }
            }
            Err(error) => return Err(about(&path)(error.error)),
        }
    }
    let what = format!("{}: other content lies under the name of this", folder.join(name).display());
    Err(io::Error::new(io::ErrorKind::AlreadyExists, what))
}

fn holds(path: &Path, content: &[u8]) -> io::Result<bool> {
    let read = |mut file: File| {
        if file.metadata()?.len() != content.len() as u64 {
            return Ok(false);
        }
        let mut there = Vec::with_capacity(content.len());
        io::Read::read_to_end(&mut file, &mut there)?;
        Ok(there == content)
    };
    open_plain(path).and_then(|file| file.map_or(Ok(false), read)).map_err(about(path))
}

fn extension(media_type: &str) -> &'static str {
    match media_type {
        "image/png" => "png",
        "image/jpeg" => "jpg",
        "image/gif" => "gif",
        "image/webp" => "webp",
        "application/pdf" => "pdf",
        _ => "bin",
    }
}

/// A moment as `20261130T003520Z`, in UTC.
fn timestamp(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (mut days, second) = (seconds / 86_400, seconds % 86_400);
    let leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let mut year = 1970;
    while days >= 365 + u64::from(leap(year)) && year < 9_999 {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let lengths = [31, 28 + u64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 1;
    for length in lengths {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    let (hour, minute) = (second / 3_600, second / 60 % 60);
    format!("{year:04}{month:02}{:02}T{hour:02}{minute:02}{:02}Z", days + 1, second % 60)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn archive(folder: &Path) -> FileArchive {
        FileArchive::open(folder).unwrap().with_clock(|| UNIX_EPOCH + Duration::from_secs(1_796_000_000))
    }

    #[test]
    fn moments_are_written_as_utc() {
        for (seconds, text) in [
            (0, "19700101T000000Z"),
            (951_782_399, "20000228T235959Z"),
            (951_782_400, "20000229T000000Z"),
            (1_796_000_000, "20261130T005320Z"),
            (4_107_542_399, "21000228T235959Z"),
            (4_107_542_400, "21000301T000000Z"),
        ] {
            assert_eq!(timestamp(UNIX_EPOCH + Duration::from_secs(seconds)), text);
        }
    }

    #[tokio::test]
    async fn files_lie_where_the_proposal_says() {
        let folder = tempfile::tempdir().unwrap();
        let archive = archive(folder.path());
        let context = ArchiveContext::new("s1", "r1");
        let record: Record = [Message::user("a\nb"), Message::result("call_0", "x")].into_iter().collect();
        let transcript = archive.save_transcript(&record, context, "tool_result_budget").await.unwrap();
        assert_eq!(transcript.0, folder.path().join("transcripts/s1/r1-20261130T005320Z.jsonl").to_str().unwrap());
        assert_eq!(read_archived(transcript.0.as_ref()).unwrap().messages(), record.messages());
        let result = archive.save_tool_result(&Stored::of(&record, 1), "call_0", context).await.unwrap();
        assert_eq!(result.0, folder.path().join("tool-results/s1/call_0.txt").to_str().unwrap());
        assert_eq!(fs::read(&result.0).unwrap(), b"x");
    }

    #[tokio::test]
    async fn a_reused_call_id_overwrites_nothing_and_equal_content_is_kept_once() {
        let folder = tempfile::tempdir().unwrap();
        let archive = archive(folder.path());
        let context = ArchiveContext::new("../s", "r");
        let mut places = Vec::new();
        for text in ["one", "two", "one", "two"] {
            let output = Stored::whole(text.into());
            let place = archive.save_tool_result(&output, "../call/0", context).await.unwrap();
            assert_eq!(fs::read_to_string(&place.0).unwrap(), text);
            assert!(Path::new(&place.0).canonicalize().unwrap().starts_with(folder.path().canonicalize().unwrap()));
            places.push(place);
        }
        assert_eq!((&places[0], &places[1]), (&places[2], &places[3]));
        assert_ne!(places[0], places[1]);
    }

    #[tokio::test]
    async fn images_lie_beside_the_text_as_images() {
        use foreshorten_core::transcript::Entry;
        let folder = tempfile::tempdir().unwrap();
        let entry = Entry::tool_result("c", "seen").with(Part::Image("image/png".into(), b"aGk=".to_vec()));
        let record: Record = [Message::of(vec![entry])].into_iter().collect();
        let context = ArchiveContext::new("s", "r");
        let place = archive(folder.path()).save_tool_result(&Stored::of(&record, 0), "c", context).await.unwrap();
        assert_eq!(fs::read(&place.0).unwrap(), b"seen");
        assert_eq!(fs::read(Path::new(&place.0).with_file_name("c.1.png")).unwrap(), b"hi");
    }

    #[test]
    fn a_line_that_is_no_message_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.jsonl");
        fs::write(&path, "{\"archived\":{}}\n{\"entries\":[]}\nrubbish\n").unwrap();
        let error = read_archived(&path).unwrap_err().to_string();
        assert!(error.contains("t.jsonl:3:"), "{error}");
    }
}
