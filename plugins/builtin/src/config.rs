//! The configuration: one flat object of names and numbers.

use alloc::{borrow::ToOwned as _, boxed::Box, format};

use foreshorten_core::plan::{
    ClearReasoning, ClearToolResults, ClipToolArguments, DropOldImages, DropSuperseded, MiddleSnip, OffloadToolResults,
    Stage, ToolResultBudget, ToolResultRetention,
};
use foreshorten_plugin::{String, Vec};

/// A key and what it is given: text, or a number (`None`: null).
enum Value<'a> {
    Text(&'a str),
    Number(Option<u64>),
}

/// What stands between quotation marks.
fn unquoted(json: &str) -> Option<&str> {
    json.trim().strip_prefix('"')?.strip_suffix('"')
}

/// Pairs of a flat object, without escapes: names and numbers need none.
fn pairs(json: &str) -> Result<Vec<(&str, Value<'_>)>, String> {
    let wrong = || "the configuration must be one object of texts, numbers and nulls".to_owned();
    let inside = json.trim().strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).ok_or_else(wrong)?;
    let mut pairs = Vec::new();
    for pair in inside.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once(':').ok_or_else(wrong)?;
        let key = unquoted(key).ok_or_else(wrong)?;
        let value = match (value.trim(), unquoted(value)) {
            ("null", _) => Value::Number(None),
            (_, Some(text)) => Value::Text(text),
            (number, None) => {
                Value::Number(Some(number.parse().map_err(|_| format!("{key}: `{number}` is no number"))?))
            }
        };
        pairs.push((key, value));
    }
    Ok(pairs)
}

/// Sets parameters of a stage; the first that it has not is an error.
macro_rules! with {
    ($pairs:ident, $stage:expr, $($name:ident),+ $(; optional $($maybe:ident),+)?) => {{
        let mut stage = $stage;
        for (key, value) in &$pairs {
            match (*key, value) {
                ("stage", _) => {}
                $((stringify!($name), Value::Number(Some(number))) => {
                    stage.$name = (*number).try_into().map_err(|_| format!("{key}: {number} is too large"))?;
                })+
                $($((stringify!($maybe), Value::Number(number)) => {
                    stage.$maybe = match number {
                        Some(number) => Some((*number).try_into().map_err(|_| format!("{key}: {number} is too large"))?),
                        None => None,
                    };
                })+)?
                (key, Value::Text(text)) => return Err(format!("{key}: `{text}` is no number this stage has")),
                (key, Value::Number(_)) => return Err(format!("this stage has no `{key}`")),
            }
        }
        Box::new(stage)
    }};
}

/// The stage that a configuration names.
pub(crate) fn stage(json: &str) -> Result<Box<dyn Stage>, String> {
    let pairs = pairs(json)?;
    let name = pairs.iter().find_map(|(key, value)| match value {
        Value::Text(name) if *key == "stage" => Some(*name),
        _ => None,
    });
    Ok(match name.ok_or_else(|| "the configuration names no `stage`".to_owned())? {
        "offload_tool_results" => {
            with!(pairs, OffloadToolResults::default(), min_chars, keep_last, preview_chars)
        }
        "tool_result_budget" => with!(
            pairs,
            ToolResultBudget::default(),
            tool_result_budget_chars,
            large_tool_result_chars,
            tool_result_preview_chars
        ),
        "clear_tool_results" => {
            with!(pairs, ClearToolResults::default(), keep_last, min_chars; optional clear_at_least_tokens)
        }
        "tool_result_retention" => with!(pairs, ToolResultRetention::default(), keep_recent_tool_results),
        "drop_superseded" => with!(pairs, DropSuperseded::default(), min_chars),
        "drop_old_images" => with!(pairs, DropOldImages::default(), keep_last),
        "clip_tool_arguments" => with!(pairs, ClipToolArguments::default(), min_bytes, keep_last),
        "clear_reasoning" => with!(pairs, ClearReasoning::default(), keep_last),
        "middle_snip" => {
            with!(pairs, MiddleSnip::default(), keep_initial_entries, keep_recent_entries; optional max_entries)
        }
        other => return Err(format!("there is no stage `{other}`")),
    })
}
