//! A summary without a model: the first lines of what was said, put under the headings asked for.
#![cfg_attr(target_arch = "wasm32", no_std)]

extern crate alloc;

use alloc::{borrow::ToOwned as _, format};

use foreshorten_plugin::{Kind, String, Summarizer, Task, Vec, mark};

/// The summarizer.
pub struct Extract;

/// Bytes of one line, and lines under one heading.
const LINE: u32 = 160;
const LINES: usize = 12;

impl Summarizer for Extract {
    fn step(task: &mut impl Task) -> Result<(), String> {
        let span = task.span();
        let kinds = task.kinds(0, u32::MAX);
        let marks = task.marks(0, u32::MAX);
        let tools = task.tool_ids(0, u32::MAX);
        let names = task.tools();
        let texts = task.texts(&span, LINE);
        let (mut said, mut done, mut calls) = (Vec::new(), Vec::new(), Vec::new());
        for (&entry, text) in span.iter().zip(&texts) {
            let at = entry as usize;
            let line = text.lines().next().unwrap_or_default().trim();
            match Kind::from(kinds[at]) {
                Kind::User => said.push(format!("- {line}")),
                Kind::Assistant => done.push(format!("- {line}")),
                Kind::ToolCall => {
                    let name = names.get(tools[at] as usize).map_or("?", String::as_str);
                    calls.push(format!("- {name} {line}"));
                }
                Kind::ToolResult if marks[at] & mark::ERROR != 0 => calls.push(format!("- failed: {line}")),
                _ => {}
            }
        }
        let prior = task.prior();
        for heading in task.sections() {
            let lines: &[String] = match heading.as_str() {
                "Session intent" => &said,
                "Current state" => &done,
                "Artifacts" => &calls,
                _ => &[],
            };
            let newest = &lines[lines.len().saturating_sub(LINES)..];
            let mut text = newest.join("\n");
            if heading == "Key facts and decisions" && !prior.is_empty() {
                text = prior.lines().filter(|line| line.starts_with("- ")).take(LINES).collect::<Vec<_>>().join("\n");
            }
            if text.is_empty() {
                text = "None.".to_owned();
            }
            task.section(&heading, &text);
        }
        Ok(())
    }
}

foreshorten_plugin::summarizer!(Extract);

#[cfg(test)]
mod tests {
    use foreshorten_plugin::fake::Fake;

    use super::*;

    #[test]
    fn every_heading_has_something_under_it() {
        let mut fake = Fake::default();
        fake.user("Mend the build").call("run", "make", "error 1").failed();
        Extract::step(&mut fake).unwrap();
        assert_eq!(fake.written.len(), 3);
        assert_eq!(fake.written[0].1, "- Mend the build");
        assert!(fake.asked.is_empty() && fake.written.iter().all(|(_, text)| !text.is_empty()));
    }
}
