//! How an endpoint is reached: address, keys, time-outs, retries.

use std::fmt;
use std::time::Duration;

use super::secret::Secret;

/// Whether an adapter marks where the prompt cache may cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum CacheMarks {
    /// Where the protocol, the host and the model are known to have them.
    #[default]
    Auto,
    /// Always. An endpoint that turns them down is asked once more without, and then without for as long as the
    /// adapter lives.
    On,
    /// Never.
    Off,
}

/// Why an adapter cannot be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetupError(pub(super) String);

impl fmt::Display for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the endpoint cannot be used: {}", self.0)
    }
}

impl std::error::Error for SetupError {}

/// How an endpoint is reached. The same for all three protocols.
///
/// Defaults are those of the vendors' own SDKs where these have one (openai-python and anthropic-sdk-python of 2026:
/// two retries, back-off of 0.5 s doubling to 8 s, ten minutes for an answer, a `retry-after` believed up to a minute).
///
/// ```
/// use std::time::Duration;
/// use foreshorten::provider::http::{HttpOptions, OpenAiChat};
///
/// let options = HttpOptions::new()
///     .base_url("http://127.0.0.1:8000/v1")
///     .key("sk-local")
///     .header("x-team", "blue")
///     .idle_timeout(Duration::from_secs(60))
///     .retries(4);
/// assert!(!format!("{options:?}").contains("sk-local"));
/// let provider = OpenAiChat::new(options)?;
/// # Ok::<(), foreshorten::provider::http::SetupError>(())
/// ```
#[derive(Clone)]
pub struct HttpOptions {
    pub(super) base_url: Option<String>,
    pub(super) key: Option<Secret>,
    pub(super) bearer: Option<Secret>,
    pub(super) headers: Vec<(String, Secret)>,
    pub(super) connect_timeout: Duration,
    pub(super) first_byte_timeout: Duration,
    pub(super) idle_timeout: Duration,
    pub(super) total_timeout: Duration,
    pub(super) listing_timeout: Duration,
    pub(super) retries: u32,
    pub(super) backoff: Duration,
    pub(super) backoff_cap: Duration,
    pub(super) longest_wait: Duration,
    pub(super) stream: bool,
    pub(super) most_bytes: usize,
    pub(super) cache_marks: CacheMarks,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            base_url: None,
            key: None,
            bearer: None,
            headers: Vec::new(),
            connect_timeout: Duration::from_secs(10),
            first_byte_timeout: Duration::from_secs(600),
            idle_timeout: Duration::from_secs(300),
            total_timeout: Duration::from_secs(3_600),
            listing_timeout: Duration::from_secs(5),
            retries: 2,
            backoff: Duration::from_millis(500),
            backoff_cap: Duration::from_secs(8),
            longest_wait: Duration::from_secs(60),
            stream: true,
            most_bytes: 64 << 20,
            cache_marks: CacheMarks::Auto,
        }
    }
}

impl HttpOptions {
    /// The vendor's own endpoint, without a key.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// What the environment says for OpenAI: `OPENAI_API_KEY`, `OPENAI_BASE_URL`, `OPENAI_ORG_ID`,
    /// `OPENAI_PROJECT_ID`. Empty variables count as not set.
    #[must_use]
    pub fn from_openai_env() -> Self {
        Self::from_openai_vars(&|name| std::env::var(name).ok())
    }

    pub(super) fn from_openai_vars(var: &dyn Fn(&str) -> Option<String>) -> Self {
        let var = |name: &str| var(name).filter(|value| !value.trim().is_empty());
        let mut options = Self { key: var("OPENAI_API_KEY").map(Secret::from), ..Self::new() };
        options.base_url = var("OPENAI_BASE_URL");
        options = var("OPENAI_ORG_ID").into_iter().fold(options, |options, id| options.organization(id));
        var("OPENAI_PROJECT_ID").into_iter().fold(options, |options, id| options.project(id))
    }

    /// What the environment says for Anthropic: `ANTHROPIC_API_KEY` (sent as `x-api-key`), `ANTHROPIC_AUTH_TOKEN` (sent
    /// as a bearer token), `ANTHROPIC_BASE_URL`. Empty variables count as not set.
    #[must_use]
    pub fn from_anthropic_env() -> Self {
        Self::from_anthropic_vars(&|name| std::env::var(name).ok())
    }

    pub(super) fn from_anthropic_vars(var: &dyn Fn(&str) -> Option<String>) -> Self {
        let var = |name: &str| var(name).filter(|value| !value.trim().is_empty());
        Self {
            key: var("ANTHROPIC_API_KEY").map(Secret::from),
            bearer: var("ANTHROPIC_AUTH_TOKEN").map(Secret::from),
            base_url: var("ANTHROPIC_BASE_URL"),
            ..Self::new()
        }
    }

    /// The address below which the protocol's paths lie: `http` or `https`, a host, perhaps a path, perhaps a query that
    /// is sent with every request (Azure's `api-version`). User names and passwords are refused; use
    /// [`header`](Self::header).
    ///
    /// Slashes at the end do not matter, and neither does the protocol's own path (`/chat/completions`) at the end.
    /// OpenAI's protocols: an address without any path gets `/v1`, any other is taken as it stands. Anthropic's: `/v1`
    /// is added unless the path ends in a version, as the vendor's SDK has it. Default: the vendor's.
    #[must_use]
    pub fn base_url(mut self, url: impl Into<String>) -> Self {
        self.base_url = Some(url.into());
        self
    }

