//! How large the context window is.
//!
//! In this order: what the policy or the caller configured; what the endpoint's own model listing says; what it named
//! when it turned a prompt down (which also caps the first two); a dated table by host. When nothing is known the
//! proactive path is off and the reactive one is on. An endpoint that turns a prompt down and names nothing has told one
//! thing: a prompt of that size does not fit. A session remembers it as a bound until a prompt as large is accepted.

mod table;

pub use table::{TABLE_DATE, table_window};

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use foreshorten_core::budget::{MAX_WINDOW, MIN_WINDOW};
use serde::{Deserialize, Serialize};

use crate::provider::Provider;
use crate::stores::write_atomically;

/// Where a window is known from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum WindowSource {
    /// The caller said so.
    Configured,
    /// The endpoint's model listing.
    Listed,
    /// The endpoint named it when it turned a prompt down.
    Named,
    /// The table, by host and model.
    Table,
    /// Not known: the size of the smallest prompt that the endpoint turned down without naming a window. The window is
    /// below it.
    Refused,
}

/// A window, and where it is known from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownWindow {
    /// Tokens.
    pub tokens: u64,
    /// Where from.
    pub source: WindowSource,
}

/// A listing is given up after this long.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);
/// A listing that failed is asked again after this long; one that answered is believed for the life of the resolver.
const PROBE_AGAIN: Duration = Duration::from_secs(300);

#[derive(Clone, Copy, Debug)]
enum Listing {
    Says(Option<u64>),
    Failed(Instant),
}

/// Finds out windows, and remembers those that endpoints named: per (endpoint, model), for all sessions of a process,
/// and with [`remembered_in`](Self::remembered_in) beyond it.
///
/// ```
/// use foreshorten::window::WindowResolver;
/// let windows = WindowResolver::new();
/// windows.learn("https://api.example.org", "m", 8_192);
/// assert_eq!(windows.named("https://api.example.org", "m"), Some(8_192));
/// windows.learn("https://api.example.org", "m", 3); // a misreading
/// assert_eq!(windows.named("https://api.example.org", "m"), Some(8_192));
/// ```
#[derive(Debug, Default)]
pub struct WindowResolver {
    configured: Option<u64>,
    file: Option<PathBuf>,
    listed: Mutex<HashMap<String, Listing>>,
    named: Mutex<HashMap<String, u64>>,
    again: Option<Duration>,
}

#[derive(Serialize, Deserialize)]
struct Named {
    endpoint: String,
    model: String,
    tokens: u64,
}

fn key(endpoint: &str, model: &str) -> String {
    format!("{endpoint}\0{model}")
}

const fn plausible(tokens: u64) -> bool {
    tokens >= MIN_WINDOW && tokens <= MAX_WINDOW
}

impl WindowResolver {
    /// A resolver that knows nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The same with a configured window in tokens for every model.
    #[must_use]
    pub const fn configured(mut self, tokens: u64) -> Self {
        self.configured = Some(tokens);
        self
    }

    /// The same with another wait before a failed listing is asked again. Default: five minutes.
    #[must_use]
    pub const fn ask_again_after(mut self, wait: Duration) -> Self {
        self.again = Some(wait);
        self
    }

    /// The same with a file in which named windows outlive the process. It holds endpoints, models and numbers. A file
    /// that is not there or cannot be read holds nothing.
    #[must_use]
    pub fn remembered_in(mut self, file: &Path) -> Self {
        let known: Vec<Named> =
            std::fs::read_to_string(file).ok().and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        let named = self.named.get_mut().unwrap_or_else(PoisonError::into_inner);
        for one in known.into_iter().filter(|one| plausible(one.tokens)) {
            named.insert(key(&one.endpoint, &one.model), one.tokens);
        }
        self.file = Some(file.into());
        self
    }

