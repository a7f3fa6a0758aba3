//! How fast the byte automaton walks. No crate, no harness:
//!
//!     rustc -O --edition 2024 benches/estimator/speed.rs -o target/weigher-speed
//!     target/weigher-speed FILE...      (any text; without one, a made-up mixture)

#[path = "../../core/src/estimate/automaton.rs"]
mod automaton;
#[path = "../../core/src/estimate/repeats.rs"]
mod repeats;
#[expect(dead_code, reason = "one family's table is as fast as another's")]
#[path = "../../core/src/estimate/tables.rs"]
mod tables;

use std::hint::black_box;
use std::time::Instant;

/// What is timed at once: some tens of microseconds.
const STRETCH: usize = 1 << 14;

/// Over `text` in pieces of `piece` bytes, in GB/s: of each stretch the best of nine runs, since on a busy machine a
/// whole run is never left alone.
fn speed(text: &[u8], piece: usize, weigh: impl Fn(&[u8]) -> i64) -> f64 {
    let stretch = piece * (STRETCH / piece).max(1);
    let mut best = vec![f64::MAX; text.len().div_ceil(stretch)];
    for _ in 0..9 {
        for (stretch, best) in text.chunks(stretch).zip(&mut best) {
            let start = Instant::now();
            for piece in stretch.chunks(piece) {
                black_box(weigh(black_box(piece)));
            }
            *best = best.min(start.elapsed().as_secs_f64());
        }
    }
    text.len() as f64 / best.iter().sum::<f64>() / 1e9
}

fn main() {
    let mut mixture: Vec<u8> = std::env::args_os().skip(1).flat_map(|path| std::fs::read(path).unwrap()).collect();
    if mixture.is_empty() {
        mixture =
            b"  let path = \"src/main.rs\"; // 12:34 0x1F3a\ndrwxr-xr-x 2 root root 4096 Nov 29 21:15 core\n".to_vec();
    }
    let eight_mb = |text: &[u8]| -> Vec<u8> { text.iter().copied().cycle().take(8 << 20).collect() };
    for (name, text) in [("mixture", eight_mb(&mixture)), ("digits only", eight_mb(b"7"))] {
        for piece in [100, 255, 256, 1 << 10, 4 << 10, 64 << 10, 8 << 20] {
            let automaton = speed(&text, piece, |bytes| automaton::weigh(&tables::O200K, bytes));
            println!("{name:>12} {piece:>8} bytes a text: {automaton:.2} GB/s");
        }
    }
    let sum = speed(&mixture, 4 << 10, |bytes| bytes.iter().map(|&byte| i64::from(byte)).sum());
    println!("for comparison, the sum of the bytes: {sum:.2} GB/s");
}
