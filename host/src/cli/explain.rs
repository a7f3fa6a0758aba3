//! `explain-error`.

use std::process::ExitCode;

use foreshorten::core::overflow::explain;
use serde_json::json;

use super::{failure::Failure, files};

/// Say what a provider's error, read on stdin, means, and the window it names.
///
/// Classes: overflow, prompt_plus_output, output_cap, rate, tier, bytes, chars, other, none. Only the error channel may
/// be passed: text of the conversation can quote such errors.
#[derive(Debug, clap::Args)]
#[command(allow_negative_numbers = true)]
pub(crate) struct Args {
    /// HTTP status of the response.
    #[arg(long, value_name = "N")]
    status: Option<u16>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let input = files::stdin()?;
    let body = String::from_utf8_lossy(&input);
    let found = explain(args.status, body.trim_end_matches(['\n', '\r']));
    let text = if args.json {
        format!("{}\n", json!({"class": found.class.as_str(), "window": found.window, "why": found.why}))
    } else {
        let window = found.window.map_or_else(|| "not named".into(), |window| format!("{window} tokens"));
        format!("class   {}\nwindow  {window}\nwhy     {}\n", found.class.as_str(), found.why)
    };
    files::print(text.as_bytes())
}
