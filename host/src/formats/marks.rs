//! Cache breakpoints: where a prompt cache may cut.

use std::borrow::Cow;

use super::json::{Json, Span};
use super::{Format, WireView};
use crate::view::View;

impl WireView {
    /// The message that the instructions at the head of the view end with; `None` when they stand outside of the list.
    #[must_use]
    pub fn head_message(&self, view: &View) -> Option<usize> {
        self.message_before(view.head())
    }

    /// The last message that no ordinary turn will change: what the last pass left ends here.
    #[must_use]
    pub fn settled_message(&self, view: &View) -> Option<usize> {
        self.message_before(view.settled())
    }

    /// The message that the call before this one ended with: the last before the newest answer. A cache that looks back
    /// over a limited number of blocks still finds it after a turn with many.
    #[must_use]
    pub fn answered_message(&self) -> Option<usize> {
        let role = |start: &usize| Json::at(&self.messages, *start).get("role").map(Json::word).unwrap_or_default();
        let newest = self.starts.iter().rposition(|start| role(start) == "assistant")?;
        self.starts[..newest].iter().rposition(|start| role(start) != "assistant")
    }

    /// As [`place_cache_marks`], as stretches of the list with the marks between them: only the messages that are marked
    /// are looked into, and nothing is copied.
    #[must_use]
    pub fn marked(&self, format: Format, mark: &str, places: &[usize], most: usize) -> (Vec<Cow<'_, str>>, bool) {
        stretches(format, &self.messages, &Starting { list: &self.messages, starts: &self.starts }, mark, places, most)
    }

    /// The last message all of whose pieces are among the first `pieces`.
    fn message_before(&self, pieces: usize) -> Option<usize> {
        let (before, after) = self.message_of_piece.split_at_checked(pieces)?;
        let last = before.iter().rev().find_map(|message| *message)?;
        let shared = after.iter().flatten().any(|message| *message <= last);
        if shared { last.checked_sub(1) } else { Some(last) }
    }
}

/// The member that marks a breakpoint, and the mark of protocols that have only one.
const fn member(format: Format) -> (&'static str, &'static str) {
    match format {
        Format::AnthropicMessages => ("cache_control", r#"{"type":"ephemeral"}"#),
        _ => ("prompt_cache_breakpoint", r#"{"mode":"explicit"}"#),
    }
}

/// The breakpoints that stand in a list of messages or items.
#[must_use]
pub fn count_cache_marks(format: Format, list: &str) -> usize {
    if names_mark(format, list) { Json::at(list, 0).items().map(|message| count(format, message)).sum() } else { 0 }
}

/// The breakpoints that stand in one message or item.
pub(super) fn count_in_message(format: Format, message: &str) -> usize {
    if names_mark(format, message) { count(format, Json::at(message, 0)) } else { 0 }
}

/// Text that speaks of the member has its quotes escaped.
fn names_mark(format: Format, json: &str) -> bool {
    let quoted: &[u8] = match format {
        Format::AnthropicMessages => b"\"cache_control\"",
        _ => b"\"prompt_cache_breakpoint\"",
    };
    memchr::memmem::find(json.as_bytes(), quoted).is_some()
}

fn count(format: Format, message: Json<'_>) -> usize {
    let (name, _) = member(format);
    let marked = |value: Json<'_>| value.get(name).is_some_and(|mark| !mark.is_null());
    let mut count = usize::from(marked(message));
    for content in contents(message) {
        for block in content.items() {
            count += usize::from(marked(block));
            count += block.get("content").map_or(0, |inner| inner.items().filter(|inner| marked(*inner)).count());
        }
    }
    count
}

/// Marks the ends of up to `most` of the messages at `places`, the most wanted first. `true`: some were marked.
///
/// What is marked is the last block of a message that may be. A message that has none (thoughts alone; in OpenAI's
/// protocols whatever the assistant said) passes the mark on to the one before it. Where a mark stands already, of the
/// caller's or of an earlier place, no other is added. Content that is one string becomes a list of one block.
///
/// `mark` is the JSON of the mark where the protocol has several (Anthropic's `ttl`); empty for the usual one. `list` must
/// be well-formed, as [`WireList::messages`](super::WireList::messages) is.
#[must_use]
pub fn place_cache_marks(format: Format, list: &str, mark: &str, places: &[usize], most: usize) -> (String, bool) {
    let messages: Vec<Json<'_>> = Json::at(list, 0).items().collect();
    let (stretches, placed) = stretches(format, list, &messages, mark, places, most);
    (stretches.concat(), placed)
}

/// Messages, of which only those are parsed that are asked for.
trait Messages<'a> {
    fn get(&self, at: usize) -> Option<Json<'a>>;
    fn len(&self) -> usize;
}

struct Starting<'a> {
    list: &'a str,
    starts: &'a [usize],
}

