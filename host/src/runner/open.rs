//! A session in hand: what the store acknowledged, and what is kept live beside it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use foreshorten_core::notice::CompactionNotice;

use super::{Event, RunError, Runner};
use crate::context::{ContextPolicy, Scratch};
use crate::record::{Message, Record};
use crate::session::{Commit, CommitError, StoredSession, Version};
use crate::view::View;
use crate::window::KnownWindow;

/// Where the last notice is kept with the session, as JSON.
const NOTICE_KEY: &str = "notice";
/// Where the time of the last model call is kept: seconds since 1970, as eight bytes.
const CALLED_KEY: &str = "called_at";
/// Where the sizes of refused prompts are kept, as JSON: scope to tokens.
const REFUSED_KEY: &str = "refused_at";
/// Races lost in a row before the runner gives up.
const MAX_RACES: u32 = 64;

/// A session in hand. Its record is exactly what the store acknowledged; decisions of the turn under way may be ahead
/// of it.
///
/// It is not cloned: two runners open it twice, and the store tells them apart.
#[derive(Debug)]
pub struct Session {
    pub(super) id: String,
    pub(super) record: Record,
    pub(super) scratch: Scratch,
    pub(super) version: Version,
    pub(super) run: String,
    /// The system prompt at the head of the record, which is no part of what is stored.
    system: Option<String>,
    stored: Vec<Arc<Message>>,
    /// A commit is under way whose outcome is not known: the store is to be asked.
    pub(super) unsure: bool,
    /// What is said once.
    pub(super) window: Option<KnownWindow>,
    pub(super) said_unknown: bool,
    /// What was counted for the last view that was answered, and what it was counted with.
    pub(super) last_count: Option<u64>,
    pub(super) counted_with: String,
    /// The same figure, while no other view was made since: it says nothing about a later one.
    pub(super) fresh_count: Option<u64>,
    pub(super) last_view: View,
    /// Answers in a row that betrayed a truncated prompt.
    pub(super) truncated: u32,
    /// Races lost since the run began.
    pub(super) joined: u32,
}

impl Session {
    /// Its id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The record, the present system prompt at its head.
    #[must_use]
    pub const fn record(&self) -> &Record {
        &self.record
    }

    /// What the policy keeps with it.
    #[must_use]
    pub const fn scratch(&self) -> &Scratch {
        &self.scratch
    }

    /// The view that was sent last; empty before the first call of this process.
    #[must_use]
    pub const fn last_view(&self) -> &View {
        &self.last_view
    }

    /// The notice of the last pass, also of an earlier run.
    #[must_use]
    pub fn last_notice(&self) -> Option<CompactionNotice> {
        serde_json::from_slice(self.scratch.meta.0.get(NOTICE_KEY)?).ok()
    }

    pub(super) fn note(&mut self, notice: &CompactionNotice) {
        if let Ok(json) = serde_json::to_vec(notice) {
            self.scratch.meta.0.insert(NOTICE_KEY.into(), json);
        }
    }

