//! A bound on what tools put into the record.
//!
//! Compaction bounds views; the record keeps everything. What a tool gives back is bounded here, at its source, and
//! only if asked for: it loses content for good, and recall sees what is left.

use std::sync::Arc;

use async_trait::async_trait;
use foreshorten_core::marker::limit_marker;
use foreshorten_core::text::has_chars;
use foreshorten_core::transcript::Part;

use super::{Tool, ToolCall, ToolOutput, ToolSpec};

/// Default of the most characters of one output, as in the seeds.
pub const MAX_OUTPUT_CHARS: usize = 200_000;

/// Share of what is kept that is taken from the beginning, in per cent: an output's beginning says what it is, its end
/// how it came out.
const HEAD_PERCENT: usize = 80;

/// Cuts the text of an output to at most `max_chars` characters, the sentence that says what was cut included. The
/// first four fifths and the last fifth stay, cut between characters. Images and files stay.
///
/// Where `max_chars` is less than that sentence, it alone is left.
///
/// ```
/// use foreshorten::tool::{ToolOutput, limit_output};
/// let short = ToolOutput::text("fine");
/// assert_eq!(limit_output(short.clone(), 200_000), short);
/// let long = limit_output(ToolOutput::text("x".repeat(1_000_000)), 200_000);
/// # let foreshorten::core::transcript::Part::Text(text) = &long.parts[0] else { panic!() };
/// assert!((199_900..=200_000).contains(&text.chars().count()));
/// ```
#[must_use]
pub fn limit_output(output: ToolOutput, max_chars: usize) -> ToolOutput {
    let texts = || output.parts.iter().filter_map(text_of);
    let bytes: usize = texts().map(str::len).sum();
    if bytes <= max_chars {
        return output;
    }
    let total: usize = texts().map(|text| text.chars().count()).sum();
    if total <= max_chars {
        return output;
    }
    // The sentence has numbers in it, and is longest with the largest.
    let longest = limit_marker(total as u64, total as u64, total as u64).chars().count() + 2;
    let keep = max_chars.saturating_sub(longest);
    let tail = keep / 100 * (100 - HEAD_PERCENT);
    let head = keep - tail;
    let marker = limit_marker(total as u64, head as u64, tail as u64);
    let (mut seen, mut said) = (0usize, false);
    let mut parts = Vec::with_capacity(output.parts.len());
    for part in output.parts {
        let Part::Text(text) = part else {
            parts.push(part);
            continue;
        };
        let chars = text.chars().count();
        let (from, to) = (seen, seen + chars);
        seen = to;
        let first = if from < head { &text[..at_char(&text, head - from)] } else { "" };
        let last = if to > total - tail { &text[at_char(&text, (total - tail).saturating_sub(from))..] } else { "" };
        let mut kept = first.to_owned();
        if !said && to > head {
            said = true;
            kept.push_str(if head > 0 { "\n" } else { "" });
            kept.push_str(&marker);
            kept.push_str(if tail > 0 { "\n" } else { "" });
        }
        kept.push_str(last);
        if !kept.is_empty() || chars == 0 {
            parts.push(Part::Text(kept));
        }
    }
    ToolOutput { parts, is_error: output.is_error }
}

const fn text_of(part: &Part) -> Option<&str> {
    match part {
        Part::Text(text) => Some(text.as_str()),
        _ => None,
    }
}

/// The byte at which character number `chars` begins.
fn at_char(text: &str, chars: usize) -> usize {
    if !has_chars(text, chars) {
        return text.len();
    }
    text.char_indices().nth(chars).map_or(text.len(), |(at, _)| at)
}

/// A tool whose output is cut by [`limit_output`].
///
/// ```
/// use std::sync::Arc;
/// use foreshorten::tool::{LimitedTool, Tool, make_recall_tool};
/// let tool = LimitedTool::new(make_recall_tool(None)).with_max_chars(50_000);
/// assert_eq!(tool.spec().name, "recall_tool_result");
/// ```
pub struct LimitedTool {
    tool: Arc<dyn Tool>,
    max_chars: usize,
}

impl LimitedTool {
    /// A tool that gives back at most [`MAX_OUTPUT_CHARS`].
    #[must_use]
    pub fn new(tool: Arc<dyn Tool>) -> Self {
        Self { tool, max_chars: MAX_OUTPUT_CHARS }
    }

    /// The same with another bound, in characters.
    #[must_use]
    pub const fn with_max_chars(mut self, max_chars: usize) -> Self {
        self.max_chars = max_chars;
        self
    }
}

impl std::fmt::Debug for LimitedTool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LimitedTool").field("max_chars", &self.max_chars).finish_non_exhaustive()
    }
}

#[async_trait]
impl Tool for LimitedTool {
    fn spec(&self) -> ToolSpec {
        self.tool.spec()
    }

    async fn call(&self, call: ToolCall<'_>) -> ToolOutput {
        limit_output(self.tool.call(call).await, self.max_chars)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn whole(output: &ToolOutput) -> String {
        output.parts.iter().filter_map(text_of).collect()
    }

    #[test]
    fn beginning_and_end_stay_and_what_was_cut_is_said() {
        let text = format!("{}{}", "a".repeat(900), "z".repeat(900));
        let cut = whole(&limit_output(ToolOutput::text(text), 1_000));
        assert!(cut.starts_with("aaaa") && cut.ends_with("zzzz"));
        assert!(cut.contains("of 1,800 characters") && cut.contains("cannot be recalled"), "{cut}");
        assert!((980..=1_000).contains(&cut.chars().count()), "{}", cut.chars().count());
    }

    #[test]
    fn images_and_the_error_flag_stay() {
        let image = Part::Image("image/png".into(), vec![1; 10_000]);
        let parts = vec![Part::Text("x".repeat(600)), image.clone(), Part::Text("y".repeat(600))];
        let cut = limit_output(ToolOutput { parts, is_error: true }, 500);
        assert!(cut.is_error && cut.parts.contains(&image));
        assert!(whole(&cut).chars().count() <= 500);
    }

    #[test]
    fn a_bound_below_the_sentence_leaves_the_sentence() {
        let cut = whole(&limit_output(ToolOutput::text("x".repeat(1_000)), 0));
        assert!(cut.starts_with("[Output cut") && cut.ends_with(']'), "{cut}");
    }

    proptest! {
        #[test]
        fn any_text_is_cut_between_characters_and_once(
            texts in proptest::collection::vec("[a漢🙂é\u{301}\n]{0,400}", 0..4),
            max in 200usize..700,
        ) {
            let output = ToolOutput { parts: texts.into_iter().map(Part::Text).collect(), is_error: false };
            let before = whole(&output).chars().count();
            let cut = limit_output(output.clone(), max);
            if before <= max {
                prop_assert_eq!(&cut, &output);
            } else {
                prop_assert!(whole(&cut).chars().count() <= max);
                prop_assert_eq!(whole(&cut).matches("[Output cut").count(), 1);
            }
            prop_assert_eq!(limit_output(cut.clone(), max), cut);
        }
    }
}
