//! Plays the golden sessions and prints the digest. `--each` also prints every session under every setup; `--memory`
//! prints what entries cost instead.

mod memory;

use std::{alloc::System, process::ExitCode};

use foreshorten_golden::{DIGEST, Played, heap::Counting, hex, run};

#[global_allocator]
static HEAP: Counting<System> = Counting::new(System);

fn main() -> ExitCode {
    let option = std::env::args().nth(1).unwrap_or_default();
    if option == "--memory" {
        memory::print(&HEAP);
        return ExitCode::SUCCESS;
    }
    let each = option == "--each";
    let report = |played: &Played| {
        if each {
            let Played { session, setup, digest, tally } = played;
            println!(
                "{session:<10} {setup:<14} {:>3} turns {:>3} passes {:>4} entries {:>5} B of state, {:>7} B of heap  {}",
                tally.turns,
                tally.passes,
                tally.entries,
                tally.state_bytes,
                HEAP.peak(),
                hex(&digest[..8])
            );
            HEAP.restart();
        }
    };
    match run(report) {
        Ok(digest) => {
            let digest = hex(&digest);
            println!("digest {digest}");
            if !each {
                println!("heap {} bytes at most", HEAP.peak());
            }
            if digest == DIGEST { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(wrong) => {
            eprintln!("{wrong}");
            ExitCode::FAILURE
        }
    }
}
