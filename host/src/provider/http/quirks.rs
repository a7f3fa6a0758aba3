//! What a model or its server was seen to refuse, so that it is not sent twice.

use foreshorten_core::text::floor_boundary;

use crate::provider::ProviderError;

/// What is done otherwise for one model. Learned from refusals, for as long as the adapter lives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Quirks {
    /// It takes no temperature.
    pub(super) no_temperature: bool,
    /// The output limit goes by the other of its two names.
    pub(super) other_limit: bool,
    /// It takes no `stream_options`, and so reports no usage in a stream.
    pub(super) no_stream_options: bool,
    /// It takes no cache breakpoints.
    pub(super) no_marks: bool,
    /// It has no encrypted reasoning to give.
    pub(super) no_encrypted_reasoning: bool,
}

/// What the refused request had in it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sent {
    pub(super) temperature: bool,
    /// The name of the output limit, and the name it could have instead.
    pub(super) limit: Option<(&'static str, &'static str)>,
    pub(super) stream_options: bool,
    pub(super) marks: bool,
    pub(super) encrypted_reasoning: bool,
}

impl Quirks {
    /// Learns from a refusal. `true`: another try without what was refused makes sense.
    pub(super) fn learn(&mut self, error: &ProviderError, sent: Sent) -> bool {
        let ProviderError::Invalid { status: Some(400 | 404 | 415 | 422), message } = error else { return false };
        let said = message.to_ascii_lowercase();
        let refuses = |name: &str| refuses(&said, name);
        let learn = |flag: &mut bool, sees: bool| {
            let news = sees && !*flag;
            *flag |= news;
            news
        };
        // A server that wants the other name often says no more than that.
        let limit = |(name, other): (&str, &str)| said.contains(name) && (said.contains(other) || refuses(name));
        let marks = || refuses("cache_control") || refuses("prompt_cache");
        learn(&mut self.no_temperature, sent.temperature && refuses("temperature"))
            || learn(&mut self.other_limit, sent.limit.is_some_and(limit))
            || learn(&mut self.no_stream_options, sent.stream_options && refuses("stream_options"))
            || learn(&mut self.no_marks, sent.marks && marks())
            || learn(&mut self.no_encrypted_reasoning, sent.encrypted_reasoning && refuses("encrypted"))
    }
}

/// Whether a text says near a name that it is not taken. Only near it: many servers repeat the request they refuse.
fn refuses(said: &str, name: &str) -> bool {
    said.match_indices(name).any(|(at, _)| {
        let from = floor_boundary(said, at.saturating_sub(100));
        let to = floor_boundary(said, at + 160);
        REFUSALS.iter().any(|word| said[from..to].contains(word))
    })
}

/// Words by which servers say that they do not take a member of the request.
const REFUSALS: [&str; 12] = [
    "unsupported",
    "not support",
    "does not support",
    "only the default",
    "unknown",
    "unrecognized",
    "unexpected",
    "not permitted",
    "not allowed",
    "extra inputs",
    "deprecated",
    "cannot both be",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> ProviderError {
        ProviderError::from_answer(Some(400), text)
    }

    const SENT: Sent = Sent {
        temperature: true,
        limit: Some(("max_tokens", "max_completion_tokens")),
        stream_options: true,
        marks: true,
        encrypted_reasoning: true,
    };

    #[test]
    fn each_refusal_is_learned_once() {
        for (text, expected) in [
            (
                "Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) is supported.",
                Quirks { no_temperature: true, ..Quirks::default() },
            ),
            (
                "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
                Quirks { other_limit: true, ..Quirks::default() },
            ),
            ("stream_options: Extra inputs are not permitted", Quirks { no_stream_options: true, ..Quirks::default() }),
            (
                "messages.0.content.0.cache_control: Extra inputs are not permitted",
                Quirks { no_marks: true, ..Quirks::default() },
            ),
            (
                "Encrypted content is not supported with this model.",
                Quirks { no_encrypted_reasoning: true, ..Quirks::default() },
            ),
        ] {
            let mut quirks = Quirks::default();
            assert!(quirks.learn(&refusal(text), SENT), "{text}");
            assert_eq!(quirks, expected, "{text}");
            assert!(!quirks.learn(&refusal(text), SENT), "{text}");
        }
    }

    #[test]
    fn an_error_about_a_value_teaches_nothing() {
        for text in [
            "max_tokens: 33000 > 8192, which is the maximum allowed number of output tokens",
            "temperature must be between 0 and 2",
            "messages: roles must alternate",
            r#"bad tool. You sent {"stream_options":{"include_usage":true},"temperature":0.5}"#,
        ] {
            let mut quirks = Quirks::default();
            assert!(!quirks.learn(&refusal(text), SENT), "{text}");
        }
        let nothing = Sent::default();
        assert!(!Quirks::default().learn(&refusal("temperature is unsupported"), nothing));
    }
}
