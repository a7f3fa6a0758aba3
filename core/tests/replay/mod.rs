//! Inputs of the fuzz targets over the core, replayed.

use std::path::Path;

use foreshorten_testkit::TARGETS;

/// Checks every file of a folder of `fuzz/`, target by target; answers how many there were.
pub(crate) fn folder(name: &str) -> usize {
    let mut replayed = 0;
    for (target, check) in TARGETS {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz").join(name).join(target);
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
