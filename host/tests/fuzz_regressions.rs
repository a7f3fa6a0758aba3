//! Seeds and minimized crashes of the fuzz targets that need the host, replayed; the same drivers as property tests.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should stop")]

#[path = "oracles/formats.rs"]
mod formats;

#[path = "oracles/plugins.rs"]
mod plugins;

use std::path::Path;

use proptest::prelude::*;

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

#[test]
fn seeds_and_regressions_of_plugin_files_hold() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz");
    for (target, oracle) in
        [("plugin_manifest", plugins::plugin_manifest as fn(&[u8])), ("plugin_cache", plugins::plugin_cache)]
    {
        let mut replayed = 0;
        for folder in ["seeds", "regressions"] {
            let Ok(files) = std::fs::read_dir(root.join(folder).join(target)) else { continue };
            for file in files {
                let file = file.unwrap().path();
                println!("{}", file.display());
                oracle(&std::fs::read(&file).unwrap());
                replayed += 1;
            }
        }
        assert!(replayed >= 2, "{target}: no seeds");
    }
}

/// Lines of a `plugin.toml`, sensible and not.
fn line() -> impl Strategy<Value = String> {
    let key = prop::sample::select(vec![
        "file",
        "name",
        "version",
        "sha256",
        "signature",
        "grants",
        "on_failure",
        "[limits]\nfuel",
        "[limits]\nwall_ms",
        "[limits]\nmemory_bytes",
        "[config]\nkeep",
        "[config.more]\nx",
        "network",
    ]);
    let value = prop_oneof![
        Just("\"a.wasm\"".to_owned()),
        Just("[\"condensing\"]".to_owned()),
        Just("[\"network\"]".to_owned()),
        Just("\"required\"".to_owned()),
        Just("\"builtin:clear_tool_results\"".to_owned()),
        any::<i64>().prop_map(|number| number.to_string()),
        "[ -~]{0,20}".prop_map(|text| format!("{text:?}")),
        "\\PC{0,12}",
    ];
    (key, value).prop_map(|(key, value)| format!("{key} = {value}\n"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_plugin_toml_is_read_or_refused(lines in prop::collection::vec(line(), 0..8)) {
        plugins::plugin_manifest(format!("file = \"a.wasm\"\n{}", lines.concat()).as_bytes());
        plugins::plugin_manifest(lines.concat().as_bytes());
    }

    #[test]
    fn only_what_was_sealed_here_is_opened(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        plugins::plugin_cache(&bytes);
    }
}