    /// The key, sent as the protocol wants it: `Authorization: Bearer` for OpenAI, `x-api-key` for Anthropic. Without one
    /// no such header is sent, which local servers take.
    #[must_use]
    pub fn key(mut self, key: impl Into<Secret>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// A token sent as `Authorization: Bearer` in any protocol.
    #[must_use]
    pub fn bearer(mut self, token: impl Into<Secret>) -> Self {
        self.bearer = Some(token.into());
        self
    }

    /// A further header. It wins over one of the adapter's own of that name. The value is treated as a secret.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<Secret>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// OpenAI's organization.
    #[must_use]
    pub fn organization(self, id: impl Into<Secret>) -> Self {
        self.header("openai-organization", id)
    }

    /// OpenAI's project.
    #[must_use]
    pub fn project(self, id: impl Into<Secret>) -> Self {
        self.header("openai-project", id)
    }

    /// Longest time for a connection, TLS included. Default 10 s.
    #[must_use]
    pub const fn connect_timeout(mut self, time: Duration) -> Self {
        self.connect_timeout = time;
        self
    }

    /// Longest time from the request to the beginning of the answer. Default 10 min: without streaming, and with some
    /// local servers, that is as long as the answer takes.
    #[must_use]
    pub const fn first_byte_timeout(mut self, time: Duration) -> Self {
        self.first_byte_timeout = time;
        self
    }

    /// Longest silence within a stream. Default 5 min: reasoning models are silent for minutes, and not every server
    /// sends pings.
    #[must_use]
    pub const fn idle_timeout(mut self, time: Duration) -> Self {
        self.idle_timeout = time;
        self
    }

    /// Longest time for one try, from request to the end of the answer. Default 1 h.
    #[must_use]
    pub const fn total_timeout(mut self, time: Duration) -> Self {
        self.total_timeout = time;
        self
    }

    /// Longest time for the list of models. Default 5 s: a window is asked for while somebody waits.
    #[must_use]
    pub const fn listing_timeout(mut self, time: Duration) -> Self {
        self.listing_timeout = time;
        self
    }

    /// Tries after the first, for rate limits, overload, time-outs and broken connections. Default 2; 0 turns it off.
    #[must_use]
    pub const fn retries(mut self, retries: u32) -> Self {
        self.retries = retries;
        self
    }

    /// Pause before the first retry, and the longest pause; it doubles in between and is shortened by up to a quarter.
    /// Defaults 0.5 s and 8 s.
    #[must_use]
    pub const fn backoff(mut self, first: Duration, longest: Duration) -> Self {
        (self.backoff, self.backoff_cap) = (first, longest);
        self
    }

    /// The longest `retry-after` that is waited for; a longer one is returned at once as
    /// [`RateLimited`](crate::provider::ProviderError::RateLimited). Default 1 min.
    #[must_use]
    pub const fn longest_wait(mut self, time: Duration) -> Self {
        self.longest_wait = time;
        self
    }

    /// Whether answers are streamed. Default `true`: connections that are silent for minutes get cut on the way.
    #[must_use]
    pub const fn stream(mut self, stream: bool) -> Self {
        self.stream = stream;
        self
    }

    /// Most bytes of one answer, so that an endpoint cannot fill the memory. Default 64 MiB.
    #[must_use]
    pub const fn most_bytes(mut self, bytes: usize) -> Self {
        self.most_bytes = bytes;
        self
    }

    /// Whether cache breakpoints are placed. Default [`Auto`](CacheMarks::Auto): Anthropic Messages always; OpenAI for
    /// `gpt-5.6` and later at `api.openai.com`.
    #[must_use]
    pub const fn cache_marks(mut self, marks: CacheMarks) -> Self {
        self.cache_marks = marks;
        self
    }
}

impl fmt::Debug for HttpOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // An address may carry a key too, in front of an `@` or behind a `?`.
        let address = self.base_url.as_deref().map(|url| {
            let url = url.split(['?', '#']).next().unwrap_or_default();
            url.rsplit_once('@').map_or_else(|| url.to_owned(), |(_, host)| format!("…@{host}"))
        });
        let headers: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("HttpOptions")
            .field("base_url", &address)
            .field("key", &self.key)
            .field("bearer", &self.bearer)
            .field("headers", &headers)
            .field("connect_timeout", &self.connect_timeout)
            .field("first_byte_timeout", &self.first_byte_timeout)
            .field("idle_timeout", &self.idle_timeout)
            .field("total_timeout", &self.total_timeout)
            .field("retries", &self.retries)
            .field("stream", &self.stream)
            .field("cache_marks", &self.cache_marks)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_names_keys_and_addresses_and_none_of_them_shows() {
        let vars = |name: &str| match name {
            "OPENAI_API_KEY" | "ANTHROPIC_AUTH_TOKEN" => Some("sk-secret".to_owned()),
            "OPENAI_BASE_URL" => Some("https://me:pass@host/v1?key=sk-secret".to_owned()),
            "OPENAI_ORG_ID" => Some("org-secret".to_owned()),
            _ => Some(" ".to_owned()),
        };
        let openai = HttpOptions::from_openai_vars(&vars);
        assert_eq!(openai.key, Some(Secret::from("sk-secret")));
        assert_eq!(openai.headers.len(), 1);
        let anthropic = HttpOptions::from_anthropic_vars(&vars);
        assert_eq!((anthropic.key.clone(), anthropic.base_url.clone()), (None, None));
        assert!(anthropic.bearer.is_some());
        let shown = format!("{openai:?} {anthropic:#?}");
        assert!(!shown.contains("secret") && !shown.contains("pass"), "{shown}");
    }
}
