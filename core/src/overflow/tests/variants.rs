//! Every row again, with other numbers and in other wrappings.

use super::fixture::{Row, own, shared};
use crate::overflow::{ErrorClass, explain};
use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};

/// A small generator with a fixed seed: the failures of one run are those of the next.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }

    /// Windows from 1,024 to two million, as many small ones as large ones.
    fn window(&mut self) -> u64 {
        let top = 1 << (11 + self.roll(11));
        1024 + self.roll(top)
    }
}

fn grouped(value: u64, separator: char) -> String {
    let digits = value.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(separator);
        }
        out.push(digit);
    }
    out
}

/// Replaces each number equal to `old`, whatever its grouping.
fn with_window(text: &str, old: u64, new: &str) -> String {
    let mut out = text.to_string();
    for spelled in [old.to_string(), grouped(old, ','), grouped(old, '\u{202f}')] {
        let mut from = 0;
        while let Some(found) = out[from..].find(&spelled) {
            let start = from + found;
            let end = start + spelled.len();
            let alone = !out[..start].ends_with(|c: char| c.is_ascii_digit())
                && !out[end..].starts_with(|c: char| c.is_ascii_digit());
            from = if alone {
                out.replace_range(start..end, new);
                start + new.len()
            } else {
                end
            };
        }
    }
    out
}

fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap()
}

fn wrapped(text: &str) -> [(&'static str, String); 8] {
    let once = format!(r#"{{"error":{{"message":{},"type":"invalid_request_error","code":null}}}}"#, quoted(text));
    [
        ("OpenAI", once.clone()),
        (
            "Anthropic",
            format!(
                r#"{{"type":"error","error":{{"type":"api_error","message":{}}},"request_id":"req_011CSH12"}}"#,
                quoted(text)
            ),
        ),
        (
            "nested twice",
            format!(
                r#"{{"error":{{"message":{},"code":400,"metadata":{{"provider_name":"x"}}}}}}"#,
                quoted(&format!("{{\"detail\":{}}}", quoted(&once)))
            ),
        ),
        ("LiteLLM", format!("litellm.BadRequestError: OpenAIException - Error code: 400 - {once}")),
        (
            "Bedrock",
            format!("An error occurred (ValidationException) when calling the ConverseStream operation: {text}"),
        ),
        ("gRPC", format!("rpc error: code = InvalidArgument desc = {text}")),
        (
            "HTML",
            format!(
                "<html><head><title>Error</title></head><body><pre>{}</pre></body></html>",
                text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
            ),
        ),
        ("capitals", text.to_uppercase()),
    ]
}

fn report(wrong: &[String], of: usize) {
    assert!(wrong.is_empty(), "{} of {of} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

fn all() -> Vec<Row> {
    let mut rows = shared();
    rows.extend(own());
    rows
}

#[test]
fn another_window_in_three_spellings_is_learned_exactly() {
    let mut dice = Dice(20_260_801);
    let (mut wrong, mut tried) = (Vec::new(), 0);
    for row in all() {
        let Some(old) = row.window else { continue };
        for turn in 0..60 {
            let new = dice.window();
            let spelled = match turn % 3 {
                0 => new.to_string(),
                1 => grouped(new, ','),
                _ => grouped(new, '_'),
            };
            let text = with_window(&row.text, old, &spelled);
            tried += 1;
            let found = explain(row.status, &text);
            if (found.class, found.window) != (row.class, Some(new)) {
                wrong.push(format!("{}: {:?} {:?} for {new}: {text}", row.id, found.class, found.window));
                break;
            }
        }
    }
    report(&wrong, tried);
}

#[test]
fn every_row_in_every_wrapping_means_the_same() {
    let (mut wrong, mut tried) = (Vec::new(), 0);
    for row in all() {
        // An empty body has nothing to wrap, and a reply in an error's wrapping is an error.
        if row.class == ErrorClass::None && row.status.is_none() || row.text.trim().is_empty() {
            continue;
        }
        for (name, text) in wrapped(&row.text) {
            tried += 1;
            let found = explain(row.status, &text);
            if (found.class, found.window) != (row.class, row.window) {
                wrong.push(format!(
                    "{} {name}: {:?} {:?} for {:?} {:?}: {text}",
                    row.id, found.class, found.window, row.class, row.window
                ));
            }
        }
    }
    report(&wrong, tried);
}

/// The status may be lost, or be another gateway's. Only texts that say nothing themselves depend on it.
#[test]
fn the_text_decides_before_the_status() {
    let (mut wrong, mut tried) = (Vec::new(), 0);
    for row in all() {
        if row.class == ErrorClass::None
            || row.id == "E48"
            || row.text.len() < 40 && row.class != ErrorClass::Overflow
            || row.class == ErrorClass::Other
            || row.text.trim().is_empty()
        {
            continue;
        }
        for status in [None, Some(400), Some(413), Some(422), Some(429), Some(500), Some(503)] {
            tried += 1;
            let found = explain(status, &row.text);
            if (found.class, found.window) != (row.class, row.window) {
                wrong.push(format!(
                    "{} {status:?}: {:?} {:?} for {:?} {:?}: {}",
                    row.id, found.class, found.window, row.class, row.window, row.text
                ));
            }
        }
    }
    report(&wrong, tried);
}
