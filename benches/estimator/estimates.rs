//! What the core makes of every chunk, for score.py to compare with its own sums. No crate:
//!
//!     rustc -O --edition 2024 benches/estimator/estimates.rs -o WORK/estimates
//!     WORK/estimates < CHUNKS      (a decimal length, a line feed, that many bytes; and so on)
//!
//! One line a chunk: the tokens by each family in the order of `Family`.

#[path = "../../core/src/estimate/automaton.rs"]
mod automaton;
#[path = "../../core/src/estimate/repeats.rs"]
mod repeats;
#[path = "../../core/src/estimate/tables.rs"]
mod tables;

use std::io::{BufRead, Read, Write};

fn main() -> std::io::Result<()> {
    use tables::*;
    let families =
        [&O200K, &CL100K, &LLAMA3, &QWEN25, &QWEN35, &GEMMA3, &CLAUDE47, &CLAUDE3, &DEEPSEEK, &MISTRAL, &GLM];
    let (mut input, mut output) = (std::io::stdin().lock(), std::io::stdout().lock());
    let mut line = String::new();
    while input.read_line(&mut line)? > 0 {
        let mut chunk = vec![0; line.trim().parse().map_err(std::io::Error::other)?];
        input.read_exact(&mut chunk)?;
        let tokens = families.map(|weights| {
            let tokens = usize::try_from((automaton::weigh(weights, &chunk) + 32) >> 6).unwrap_or(0);
            tokens.clamp(chunk.len().div_ceil(128), chunk.len()).to_string()
        });
        writeln!(output, "{}", tokens.join(" "))?;
        line.clear();
    }
    Ok(())
}
