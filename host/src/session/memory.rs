//! temp
use super::*;
use crate::stores::StoreError;
/// temp
#[derive(Debug, Default)]
pub struct MemorySessions(std::sync::Mutex<std::collections::HashMap<String, StoredSession>>);
#[async_trait]
impl SessionStore for MemorySessions {
    async fn load(&self, session: &str) -> Result<Option<StoredSession>, StoreError> {
        Ok(self.0.lock().map(|m| m.get(session).cloned()).unwrap_or_default())
    }
    async fn commit(&self, session: &str, commit: Commit<'_>) -> Result<Version, CommitError> {
        let Ok(mut all) = self.0.lock() else { return Err(CommitError::Conflict(0)) };
        let s = all.entry(session.into()).or_default();
        if s.version != commit.expected {
            return Err(CommitError::Conflict(s.version));
        }
        s.version += 1;
        if !s.segments.last().is_some_and(|g| g.run == commit.run) {
            s.segments.push(Segment { run: commit.run.into(), ..Default::default() });
        }
        if let Some(g) = s.segments.last_mut() {
            g.messages.extend(commit.messages.iter().cloned());
        }
        if let Some(m) = commit.meta {
            s.checkpoint = Some(Checkpoint { run: commit.run.into(), messages: 0, meta: m.clone() });
        }
        Ok(s.version)
    }
}
