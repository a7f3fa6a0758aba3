//! Drives conversations: policy, provider, overflow, usage, checkpoint, events, tools.
//!
//! ```
//! use std::sync::Arc;
//! use foreshorten::provider::{FinishReason, ModelReply, ModelRequest, OnDelta, Provider, ProviderError};
//! use foreshorten::record::Message;
//! use foreshorten::runner::{Agent, Runner};
//! use foreshorten_core::transcript::Entry;
//!
//! # struct Parrot;
//! # #[async_trait::async_trait]
//! # impl Provider for Parrot {
//! #     fn endpoint(&self) -> &str { "parrot" }
//! #     async fn complete(
//! #         &self, _: &ModelRequest<'_>, _: &OnDelta<'_>,
//! #     ) -> Result<ModelReply, ProviderError> {
//! #         Ok(ModelReply::new(vec![Message::of(vec![Entry::assistant("hello")])], FinishReason::Stop))
//! #     }
//! # }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let agent = Agent::new(Arc::new(Parrot), "a-model").system("Be brief.");
//! let runner = Runner::new();
//! let mut session = runner.open("session-1").await?;
//! let outcome = runner.run(&agent, &mut session, Message::user("hi")).await?;
//! assert_eq!(outcome.text, "hello");
//! # Ok(())
//! # }
//! ```
//!
//! **Nothing is lost.** What the store acknowledged is what the session holds; a run may be dropped at any await, and
//! then the session is the old one or the new one, whole. A crash is a drop. Two runners may share a session: writes are
//! compare-and-swap, and the loser joins the other's decisions and goes on.

mod agent;
mod calls;
mod events;
mod manual;
mod open;
mod outcome;
mod truncation;
mod turn;

pub use agent::Agent;
pub use events::{CompactedCallback, ContextCompacted, Event};
pub use open::Session;
pub use outcome::{RunError, RunOutcome, Stopped};
pub use truncation::Truncation;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::broadcast;

use crate::session::{MemorySessions, SessionStore};
use crate::window::WindowResolver;

/// Events kept for a subscriber that is slow to read them; then it is told how many it missed.
const EVENTS_KEPT: usize = 1_024;
/// How long a provider's prompt cache is taken to live. Five minutes: Anthropic's and OpenAI's default.
const CACHE_LIFETIME: Duration = Duration::from_secs(300);

/// Runs agents over sessions. Cheap to clone; clones share store, windows and subscribers.
#[derive(Clone)]
pub struct Runner {
    sessions: Arc<dyn SessionStore>,
    windows: Arc<WindowResolver>,
    events: broadcast::Sender<Event>,
    on_compacted: Option<CompactedCallback>,
    cache_lifetime: Duration,
}

impl Default for Runner {
    fn default() -> Self {
        Self {
            sessions: Arc::new(MemorySessions::default()),
            windows: Arc::new(WindowResolver::new()),
            events: broadcast::channel(EVENTS_KEPT).0,
            on_compacted: None,
            cache_lifetime: CACHE_LIFETIME,
        }
    }
}

impl std::fmt::Debug for Runner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Runner").field("windows", &self.windows).finish_non_exhaustive()
    }
}

impl Runner {
    /// A runner whose sessions live in memory.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The same with another store of sessions.
    #[must_use]
    pub fn sessions(mut self, store: Arc<dyn SessionStore>) -> Self {
        self.sessions = store;
        self
    }

    /// The same with another finder of context windows: one with a configured window, or one that remembers in a file.
    #[must_use]
    pub fn windows(mut self, windows: Arc<WindowResolver>) -> Self {
        self.windows = windows;
        self
    }

    /// The same with another lifetime of the provider's prompt cache. After a longer pause a pass breaks nothing, and is
    /// made earlier.
    #[must_use]
    pub const fn cache_lifetime(mut self, lifetime: Duration) -> Self {
        self.cache_lifetime = lifetime;
        self
    }

    /// The same with a callback that is awaited after every pass, before the model call.
    #[must_use]
    pub fn on_compacted(mut self, callback: CompactedCallback) -> Self {
        self.on_compacted = Some(callback);
        self
    }

    /// Everything that happens from now on, in all sessions of this runner.
    #[must_use]
    pub fn subscribe(&self) -> broadcast::Receiver<Event> {
        self.events.subscribe()
    }

    fn tell(&self, event: Event) {
        // Nobody listening is no error.
        let _ = self.events.send(event);
    }
}