impl<'a> Messages<'a> for Starting<'a> {
    fn get(&self, at: usize) -> Option<Json<'a>> {
        self.starts.get(at).map(|start| Json::at(self.list, *start))
    }
    fn len(&self) -> usize {
        self.starts.len()
    }
}

impl<'a> Messages<'a> for Vec<Json<'a>> {
    fn get(&self, at: usize) -> Option<Json<'a>> {
        self.as_slice().get(at).copied()
    }
    fn len(&self) -> usize {
        self.as_slice().len()
    }
}

fn stretches<'a>(
    format: Format,
    list: &'a str,
    messages: &impl Messages<'a>,
    mark: &str,
    places: &[usize],
    most: usize,
) -> (Vec<Cow<'a, str>>, bool) {
    let (name, usual) = member(format);
    let mark = format!(r#""{name}":{}"#, if mark.is_empty() { usual } else { mark });
    // Stretches that give way, and what to.
    let mut cuts: Vec<(Span, String)> = Vec::new();
    let mut taken: Vec<usize> = Vec::new();
    for &place in places {
        if taken.len() >= most {
            break;
        }
        let mut below = (0..messages.len().min(place.saturating_add(1))).rev();
        let spot = below.find_map(|at| {
            let spot = spot(format, messages.get(at)?);
            (spot != Spot::None).then_some((at, spot))
        });
        let Some((at, spot)) = spot.filter(|(at, spot)| *spot != Spot::Marked && !taken.contains(at)) else { continue };
        match spot {
            Spot::Block(member) => cuts.push((Span { start: member.end, end: member.end }, format!(",{mark}"))),
            Spot::String(text) => {
                let kind = if format == Format::OpenAiResponses { "input_text" } else { "text" };
                cuts.push((text, format!(r#"[{{"type":"{kind}","text":{},{mark}}}]"#, text.of(list))));
            }
            Spot::None | Spot::Marked => continue,
        }
        taken.push(at);
    }
    cuts.sort_unstable_by_key(|(span, _)| span.start);
    let mut parts = Vec::with_capacity(2 * cuts.len() + 1);
    let mut from = 0;
    for (span, text) in cuts {
        parts.push(Cow::Borrowed(Span { start: from, end: span.start }.of(list)));
        parts.push(Cow::Owned(text));
        from = span.end;
    }
    parts.push(Cow::Borrowed(&list[from as usize..]));
    (parts, !taken.is_empty())
}

/// Where a mark can go in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spot {
    /// Nowhere.
    None,
    /// One is there.
    Marked,
    /// After this member of a block.
    Block(Span),
    /// In a block that takes the place of this string.
    String(Span),
}

fn spot(format: Format, message: Json<'_>) -> Spot {
    let (name, _) = member(format);
    let role = message.get("role").map(Json::word).unwrap_or_default();
    if format != Format::AnthropicMessages && role == "assistant" {
        return Spot::None;
    }
    let Some(content) = contents(message).next_back() else { return Spot::None };
    if let Some(text) = content.inner() {
        return if is_blank(text) { Spot::None } else { Spot::String(content.span()) };
    }
    let Some(block) = content.items().filter(|block| takes_mark(format, *block)).last() else { return Spot::None };
    if block.get(name).is_some() {
        return Spot::Marked;
    }
    block.members().last().map_or(Spot::None, |last| Spot::Block(last.item()))
}

/// The content of a message, or the output of an item that is a result.
fn contents(message: Json<'_>) -> impl DoubleEndedIterator<Item = Json<'_>> {
    let [content, output] = message.fields(["content", "output"]);
    [content, output].into_iter().flatten().map(|field| field.value)
}

fn takes_mark(format: Format, block: Json<'_>) -> bool {
    let kind = block.get("type").map(Json::word).unwrap_or_default();
    let says_something = || block.get("text").and_then(Json::inner).is_some_and(|text| !is_blank(text));
    match (format, &*kind) {
        (Format::AnthropicMessages, "text") => says_something(),
        (Format::AnthropicMessages, kind) => {
            matches!(kind, "image" | "document" | "tool_use" | "tool_result" | "search_result")
        }
        (Format::OpenAiResponses, "input_text") | (Format::OpenAiChat, "text") => says_something(),
        (Format::OpenAiResponses, kind) => matches!(kind, "input_image" | "input_file"),
        (_, kind) => matches!(kind, "image_url" | "input_audio" | "file"),
    }
}

/// Whether a JSON string, without its quotes, is nothing but white space.
fn is_blank(raw: &str) -> bool {
    let mut rest = raw.trim_start();
    while let Some(after) = ["\\n", "\\r", "\\t"].iter().find_map(|escape| rest.strip_prefix(escape)) {
        rest = after.trim_start();
    }
    rest.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::WireList;
    use Format::{AnthropicMessages, OpenAiChat, OpenAiResponses};

    fn marked(format: Format, list: &str, places: &[usize], most: usize) -> String {
        place_cache_marks(format, list, "", places, most).0
    }

    #[test]
    fn strings_become_blocks_only_where_a_mark_goes() {
        let list = r#"[ {"role":"user","content":"a\u00e9"}, {"role":"user","content":"b"}]"#;
        assert_eq!(
            marked(AnthropicMessages, list, &[0], 4),
            r#"[ {"role":"user","content":[{"type":"text","text":"a\u00e9","cache_control":{"type":"ephemeral"}}]}, {"role":"user","content":"b"}]"#
        );
        assert_eq!(
            marked(OpenAiChat, list, &[1], 4),
            r#"[ {"role":"user","content":"a\u00e9"}, {"role":"user","content":[{"type":"text","text":"b","prompt_cache_breakpoint":{"mode":"explicit"}}]}]"#
        );
        assert_eq!(marked(AnthropicMessages, list, &[7], 4).matches("cache_control").count(), 1);
        assert_eq!(marked(AnthropicMessages, "[]", &[0], 4), "[]");
    }

    #[test]
    fn thoughts_empty_texts_and_the_assistants_words_pass_a_mark_on() {
        let list = r#"[{"role":"user","content":"q"},{"role":"assistant","content":[{"type":"text","text":"t"},{"type":"text","text":" \n"},{"type":"thinking","thinking":"h","signature":"s"}]}]"#;
        let out = marked(AnthropicMessages, list, &[1], 4);
        assert!(out.contains(r#"{"type":"text","text":"t","cache_control":{"type":"ephemeral"}}"#), "{out}");
        assert!(marked(OpenAiChat, list, &[1], 4).contains(r#""text":"q","prompt_cache_breakpoint""#));
        let only = r#"[{"role":"user","content":"q"},{"role":"assistant","content":[{"type":"thinking","thinking":"h","signature":"s"}]}]"#;
        assert!(marked(AnthropicMessages, only, &[1], 4).contains(r#""text":"q","cache_control""#));
    }

    #[test]
    fn marks_of_the_callers_are_counted_and_left_alone() {
        let list = r#"[{"role":"user","content":[{"type":"text","text":"say \"cache_control\"","cache_control":{"type":"ephemeral","ttl":"1h"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"x","cache_control":{"type":"ephemeral"}}]}]}]"#;
        assert_eq!(count_cache_marks(AnthropicMessages, list), 2);
        assert_eq!(marked(AnthropicMessages, list, &[0], 2), list);
        let out = marked(AnthropicMessages, list, &[1, 1, 0], 2);
        assert_eq!(count_cache_marks(AnthropicMessages, &out), 3);
        assert_eq!(marked(AnthropicMessages, list, &[1], 0), list);
    }

    #[test]
    fn results_of_the_responses_protocol_take_marks() {
        let list = r#"[{"type":"function_call_output","call_id":"c","output":"o"},{"type":"reasoning","summary":[]}]"#;
        assert_eq!(
            marked(OpenAiResponses, list, &[1], 3),
            r#"[{"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"o","prompt_cache_breakpoint":{"mode":"explicit"}}]},{"type":"reasoning","summary":[]}]"#
        );
    }

    #[test]
    fn the_end_of_the_call_before_is_found() {
        let messages = r#"[{"role":"user"},{"role":"assistant"},{"role":"user"},{"role":"assistant"},{"role":"user"}]"#;
        let starts = messages.match_indices('{').map(|(at, _)| at).collect();
        let wire = WireView::from(WireList { messages: messages.into(), starts, ..WireList::default() });
        assert_eq!(wire.answered_message(), Some(2));
        assert_eq!(WireView::default().answered_message(), None);
    }

    #[test]
    fn settled_is_the_last_message_that_is_whole() {
        let wire = |messages: &[Option<usize>]| {
            WireView::from(WireList { message_of_piece: messages.to_vec(), ..WireList::default() })
        };
        let view = |head, settled| View::default().settled_at(head, settled);
        let of = [None, Some(0), Some(1), Some(1), Some(2)];
        assert_eq!(wire(&of).head_message(&view(1, 1)), None);
        assert_eq!(wire(&of).settled_message(&view(0, 2)), Some(0));
        assert_eq!(wire(&of).settled_message(&view(0, 3)), Some(0));
        assert_eq!(wire(&of).settled_message(&view(0, 4)), Some(1));
        assert_eq!(wire(&of).settled_message(&view(0, 9)), None);
        assert_eq!(wire(&[Some(0), Some(0)]).settled_message(&view(0, 1)), None);
    }
}
