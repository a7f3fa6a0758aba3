//! How a run ended.

use std::fmt;

use foreshorten_core::notice::CompactionNotice;

use super::Truncation;
use crate::context::{PolicyError, PolicyUsage};
use crate::formats::FormatError;
use crate::plugin::Account;
use crate::provider::{FinishReason, ProviderError, Usage};
use crate::session::CommitError;
use crate::stores::StoreError;

/// Why a run stopped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stopped {
    /// The model was done, in its own words.
    Finished(FinishReason),
    /// The bound on model calls.
    #[default]
    MaxRounds,
}

/// What a run came to. The two numbers of every call stand apart: what filled the window
/// ([`last_input_tokens`](Self::last_input_tokens)) and what is billed ([`usage`](Self::usage)).
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct RunOutcome {
    /// Text of the last answer.
    pub text: String,
    /// Why the run stopped.
    pub stopped: Stopped,
    /// Model calls made.
    pub rounds: u32,
    /// Tokens of the conversation's calls, summed: what they cost.
    pub usage: Usage,
    /// What the policy's own calls cost, counted apart.
    pub policy_usage: PolicyUsage,
    /// Prompt tokens of the last call, as the provider counted them: what fills the window.
    pub last_input_tokens: Option<u64>,
    /// Prompts that were turned down as too long.
    pub rejections: u32,
    /// Successes that betrayed a truncated prompt.
    pub truncations: Vec<Truncation>,
    /// Passes that were recorded, oldest first.
    pub notices: Vec<CompactionNotice>,
    /// Contents that a store or archive could not keep.
    pub store_failures: u32,
    /// Times another runner's writes were joined.
    pub joined: u32,
    /// What plugins did in this run, by name.
    pub plugins: Account,
}

/// Why a run gave up. What was recorded stays, and the run can be gone on with.
#[derive(Debug)]
#[non_exhaustive]
pub enum RunError {
    /// The provider, after all retries. For a prompt that stayed too long this is the last rejection.
    Provider(ProviderError),
    /// The policy.
    Policy(PolicyError),
    /// The session cannot be written.
    Commit(CommitError),
    /// The session cannot be read.
    Load(StoreError),
    /// A message of the record cannot be read in the format it says it is in.
    Format(FormatError),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Provider(error) => error.fmt(f),
            Self::Policy(error) => error.fmt(f),
            Self::Commit(error) => write!(f, "the session cannot be written: {error}"),
            Self::Load(error) => write!(f, "the session cannot be read: {error}"),
            Self::Format(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for RunError {}

macro_rules! from {
    ($($error:ty => $variant:ident),*) => {
        $(impl From<$error> for RunError {
            fn from(error: $error) -> Self {
                Self::$variant(error)
            }
        })*
    };
}

from!(ProviderError => Provider, PolicyError => Policy, CommitError => Commit, FormatError => Format);
