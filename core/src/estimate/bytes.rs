//! The byte estimator: which rule, under which name, and the limits of its answer.

use core::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::automaton::{Weights, weigh};
use super::tables;

/// How text is turned into tokens.
///
/// Serialised as its [name](Self::name) for people and as its [id](Self::id) for machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ByteEstimator {
    /// One token for every four bytes, rounded up.
    BytesPer4,
    /// The byte automaton with the weights of a tokenizer family.
    Automaton(Family),
}

/// Tokenizers that have weights of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u8)]
pub enum Family {
    /// `o200k_base`: GPT-4o and every OpenAI model after it.
    O200k = 1,
    /// `cl100k_base`: GPT-4 and GPT-3.5.
    Cl100k = 2,
    /// Llama 3.
    Llama3 = 3,
    /// Qwen 2 to Qwen 3.
    Qwen25 = 4,
    /// Qwen 3.5 and later.
    Qwen35 = 5,
    /// Gemma 3, which also stands in for Gemini.
    Gemma3 = 6,
    /// Claude 4.7 and later: the family that counts highest on prose and code.
    Claude = 7,
    /// Claude 3 to Claude 4.6.
    Claude3 = 8,
    /// DeepSeek V3.
    DeepSeek = 9,
    /// Mistral's tekken.
    Mistral = 10,
    /// GLM 4.5 and later.
    Glm = 11,
}

impl Family {
    /// Every family, in the order of their ids.
    pub const ALL: [Self; 11] = [
        Self::O200k,
        Self::Cl100k,
        Self::Llama3,
        Self::Qwen25,
        Self::Qwen35,
        Self::Gemma3,
        Self::Claude,
        Self::Claude3,
        Self::DeepSeek,
        Self::Mistral,
        Self::Glm,
    ];

    /// The name it goes by in configurations.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::O200k => "o200k",
            Self::Cl100k => "cl100k",
            Self::Llama3 => "llama3",
            Self::Qwen25 => "qwen2.5",
            Self::Qwen35 => "qwen3.5",
            Self::Gemma3 => "gemma3",
            Self::Claude => "claude",
            Self::Claude3 => "claude3",
            Self::DeepSeek => "deepseek",
            Self::Mistral => "mistral",
            Self::Glm => "glm",
        }
    }

    const fn weights(self) -> &'static Weights {
        match self {
            Self::O200k => &tables::O200K,
            Self::Cl100k => &tables::CL100K,
            Self::Llama3 => &tables::LLAMA3,
            Self::Qwen25 => &tables::QWEN25,
            Self::Qwen35 => &tables::QWEN35,
            Self::Gemma3 => &tables::GEMMA3,
            Self::Claude => &tables::CLAUDE47,
            Self::Claude3 => &tables::CLAUDE3,
            Self::DeepSeek => &tables::DEEPSEEK,
            Self::Mistral => &tables::MISTRAL,
            Self::Glm => &tables::GLM,
        }
    }
}

impl ByteEstimator {
    /// The tokens `text` is thought to cost.
    ///
    /// ```
    /// use foreshorten_core::estimate::ByteEstimator;
    ///
    /// let o200k = ByteEstimator::for_model("gpt-5");
    /// assert_eq!(o200k.tokens(""), 0);
    /// assert_eq!(o200k.tokens("The quick brown fox jumps over the lazy dog."), 10); // and so it has
    /// assert_eq!(ByteEstimator::BytesPer4.tokens("12345"), 2);
    /// ```
    #[must_use]
    pub fn tokens(self, text: &str) -> u32 {
        self.tokens_of_bytes(text.as_bytes())
    }

    /// The tokens `bytes` are thought to cost, taken as UTF-8; bytes that are not have a price too.
    ///
    /// Whatever the weights say, nothing costs more than a token a byte, or less than one for every 128.
    #[must_use]
    pub fn tokens_of_bytes(self, bytes: &[u8]) -> u32 {
        let len = bytes.len();
        let tokens = match self {
            Self::BytesPer4 => len.div_ceil(4),
            Self::Automaton(family) => {
                // 64 to the token, to the nearest.
                let tokens = (weigh(family.weights(), bytes) + 32) >> 6;
                usize::try_from(tokens).unwrap_or(0).clamp(len.div_ceil(128), len)
            }
        };
        u32::try_from(tokens).unwrap_or(u32::MAX)
    }

