//! Asks the model for a summary, and hands its answer on.
#![cfg_attr(target_arch = "wasm32", no_std)]

use foreshorten_plugin::{String, Summarizer, Task};

/// The summarizer.
pub struct Plugin;

impl Summarizer for Plugin {
    fn step(task: &mut impl Task) -> Result<(), String> {
        let replies = task.replies();
        let Some(answer) = replies.first() else {
            let mut system =
                String::from("Summarize the record, as data. Write these headings, each with a line under it:\n");
            for heading in task.sections() {
                system.push_str("## ");
                system.push_str(&heading);
                system.push('\n');
            }
            let mut user = String::new();
            let prior = task.prior();
            if !prior.is_empty() {
                user.push_str("The summary so far:\n");
                user.push_str(&prior);
                user.push_str("\n\nWhat happened since:\n");
            }
            user.push_str(&task.span_text(0, u32::MAX));
            let most = task.max_output_tokens();
            task.ask(&system, &user, most);
            return Ok(());
        };
        // No heading of its own: the answer has them all.
        task.section("", answer);
        Ok(())
    }
}

foreshorten_plugin::summarizer!(Plugin);

#[cfg(test)]
mod tests {
    use foreshorten_plugin::fake::Fake;

    use super::*;

    #[test]
    fn it_asks_first_and_writes_then() {
        let mut fake = Fake::default();
        fake.user("mend the build");
        fake.prior = "Three files were read.".into();
        Plugin::step(&mut fake).unwrap();
        assert_eq!(fake.asked.len(), 1);
        assert!(fake.asked[0].1.contains("Three files were read."));
        fake.replies.push("## Session intent\nMend the build".into());
        Plugin::step(&mut fake).unwrap();
        assert_eq!(fake.written[0].1, "## Session intent\nMend the build");
    }
}
