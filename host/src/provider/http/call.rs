//! One call: the request, its tries, and the reading of the answer.

use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _};
use reqwest::Response;
use reqwest::header::CONTENT_TYPE;
use sse_stream::SseByteStream;
use tracing::Instrument as _;

use super::client::{Broken, Http, body};
use super::quirks::{Quirks, Sent};
use super::retry::{Advice, Retries};
use super::trace;
use crate::formats::{Format, WireView};
use crate::provider::{Delta, ModelReply, ModelRequest, OnDelta, ProviderError};

/// What one protocol says of requests.
pub(super) trait Protocol: Sync {
    const FORMAT: Format;
    /// The name of the vendor in traces.
    const VENDOR: &'static str;
    type Answer: Answer;

    /// The body of a call, and what of it the endpoint may turn down.
    fn request(&self, request: &ModelRequest<'_>, wire: &WireView, quirks: Quirks) -> (String, Sent);
}

/// What one protocol says of answers: put together from events, or read at once.
pub(super) trait Answer: Send {
    /// An answer of which nothing has come. `known` is the number of entries in the record: ids made up here are
    /// counted from it, so that they do not repeat within a session.
    fn new(known: usize) -> Self;

    /// Takes one event of a stream.
    fn event(&mut self, kind: &str, data: &str, on_delta: &OnDelta<'_>) -> Result<(), ProviderError>;

    /// Whether the last event has come.
    fn is_over(&self) -> bool;

    /// Whether all of the answer has come, though perhaps not all that is told about it.
    fn is_whole(&self) -> bool {
        self.is_over()
    }

    /// Takes an answer that came at once.
    fn whole(&mut self, json: &str, on_delta: &OnDelta<'_>) -> Result<(), ProviderError>;

    /// The reply. An error when the end did not come: half an answer is none.
    fn reply(self) -> Result<ModelReply, ProviderError>;
}

/// Makes a call, with all its tries.
pub(super) async fn complete<P: Protocol>(
    http: &Http,
    protocol: &P,
    request: &ModelRequest<'_>,
    on_delta: &OnDelta<'_>,
) -> Result<ModelReply, ProviderError> {
    let span = trace::call(P::VENDOR, request.model, http);
    let result = tries(http, protocol, request, on_delta).instrument(span.clone()).await;
    let result = result.map_err(|error| http.redacted(error));
    trace::ended(&span, &result);
    result
}

async fn tries<P: Protocol>(
    http: &Http,
    protocol: &P,
    request: &ModelRequest<'_>,
    on_delta: &OnDelta<'_>,
) -> Result<ModelReply, ProviderError> {
    let unreadable = |error: crate::formats::FormatError| ProviderError::Invalid {
        status: None,
        message: format!("the record cannot be written: {error}"),
    };
    let wire = request.record.write(request.view, P::FORMAT).map_err(unreadable)?;
    let mut retries = Retries::new(&http.options, http.count_call());
    let mut quirks = http.quirks(request.model);
    let (body, mut sent) = protocol.request(request, &wire, quirks);
    let mut body = Bytes::from(body);
    let said = AtomicBool::new(false);
    let telling = |delta: Delta<'_>| {
        said.store(true, Ordering::Relaxed);
        on_delta(delta);
    };
    let mut attempts = 0;
    loop {
        attempts += 1;
        let time = http.options.total_timeout;
        let one = attempt::<P::Answer>(http, body.clone(), request.record.messages().len(), &telling);
        let (error, advice) = match tokio::time::timeout(time, one).await {
            Ok(Ok(reply)) => return Ok(ModelReply { attempts, ..reply }),
            Ok(Err(failed)) => failed,
            Err(_) => (ProviderError::TimedOut(time), Advice::default()),
        };
        if quirks.learn(&error, sent) {
            tracing::debug!(error = %http.redacted(error), "asking again without what the endpoint does not take");
            http.remember(request.model, quirks);
            let (again, sent_again) = protocol.request(request, &wire, quirks);
            (body, sent) = (Bytes::from(again), sent_again);
            continue;
        }
        let Some(wait) = retries.next(&error, advice) else { return Err(with_wait(error, advice)) };
        tracing::warn!(
            error.type = trace::class(&error),
            attempt = attempts,
            wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
            "trying again"
        );
        tokio::time::sleep(wait).await;
        if said.swap(false, Ordering::Relaxed) {
            on_delta(Delta::Restart);
        }
    }
}

/// A rate limit with the pause that the endpoint asks for.
fn with_wait(error: ProviderError, advice: Advice) -> ProviderError {
    match error {
        ProviderError::RateLimited { message, .. } => ProviderError::RateLimited { retry_after: advice.after, message },
        other => other,
    }
}

async fn attempt<A: Answer>(
    http: &Http,
    body: Bytes,
    known: usize,
    on_delta: &OnDelta<'_>,
) -> Result<ModelReply, (ProviderError, Advice)> {
    let plain = |error: ProviderError| (error, Advice::default());
    let response = http.post(body, http.options.stream).await.map_err(plain)?;
    if !response.status().is_success() {
        let advice = Advice::of(response.headers());
        return Err((http.refusal(response).await, advice));
    }
    read(http, response, A::new(known), on_delta).await.map_err(plain)
}

/// Reads a success, whichever way it came: a server may not know `stream`, or may mislabel what it sends.
async fn read<A: Answer>(
    http: &Http,
    response: Response,
    mut answer: A,
    on_delta: &OnDelta<'_>,
) -> Result<ModelReply, ProviderError> {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.to_ascii_lowercase();
    let chunks = body(response, http.options.idle_timeout, http.options.most_bytes);
    if kind.starts_with("text/event-stream") {
        events(chunks, &mut answer, on_delta).await?;
        return answer.reply();
    }
    let bytes = chunks.try_fold(Vec::new(), |mut all, chunk| async move {
        all.extend_from_slice(&chunk);
        Ok(all)
    });
    let bytes = bytes.await?;
    let text = std::str::from_utf8(&bytes).map_err(|_| ProviderError::Garbled("it is no UTF-8 text".into()))?;
    let text = text.trim_start_matches('\u{feff}').trim();
    match text.as_bytes().first() {
        Some(b'{' | b'[') => answer.whole(text, on_delta)?,
        Some(b'd' | b'e' | b':' | b'i' | b'r') if !kind.contains("html") => {
            let once = futures_util::stream::iter([Ok(Bytes::copy_from_slice(text.as_bytes()))]);
            events(once, &mut answer, on_delta).await?;
        }
        Some(_) => {
            return Err(ProviderError::Garbled(format!("`{kind}`: {}", crate::provider::error::shortened(text))));
        }
        None => return Err(ProviderError::Garbled("it is empty".into())),
    }
    answer.reply()
}

/// Feeds the events of a stream to the answer, until the last.
pub(super) async fn events<A: Answer>(
    chunks: impl futures_util::Stream<Item = Result<Bytes, Broken>> + Send,
    answer: &mut A,
    on_delta: &OnDelta<'_>,
) -> Result<(), ProviderError> {
    // Some servers leave out the empty line after the last event, without which it would not count.
    let end = futures_util::stream::iter([Ok(Bytes::from_static(b"\n\n"))]);
    let mut events = std::pin::pin!(SseByteStream::new(Box::pin(chunks.chain(end))));
    while let Some(event) = events.next().await {
        let event = match event {
            Ok(event) => event,
            // What breaks after the end was said breaks nothing.
            Err(_) if answer.is_whole() => break,
            Err(error) => return Err(broken(error)),
        };
        let Some(data) = event.data.filter(|data| !data.trim().is_empty()) else { continue };
        answer.event(event.event.as_deref().unwrap_or_default(), &data, on_delta)?;
        if answer.is_over() {
            // The rest is the end of the body; reading it keeps the connection for the next call.
            let _ = tokio::time::timeout(LINGER, events.next()).await;
            break;
        }
    }
    Ok(())
}

/// How long the end of a body is waited for after the last event.
const LINGER: std::time::Duration = std::time::Duration::from_millis(50);

fn broken(error: sse_stream::Error) -> ProviderError {
    match error {
        sse_stream::Error::Body(cause) => match cause.downcast::<Broken>() {
            Ok(broken) => ProviderError::from(*broken),
            Err(other) => ProviderError::Connection(other.to_string()),
        },
        other => ProviderError::Garbled(other.to_string()),
    }
}
