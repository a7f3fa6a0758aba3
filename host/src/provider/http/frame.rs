//! A request body: what is not the conversation first, the conversation last.

use serde_json::{Map, Value};

/// The members of a request around the conversation, in the order in which they are sent.
#[derive(Clone, Debug, Default)]
pub(super) struct Frame {
    members: Vec<(String, String)>,
}

impl Frame {
    /// A member with JSON as its value.
    pub(super) fn put(&mut self, name: &str, json: impl Into<String>) {
        match self.members.iter_mut().find(|(member, _)| member == name) {
            Some((_, value)) => *value = json.into(),
            None => self.members.push((name.to_owned(), json.into())),
        }
    }

    /// A member with text as its value.
    pub(super) fn text(&mut self, name: &str, text: &str) {
        self.put(name, json_text(text));
    }

    /// The caller's own members, which win. The conversation is not theirs to replace: it is what was planned.
    pub(super) fn extra(&mut self, extra: &Map<String, Value>, conversation: &str) {
        for (name, value) in extra.iter().filter(|(name, _)| *name != conversation) {
            self.put(name, value.to_string());
        }
    }

    /// Whether there is a member of this name, with something in it.
    pub(super) fn has(&self, name: &str) -> bool {
        self.members.iter().any(|(member, value)| member == name && value != "null" && value != "[]")
    }

    /// The body. `list` is the JSON list of the conversation, whose bytes are copied.
    pub(super) fn body(&self, conversation: &str, list: &str) -> String {
        let around: usize = self.members.iter().map(|(name, value)| name.len() + value.len() + 4).sum();
        let mut out = String::with_capacity(around + conversation.len() + list.len() + 8);
        out.push('{');
        for (name, value) in &self.members {
            out.push_str(&json_text(name));
            out.push(':');
            out.push_str(value);
            out.push(',');
        }
        out.push_str(&json_text(conversation));
        out.push(':');
        out.push_str(list);
        out.push('}');
        out
    }
}

/// Text as JSON.
pub(super) fn json_text(text: &str) -> String {
    Value::from(text).to_string()
}

/// Puts one more element at the end of a JSON list.
pub(super) fn appended(mut list: String, element: &str) -> String {
    let end = list.trim_end().len().saturating_sub(1);
    list.truncate(end);
    if !list.trim_end().ends_with('[') {
        list.push(',');
    }
    list.push_str(element);
    list.push(']');
    list
}

/// Puts one more element at the beginning of a JSON list.
pub(super) fn prepended(element: &str, list: &str) -> String {
    let rest = list.trim_start().strip_prefix('[').unwrap_or_default();
    let comma = if rest.trim_start().starts_with(']') { "" } else { "," };
    format!("[{element}{comma}{rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_callers_members_win_and_the_conversation_is_copied_last() {
        let mut frame = Frame::default();
        frame.text("model", "m\"");
        frame.put("stream", "true");
        let extra = serde_json::json!({"stream": false, "seed": 7, "messages": []});
        frame.extra(extra.as_object().unwrap(), "messages");
        assert_eq!(
            frame.body("messages", "[ {\"a\": 1.50} ]"),
            r#"{"model":"m\"","stream":false,"seed":7,"messages":[ {"a": 1.50} ]}"#
        );
        assert!(frame.has("seed") && !frame.has("tools"));
    }

    #[test]
    fn lists_grow_at_both_ends() {
        assert_eq!(appended("[]".into(), "1"), "[1]");
        assert_eq!(appended("[ 1 ] ".into(), "2"), "[ 1 ,2]");
        assert_eq!(prepended("1", "[]"), "[1]");
        assert_eq!(prepended("1", "[ 2]"), "[1, 2]");
    }
}
