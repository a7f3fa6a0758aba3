//! Seeds and minimized crashes of the fuzz target over the wire formats, replayed.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should stop")]

#[path = "oracles/formats.rs"]
mod formats;

use std::path::Path;

#[test]
fn seeds_regressions_and_samples_are_read_and_written_as_they_came() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut replayed = 0;
    for folder in ["fuzz/seeds/formats", "fuzz/regressions/formats", "testdata/formats"] {
        let Ok(files) = std::fs::read_dir(root.join(folder)) else { continue };
        let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
        files.sort();
        for file in files {
            println!("{}", file.display());
            formats::formats(&std::fs::read(&file).unwrap());
            replayed += 1;
        }
    }
    assert!(replayed >= 10, "neither fuzz nor testdata is there");
}
