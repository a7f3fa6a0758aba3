//! The program as people run it: whole processes, on sessions as files.
//!
//! `benches/run` runs it: `program [--smoke] PROGRAM FOLDER` measures the program at that path; sessions are made in the folder,
//! which takes 1.3 GB.

#![allow(clippy::unwrap_used, reason = "a bench has nobody to tell but its reader")]

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use foreshorten_benches::{
    cpu::{Spent, run},
    sessions::output,
    table::{Row, Table, thousands},
};

const MB: u64 = 1_000_000;
/// Runs one command and prints what it took.
const ALONE: &str = "--alone";

struct Bench {
    program: PathBuf,
    folder: PathBuf,
    tries: usize,
    /// What sizes are divided by: 1, or much for a smoke run.
    share: u64,
}

fn main() {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let smoke = arguments.first().is_some_and(|first| first == "--smoke");
    if smoke {
        arguments.remove(0);
    }
    // A process of its own for one command, so that the peak of memory is that command's.
    if let [flag, program, rest @ ..] = arguments.as_slice()
        && flag == ALONE
    {
        let spent = run(Command::new(program).args(rest), None).unwrap();
        println!("{} {} {}", spent.wall.as_micros(), spent.cpu.as_micros(), spent.peak);
        return;
    }
    let [program, folder] = arguments.as_slice() else { panic!("the program and a folder are to be named") };
    let (tries, share) = if smoke { (2, 50) } else { (15, 1) };
    let bench = Bench { program: program.into(), folder: folder.into(), tries, share };
    let mut table = Table::default();
    println!("{}", Table::HEAD);
    bench.start_up(&mut table);
    bench.compact(&mut table);
    bench.replay(&mut table);
    bench.many(&mut table);
    bench.million(&mut table);
}

