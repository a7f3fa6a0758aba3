//! A JSON object as it came: members in their order, values in their bytes.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::frame::json_text;

/// The members of an object.
#[derive(Clone, Debug, Default)]
pub(super) struct Members(Vec<(String, Box<RawValue>)>);

impl Members {
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().rfind(|(member, _)| member == name).map(|(_, value)| value.get())
    }

    /// A member that is text, decoded; nothing for others.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        self.get(name).and_then(|json| serde_json::from_str(json).ok())
    }

    /// The object again, with some values replaced, or added at the end.
    pub(super) fn with(&self, changes: &[(String, String)]) -> String {
        let mut out = String::from("{");
        let mut put = |name: &str, value: &str| {
            if out.len() > 1 {
                out.push(',');
            }
            out.push_str(&json_text(name));
            out.push(':');
            out.push_str(value);
        };
        let changed = |name: &str| changes.iter().find(|(change, _)| change == name);
        for (name, value) in &self.0 {
            put(name, changed(name).map_or_else(|| value.get(), |(_, value)| value));
        }
        for (name, value) in changes.iter().filter(|(name, _)| self.get(name).is_none()) {
            put(name, value);
        }
        out.push('}');
        out
    }
}

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = Members;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry::<String, Box<RawValue>>()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(Reader)
    }
}

/// Whether the text is one whole JSON object.
pub(super) fn is_object(text: &str) -> bool {
    text.trim_start().starts_with('{') && serde_json::from_str::<&RawValue>(text).is_ok()
}

/// What a model wrote as arguments, as a JSON object: nothing is an empty one, and what is none is kept under one key, as
/// the formats do. Otherwise a server that reads arguments back would refuse the conversation for ever.
pub(super) fn arguments(text: &str) -> String {
    match text.trim() {
        "" => "{}".into(),
        _ if is_object(text) => text.into(),
        _ => format!(r#"{{"_raw":{}}}"#, json_text(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_keeps_its_order_and_its_bytes() {
        let members: Members = serde_json::from_str(r#"{"z": 1.50, "a": {"y" : [ ] }, "é": "x"}"#).unwrap();
        assert_eq!(members.with(&[]), r#"{"z":1.50,"a":{"y" : [ ] },"é":"x"}"#);
        let changes = [("a".to_owned(), "2".to_owned()), ("n".to_owned(), "3".to_owned())];
        assert_eq!(members.with(&changes), r#"{"z":1.50,"a":2,"é":"x","n":3}"#);
        assert_eq!(members.text("é").as_deref(), Some("x"));
        assert_eq!(members.text("z"), None);
    }

    #[test]
    fn arguments_are_always_an_object() {
        assert_eq!(arguments(" "), "{}");
        assert_eq!(arguments("{\"a\": 1.0}"), "{\"a\": 1.0}");
        assert_eq!(arguments("{\"a\": 1"), r#"{"_raw":"{\"a\": 1"}"#);
        assert_eq!(arguments("[1]"), r#"{"_raw":"[1]"}"#);
        assert_eq!(arguments("{} x"), r#"{"_raw":"{} x"}"#);
    }
}
