//! The session everybody is driven over.

use std::path::Path;

use serde::Deserialize;
use serde_json::value::RawValue;

/// Messages by line of the workload; a model call follows every line but the first.
#[derive(Debug)]
pub(crate) struct Workload {
    pub(crate) turns: Vec<Vec<String>>,
}

#[derive(Deserialize)]
struct Line {
    messages: Vec<Box<RawValue>>,
}

impl Workload {
    /// The workload in the file at `path`, messages as the bytes they are.
    pub(crate) fn read(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path).map_err(|why| format!("{}: {why}", path.display()))?;
        let line = |(at, line): (usize, &str)| {
            let line: Line =
                serde_json::from_str(line).map_err(|why| format!("{}, line {}: {why}", path.display(), at + 1))?;
            Ok(line.messages.into_iter().map(|message| message.get().to_owned()).collect())
        };
        let turns: Vec<Vec<String>> = text.lines().enumerate().map(line).collect::<Result<_, String>>()?;
        if turns.len() < 2 {
            return Err(format!("{}: no turn after which a call would be made", path.display()));
        }
        Ok(Self { turns })
    }

    /// A chat request with all messages.
    pub(crate) fn body(&self) -> Vec<u8> {
        let messages: Vec<&str> = self.turns.iter().flatten().map(String::as_str).collect();
        format!(r#"{{"model":"stub-model","messages":[{}]}}"#, messages.join(",")).into_bytes()
    }
}

/// What the provider counts for a request of so many bytes: nine tenths of bytes/4.
pub(crate) const fn counted(bytes: u64) -> u64 {
    bytes * 9 / 40
}