    /// Notes that a call is being made, and answers how long ago the last one was.
    pub(super) fn called(&mut self) -> Option<Duration> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let before = self.scratch.meta.0.insert(CALLED_KEY.into(), now.to_le_bytes().to_vec())?;
        let before = u64::from_le_bytes(before.try_into().ok()?);
        Some(Duration::from_secs(now.saturating_sub(before)))
    }

    /// How long ago the last call was made.
    pub(super) fn idle(&self) -> Option<Duration> {
        let before = self.scratch.meta.0.get(CALLED_KEY)?;
        let before = u64::from_le_bytes(before.as_slice().try_into().ok()?);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        Some(Duration::from_secs(now.saturating_sub(before)))
    }

    fn refusals(&self) -> BTreeMap<String, u64> {
        let kept = self.scratch.meta.0.get(REFUSED_KEY).and_then(|json| serde_json::from_slice(json).ok());
        kept.unwrap_or_default()
    }

    fn keep_refusals(&mut self, all: &BTreeMap<String, u64>) {
        match serde_json::to_vec(all) {
            Ok(json) if !all.is_empty() => {
                self.scratch.meta.0.insert(REFUSED_KEY.into(), json);
            }
            _ => {
                self.scratch.meta.0.remove(REFUSED_KEY);
            }
        }
    }

    /// The size of the smallest prompt that was turned down without a window being named, in tokens.
    pub(super) fn refused(&self, scope: &str) -> Option<u64> {
        self.refusals().get(scope).copied()
    }

    /// A prompt of this size was turned down, and no window was named.
    pub(super) fn refused_at(&mut self, scope: &str, tokens: u64) {
        let mut all = self.refusals();
        let least = all.get(scope).map_or(tokens, |before| tokens.min(*before));
        all.insert(scope.into(), least);
        self.keep_refusals(&all);
    }

    /// A prompt of this size was read: a refusal at no more than that says nothing any longer.
    pub(super) fn accepted(&mut self, scope: &str, tokens: u64) {
        let mut all = self.refusals();
        if all.get(scope).is_some_and(|&refused| refused <= tokens) {
            all.remove(scope);
            self.keep_refusals(&all);
        }
    }

    /// Puts the system prompt at the head of the record.
    pub(super) fn set_system(&mut self, system: Option<&str>) {
        if self.system.as_deref() != system {
            self.system = system.map(Into::into);
            self.lay();
            // It names entries by their place, and those have moved.
            self.last_view = View::default();
        }
    }

    fn lay(&mut self) {
        let head = self.system.as_deref().map(|text| Arc::new(Message::system(text)));
        self.record = head.into_iter().chain(self.stored.iter().cloned()).collect();
        // What is live was made for the record as it was.
        self.scratch.settle();
        self.last_count = None;
        self.fresh_count = None;
    }

    fn replace(&mut self, stored: &StoredSession) {
        self.version = stored.version;
        self.stored = stored.segments.iter().flat_map(|segment| segment.messages.iter().cloned()).collect();
        self.lay();
    }

    pub(super) fn push(&mut self, messages: &[Arc<Message>]) {
        for message in messages {
            self.stored.push(Arc::clone(message));
            self.record.push(Arc::clone(message));
        }
    }
}

impl Runner {
    /// Opens a session, or begins one.
    ///
    /// # Errors
    /// When the store cannot read it.
    pub async fn open(&self, id: &str) -> Result<Session, RunError> {
        let stored = self.sessions.load(id).await.map_err(RunError::Load)?.unwrap_or_default();
        let mut session = Session {
            id: id.into(),
            record: Record::new(),
            scratch: Scratch::stored(stored.meta().cloned().unwrap_or_default()),
            version: 0,
            run: String::new(),
            system: None,
            stored: Vec::new(),
            unsure: false,
            window: None,
            said_unknown: false,
            last_count: None,
            counted_with: String::new(),
            fresh_count: None,
            last_view: View::default(),
            truncated: 0,
            joined: 0,
        };
        session.replace(&stored);
        Ok(session)
    }

    /// Makes sure that the session in hand is what the store has, after a run that was dropped in the middle.
    pub(super) async fn reopen(&self, session: &mut Session) -> Result<(), RunError> {
        if session.unsure {
            let stored = self.sessions.load(&session.id).await.map_err(RunError::Load)?.unwrap_or_default();
            session.scratch = Scratch::stored(stored.meta().cloned().unwrap_or_default());
            session.replace(&stored);
            session.unsure = false;
        }
        Ok(())
    }

    /// One step: what is new is appended, and the state is kept. Only what the store took is then in hand.
    pub(super) async fn step(
        &self,
        session: &mut Session,
        policy: &dyn ContextPolicy,
        new: Vec<Arc<Message>>,
        ends: bool,
    ) -> Result<(), RunError> {
        for _ in 0..MAX_RACES {
            session.unsure = true;
            let run = session.run.clone();
            let mut commit = Commit::new(session.version, &run).appending(&new).with_meta(&session.scratch.meta);
            if ends {
                commit = commit.ending();
            }
            match self.sessions.commit(&session.id, commit).await {
                Ok(version) => {
                    session.version = version;
                    session.push(&new);
                    session.unsure = false;
                    return Ok(());
                }
                Err(CommitError::Conflict(_)) => {
                    let stored = self.sessions.load(&session.id).await.map_err(RunError::Load)?.unwrap_or_default();
                    if let Some(theirs) = stored.meta() {
                        policy.join(&mut session.scratch, theirs);
                    }
                    session.replace(&stored);
                    session.joined += 1;
                    self.tell(Event::Joined { session: session.id.clone() });
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(RunError::Commit(CommitError::Conflict(session.version)))
    }
}
