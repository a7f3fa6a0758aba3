//! What the recall tool says of itself. The content it brings back is never mixed with these: they stand in parts of
//! their own, in brackets.

use foreshorten_core::recall::Page;
use foreshorten_core::text::push_number;
use foreshorten_core::transcript::RECALL_TOOL;

/// A number as people read it.
pub(super) fn number(value: usize) -> String {
    let mut out = String::new();
    push_number(&mut out, value as u64);
    out
}

pub(super) fn usage(what: &str) -> String {
    format!(
        "{what} Pass {{\"ref\": \"…\"}} with the reference as it stands in a marker, preview or note; offset and limit in bytes \
         for a page of it; search to list where a text occurs."
    )
}

pub(super) fn unknown(reference: &str) -> String {
    let reference: String = reference.chars().take(80).collect();
    format!(
        "Nothing in this conversation goes by {reference:?}. Pass the reference exactly as it stands in the marker, preview or \
         note; or call {RECALL_TOOL} with search to list where a text occurs in what was removed."
    )
}

pub(super) fn gone(reference: &str, store: bool) -> String {
    let store = if store { "the store has it no more" } else { "there is no store that could have it" };
    format!("What {reference:?} stood for is not in the record any more, and {store}. It cannot be brought back.")
}

pub(super) fn store_failed(error: &dyn std::fmt::Display) -> String {
    format!("The store could not be asked ({error}); try again later.")
}

pub(super) fn trimmed(store_failed: Option<String>) -> String {
    let why = store_failed.unwrap_or_else(|| "No store has the rest.".into());
    format!("[Only the beginning of this output is left in the record. {why}]")
}

pub(super) const WAS_ERROR: &str = "[This is the output of a call that failed.]";

/// Where a page stands; `None` when it is all there is.
pub(super) fn page(page: &Page<'_>) -> Option<String> {
    if page.text.is_empty() && page.total > 0 {
        return Some(format!("[There is nothing at byte {}: it has {} bytes.]", page.offset, number(page.total)));
    }
    let end = page.offset + page.text.len();
    match page.next {
        None if page.offset == 0 => None,
        None => Some(format!("[Bytes {} to {end} of {}: the end.]", page.offset, number(page.total))),
        Some(next) => Some(format!(
            "[Bytes {} to {end} of {}. The next page begins at offset {next}.]",
            page.offset,
            number(page.total)
        )),
    }
}

/// The lines of a list of places.
pub(super) fn places(needle: &str, lines: &[String], more: bool, within: &str) -> String {
    let needle: String = needle.chars().take(80).collect();
    if lines.is_empty() {
        return format!("{needle:?} does not occur in {within}.");
    }
    let count = match (lines.len(), more) {
        (1, false) => "1 place".into(),
        (count, false) => format!("{count} places"),
        (count, true) => format!("The first {count} places"),
    };
    format!("{count} in {within}. Read on with the reference and the offset:\n{}", lines.join("\n"))
}

pub(super) fn ambiguous(reference: &str, lines: &[String], left_out: usize) -> String {
    let more = if left_out > 0 { format!("{} older ones are not listed.\n", number(left_out)) } else { String::new() };
    format!(
        "{} results go by {reference:?}. Ask for one of them, the newest last:\n{more}{}",
        number(lines.len() + left_out),
        lines.join("\n")
    )
}

pub(super) fn opaque(bytes: usize) -> String {
    format!("[{} bytes that only the provider can read are left out.]", number(bytes))
}
