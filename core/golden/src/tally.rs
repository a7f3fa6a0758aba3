//! What playing came to.

use core::fmt;

use foreshorten_core::ConfigError;

/// Why the program itself is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// A line of a session that says nothing.
    Line {
        /// The session.
        session: &'static str,
        /// The line, from 1.
        line: usize,
    },
    /// A policy that cannot be built.
    Policy {
        /// The setup.
        setup: &'static str,
        /// Why.
        error: ConfigError,
    },
    /// A promise of the core that does not hold, in a session and after a line of it.
    Broken {
        /// The session.
        session: &'static str,
        /// The line, from 1.
        line: usize,
        /// The promise.
        promise: &'static str,
    },
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line { session, line } => write!(f, "{session}.session:{line}: not understood"),
            Self::Policy { setup, error } => write!(f, "setup {setup}: {error}"),
            Self::Broken { session, line, promise } => write!(f, "{session}.session:{line}: {promise}"),
        }
    }
}

impl core::error::Error for Wrong {}

/// A session that was played.
#[derive(Clone, Debug)]
pub struct Played {
    /// The session.
    pub session: &'static str,
    /// The setup.
    pub setup: &'static str,
    /// Digest of all that was seen.
    pub digest: [u8; 32],
    /// What happened.
    pub tally: Tally,
}

/// What happened, counted: shows that the sessions reach what they are meant to reach.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Turns.
    pub turns: u32,
    /// Passes that decided something.
    pub passes: u32,
    /// Summaries asked for.
    pub summaries: u32,
    /// Content to be archived.
    pub archived: u32,
    /// Proposals refused.
    pub refused: u32,
    /// Passes that needed the ladder of last resorts.
    pub last_resorts: u32,
    /// Turns whose view cannot fit.
    pub cannot_fit: u32,
    /// Second tries after a rejection that make sense.
    pub retries: u32,
    /// Usage figures believed.
    pub counts: u32,
    /// Usage figures refused.
    pub refused_counts: u32,
    /// Records met that were edited.
    pub edited: u32,
    /// Records met that were foreign.
    pub foreign: u32,
    /// Windows learned, at most at one time.
    pub windows: u32,
    /// States joined.
    pub joined: u32,
    /// References that were resolved.
    pub resolved: u32,
    /// References that several results go by.
    pub ambiguous: u32,
    /// Places found by search.
    pub hits: u32,
    /// Results without a call, in all views.
    pub orphans: u32,
    /// Pieces of all views by shape: entry, text, elided, arguments, note, stand-in.
    pub pieces: [u32; 6],
    /// Entries by level after each turn with a pass.
    pub levels: [u32; 6],
    /// Bytes of encoded states, at most.
    pub state_bytes: u32,
    /// Entries, at most.
    pub entries: u32,
}
