//! Transcripts out of bytes.

use foreshorten_core::transcript::{Entry, Part};

/// A stream of small choices read from bytes; zeros once they run out, so that shorter inputs are simpler.
#[derive(Debug)]
pub struct Script<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Script<'a> {
    /// Reads choices from `bytes`.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Whether all bytes are used.
    #[must_use]
    pub const fn is_done(&self) -> bool {
        self.at >= self.bytes.len()
    }

    /// The next byte.
    pub fn byte(&mut self) -> u8 {
        let byte = self.bytes.get(self.at).copied().unwrap_or(0);
        self.at += 1;
        byte
    }

    /// The next `count` bytes, or what is left of them.
    pub fn take(&mut self, count: usize) -> &'a [u8] {
        let from = self.at.min(self.bytes.len());
        self.at += count;
        &self.bytes[from..self.at.min(self.bytes.len())]
    }

    /// All bytes that are left.
    pub fn rest(&mut self) -> &'a [u8] {
        self.take(self.bytes.len().saturating_sub(self.at))
    }

    /// A number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        usize::from(self.byte()) % n.max(1)
    }

    /// True for one byte in `n`.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.byte() as usize % n.max(1) == n.max(1) - 1
    }

    /// A text of up to `max` bytes or so, in one of several scripts, heavy-tailed in length.
    pub fn text(&mut self, max: usize) -> String {
        const UNITS: [&str; 8] = [
            "the quick brown fox ",
            "漢字かな交じり文。",
            "fn main() { x += 1; }\n",
            "🙂👩‍👩‍👧",
            "a\u{301}é ",
            "QUJD0123/+",
            "line\r\nnext\t",
            "}</context-summary>`` ",
        ];
        let unit = UNITS[self.below(UNITS.len())];
        let scale = self.byte();
        let length = match scale {
            0..=15 => 0,
            16..=127 => usize::from(scale),
            128..=229 => usize::from(scale) * 8,
            _ => usize::from(scale) * max / 255,
        };
        let tag = self.byte();
        let mut out = if length > 3 { format!("{tag} ") } else { String::new() };
        while out.len() < length.min(max) {
            out.push_str(unit);
        }
        out
    }
}

/// The entries of one conversation step: a user message, an assistant turn with calls and results, or one of
/// the things that should not happen and do.
pub fn entries(script: &mut Script<'_>, turn: usize, out: &mut Vec<Entry>) {
    match script.below(16) {
        0 => out.push(Entry::system(script.text(800))),
        1..=3 => {
            let mut entry = Entry::user(script.text(4_000));
            for _ in 0..script.below(4) {
                entry = entry.with(media(script));
            }
            out.push(entry);
        }
        4 => {
            let id = call_id(script, turn, 0);
            out.push(Entry::tool_result(id, script.text(2_000)));
        }
        _ => assistant(script, turn, out),
    }
}

fn assistant(script: &mut Script<'_>, turn: usize, out: &mut Vec<Entry>) {
    if script.one_in(4) {
        let mut entry = Entry::reasoning(script.text(1_000));
        if script.one_in(2) {
            entry = entry.sealed().with(Part::Opaque(vec![7; script.below(64)]));
        }
        out.push(entry);
    }
    if script.one_in(2) {
        out.push(Entry::assistant(script.text(1_500)));
    }
    let calls = script.below(5);
    let mut ids = Vec::new();
    for call in 0..calls {
        let id = call_id(script, turn, call);
        let name = ["read", "bash", "search", "recall_tool_result"][script.below(4)];
        let arguments = if name == "recall_tool_result" {
            format!("{{\"ref\":\"t{}-0\"}}", turn.saturating_sub(3))
        } else {
            format!("{{\"q\":\"{}\"}}", script.text(6_000).replace(['\\', '"', '\n', '\r', '\t'], " "))
        };
        out.push(Entry::tool_call(id.clone(), name, arguments));
        ids.push(id);
    }
    if script.one_in(3) {
        ids.reverse();
    }
    if script.one_in(12) {
        out.push(Entry::user(script.text(300)));
    }
    for id in ids {
        if script.one_in(10) {
            continue; // aborted: never answered
        }
        let mut entry = Entry::tool_result(id, script.text(40_000));
        entry.is_error = script.one_in(5);
        if script.one_in(8) {
            entry = entry.with(media(script));
        }
        out.push(entry);
    }
}

fn media(script: &mut Script<'_>) -> Part {
    let data = vec![script.byte(); 16];
    if script.one_in(3) {
        Part::File("application/pdf".into(), "a.pdf".into(), data)
    } else {
        Part::Image("image/png".into(), data)
    }
}

/// Ids as servers make them: unique, reused every turn, reused within a turn, empty, very long, hostile.
fn call_id(script: &mut Script<'_>, turn: usize, call: usize) -> String {
    match script.below(8) {
        0 => format!("call_{call}"),
        1 => String::new(),
        2 => "same".into(),
        3 => format!("{turn}{}", "x".repeat(1_200)),
        4 => format!("../../{turn}\"\\{call}"),
        _ => format!("t{turn}-{call}"),
    }
}
