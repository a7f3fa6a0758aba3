//! Cuts, pages, searches and quotations of arbitrary text.

use foreshorten_core::{
    Compactor, Policy, Step, Turn,
    estimate::ByteEstimator,
    marker::{MarkerStyle, SUMMARY_WRAPPER, defused, summary_entry},
    plan::Level,
    recall::{page, search},
    summary::{REQUIRED_SECTIONS, fence, has_sections, strip_wrapper, summary_prompt},
    text::{floor_boundary, has_chars, head, head_chars, json_string_field, push_json_escaped, push_number, tail},
    transcript::{Entry, OwnedTranscript, Transcript as _, text_of},
};

use crate::Script;

/// Everything the core does to a text, on a text of these bytes.
///
/// # Panics
/// When a cut, a page, a search or a quotation is not what it should be.
pub fn texts(bytes: &[u8]) {
    let mut script = Script::new(bytes);
    let at = usize::from(u16::from_le_bytes([script.byte(), script.byte()]));
    let at = if script.one_in(16) { usize::MAX - at } else { at % (bytes.len() + 8) };
    let length = script.below(12);
    let needle = String::from_utf8_lossy(script.take(length)).into_owned();
    let text = String::from_utf8_lossy(script.rest()).into_owned();
    cut(&text, at);
    pages(&text, at);
    quotes(&text, &needle);
    searched(&text, &needle);
    let mut number = String::new();
    push_number(&mut number, at as u64);
    assert_eq!(number.replace(',', ""), at.to_string());
    for estimator in ByteEstimator::all().take(4) {
        let tokens = estimator.tokens(&text);
        assert_eq!(tokens, estimator.tokens_of_bytes(text.as_bytes()), "{} reads bytes otherwise", estimator.name());
        assert!(tokens > 0 || text.is_empty(), "{} sees nothing", estimator.name());
    }
}

fn cut(text: &str, at: usize) {
    let (start, end) = (head(text, at), tail(text, at));
    assert!(text.starts_with(start) && text.ends_with(end) && start.len() <= at && end.len() <= at);
    assert_eq!(floor_boundary(text, at), start.len());
    let next = text[start.len()..].chars().next().map_or(0, char::len_utf8);
    assert!(start == text || start.len() + next > at, "one more character fits the beginning");
    let before = text[..text.len() - end.len()].chars().next_back().map_or(0, char::len_utf8);
    assert!(end == text || end.len() + before > at, "one more character fits the end");
    let chars = text.chars().count();
    let bytes = head_chars(text, at);
    assert!(text[..bytes].chars().count() <= at && (at < chars || bytes == text.len()));
    assert!(at >= chars || text[..bytes].chars().count() + 16 >= at, "a cut gives up at most 16 characters");
    assert_eq!(has_chars(text, at), chars >= at);
}

fn pages(text: &str, limit: usize) {
    let limit = limit.min(text.len() + 1);
    // Bounded in steps, not in length.
    let limit = if limit < text.len() / 64 { text.len() / 64 } else { limit };
    let (mut at, mut whole) = (0, String::new());
    loop {
        let page = page(text, at, limit);
        assert_eq!((page.offset, page.total), (at, text.len()));
        whole.push_str(page.text);
        match page.next {
            Some(next) => {
                assert!(next > at, "I10: a page without end");
                at = next;
            }
            None => break,
        }
    }
    assert_eq!(whole, text, "I10: pages do not add up to the text");
    let beyond = page(text, usize::MAX, limit);
    assert!(beyond.text.is_empty() && beyond.next.is_none());
}

fn quotes(text: &str, key: &str) {
    // Nothing that a summary says closes its wrapper.
    let safe = defused(text, "context-summary");
    let lower = safe.to_ascii_lowercase();
    assert!(!lower.contains("<context-summary") && !lower.contains("</context-summary"), "{safe}");
    assert_eq!(defused(&safe, "context-summary"), safe);
    let shown = summary_entry(MarkerStyle::default(), SUMMARY_WRAPPER, text, "note:0").to_ascii_lowercase();
    assert_eq!(shown.matches("</context-summary>").count(), 1, "a summary closes its wrapper");
    let stripped = strip_wrapper(text, SUMMARY_WRAPPER);
    assert!(text.contains(stripped) && stripped.trim() == stripped);
    let _ = has_sections(text, REQUIRED_SECTIONS);
    // No record closes its fence.
    let fence = fence(&[text, key]);
    assert!(!text.contains(&fence) && !key.contains(&fence));
    let prompt = summary_prompt(None, text, None);
    assert!(prompt.contains(text));
    // What is escaped is JSON, and means what it did.
    let mut json = String::from("{\"");
    push_json_escaped(&mut json, key);
    json.push_str("\":\"");
    push_json_escaped(&mut json, text);
    json.push_str("\"}");
    let read: std::collections::BTreeMap<String, String> = serde_json::from_str(&json).expect("escaped text is JSON");
    assert_eq!(read.get(key).map(String::as_str), Some(text));
    if let Some(value) = json_string_field(&json, key) {
        assert_eq!(value, text, "another value than the one that stands there");
    } else {
        let escaped = json.contains('\\');
        assert!(escaped, "the value stands there plainly: {json}");
    }
    if let Some(value) = json_string_field(text, key) {
        assert!(text.contains(value) && !value.contains(['"', '\\']));
    }
}

fn searched(text: &str, needle: &str) {
    // A result that was cleared is what a search looks into.
    let record = OwnedTranscript::from(vec![
        Entry::user("go"),
        Entry::tool_call("a", "read", "{}"),
        Entry::tool_result("a", format!("{text}{}", " filler".repeat(200))),
        Entry::user("on"),
        Entry::assistant("yes"),
    ]);
    let policy = Policy::default();
    let mut compactor = Compactor::new(&policy);
    compactor.sync(&record);
    compactor.begin(&record, Turn { window: Some(300), ..Turn::default() });
    while !matches!(compactor.poll(&record), Step::Done(_)) {}
    for ignore_case in [false, true] {
        let hits = search(needle, ignore_case, 5, &record, compactor.columns(), compactor.ledger());
        assert!(hits.len() <= 5);
        let mut last = None;
        for hit in &hits {
            assert!(compactor.ledger().level(compactor.columns(), hit.entry) > Level::Verbatim);
            let whole = text_of(&record, hit.entry);
            let found = whole.get(hit.offset..).expect("a hit begins with a character");
            if ignore_case {
                let lower: String = found.chars().flat_map(char::to_lowercase).collect();
                let wanted: String = needle.chars().flat_map(char::to_lowercase).collect();
                assert!(lower.starts_with(&wanted), "{needle:?} is not at {}", hit.offset);
            } else {
                assert!(found.starts_with(needle), "{needle:?} is not at {}", hit.offset);
            }
            assert!(last < Some((hit.entry, hit.offset)), "hits stand in order, each once");
            last = Some((hit.entry, hit.offset));
        }
        // Nothing is missed.
        let reduced = (0..record.len()).filter(|&e| compactor.ledger().level(compactor.columns(), e) > Level::Verbatim);
        let first = reduced.clone().find_map(|e| Some((e, text_of(&record, e).find(needle)?)));
        if let Some(first) = first.filter(|_| !needle.is_empty()) {
            let found = hits.first().map(|hit| (hit.entry, hit.offset));
            assert!(found.is_some_and(|found| found <= first), "{needle:?} at {first:?} was missed: {found:?}");
        }
    }
}