    /// The window that the endpoint named for `model` when it turned a prompt down.
    #[must_use]
    pub fn named(&self, endpoint: &str, model: &str) -> Option<u64> {
        self.named.lock().unwrap_or_else(PoisonError::into_inner).get(&key(endpoint, model)).copied()
    }

    /// Remembers a window that the endpoint named. Figures that cannot be one are not taken.
    pub fn learn(&self, endpoint: &str, model: &str, tokens: u64) -> bool {
        if !plausible(tokens) {
            return false;
        }
        let mut named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        named.insert(key(endpoint, model), tokens);
        if let Some(file) = &self.file {
            let mut all: Vec<Named> = named
                .iter()
                .filter_map(|(key, &tokens)| {
                    let (endpoint, model) = key.split_once('\0')?;
                    Some(Named { endpoint: endpoint.into(), model: model.into(), tokens })
                })
                .collect();
            all.sort_by(|a, b| (&a.endpoint, &a.model).cmp(&(&b.endpoint, &b.model)));
            let text = serde_json::to_string_pretty(&all).unwrap_or_default();
            if let Err(error) = write_atomically(file, text.as_bytes()) {
                tracing::warn!(%error, "a window that was learned could not be remembered");
            }
        }
        true
    }

    /// The window for `model` at `provider`, as far as it is known now. Asks the endpoint's listing when that was not
    /// done yet, or failed a while ago.
    pub async fn resolve(&self, provider: &dyn Provider, model: &str) -> Option<KnownWindow> {
        let endpoint = provider.endpoint();
        let found = match self.configured {
            Some(tokens) => Some(KnownWindow { tokens, source: WindowSource::Configured }),
            None => {
                let listed = self.listing(provider, model).await;
                listed.map(|tokens| KnownWindow { tokens, source: WindowSource::Listed })
            }
        };
        let named = self.named(endpoint, model).map(|tokens| KnownWindow { tokens, source: WindowSource::Named });
        match (found, named) {
            (Some(found), Some(named)) => Some(if named.tokens < found.tokens { named } else { found }),
            (found, named) => found.or(named).or_else(|| {
                table_window(endpoint, model).map(|tokens| KnownWindow { tokens, source: WindowSource::Table })
            }),
        }
    }

    async fn listing(&self, provider: &dyn Provider, model: &str) -> Option<u64> {
        let key = key(provider.endpoint(), model);
        let known = self.listed.lock().unwrap_or_else(PoisonError::into_inner).get(&key).copied();
        match known {
            Some(Listing::Says(window)) => return window,
            Some(Listing::Failed(when)) if when.elapsed() < self.again.unwrap_or(PROBE_AGAIN) => return None,
            _ => {}
        }
        let answer = tokio::time::timeout(PROBE_TIMEOUT, provider.listed_window(model)).await;
        let listing = match answer {
            Ok(Ok(window)) => Listing::Says(window.filter(|&tokens| plausible(tokens))),
            Ok(Err(error)) => {
                tracing::debug!(%error, model, "the model listing could not be read");
                Listing::Failed(Instant::now())
            }
            Err(_) => Listing::Failed(Instant::now()),
        };
        self.listed.lock().unwrap_or_else(PoisonError::into_inner).insert(key, listing);
        match listing {
            Listing::Says(window) => window,
            Listing::Failed(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_endpoint_named_outlives_the_process_and_holds_for_it_alone() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("windows.json");
        let first = WindowResolver::new().remembered_in(&file);
        assert!(first.learn("https://a", "m", 8_192) && !first.learn("https://a", "m", 1));
        let second = WindowResolver::new().remembered_in(&file);
        assert_eq!(second.named("https://a", "m"), Some(8_192));
        assert_eq!((second.named("https://a", "n"), second.named("https://b", "m")), (None, None));
        std::fs::write(&file, "no JSON").unwrap();
        assert_eq!(WindowResolver::new().remembered_in(&file).named("https://a", "m"), None);
    }
}
