//! Sessions in memory: for tests, and for hosts whose sessions end with the process.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;

use super::{Checkpoint, Commit, CommitError, Placing, RewriteSessions, Segment, SessionStore, StoredSession, Version};
use crate::stores::StoreError;

/// Sessions in memory. Messages are shared with the records they came from.
#[derive(Debug, Default)]
pub struct MemorySessions {
    sessions: Mutex<HashMap<String, Kept>>,
}

#[derive(Debug, Default)]
struct Kept {
    stored: StoredSession,
    open: Option<String>,
    messages: usize,
}

impl MemorySessions {
    /// No sessions yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn with<T>(&self, work: impl FnOnce(&mut HashMap<String, Kept>) -> T) -> T {
        work(&mut self.sessions.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[async_trait]
impl SessionStore for MemorySessions {
    async fn load(&self, session: &str) -> Result<Option<StoredSession>, StoreError> {
        Ok(self.with(|sessions| sessions.get(session).map(|kept| kept.stored.clone())))
    }

    async fn commit(&self, session: &str, commit: Commit<'_>) -> Result<Version, CommitError> {
        self.with(|sessions| {
            let version = sessions.get(session).map_or(0, |kept| kept.stored.version);
            if version != commit.expected {
                return Err(CommitError::Conflict(version));
            }
            Ok(sessions.entry(session.into()).or_default().take_in(commit))
        })
    }
}

#[async_trait]
impl RewriteSessions for MemorySessions {
    async fn rewrite(&self, session: &str, expected: Version, segments: &[Segment]) -> Result<Version, CommitError> {
        self.with(|sessions| {
            let version = sessions.get(session).map_or(0, |kept| kept.stored.version);
            let Some(kept) = sessions.get_mut(session).filter(|_| version == expected) else {
                return Err(CommitError::Conflict(version));
            };
            kept.stored.version += 1;
            kept.stored.segments = segments.to_vec();
            kept.messages = segments.iter().map(|segment| segment.messages.len()).sum();
            kept.open = None;
            Ok(kept.stored.version)
        })
    }
}

impl Kept {
    fn take_in(&mut self, commit: Commit<'_>) -> Version {
        let checkpoint = || self.stored.checkpoint.as_ref().map(|checkpoint| &checkpoint.meta);
        let last = if commit.ends { commit.meta.or_else(checkpoint).cloned() } else { None };
        let placing = Placing::of(&commit, self.open.as_deref(), last.is_some());
        if placing.begins {
            self.stored.segments.push(Segment { run: commit.run.into(), ..Segment::default() });
        }
        if placing.adds
            && let Some(segment) = self.stored.segments.last_mut()
        {
            segment.messages.extend_from_slice(commit.messages);
            segment.meta = last;
        }
        self.open = placing.open;
        self.messages += commit.messages.len();
        if commit.ends {
            self.stored.checkpoint = None;
        } else if let Some(meta) = commit.meta {
            let messages = self.messages;
            self.stored.checkpoint = Some(Checkpoint { run: commit.run.into(), messages, meta: meta.clone() });
        }
        self.stored.version += 1;
        self.stored.version
    }
}
