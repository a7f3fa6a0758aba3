//! From a model's name to the tokenizer it most likely has.

use super::{ByteEstimator, Family};

/// Names a model's name may begin with, or have at the start of a word; of two that fit in one
/// place, the first here. `None`: a tokenizer without weights of its own.
const KNOWN: &[(&str, Option<Family>)] = &[
    ("gpt-35", Some(Family::Cl100k)),
    ("gpt-3", Some(Family::Cl100k)),
    ("gpt-4o", Some(Family::O200k)),
    ("gpt-4.", Some(Family::O200k)),
    ("gpt-4", Some(Family::Cl100k)),
    ("gpt-", Some(Family::O200k)),
    ("chatgpt", Some(Family::O200k)),
    ("codex", Some(Family::O200k)),
    ("o1", Some(Family::O200k)),
    ("o3", Some(Family::O200k)),
    ("o4", Some(Family::O200k)),
    ("llama3", Some(Family::Llama3)),
    ("llama4", Some(Family::Llama3)),
    ("llama-3", Some(Family::Llama3)),
    ("llama-4", Some(Family::Llama3)),
    ("qwen3.5", Some(Family::Qwen35)),
    ("qwen3.6", Some(Family::Qwen35)),
    ("qwen", Some(Family::Qwen25)),
    ("qwq", Some(Family::Qwen25)),
    ("gemma", Some(Family::Gemma3)),
    ("gemini", Some(Family::Gemma3)),
    ("deepseek-r1-distill-llama", Some(Family::Llama3)),
    ("deepseek-r1-distill-qwen", Some(Family::Qwen25)),
    ("deepseek", Some(Family::DeepSeek)),
    // Older than tekken; their own tokenizer counts higher.
    ("mistral.mi", None),
    ("mistral-7b", None),
    ("mistral", Some(Family::Mistral)),
    ("ministral", Some(Family::Mistral)),
    ("magistral", Some(Family::Mistral)),
    ("codestral", Some(Family::Mistral)),
    ("devstral", Some(Family::Mistral)),
    ("pixtral", Some(Family::Mistral)),
    ("glm", Some(Family::Glm)),
];

/// Stands for every tokenizer without weights: it counts highest on prose and code, so that a view is
/// thought too large rather than too small until the provider has reported once.
const UNKNOWN: Family = Family::Claude;

impl Default for ByteEstimator {
    /// The estimator for a model of which nothing is known: the one that counts highest on prose and code.
    fn default() -> Self {
        Self::Automaton(UNKNOWN)
    }
}

impl ByteEstimator {
    /// The estimator for a model of that name, with or without a path or a vendor before it. A name that
    /// says nothing gets the family that counts highest on prose and code.
    ///
    /// ```
    /// use foreshorten_core::estimate::{ByteEstimator, Family};
    ///
    /// assert_eq!(ByteEstimator::for_model("openai/gpt-4o-mini"), ByteEstimator::Automaton(Family::O200k));
    /// assert_eq!(ByteEstimator::for_model("in-house-7b"), ByteEstimator::Automaton(Family::Claude));
    /// ```
    #[must_use]
    pub fn for_model(model: &str) -> Self {
        let name = model.rsplit('/').next().unwrap_or(model);
        let mut before = b'/';
        for (at, byte) in name.bytes().enumerate() {
            // `get` is None within a character, where no word begins.
            if !before.is_ascii_alphanumeric()
                && let Some(rest) = name.get(at..)
                && let Some(family) = family_of(rest)
            {
                return Self::Automaton(family);
            }
            before = byte;
        }
        Self::default()
    }
}

fn family_of(name: &str) -> Option<Family> {
    if let Some(version) = after(name, "claude") {
        return Some(claude(version));
    }
    let digit = |c: char| c.is_ascii_digit();
    let fits =
        |known: &str| after(name, known).is_some_and(|rest| !(known.ends_with(digit) && rest.starts_with(digit)));
    let (_, family) = KNOWN.iter().find(|(known, _)| fits(known))?;
    Some(family.unwrap_or(UNKNOWN))
}