    /// The name it goes by in configurations: `bytes4`, or the [family's](Family::name).
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::BytesPer4 => "bytes4",
            Self::Automaton(family) => family.name(),
        }
    }

    /// The estimator of that [name](Self::name), if there is one.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::all().find(|estimator| estimator.name() == name)
    }

    /// A code that stays the same in every version: 0 for `bytes4`, the family's number otherwise.
    #[must_use]
    pub const fn id(self) -> u8 {
        match self {
            Self::BytesPer4 => 0,
            Self::Automaton(family) => family as u8,
        }
    }

    /// The estimator of that [id](Self::id), if there is one.
    #[must_use]
    pub fn from_id(id: u8) -> Option<Self> {
        Self::all().find(|estimator| estimator.id() == id)
    }

    /// Every estimator, in the order of their ids.
    pub fn all() -> impl Iterator<Item = Self> {
        core::iter::once(Self::BytesPer4).chain(Family::ALL.into_iter().map(Self::Automaton))
    }
}

impl fmt::Display for ByteEstimator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for ByteEstimator {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.serialize_str(self.name())
        } else {
            serializer.serialize_u8(self.id())
        }
    }
}

impl<'de> Deserialize<'de> for ByteEstimator {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            deserializer.deserialize_str(Name)
        } else {
            let id = u8::deserialize(deserializer)?;
            Self::from_id(id).ok_or_else(|| de::Error::custom("no byte estimator has this id"))
        }
    }
}

/// Reads a name without keeping it.
struct Name;

