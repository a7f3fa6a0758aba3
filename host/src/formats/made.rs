//! JSON we write ourselves: notes, results made up for calls that never got one, the recall tool's schema.

use super::Format;
use super::escape::{push_string, quoted};
use super::json::Json;

/// One transparent pixel: what stands for a screenshot where the protocol takes nothing but an image.
const PIXEL: &str = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";

/// A message of the user that holds `text`.
pub(crate) fn note(format: Format, text: &str) -> String {
    let mut out = String::from(match format {
        Format::OpenAiResponses => r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"#,
        _ => r#"{"role":"user","content":"#,
    });
    push_string(text, &mut out);
    out.push_str(if format == Format::OpenAiResponses { "}]}" } else { "}" });
    out
}

/// A text part for the place of an image, in the protocol's shape, with the cache mark of the part it replaces.
pub(crate) fn text_part(format: Format, text: &str, replaced: Json<'_>) -> String {
    let kind = if format == Format::OpenAiResponses { "input_text" } else { "text" };
    let mut out = format!(r#"{{"type":"{kind}","text":{}"#, quoted(text));
    if let [Some(mark)] = replaced.fields(["cache_control"]) {
        out.push(',');
        out.push_str(mark.item().of(replaced.source()));
    }
    out.push('}');
    out
}

/// A screenshot that shows nothing.
pub(crate) fn screenshot() -> String {
    format!(r#"{{"type":"computer_screenshot","image_url":"{PIXEL}"}}"#)
}

/// The output of a shell call that printed `text`.
pub(crate) fn shell_output(text: &str) -> String {
    format!(r#"[{{"stdout":{},"stderr":"","outcome":{{"type":"exit","exit_code":0}}}}]"#, quoted(text))
}

/// An Anthropic block that answers a call with an error.
pub(crate) fn failed_block(call_id: &str, text: &str) -> String {
    format!(r#"{{"type":"tool_result","tool_use_id":{},"content":{},"is_error":true}}"#, quoted(call_id), quoted(text))
}

/// A message or item that answers `call`, which is the raw JSON of the call as it stands in its message (Chat) or of
/// its item (Responses). These protocols have no error flag; the text says it.
pub(crate) fn answer(format: Format, call: &str, call_id: &str, name: &str, text: &str) -> String {
    let (id, name, text) = (quoted(call_id), quoted(name), quoted(text));
    if format != Format::OpenAiResponses {
        // The legacy call is a member of its message, not an element of a list.
        return if call.starts_with('"') {
            format!(r#"{{"role":"function","name":{name},"content":{text}}}"#)
        } else {
            format!(r#"{{"role":"tool","tool_call_id":{id},"content":{text}}}"#)
        };
    }
    let kind = Json::at(call, 0).get("type").and_then(Json::string).unwrap_or_else(|| "function_call".into());
    match &*kind {
        "computer_call" => {
            format!(r#"{{"type":"computer_call_output","call_id":{id},"output":{}}}"#, screenshot())
        }
        "shell_call" => {
            format!(
                r#"{{"type":"shell_call_output","call_id":{id},"output":[{{"stdout":"","stderr":{text},"outcome":{{"type":"exit","exit_code":1}}}}]}}"#
            )
        }
        "local_shell_call" => format!(r#"{{"type":"local_shell_call_output","id":{id},"output":{text}}}"#),
        "apply_patch_call" => {
            format!(r#"{{"type":"apply_patch_call_output","call_id":{id},"status":"failed","output":{text}}}"#)
        }
        _ => format!(r#"{{"type":{},"call_id":{id},"output":{text}}}"#, quoted(&format!("{kind}_output"))),
    }
}

/// The recall tool's schema in the shape of `format`'s `tools` list.
///
/// Parameters: `ref` (required), `offset` and `limit` (bytes of a page), `search` (plain text).
#[must_use]
pub fn recall_tool_schema(format: Format, name: &str, description: &str) -> String {
    const PARAMETERS: &str = concat!(
        r#"{"type":"object","properties":{"#,
        r#""ref":{"type":"string","description":"The reference as it stands in the marker, preview or note."},"#,
        r#""offset":{"type":"integer","description":"First byte of the page. Default 0."},"#,
        r#""limit":{"type":"integer","description":"Most bytes of the page."},"#,
        r#""search":{"type":"string","description":"Show only where this text occurs."}},"#,
        r#""required":["ref"]}"#
    );
    let (name, description) = (quoted(name), quoted(description));
    match format {
        Format::AnthropicMessages | Format::ClaudeCode => {
            format!(r#"{{"name":{name},"description":{description},"input_schema":{PARAMETERS}}}"#)
        }
        Format::OpenAiResponses | Format::Codex => format!(
            r#"{{"type":"function","name":{name},"description":{description},"parameters":{PARAMETERS},"strict":false}}"#
        ),
        _ => format!(
            r#"{{"type":"function","function":{{"name":{name},"description":{description},"parameters":{PARAMETERS}}}}}"#
        ),
    }
}
