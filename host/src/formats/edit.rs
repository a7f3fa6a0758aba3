//! Copies a JSON value byte for byte, except where an edit says otherwise.

use super::json::{Json, Span};

/// What happens to one value, element or member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Edit {
    /// The value is written as this JSON instead.
    Replace(String),
    /// The element or member goes, and one separator with it.
    Drop,
    /// After the element or member this one is added.
    After(String),
}

/// Edits of one message, each at the exact span of a value, an element or a member (key to value).
#[derive(Clone, Debug, Default)]
pub(crate) struct Edits {
    at: Vec<(Span, Edit)>,
}

impl Edits {
    pub(crate) fn push(&mut self, span: Span, edit: Edit) {
        if !span.is_none() {
            self.at.push((span, edit));
        }
    }

    /// Writes `value` with the edits done. What lies between two edits is copied.
    pub(crate) fn write(mut self, value: Json<'_>, out: &mut String) {
        // Stable: edits at one place are done in the order in which they were asked for.
        self.at.sort_by_key(|(span, _)| (span.start, std::cmp::Reverse(span.end)));
        render(value, &self.at, out);
    }
}

/// Recursion goes only where an edit lies, so its depth is that of the protocol, not of the input.
fn render(value: Json<'_>, edits: &[(Span, Edit)], out: &mut String) {
    let inside = within(edits, value.span());
    if inside.is_empty() {
        out.push_str(value.raw());
        return;
    }
    if let Some((_, Edit::Replace(text))) =
        inside.iter().find(|(span, edit)| *span == value.span() && matches!(edit, Edit::Replace(_)))
    {
        out.push_str(text);
        return;
    }
    if value.is_object() {
        list(value, value.members().map(|member| (member.item(), member.value)), inside, out);
    } else if value.is_array() {
        list(value, value.items().map(|item| (item.span(), item)), inside, out);
    } else {
        out.push_str(value.raw());
    }
}

fn list<'a>(value: Json<'a>, items: impl Iterator<Item = (Span, Json<'a>)>, edits: &[(Span, Edit)], out: &mut String) {
    let source = value.source();
    let between = |from: u32, to: u32| source.get(from as usize..to as usize).unwrap_or_default();
    let mut end = value.span().start + 1;
    let mut lead = None;
    let mut written = false;
    out.push_str(between(end - 1, end));
    for (item, inner) in items {
        let before = between(end, item.start);
        let lead = *lead.get_or_insert(before);
        end = item.end;
        let inside = within(edits, item);
        let here = |wanted: fn(&Edit) -> bool| inside.iter().filter(move |(span, edit)| *span == item && wanted(edit));
        // A list that loses all it holds goes with its key: no provider takes an empty one.
        let goes =
            here(|edit| *edit == Edit::Drop).next().is_some() || (inner.span() != item && emptied(inner, inside));
        if !goes {
            out.push_str(if written { before } else { lead });
            written = true;
            out.push_str(between(item.start, inner.span().start));
            render(inner, inside, out);
        }
        for (_, edit) in here(|edit| matches!(edit, Edit::After(_))) {
            if let Edit::After(text) = edit {
                out.push_str(if written { "," } else { lead });
                written = true;
                out.push_str(text);
            }
        }
    }
    out.push_str(between(end, value.span().end));
}

/// Whether all elements of a list, of which there are some, are dropped.
fn emptied(list: Json<'_>, edits: &[(Span, Edit)]) -> bool {
    let dropped = |item: Json<'_>| {
        let here = within(edits, item.span()).iter().filter(|(span, _)| *span == item.span());
        here.clone().any(|(_, edit)| *edit == Edit::Drop) && !here.clone().any(|(_, edit)| *edit != Edit::Drop)
    };
    !edits.is_empty() && list.is_array() && list.items().next().is_some() && list.items().all(dropped)
}

/// The edits inside a span. They are sorted and properly nested, so they lie side by side.
fn within(edits: &[(Span, Edit)], span: Span) -> &[(Span, Edit)] {
    let from = edits.partition_point(|(at, _)| at.start < span.start);
    let to = from + edits[from..].partition_point(|(at, _)| at.start < span.end);
    let inside = &edits[from..to];
    // An edit of an outer value that starts at the same byte comes first and is not ours.
    let outer = inside.partition_point(|(at, _)| !span.contains(*at));
    &inside[outer..]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edited(source: &str, edits: &[(&str, Edit)]) -> String {
        let mut all = Edits::default();
        for (text, edit) in edits {
            let at = source.find(text).unwrap();
            all.push(Span::new(at, at + text.len()), edit.clone());
        }
        let mut out = String::new();
        all.write(Json::at(source, 0), &mut out);
        out
    }

    #[test]
    fn separators_stay_right_whatever_goes() {
        let source = "[ 1,\n  2 ,3, 4 ]";
        assert_eq!(edited(source, &[]), source);
        assert_eq!(edited(source, &[("1", Edit::Drop)]), "[ 2 ,3, 4 ]");
        assert_eq!(edited(source, &[("4", Edit::Drop), ("2", Edit::Drop)]), "[ 1 ,3 ]");
        assert_eq!(
            edited(source, &[("1", Edit::Drop), ("2", Edit::Drop), ("3", Edit::Drop), ("4", Edit::Drop)]),
            "[ ]"
        );
        assert_eq!(
            edited(source, &[("2", Edit::After("9".into())), ("4", Edit::After("8".into()))]),
            "[ 1,\n  2,9 ,3, 4,8 ]"
        );
    }

    #[test]
    fn members_are_replaced_dropped_and_added_in_place() {
        let source = r#"{"a": {"b" : [ {"c":1} ], "d":2}, "e":"x"}"#;
        let edits = [
            ("1", Edit::Replace("\"y\"".into())),
            (r#""d":2"#, Edit::Drop),
            (r#""e":"x""#, Edit::After(r#""f":3"#.into())),
        ];
        assert_eq!(edited(source, &edits), r#"{"a": {"b" : [ {"c":"y"} ]}, "e":"x","f":3}"#);
    }
}
