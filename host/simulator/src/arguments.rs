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
