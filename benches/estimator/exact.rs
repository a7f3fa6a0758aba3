//! The estimator and the fastest exact tokenizer known, on the same text in the same run.
//!
//! `run` builds it as a package of its own, so that a vocabulary of 20 MB does not get into this workspace.

#[path = "../../core/src/estimate/automaton.rs"]
mod automaton;
#[path = "../../core/src/estimate/repeats.rs"]
mod repeats;
#[expect(dead_code, reason = "one family's table is as fast as another's")]
#[path = "../../core/src/estimate/tables.rs"]
mod tables;

use std::hint::black_box;
use std::time::Instant;

/// What a result of a tool may have.
const PIECE: usize = 4096;
const RUNS: usize = 9;

fn main() {
    let path = std::env::args_os().nth(1).expect("usage: exact FILE");
    let text = std::fs::read_to_string(path).expect("a file of UTF-8");
    let mut pieces = Vec::new();
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.floor_char_boundary(PIECE.min(rest.len())));
        pieces.push(piece);
        rest = after;
    }
    let exact = bpe_openai::o200k_base();
    // Of each piece the best of all runs: on a busy machine a whole run is never left alone, a piece sometimes is.
    let mut best = vec![[f64::MAX; 2]; pieces.len()];
    for _ in 0..RUNS {
        for (piece, [by_exact, by_automaton]) in pieces.iter().zip(&mut best) {
            let start = Instant::now();
            black_box(exact.count(black_box(piece)));
            *by_exact = by_exact.min(start.elapsed().as_secs_f64());
            let start = Instant::now();
            black_box(automaton::weigh(&tables::O200K, black_box(piece.as_bytes())));
            *by_automaton = by_automaton.min(start.elapsed().as_secs_f64());
        }
    }
    let [fastest_exact, fastest] = best.iter().fold([0.0, 0.0], |[a, b], [c, d]| [a + c, b + d]);
    let speed = |seconds: f64| text.len() as f64 / seconds / 1e6;
    println!(
        "| what | MB/s over {} kB in pieces of 4 kB, the best of {RUNS} runs of each |\n|---|--:|",
        text.len() / 1000
    );
    println!("| bpe-openai, o200k, count | {:.0} |", speed(fastest_exact));
    println!("| automaton | {:.0} |", speed(fastest));
    println!("| ratio | {:.0} |", fastest_exact / fastest);
}
