//! Misbehaviours, carried out.

use std::time::Duration;

use crate::agent::Answer;
use crate::config::Protocol;
use crate::fault::{Fault, RateWording, RetryAfter};
use crate::log::Record;
use crate::refusal::error;
use crate::reply::{Reply, Step};
use crate::wire::{Event, Frame};

/// The answer in place of any look at the request.
pub(crate) fn instead(fault: &Fault, protocol: Protocol, record: &Record) -> Reply {
    match fault {
        Fault::RateLimit { retry_after, wording } => rate_limit(*retry_after, *wording, protocol, record),
        Fault::Status(status) => {
            let (message, code) = match (protocol, status) {
                (Protocol::Messages, 529) => ("Overloaded", None),
                (Protocol::Messages, _) => ("Internal server error", None),
                (_, 503 | 529) => {
                    ("The engine is currently overloaded, please try again later", Some("server_is_overloaded"))
                }
                (_, 502) => ("Bad gateway.", None),
                _ => ("The server had an error while processing your request. Sorry about that!", None),
            };
            Reply::json(*status, &error(protocol, *status, message, None, code, "req_sim"))
        }
        Fault::Hang(pause) => Reply::nothing(*pause),
        Fault::Html(status) => Reply::new(*status, "text/html", html(*status)),
        Fault::Raw { status, content_type, body } => Reply::new(*status, content_type, body.clone()),
        // `Reset`, and whatever else should never have come here.
        _ => Reply::nothing(Duration::ZERO),
    }
}

/// The answer as the model would give it under this misbehaviour.
pub(crate) fn change(fault: Option<&Fault>, mut answer: Answer) -> Answer {
    match fault {
        Some(Fault::EmptyAnswer) => Answer::empty(),
        Some(Fault::ForeignCharset) => {
            answer.text = format!("Déjà vu – naïve façade. {}", answer.text);
            answer
        }
        _ => answer,
    }
}

/// The events of a stream, spoiled where they should be.
pub(crate) fn stream(fault: Option<&Fault>, frame: &Frame<'_>, mut events: Vec<Event>) -> Reply {
    let middle = events.len() / 2;
    match fault {
        Some(Fault::NoTerminalEvent) => events.retain(|event| !event.terminal),
        Some(Fault::InvalidJson) => {
            let data = &mut events[middle].data;
            let end = data.floor_char_boundary(data.len() * 2 / 3);
            data.truncate(end);
        }
        Some(Fault::ErrorEvent) => {
            events.truncate(middle);
            events.push(frame.error_event("Overloaded", "server_is_overloaded", 529));
        }
        _ => {}
    }
    Reply::stream(events.iter().map(Event::to_text))
}

/// What happens to an answer between model and client.
pub(crate) fn on_the_way(fault: Option<&Fault>, streamed: bool, reply: Reply) -> Reply {
    match fault {
        Some(Fault::HangMidStream(pause)) => reply.half([Step::Wait(*pause), Step::Reset]),
        Some(Fault::ResetMidStream) => reply.half([Step::Reset]),
        Some(Fault::Truncated) => reply.half([]),
        Some(Fault::NoTerminalEvent | Fault::InvalidJson | Fault::ErrorEvent) if !streamed => reply.half([]),
        Some(Fault::Slow(pause)) => reply.slow(*pause),
        Some(Fault::ForeignCharset) => {
            let kind = if streamed { "text/event-stream" } else { "application/json" };
            reply.map_bytes(latin1).header("content-type", format!("{kind}; charset=iso-8859-1"))
        }
        Some(Fault::WrongContentType) => {
            reply.header("content-type", if streamed { "application/json" } else { "text/plain" })
        }
        _ => reply,
    }
}

fn rate_limit(retry_after: RetryAfter, wording: RateWording, protocol: Protocol, record: &Record) -> Reply {
    let wanted = record.prompt_tokens.max(2);
    let limit = wanted / 2;
    let mut message = match (protocol, wording) {
        (Protocol::Messages, RateWording::TokensPerMinute) => format!(
            "This request would exceed the rate limit for your organization of {limit} input tokens per minute. Please \
             reduce the prompt length or the maximum tokens requested, or try again later."
        ),
        (_, RateWording::TokensPerMinute) => format!(
            "Request too large for {} on tokens per min (TPM): Limit {limit}, Requested {wanted}. The input or output \
             tokens must be reduced in order to run successfully.",
            record.model
        ),
        (Protocol::Messages, RateWording::Requests) => {
            "This request would exceed your organization's rate limit of 50 requests per minute.".to_owned()
        }
        (_, RateWording::Requests) => {
            format!(
                "Rate limit reached for {} on requests per min (RPM): Limit 500, Used 500, Requested 1.",
                record.model
            )
        }
        (_, RateWording::Quota) => {
            "You exceeded your current quota, please check your plan and billing details.".to_owned()
        }
    };
    if let RetryAfter::InText(millis) = retry_after {
        message.push_str(&format!(" Please try again in {}.{:03}s.", millis / 1_000, millis % 1_000));
    }
    let code = match wording {
        RateWording::Quota => "insufficient_quota",
        RateWording::Requests | RateWording::TokensPerMinute => "rate_limit_exceeded",
    };
    let reply = Reply::json(429, &error(protocol, 429, &message, None, Some(code), "req_sim"));
    match retry_after {
        RetryAfter::Seconds(seconds) => reply.header("retry-after", seconds),
        RetryAfter::Millis(millis) => reply.header("retry-after-ms", millis),
        RetryAfter::Unsaid | RetryAfter::InText(_) => reply,
    }
}

fn html(status: u16) -> String {
    format!(
        "<html>\r\n<head><title>{status} Bad Gateway</title></head>\r\n<body>\r\n<center><h1>{status} Bad \
         Gateway</h1></center>\r\n<hr><center>nginx</center>\r\n</body>\r\n</html>\r\n"
    )
}

/// UTF-8 as ISO-8859-1; what has no place there becomes a question mark.
fn latin1(bytes: &[u8]) -> Vec<u8> {
    String::from_utf8_lossy(bytes).chars().map(|c| u8::try_from(u32::from(c)).unwrap_or(b'?')).collect()
}
