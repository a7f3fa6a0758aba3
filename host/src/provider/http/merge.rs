//! Deltas of unknown members, put together.

use serde_json::Value;

/// Members that name or number something: a later value replaces an earlier one.
const NAMES: [&str; 7] = ["id", "type", "index", "role", "format", "name", "object"];

/// Joins a piece to what came before it: texts are put one after the other, lists by their `index`, objects member by
/// member; of anything else the last counts.
pub(super) fn merge(into: &mut Value, piece: Value) {
    match (into, piece) {
        (_, Value::Null) => {}
        (Value::String(text), Value::String(more)) => text.push_str(&more),
        (Value::Array(list), Value::Array(more)) => {
            for item in more {
                let index = item.get("index").filter(|index| index.is_u64());
                let same = index.and_then(|index| list.iter_mut().find(|one| one.get("index") == Some(index)));
                match same {
                    Some(one) => merge(one, item),
                    None => list.push(item),
                }
            }
        }
        (Value::Object(object), Value::Object(more)) => {
            for (name, value) in more {
                match object.get_mut(&name) {
                    Some(old) if !NAMES.contains(&name.as_str()) => merge(old, value),
                    Some(_) if value.is_null() => {}
                    _ => {
                        object.insert(name, value);
                    }
                }
            }
        }
        (into, piece) => *into = piece,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn reasoning_details_come_together_by_index() {
        let mut all = json!([{"index": 0, "type": "reasoning.text", "text": "a"}]);
        merge(&mut all, json!([{"index": 1, "type": "x"}, {"index": 0, "type": "reasoning.text", "text": "b"}]));
        merge(&mut all, json!([{"index": 0, "signature": "s", "text": null}, {"text": "no index"}]));
        assert_eq!(
            all,
            json!([
                {"index": 0, "type": "reasoning.text", "text": "ab", "signature": "s"},
                {"index": 1, "type": "x"},
                {"text": "no index"},
            ])
        );
        let mut number = json!(1);
        merge(&mut number, json!("two"));
        merge(&mut number, Value::Null);
        assert_eq!(number, json!("two"));
    }
}
