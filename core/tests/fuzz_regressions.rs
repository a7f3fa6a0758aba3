//! Seeds and minimized crashes of the fuzz targets over the core, replayed: what once broke stays mended.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::Path;

use foreshorten_testkit::TARGETS;

fn replay(folder: &str) -> usize {
    let mut replayed = 0;
    for (target, check) in TARGETS {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz").join(folder).join(target);
        let Ok(files) = std::fs::read_dir(folder) else { continue };
        let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
        files.sort();
        for file in files {
            println!("{}", file.display());
            check(&std::fs::read(&file).unwrap());
            replayed += 1;
        }
    }
    replayed
}

#[test]
fn what_once_broke_stays_mended() {
    assert!(replay("regressions") > 0, "fuzz/regressions is not there");
}

#[test]
fn every_seed_is_a_good_input() {
    assert!(replay("seeds") >= TARGETS.len(), "fuzz/seeds is not there");
}