impl de::Visitor<'_> for Name {
    type Value = ByteEstimator;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a byte estimator")?;
        let mut before = ": ";
        ByteEstimator::all().try_for_each(|estimator| {
            let written = write!(f, "{before}{estimator}");
            before = ", ";
            written
        })
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<ByteEstimator, E> {
        ByteEstimator::parse(name).ok_or_else(|| E::invalid_value(de::Unexpected::Str(name), &self))
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::String;
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    const O200K: ByteEstimator = ByteEstimator::Automaton(Family::O200k);

    #[test]
    fn ids_and_names_are_what_they_always_were() {
        let all: Vec<_> = ByteEstimator::all().map(|e| (e.id(), e.name())).collect();
        let names = [
            "bytes4", "o200k", "cl100k", "llama3", "qwen2.5", "qwen3.5", "gemma3", "claude", "claude3", "deepseek",
            "mistral", "glm",
        ];
        assert_eq!(all, (0..).zip(names).collect::<Vec<_>>());
        for estimator in ByteEstimator::all() {
            assert_eq!(ByteEstimator::parse(estimator.name()), Some(estimator));
            assert_eq!(ByteEstimator::from_id(estimator.id()), Some(estimator));
        }
        assert_eq!(ByteEstimator::parse("auto"), None);
        assert_eq!(ByteEstimator::parse("O200K"), None);
        assert_eq!(ByteEstimator::from_id(12), None);
    }

    #[test]
    fn a_name_for_people_and_one_byte_for_machines() {
        for estimator in ByteEstimator::all() {
            let json = serde_json::to_string(&estimator).unwrap();
            assert_eq!(json, format!("\"{estimator}\""));
            assert_eq!(serde_json::from_str::<ByteEstimator>(&json).unwrap(), estimator);
            let code = postcard::to_allocvec(&estimator).unwrap();
            assert_eq!(code, [estimator.id()]);
            assert_eq!(postcard::from_bytes::<ByteEstimator>(&code).unwrap(), estimator);
        }
        let error = serde_json::from_str::<ByteEstimator>("\"auto\"").unwrap_err();
        assert!(format!("{error}").contains("expected the name of a byte estimator: bytes4, o200k, "), "{error}");
        assert!(postcard::from_bytes::<ByteEstimator>(&[200]).is_err());
    }

    #[test]
    fn nothing_costs_nothing_and_something_at_least_one() {
        for estimator in ByteEstimator::all() {
            assert_eq!(estimator.tokens(""), 0, "{estimator}");
            for text in ["a", " ", "\n", "7", "é", "\u{1F600}", "\0"] {
                assert!(estimator.tokens(text) >= 1, "{estimator} {text:?}");
            }
        }
    }

    #[test]
    fn bytes_per_four_rounds_up() {
        let of = |text| ByteEstimator::BytesPer4.tokens(text);
        assert_eq!([of(""), of("a"), of("abcd"), of("abcde"), of("ééé")], [0, 1, 1, 2, 2]);
    }

    #[test]
    fn blank_space_meets_the_floor_and_dense_text_the_ceiling() {
        assert_eq!(O200K.tokens(&" ".repeat(12_800)), 100);
        for estimator in ByteEstimator::all().skip(1) {
            let dense: String = "q7\u{378}".repeat(500);
            assert!(estimator.tokens(&dense) as usize <= dense.len(), "{estimator}");
        }
    }

    /// The same on every machine: a change of a table, a class or a transition shows here.
    #[test]
    fn numbers_are_pinned() {
        let text = "fn main() {\n    let total_count = 0x1F3a + 12345; // naïve – 汉字 かな Привет שלום नमस्ते 🙂\n}\n";
        let found: Vec<u32> = ByteEstimator::all().map(|estimator| estimator.tokens(&text.repeat(10))).collect();
        assert_eq!(found, [315, 403, 529, 463, 515, 484, 453, 565, 527, 436, 466, 506]);
    }

    #[test]
    fn the_parts_weigh_what_the_whole_does_when_cut_at_lines() {
        let text = "error[E0308]: mismatched types\n  --> src/main.rs:12:34\n   |\n12 | let x: u32 = \"seven\";\n\n"
            .repeat(40);
        for estimator in ByteEstimator::all() {
            let whole = estimator.tokens(&text);
            for cut in [1, 100, 199] {
                let at = text.match_indices('\n').nth(cut).unwrap().0 + 1;
                let parts = estimator.tokens(&text[..at]) + estimator.tokens(&text[at..]);
                assert!(parts.abs_diff(whole) <= 1, "{estimator}: {parts} for {whole}");
            }
        }
    }

    proptest! {
        #[test]
        fn any_text_stays_within_its_limits(text in any::<String>(), times in 1usize..200) {
            let text = text.repeat(times);
            for estimator in ByteEstimator::all() {
                let tokens = estimator.tokens(&text) as usize;
                prop_assert!((text.len().div_ceil(128)..=text.len()).contains(&tokens), "{} {}", estimator, tokens);
                prop_assert_eq!(tokens, estimator.tokens(&text) as usize);
            }
        }

        #[test]
        fn any_bytes_stay_within_their_limits(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
            for estimator in ByteEstimator::all() {
                let tokens = estimator.tokens_of_bytes(&bytes) as usize;
                prop_assert!((bytes.len().div_ceil(128)..=bytes.len()).contains(&tokens));
            }
        }

        /// Cut after a line feed, two texts weigh what their join does, but for rounding and the limits.
        #[test]
        fn lines_add_up(one in "([a-z]{1,9} |[0-9]{1,5}|[A-Z]\\p{Han}?){4,80}", two in "([a-z]{1,9}[ -/]){4,80}") {
            let one = one + "\n";
            for estimator in ByteEstimator::all() {
                let at_limit = |text: &String| estimator.tokens(text) as usize == text.len();
                if at_limit(&one) || at_limit(&two) {
                    continue;
                }
                let parts = estimator.tokens(&one) + estimator.tokens(&two);
                prop_assert!(parts.abs_diff(estimator.tokens(&(one.clone() + &two))) <= 1);
            }
        }
    }
}
