//! The HTTP client that the three adapters share.

use std::collections::HashMap;
use std::error::Error;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, TryStreamExt as _};
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::redirect;
use reqwest::{Response, Url};

use super::endpoint::{Endpoint, Version};
use super::options::{HttpOptions, SetupError};
use super::quirks::Quirks;
use super::secret::Secret;
use crate::provider::ProviderError;

/// What a protocol adds to the options.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dialect {
    /// The vendor's own address.
    pub(super) base_url: &'static str,
    /// The path of a call, below the address.
    pub(super) path: &'static str,
    pub(super) version: Version,
    /// The header that carries the key; `None`: as a bearer token.
    pub(super) key_header: Option<&'static str>,
}

/// Longest error text that is read, in bytes: as much as `explain` looks at.
const MOST_OF_AN_ERROR: usize = 64 << 10;
/// Most models whose quirks are kept.
const MOST_MODELS: usize = 1_024;

/// One endpoint, spoken to in one protocol.
#[derive(Debug)]
pub(super) struct Http {
    client: reqwest::Client,
    pub(super) endpoint: Endpoint,
    pub(super) options: HttpOptions,
    path: Vec<&'static str>,
    headers: HeaderMap,
    secrets: Vec<Secret>,
    calls: AtomicU64,
    quirks: Mutex<HashMap<String, Quirks>>,
}

impl Http {
    pub(super) fn new(options: HttpOptions, dialect: Dialect) -> Result<Self, SetupError> {
        let address = options.base_url.as_deref().unwrap_or(dialect.base_url);
        let endpoint = Endpoint::parse(address, dialect.path, dialect.version)?;
        let mut headers = HeaderMap::new();
        let mut secrets = Vec::new();
        let mut put = |name: &str, value: &str, secret: &Secret| {
            // The text of the error would show the value.
            let value = HeaderValue::from_str(value);
            let mut value = value.map_err(|_| SetupError(format!("the value of the header `{name}` has odd bytes")))?;
            value.set_sensitive(true);
            let name: HeaderName = name.parse().map_err(|_| SetupError(format!("`{name}` is no name of a header")))?;
            headers.insert(name, value);
            secrets.push(secret.clone());
            Ok(())
        };
        let bearer = |secret: &Secret| format!("Bearer {}", secret.expose());
        match (&options.key, dialect.key_header) {
            (Some(key), Some(name)) => put(name, key.expose(), key)?,
            (Some(key), None) => put(AUTHORIZATION.as_str(), &bearer(key), key)?,
            (None, _) => {}
        }
        if let Some(token) = &options.bearer {
            put(AUTHORIZATION.as_str(), &bearer(token), token)?;
        }
        for (name, value) in &options.headers {
            put(name, value.expose(), value)?;
        }
        // Longer secrets first: one may be part of another.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.expose().len()));
        Ok(Self {
            client: client(&options, &endpoint)?,
            endpoint,
            path: dialect.path.split('/').collect(),
            headers,
            secrets,
            options,
            calls: AtomicU64::new(0),
            quirks: Mutex::default(),
        })
    }

    /// A header of the adapter's own, unless the options set one of that name.
    pub(super) fn default_header(&mut self, name: &'static str, value: &str) -> Result<(), SetupError> {
        let name = HeaderName::from_static(name);
        let value = HeaderValue::from_str(value)
            .map_err(|_| SetupError(format!("the value of the header `{name}` has odd bytes")))?;
        self.headers.entry(name).or_insert(value);
        Ok(())
    }

    /// A header of the adapter's own that was asked for by name.
    pub(super) fn set_header(&mut self, name: &'static str, value: &str) -> Result<(), SetupError> {
        self.headers.remove(name);
        self.default_header(name, value)
    }

    /// The number of a call, counted from 0.
    pub(super) fn count_call(&self) -> u64 {
        self.calls.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn quirks(&self, model: &str) -> Quirks {
        self.quirks.lock().unwrap_or_else(PoisonError::into_inner).get(model).copied().unwrap_or_default()
    }

    pub(super) fn remember(&self, model: &str, quirks: Quirks) {
        let mut all = self.quirks.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MOST_MODELS {
            all.clear();
        }
        all.insert(model.to_owned(), quirks);
    }

    /// Sends a call and waits for the beginning of the answer, whatever its status.
    pub(super) async fn post(&self, body: Bytes, streamed: bool) -> Result<Response, ProviderError> {
        let accept = if streamed { "text/event-stream" } else { "application/json" };
        let request = self
            .client
            .post(self.endpoint.join(&self.path))
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, accept)
            .headers(self.headers.clone())
            .body(body);
        self.send(request, self.options.first_byte_timeout).await
    }

