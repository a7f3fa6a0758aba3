//! Spans with the field names of OpenTelemetry's conventions for generative AI. Nothing of a conversation is in them.

use tracing::{Span, field};

use super::client::Http;
use crate::provider::{FinishReason, ModelReply, ProviderError};

/// The span of one call.
pub(super) fn call(vendor: &'static str, model: &str, http: &Http) -> Span {
    tracing::info_span!(
        "gen_ai.chat",
        otel.name = format!("chat {model}"),
        otel.kind = "client",
        gen_ai.operation.name = "chat",
        gen_ai.provider.name = vendor,
        gen_ai.request.model = model,
        gen_ai.response.model = field::Empty,
        gen_ai.response.finish_reasons = field::Empty,
        gen_ai.usage.input_tokens = field::Empty,
        gen_ai.usage.output_tokens = field::Empty,
        gen_ai.usage.cache_read.input_tokens = field::Empty,
        gen_ai.usage.cache_creation.input_tokens = field::Empty,
        server.address = http.endpoint.host(),
        server.port = http.endpoint.port(),
        error.type = field::Empty,
        attempts = field::Empty,
    )
}

/// Records how a call ended.
pub(super) fn ended(span: &Span, result: &Result<ModelReply, ProviderError>) {
    match result {
        Ok(reply) => {
            if let Some(model) = &reply.model {
                span.record("gen_ai.response.model", model.as_str());
            }
            span.record("gen_ai.response.finish_reasons", finish(&reply.finish));
            span.record("attempts", reply.attempts);
            if let Some(usage) = &reply.usage {
                span.record("gen_ai.usage.input_tokens", usage.input_tokens);
                span.record("gen_ai.usage.output_tokens", usage.output_tokens);
                span.record("gen_ai.usage.cache_read.input_tokens", usage.cache_read_tokens);
                span.record("gen_ai.usage.cache_creation.input_tokens", usage.cache_write_tokens);
            }
        }
        Err(error) => {
            span.record("error.type", class(error));
        }
    }
}

/// The class of an error, of which there are few.
pub(super) const fn class(error: &ProviderError) -> &'static str {
    match error {
        ProviderError::Overflow(_) => "overflow",
        ProviderError::RateLimited { .. } => "rate_limited",
        ProviderError::Denied { .. } => "denied",
        ProviderError::Invalid { .. } => "invalid",
        ProviderError::Unavailable { .. } => "unavailable",
        ProviderError::TimedOut(_) => "timeout",
        ProviderError::Connection(_) => "connection",
        ProviderError::Garbled(_) => "garbled",
    }
}

fn finish(reason: &FinishReason) -> &str {
    match reason {
        FinishReason::Stop => "stop",
        FinishReason::ToolCalls => "tool_calls",
        FinishReason::Length => "length",
        FinishReason::ContextWindow => "context_window",
        FinishReason::Refused => "content_filter",
        FinishReason::Paused => "paused",
        FinishReason::Other(reason) => reason,
    }
}
