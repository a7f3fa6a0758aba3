//! A request body: what is not the conversation first, the conversation last.

use std::borrow::Cow;

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

    /// The body. The stretches of `list`, the conversation as a JSON list, are copied: once, and for good.
    pub(super) fn body(&self, conversation: &str, list: &Stretches<'_>) -> String {
        let around: usize = self.members.iter().map(|(name, value)| name.len() + value.len() + 4).sum();
        let within: usize = list.0.iter().map(|stretch| stretch.len()).sum();
        let mut out = String::with_capacity(around + conversation.len() + within + 8);
        out.push('{');
        for (name, value) in &self.members {
            out.push_str(&json_text(name));
            out.push(':');
            out.push_str(value);
            out.push(',');
        }
        out.push_str(&json_text(conversation));
        out.push(':');
        list.0.iter().for_each(|stretch| out.push_str(stretch));
        out.push('}');
        out
    }
}

/// A JSON list in stretches that are put together when the body is.
#[derive(Clone, Debug)]
pub(super) struct Stretches<'a>(pub(super) Vec<Cow<'a, str>>);

impl Stretches<'_> {
    /// Puts one more element at the end.
    pub(super) fn append(&mut self, element: &str) {
        let first = self.0.iter().all(|stretch| stretch.trim_matches(['[', ']', ' ', '\n', '\t', '\r']).is_empty());
        if let Some(last) = self.0.last_mut() {
            let end = last.trim_end().len().saturating_sub(1);
            match last {
                Cow::Borrowed(text) => *text = &text[..end],
                Cow::Owned(text) => text.truncate(end),
            }
        }
        self.0.push(Cow::Owned(format!("{}{element}]", if first { "" } else { "," })));
    }

    /// Puts one more element at the beginning.
    pub(super) fn prepend(&mut self, element: &str) {
        let first = self.0.iter().all(|stretch| stretch.trim_matches(['[', ']', ' ', '\n', '\t', '\r']).is_empty());
        if let Some(head) = self.0.first_mut() {
            let from = head.find('[').map_or(0, |at| at + 1);
            match head {
                Cow::Borrowed(text) => *text = &text[from..],
                Cow::Owned(text) => drop(text.drain(..from)),
            }
        }
        self.0.insert(0, Cow::Owned(format!("[{element}{}", if first { "" } else { "," })));
    }
}

/// Text as JSON.
pub(super) fn json_text(text: &str) -> String {
    Value::from(text).to_string()
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
            frame.body("messages", &Stretches(vec!["[ {\"a\": 1.50} ]".into()])),
            r#"{"model":"m\"","stream":false,"seed":7,"messages":[ {"a": 1.50} ]}"#
        );
        assert!(frame.has("seed") && !frame.has("tools"));
    }

    #[test]
    fn lists_grow_at_both_ends() {
        let grown = |list: &[&'static str], at_end: bool| {
            let mut list = Stretches(list.iter().map(|stretch| Cow::Borrowed(*stretch)).collect());
            if at_end {
                list.append("7")
            } else {
                list.prepend("7")
            }
            list.0.concat()
        };
        assert_eq!(grown(&["[]"], true), "[7]");
        assert_eq!(grown(&["[ 1 ] "], true), "[ 1 ,7]");
        assert_eq!(grown(&["[1", ",2", ",3]"], true), "[1,2,3,7]");
        assert_eq!(grown(&["[]"], false), "[7]");
        assert_eq!(grown(&["[ 2]"], false), "[7, 2]");
        assert_eq!(grown(&["[1", ",2]"], false), "[7,1,2]");
    }
}