    /// Asks for one document.
    pub(super) async fn get(&self, url: Url, time: Duration) -> Result<Response, ProviderError> {
        let request = self.client.get(url).header(ACCEPT, "application/json").headers(self.headers.clone());
        self.send(request, time).await
    }

    async fn send(&self, request: reqwest::RequestBuilder, time: Duration) -> Result<Response, ProviderError> {
        match tokio::time::timeout(time, request.send()).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) if error.is_timeout() => Err(ProviderError::TimedOut(self.options.connect_timeout)),
            Ok(Err(error)) => Err(ProviderError::Connection(told(error))),
            Err(_) => Err(ProviderError::TimedOut(time)),
        }
    }

    /// The error that a refusal is.
    pub(super) async fn refusal(&self, response: Response) -> ProviderError {
        let status = response.status().as_u16();
        let mut text = Vec::new();
        let mut body = Box::pin(body(response, self.options.idle_timeout, usize::MAX));
        // What there is of it is enough: the status has come.
        while let Ok(Some(chunk)) = body.try_next().await {
            text.extend_from_slice(&chunk);
            if text.len() >= MOST_OF_AN_ERROR {
                text.truncate(MOST_OF_AN_ERROR);
                break;
            }
        }
        ProviderError::from_answer(Some(status), &String::from_utf8_lossy(&text))
    }

    /// Takes keys and header values out of what an endpoint said.
    pub(super) fn redacted(&self, mut error: ProviderError) -> ProviderError {
        let text = match &mut error {
            ProviderError::Overflow(rejection) => &mut rejection.message,
            ProviderError::RateLimited { message, .. }
            | ProviderError::Denied { message, .. }
            | ProviderError::Invalid { message, .. }
            | ProviderError::Unavailable { message, .. }
            | ProviderError::Connection(message)
            | ProviderError::Garbled(message) => message,
            ProviderError::TimedOut(_) => return error,
        };
        *text = self.secrets.iter().fold(std::mem::take(text), |text, secret| secret.redact(text));
        error
    }
}

fn client(options: &HttpOptions, endpoint: &Endpoint) -> Result<reqwest::Client, SetupError> {
    // The provider of this process is respected; ring only stands in where there is none.
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
    // A key is for one host. reqwest itself would carry headers of our own (`x-api-key`) to another.
    let same_origin = redirect::Policy::custom(|attempt| {
        let from = attempt.previous().first();
        let same = from.is_some_and(|from| from.origin() == attempt.url().origin());
        if same && attempt.previous().len() <= 3 { attempt.follow() } else { attempt.stop() }
    });
    let mut builder = reqwest::Client::builder()
        .user_agent(concat!("foreshorten/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(options.connect_timeout)
        .redirect(same_origin)
        .referer(false);
    if endpoint.is_plain() {
        // Nothing is encrypted, and a machine without root certificates can still ask a local server.
        builder = builder.tls_certs_only(std::iter::empty());
    }
    builder.build().map_err(|error| SetupError(told(error)))
}

/// An error with its causes and without its address, which may hold a key.
pub(super) fn told(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        cause = inner.source();
    }
    text
}

/// Why a body broke off.
#[derive(Clone, Debug)]
pub(super) enum Broken {
    Silent(Duration),
    TooLong(usize),
    Connection(String),
}

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self:?}")
    }
}

impl Error for Broken {}

impl From<Broken> for ProviderError {
    fn from(broken: Broken) -> Self {
        match broken {
            Broken::Silent(time) => Self::TimedOut(time),
            Broken::TooLong(bytes) => Self::Garbled(format!("it has more than {bytes} bytes")),
            Broken::Connection(why) => Self::Connection(why),
        }
    }
}

/// The chunks of a body, with a bound on silence and on size.
pub(super) fn body(
    response: Response,
    idle: Duration,
    most: usize,
) -> impl Stream<Item = Result<Bytes, Broken>> + Send {
    futures_util::stream::try_unfold((response, 0_usize), move |(mut response, seen)| async move {
        let chunk = match tokio::time::timeout(idle, response.chunk()).await {
            Err(_) => return Err(Broken::Silent(idle)),
            Ok(Err(error)) => return Err(Broken::Connection(told(error))),
            Ok(Ok(None)) => return Ok(None),
            Ok(Ok(Some(chunk))) => chunk,
        };
        let seen = seen.saturating_add(chunk.len());
        if seen > most {
            return Err(Broken::TooLong(most));
        }
        Ok(Some((chunk, (response, seen))))
    })
}
