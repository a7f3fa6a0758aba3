//! Summaries: knowing that one is asked for, and writing one.

use crate::config::Summary;
use crate::log::Stop;
use crate::prose::Dice;
use crate::request::Request;

/// The headings a request for a summary asks for.
const HEADINGS: [&str; 6] =
    ["Session intent", "Current state", "Key facts and decisions", "Artifacts", "Constraints", "Next steps"];

/// Whether a request asks for a summary: an instruction (a system prompt, or the newest text if it is the user's)
/// names all six headings. A summary further up in the conversation is none.
pub(crate) fn asked_for(request: &Request) -> bool {
    request.instructions().iter().any(|text| HEADINGS.iter().all(|heading| text.contains(&format!("## {heading}"))))
}

/// The text of a summary, and why it ends.
pub(crate) fn write(mode: Summary, dice: &mut Dice) -> (String, Stop) {
    let whole = |dice: &mut Dice, per_heading: u64| {
        let part = |heading: &&str, dice: &mut Dice| {
            let lines = 1 + dice.below(3) + per_heading;
            let lines: Vec<String> = (0..lines).map(|_| format!("- {}", dice.sentence())).collect();
            format!("## {heading}\n{}", lines.join("\n"))
        };
        HEADINGS.iter().map(|heading| part(heading, dice)).collect::<Vec<_>>().join("\n\n")
    };
    match mode {
        Summary::Good | Summary::NoTemperature | Summary::CallsTool => (whole(dice, 1), Stop::End),
        Summary::EmptyHeadings => (HEADINGS.map(|heading| format!("## {heading}\n")).join("\n"), Stop::End),
        Summary::EmptyText => (String::new(), Stop::End),
        Summary::Refusal => ("I'm sorry, but I can't help with summarizing this.".to_owned(), Stop::Refusal),
        // A line is about 25 tokens long.
        Summary::TooLong(tokens) => (whole(dice, tokens / 150 + 1), Stop::End),
        Summary::CutByLength => {
            let text = whole(dice, 1);
            let end = text.floor_char_boundary(text.len() * 2 / 5);
            (text[..end].to_owned(), Stop::Length)
        }
        Summary::NoHeadings => (dice.sentences(6), Stop::End),
    }
}