/// What follows `start` in `name`, in whatever case.
fn after<'a>(name: &'a str, start: &str) -> Option<&'a str> {
    let head = name.get(..start.len())?;
    if head.eq_ignore_ascii_case(start) { name.get(start.len()..) } else { None }
}

/// Claude counts some 1.4 times higher from 4.7 on. A name whose version is not understood is new.
fn claude(version: &str) -> Family {
    let mut words = version.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let number = |word: &str| if word.len() <= 2 { word.parse::<u8>().ok() } else { None };
    let mut first = words.next().unwrap_or("");
    if ["opus", "sonnet", "haiku", "instant"].iter().any(|tier| first.eq_ignore_ascii_case(tier)) {
        first = words.next().unwrap_or("");
    }
    let minor = words.next().and_then(number).unwrap_or(0);
    match number(first) {
        Some(major) if (major, minor) < (4, 7) => Family::Claude3,
        _ => Family::Claude,
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::String;

    use proptest::prelude::*;

    use super::*;

    fn name_of(model: &str) -> &'static str {
        ByteEstimator::for_model(model).name()
    }

    #[test]
    fn models_people_run_get_their_tokenizer() {
        for (family, models) in [
            (
                "o200k",
                "gpt-4o gpt-4o-2024-08-06 gpt-4.1 gpt-5 gpt-5-codex gpt-5.6-sol o1 o3-mini openai/o4-mini \
                 chatgpt-4o-latest codex-auto-review ft:gpt-4o-mini:org::x openai/gpt-oss-120b our-gpt-5",
            ),
            ("cl100k", "gpt-4 gpt-4-turbo gpt-3.5-turbo gpt-35-turbo GPT-4-32k"),
            (
                "llama3",
                "llama3:8b meta-llama/Llama-3.3-70B-Instruct us.meta.llama3-1-70b-instruct-v1:0 \
                 meta-llama/llama-4-maverick hermes-3-llama-3.1-70b deepseek-r1-distill-llama-70b",
            ),
            ("qwen2.5", "qwen2.5-coder:7b Qwen/Qwen3-32B qwen-plus qwq-32b DeepSeek-R1-Distill-Qwen-32B"),
            ("qwen3.5", "qwen3.5-plus Qwen/Qwen3.6-35B"),
            ("gemma3", "gemma-3-27b-it gemini-2.5-pro models/gemini-3-flash"),
            (
                "claude3",
                "claude-3-5-sonnet-20241022 claude-sonnet-4-20250514 claude-opus-4-5-20251101 claude-opus-4-6 \
                 anthropic/claude-sonnet-4.5 us.anthropic.claude-3-haiku-20240307-v1:0 claude-sonnet-4-5@20250929 \
                 anthropic.claude-opus-4-20250514-v1:0 claude-sonnet-4-5[1m] claude-2.1",
            ),
            (
                "claude",
                "claude-opus-4-7 claude-opus-4.8 anthropic/claude-sonnet-5 claude-opus-5-20270101 claude claude-new-1",
            ),
            ("deepseek", "deepseek-chat deepseek/deepseek-r1:free accounts/fireworks/models/deepseek-v3p1"),
            ("mistral", "mistral-large-latest codestral-2501 devstral-small mistral.devstral-2"),
            ("glm", "glm-4.7 zai-org/GLM-4.6 zai-glm-4.6"),
        ] {
            for model in models.split_whitespace() {
                assert_eq!(name_of(model), family, "{model}");
            }
        }
    }

    #[test]
    fn strangers_get_the_family_that_counts_highest() {
        for model in [
            "",
            "/",
            "gpt",
            "o10",
            "go1",
            "sonnet",
            "fake-model",
            "llama-2-70b",
            "grok-4",
            "kimi-k2",
            "minimax-m2",
            "mistral-7b",
            "mistral.mixtral-8x7b",
            "mixtral-8x7b",
            "myqwen",
            "通义千问",
            "é",
            "gpté-4",
        ] {
            assert_eq!(name_of(model), "claude", "{model}");
        }
    }

    proptest! {
        #[test]
        fn any_name_has_an_answer(model in any::<String>(), tail in "(claude|gpt-3|o1|mistral.)?\\PC{0,9}") {
            let _ = name_of(&model);
            let _ = name_of(&tail);
        }
    }
}