fn ms(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

/// Wall clock where the machine let it be near the CPU time, and both for the reader to see.
fn said(spent: Spent) -> String {
    format!("{} of CPU time, {} in all", ms(spent.cpu), ms(spent.wall))
}

/// A round as two JSON lines of messages.
fn round(out: &mut impl std::io::Write, at: usize, result: usize, kinds: &[String]) {
    let text = &kinds[at % kinds.len()];
    let text = text.get(..result.min(text.len())).unwrap_or(text);
    writeln!(
        out,
        r#"{{"role":"assistant","content":"Step {at}: I look at the next file.","tool_calls":[{{"id":"call_{at}","type":"function","function":{{"name":"read_file","arguments":"{{\"path\":\"src/part_{}.rs\"}}"}}}}]}}"#,
        at % 97
    )
    .unwrap();
    let text = text.replace('\n', "\\n");
    writeln!(out, r#"{{"role":"tool","tool_call_id":"call_{at}","content":"{text}"}}"#).unwrap();
}

/// A session of chat messages, one a line, of about `bytes` bytes, or of `rounds` rounds.
fn session(path: &Path, bytes: u64, rounds: usize, seed: usize, most: usize) -> u64 {
    let mut out = BufWriter::new(File::create(path).unwrap());
    out.write_all(
        b"{\"role\":\"system\",\"content\":\"You are careful.\"}\n{\"role\":\"user\",\"content\":\"Mend it.\"}\n",
    )
    .unwrap();
    let kinds: Vec<String> = (0..64).map(|kind| output(seed * 64 + kind, most)).collect();
    let mut at = 0;
    let mut written = 0;
    while written < bytes || at < rounds {
        // Mostly short results, and now and then a long one.
        let result = most / (1 + (at * 7 + seed) % 12);
        round(&mut out, at, result, &kinds);
        written += result as u64 + 260;
        at += 1;
    }
    out.flush().unwrap();
    std::fs::metadata(path).unwrap().len()
}

impl Bench {
    fn best(&self, tries: usize, mut command: impl FnMut() -> Command, stdin: Option<&Path>) -> Spent {
        let mut best = Spent { wall: Duration::MAX, cpu: Duration::MAX, peak: 0 };
        for _ in 0..tries {
            let spent = run(&mut command(), stdin).unwrap();
            best.wall = best.wall.min(spent.wall);
            best.cpu = best.cpu.min(spent.cpu);
        }
        best
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(arguments).current_dir(&self.folder);
        command
    }

    /// One command, with the peak of its memory.
    fn alone(&self, arguments: &[&str]) -> Spent {
        let itself = std::env::current_exe().unwrap();
        let mut command = Command::new(itself);
        let ran = command.arg(ALONE).arg(&self.program).args(arguments).current_dir(&self.folder).output().unwrap();
        let said = String::from_utf8_lossy(&ran.stdout);
        let numbers: Vec<u64> = said.split_whitespace().map(|word| word.parse().unwrap()).collect();
        let &[wall, cpu, peak] = numbers.as_slice() else { panic!("{arguments:?}: three numbers, not {said:?}") };
        Spent { wall: Duration::from_micros(wall), cpu: Duration::from_micros(cpu), peak }
    }

    fn start_up(&self, table: &mut Table) {
        let spent = self.best(3 * self.tries, || self.command(&["--version"]), None);
        table.row(&Row::new("9 start-up", said(spent), "≤ 10 ms", spent.cpu.as_millis() < 10));
    }

    fn compact(&self, table: &mut Table) {
        let lines = self.folder.join("body.jsonl");
        session(&lines, 5 * MB / self.share, 0, 1, 9_000);
        let messages = std::fs::read_to_string(&lines).unwrap();
        let body = format!(r#"{{"model":"gpt-5","messages":[{}]}}"#, messages.trim_end().replace('\n', ","));
        let file = self.folder.join("body.json");
        std::fs::write(&file, &body).unwrap();
        let state = self.folder.join("state");
        let arguments = ["compact", "--window", "200000", "--state", "state"];
        let spent = self.best(
            self.tries,
            || {
                let _ = std::fs::remove_file(&state);
                self.command(&arguments)
            },
            Some(&file),
        );
        let what = format!("9 `compact`, a body of {:.1} MB, without a state", body.len() as f64 / MB as f64);
        table.row(&Row::new(what, said(spent), "≤ 50 ms", spent.cpu.as_millis() <= 50));
        let again = self.best(self.tries, || self.command(&arguments), Some(&file));
        table.row(&Row::told("9 the same, with the state of the call before", said(again)));
    }

    fn replay(&self, table: &mut Table) {
        let bytes = session(&self.folder.join("ten.jsonl"), 10 * MB / self.share, 0, 2, 9_000);
        let spent = self.best(self.tries, || self.command(&["replay", "ten.jsonl", "--window", "200000"]), None);
        let what = format!("9 `replay`, a session of {:.1} MB", bytes as f64 / MB as f64);
        table.row(&Row::new(what, said(spent), "≤ 1 s", spent.cpu.as_secs_f64() <= 1.0));
    }

    /// A folder of sessions, and a tenth of it: as fast, and in no more memory.
    fn many(&self, table: &mut Table) {
        let (few, all) = (self.folder.join("few"), self.folder.join("all"));
        std::fs::create_dir_all(&few).unwrap();
        std::fs::create_dir_all(&all).unwrap();
        let mut bytes = 0;
        for at in 0..100 {
            let path = all.join(format!("{at:03}.jsonl"));
            bytes += session(&path, 10 * MB / self.share, 0, at, 9_000);
            if at % 10 == 0 {
                std::fs::copy(&path, few.join(format!("{at:03}.jsonl"))).unwrap();
            }
        }
        let some = self.alone(&["replay", "few", "--window", "200000"]);
        let spent = self.alone(&["replay", "all", "--window", "200000"]);
        let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get()).min(2) as f64;
        // What two cores that nobody else uses would take; the wall clock beside it says what these took.
        let rate = bytes as f64 / MB as f64 / (spent.cpu.as_secs_f64() / threads);
        let what = format!("9 `replay`, {:.2} GB in 100 sessions", bytes as f64 / 1e9);
        let measured = format!(
            "{rate:.0} MB/s by CPU time over {threads} cores, {:.0} MB/s by the clock",
            bytes as f64 / MB as f64 / spent.wall.as_secs_f64()
        );
        table.row(&Row::new(what, measured, "≥ 200 MB/s on two cores", rate >= 200.0));
        let measured = format!("{} MB at most, and {} MB for a tenth of them", spent.peak / MB, some.peak / MB);
        let pass = spent.peak <= 2 * some.peak;
        table.row(&Row::new("9 memory of it", measured, "bounded by the largest session", pass));
        std::fs::remove_dir_all(&all).unwrap();
        std::fs::remove_dir_all(&few).unwrap();
    }

    fn million(&self, table: &mut Table) {
        let path = self.folder.join("million.jsonl");
        let rounds = 333_333 / self.share as usize;
        let bytes = session(&path, 0, rounds, 5, 1_200);
        let spent = self.alone(&["replay", "million.jsonl", "--window", "200000"]);
        let entries = thousands(rounds as u64 * 3 + 2);
        let what = format!(
            "5 `replay`, one session of {entries} entries, {} calls, {} MB",
            thousands(rounds as u64),
            bytes / MB
        );
        table.row(&Row::new(
            what,
            format!("{}; peak of {} MB", said(spent), spent.peak / MB),
            "plans and replays",
            true,
        ));
        std::fs::remove_file(&path).unwrap();
    }
}
