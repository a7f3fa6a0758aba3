//! The state as bytes.
//!
//! Layout, all integers little endian: the four bytes `FSTa`; the format version as `u16`; eight bytes of the
//! SHA-256 of the payload; the payload, which is the state in postcard's wire format, fields in the order in
//! which [`CompactionState`] declares them. A reader that meets a newer version, a wrong checksum or a payload
//! that does not decode answers a [`StateError`], and the host starts a new state and says so. A version before this one
//! is read as well: it ends earlier.

use alloc::vec::Vec;
use core::fmt;

use super::CompactionState;
use crate::{
    digest::Digest,
    estimate::{Measured, Written},
};

/// Version of the encoding written by this crate.
pub const FORMAT_VERSION: u16 = 3;

/// The oldest version that is read: it ends before the measured weights.
const OLDEST: u16 = 1;

const MAGIC: &[u8; 4] = b"FSTa";
const HEADER: usize = 14;

/// Why bytes are not a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StateError {
    /// They do not begin like one.
    NotAState,
    /// They are of a version this crate does not read.
    Version {
        /// The version found.
        found: u16,
    },
    /// The checksum does not match: cut short or altered.
    Corrupt,
    /// The payload does not decode although its checksum matches.
    Malformed,
}

impl fmt::Display for StateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAState => f.write_str("not a compaction state"),
            Self::Version { found } => {
                write!(f, "a compaction state of version {found}, where version {FORMAT_VERSION} is read")
            }
            Self::Corrupt => f.write_str("a compaction state that was cut short or altered"),
            Self::Malformed => f.write_str("a compaction state whose payload does not decode"),
        }
    }
}

impl core::error::Error for StateError {}

impl CompactionState {
    /// The state as bytes.
    ///
    /// ```
    /// use foreshorten_core::state::CompactionState;
    /// let state = CompactionState::new();
    /// assert_eq!(CompactionState::decode(&state.encode()), Ok(state));
    /// ```
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        // Serialising into a growing vector fails for no state: every sequence knows its length.
        let payload = postcard::to_allocvec(self).unwrap_or_default();
        let mut out = Vec::with_capacity(HEADER + payload.len());
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
        out.extend_from_slice(&Digest::of(&payload).0[..8]);
        out.extend_from_slice(&payload);
        out
    }

    /// Reads what [`encode`](Self::encode) wrote.
    ///
    /// # Errors
    /// Anything else is named, never guessed at. Figures out of range are clamped.
    pub fn decode(bytes: &[u8]) -> Result<Self, StateError> {
        let (magic, rest) = bytes.split_first_chunk::<4>().ok_or(StateError::NotAState)?;
        if magic != MAGIC {
            return Err(StateError::NotAState);
        }
        let (version, rest) = rest.split_first_chunk::<2>().ok_or(StateError::Corrupt)?;
        let found = u16::from_le_bytes(*version);
        if !(OLDEST..=FORMAT_VERSION).contains(&found) {
            return Err(StateError::Version { found });
        }
        let (sum, payload) = rest.split_first_chunk::<8>().ok_or(StateError::Corrupt)?;
        if sum[..] != Digest::of(payload).0[..8] {
            return Err(StateError::Corrupt);
        }
        // What an older one ends before, as it is when nothing was learned.
        let missing = match found {
            1 => postcard::to_allocvec(&Measured::default()),
            2 => postcard::to_allocvec(&Written::default()),
            _ => Ok(Vec::new()),
        };
        let mut older = Vec::new();
        if found < FORMAT_VERSION {
            older.extend_from_slice(payload);
            older.extend(missing.unwrap_or_default());
        }
        let payload = if older.is_empty() { payload } else { &older };
        let (state, rest) = postcard::take_from_bytes::<Self>(payload).map_err(|_| StateError::Malformed)?;
        if !rest.is_empty() {
            return Err(StateError::Malformed);
        }
        Ok(state.sane())
    }

    /// The same state with its collections in order and its figures in range, whatever a file held.
    #[must_use]
    pub fn sane(mut self) -> Self {
        self.records.sort_unstable();
        self.records.dedup_by(|b, a| a.place == b.place);
        self.notes.retain(|note| note.from < note.to);
        for note in &mut self.notes {
            note.keep_inside();
        }
        self.notes = super::join::maximal(self.notes.iter());
        self.pins.sort_unstable();
        self.pins.dedup();
        self.windows.sort_unstable();
        self.windows.dedup_by(|b, a| a.scope == b.scope);
        self.windows.retain(|window| (crate::budget::MIN_WINDOW..=crate::budget::MAX_WINDOW).contains(&window.tokens));
        self.labels.sort_unstable();
        self.labels.dedup_by(|b, a| a.0 == b.0);
        self.calibration = self.calibration.sane();
        self.measured = self.measured.sane();
        self
    }
}
