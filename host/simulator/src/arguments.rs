//! Arguments that fit a tool's schema.

use serde_json::{Map, Value, json};

use crate::prose::Dice;

/// How deep schemas are followed.
const DEPTH: u32 = 6;

/// Plausible arguments: all required properties, and now and then an optional one.
pub(crate) fn arguments(schema: &Value, dice: &mut Dice) -> Value {
    let made = object(schema, dice, DEPTH);
    if made.is_object() { made } else { json!({}) }
}

/// Arguments of a recall: the reference under the first required string property, or the first property.
pub(crate) fn recall_arguments(schema: &Value, reference: &str) -> Value {
    let first_required = schema["required"].as_array().and_then(|list| list.first()).and_then(Value::as_str);
    let first = || schema["properties"].as_object().and_then(|all| all.keys().next()).map(String::as_str);
    let name = first_required.or_else(first).unwrap_or("reference");
    json!({ name: reference })
}

fn object(schema: &Value, dice: &mut Dice, depth: u32) -> Value {
    let mut made = Map::new();
    let required: Vec<&str> =
        schema["required"].as_array().map(|list| list.iter().filter_map(Value::as_str).collect()).unwrap_or_default();
    for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
        let wanted = dice.percent(25);
        if required.contains(&name.as_str()) || (wanted && depth == DEPTH) {
            made.insert(name.clone(), value(name, schema, dice, depth - 1));
        }
    }
    Value::Object(made)
}

fn value(name: &str, schema: &Value, dice: &mut Dice, depth: u32) -> Value {
    if let Some(constant) = schema.get("const") {
        return constant.clone();
    }
    if let Some(choices) = schema["enum"].as_array().filter(|choices| !choices.is_empty()) {
        return dice.pick(&choices.iter().collect::<Vec<_>>()).cloned().unwrap_or(Value::Null);
    }
    for key in ["anyOf", "oneOf", "allOf"] {
        if let Some(first) = schema[key].as_array().and_then(|list| list.first())
            && depth > 0
        {
            return value(name, first, dice, depth - 1);
        }
    }
    let kind = schema["type"].as_str().or_else(|| {
        schema["type"].as_array().and_then(|kinds| kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null"))
    });
    match kind {
        Some("integer" | "number") => {
            let least = schema["minimum"].as_i64().unwrap_or(1);
            let most = schema["maximum"].as_i64().unwrap_or_else(|| least.saturating_add(400)).max(least);
            let span = most.saturating_sub(least).unsigned_abs().saturating_add(1);
            json!(least.saturating_add_unsigned(dice.below(span)))
        }
        Some("boolean") => json!(dice.percent(50)),
        Some("array") if depth > 0 => {
            let count = 1 + dice.below(2);
            (0..count).map(|_| value(name, &schema["items"], dice, depth - 1)).collect()
        }
        Some("array") => json!([]),
        Some("object") if depth > 0 => object(schema, dice, depth),
        Some("object") => json!({}),
        Some("null") => Value::Null,
        _ => json!(text(name, dice)),
    }
}

/// A string as the property's name suggests.
fn text(name: &str, dice: &mut Dice) -> String {
    let name = name.to_lowercase();
    let about = |words: &[&str]| words.iter().any(|word| name.contains(word));
    if about(&["dir", "folder", "cwd"]) {
        return dice.pick(&["src", "src/billing", "tests", "lib/reader", "."]).unwrap_or_default().to_owned();
    }
    if about(&["path", "file"]) {
        return dice.path();
    }
    if about(&["command", "cmd", "script"]) {
        let (path, word) = (dice.path(), dice.word());
        return match dice.below(5) {
            0 => format!("sed -n '1,120p' {path}"),
            1 => format!("grep -rn \"{word}\" src | head -50"),
            2 => format!("cargo test {word} 2>&1 | tail -40"),
            3 => format!("git log --oneline -20 -- {path}"),
            _ => format!("ls -la && wc -l {path}"),
        };
    }
    if about(&["pattern", "regex", "query", "search", "symbol"]) {
        let word = dice.word();
        return match dice.below(3) {
            0 => format!("fn {word}_\\w+\\("),
            1 => format!("{word}\\.(len|is_empty)\\(\\)"),
            _ => word.to_owned(),
        };
    }
    if about(&["url", "uri"]) {
        return format!("https://example.com/{}/{}", dice.word(), dice.below(1_000));
    }
    if about(&["content", "text", "note", "body", "message", "description", "code", "patch"]) {
        let count = 2 + dice.below(6);
        return (0..count).map(|_| dice.sentence()).collect::<Vec<_>>().join("\n");
    }
    format!("{}-{}", dice.word(), dice.below(100))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_fit_the_schema_offered() {
        let schema = json!({"type": "object", "required": ["mode", "count", "paths", "deep", "when"], "properties": {
            "mode": {"enum": ["fast", "slow"]},
            "count": {"type": "integer", "minimum": 3, "maximum": 5},
            "paths": {"type": "array", "items": {"type": "string"}},
            "deep": {"type": "object", "required": ["flag"], "properties": {"flag": {"type": "boolean"}}},
            "when": {"anyOf": [{"type": ["null", "string"]}, {"type": "null"}]},
        }});
        for seed in 0..50 {
            let made = arguments(&schema, &mut Dice::new(seed, 0, 0));
            assert!(made["mode"] == "fast" || made["mode"] == "slow");
            assert!((3..=5).contains(&made["count"].as_u64().unwrap()));
            assert!(made["paths"].as_array().unwrap().iter().all(|path| path.as_str().unwrap().contains('/')));
            assert!(made["deep"]["flag"].is_boolean() && made["when"].is_string());
        }
    }

    #[test]
    fn odd_schemas_make_empty_objects() {
        for schema in [json!(null), json!({}), json!({"type": "object"}), json!({"required": 3, "properties": []})] {
            assert_eq!(arguments(&schema, &mut Dice::new(1, 0, 0)), json!({}));
        }
        assert_eq!(recall_arguments(&json!({}), "r1"), json!({"reference": "r1"}));
    }

    #[test]
    fn a_schema_without_end_comes_to_one() {
        let mut schema = json!({"type": "object"});
        for _ in 0..40 {
            schema = json!({"type": "object", "required": ["x"], "properties": {"x": {"anyOf": [schema]}}});
        }
        assert!(arguments(&schema, &mut Dice::new(1, 0, 0)).is_object());
    }
}
