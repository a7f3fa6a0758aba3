//! The sessions, and the form in which they are written.
//!
//! One line, one thing: `words: value`. Empty lines and lines that begin with `#` are skipped.
//!
//! | line | what it does |
//! |---|---|
//! | `system:` `user:` `assistant:` `reasoning:` TEXT | an entry |
//! | `sealed:` TEXT | reasoning that is signed |
//! | `call ID NAME:` ARGUMENTS | a call |
//! | `result ID:` TEXT, `error ID:` TEXT | its result |
//! | `more:` TEXT, `image TYPE:` DATA, `file TYPE NAME:` DATA, `opaque:` DATA | one more part of the entry before |
//! | `turn:` WORDS | a turn; words: `cold`, `manual`, `overflow`, `schemas N`, `named N`, `scope S` |
//! | `rejected STATUS:` TEXT | a provider's error; what is learned from it goes into the next turn |
//! | `usage:` N | the provider counted N per cent of what was estimated |
//! | `counted:` N | the provider counted N tokens |
//! | `pin:` ENTRY, `unpin:` ENTRY | the user's pins |
//! | `restart:` | stop, store, resume from the bytes |
//! | `fork:` | a second host resumes from the bytes and makes a pass of its own |
//! | `merge:` | its state is joined with this one |
//! | `rewind:` N | the record goes back to its first N entries |
//! | `stranger:` TEXT | another conversation meets the state |
//! | `recall:` TEXT | looked up as a reference and as a search |
//! | `repeat:` N … `end:` | the lines between, N times; `@` stands for the number of the round |
//!
//! An ID of `-` is the empty one. In texts, `\n`, `\r`, `\t`, `\0`, `\\` and `\u{…}` are escapes. A text that begins
//! with `*N ` is repeated N times, with `#` standing for the number of the copy.

use alloc::{
    borrow::Cow,
    string::{String, ToString as _},
};

use crate::record::Text;

/// One session.
#[derive(Clone, Copy, Debug)]
pub struct Session {
    /// Name of its file.
    pub name: &'static str,
    /// The file.
    pub text: &'static str,
}

macro_rules! sessions {
    ($($name:literal)*) => {
        &[$(Session {
            name: $name,
            text: include_str!(concat!("../../../testdata/golden/", $name, ".session")),
        }),*]
    };
}

/// The sessions, in the order in which they are played.
pub const SESSIONS: &[Session] = sessions!["coding" "scripts" "media" "pairs" "rejected" "resumed" "oversize" "chat"];

/// A line: its words and its value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line {
    pub(crate) verb: &'static str,
    pub(crate) first: &'static str,
    pub(crate) second: &'static str,
    pub(crate) value: &'static str,
}

/// Splits a line; `None` when there is nothing on it, an error when there is no colon.
pub(crate) fn line(text: &'static str) -> Option<Result<Line, ()>> {
    let text = text.trim_end_matches('\r');
    if text.trim().is_empty() || text.starts_with('#') {
        return None;
    }
    let Some((words, value)) = text.split_once(':') else { return Some(Err(())) };
    let mut words = words.split(' ').filter(|word| !word.is_empty());
    let mut next = || words.next().unwrap_or("");
    let (verb, first, second) = (next(), next(), next());
    Some(Ok(Line { verb, first, second, value: value.strip_prefix(' ').unwrap_or(value) }))
}

/// The text a value stands for; borrowed when it stands for itself.
pub(crate) fn expand(value: &'static str, round: Option<u32>) -> Text {
    let (times, body) = match value.strip_prefix('*').and_then(|rest| rest.split_once(' ')) {
        Some((times, body)) => match times.parse::<u32>() {
            Ok(times) => (Some(times), body),
            Err(_) => (None, value),
        },
        None => (None, value),
    };
    let rounds = round.is_some() && body.contains('@');
    if times.is_none() && !rounds && !body.contains('\\') {
        return Cow::Borrowed(body);
    }
    let mut once = String::with_capacity(body.len());
    unescape(body, round, &mut once);
    let Some(times) = times else { return Cow::Owned(once) };
    let mut out = String::with_capacity(once.len() * times as usize);
    for copy in 0..times {
        let mut rest = once.as_str();
        while let Some((before, after)) = rest.split_once('#') {
            out.push_str(before);
            out.push_str(&copy.to_string());
            rest = after;
        }
        out.push_str(rest);
    }
    Cow::Owned(out)
}

fn unescape(body: &str, round: Option<u32>, out: &mut String) {
    let mut chars = body.chars();
    while let Some(c) = chars.next() {
        match (c, round) {
            ('@', Some(round)) => out.push_str(&round.to_string()),
            ('\\', _) => match chars.next() {
                Some('n') => out.push('\n'),
                Some('r') => out.push('\r'),
                Some('t') => out.push('\t'),
                Some('0') => out.push('\0'),
                Some('u') => {
                    let digits: String = chars.by_ref().skip(1).take_while(|&c| c != '}').collect();
                    out.extend(u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32));
                }
                Some(other) => out.push(other),
                None => out.push('\\'),
            },
            (c, _) => out.push(c),
        }
    }
}
