//! Every row of the shared reports and weaknesses has a named test, or a sentence in `README.md` why it is not the core's.

use std::{collections::BTreeSet, env, fs, io::Write as _, path::Path, path::PathBuf};

fn shared() -> Option<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let named = env::var_os("FORESHORTEN_SHARED").map(PathBuf::from);
    let folders = named.into_iter().chain(here.ancestors().map(|folder| folder.join("shared")));
    folders.into_iter().find(|folder| folder.join("cases/reports.jsonl").is_file())
}

/// Ids of tests in the folder `name` of the core's tests and that file of the runner's: `B01` of `fn b01_…`.
fn tested(name: &str) -> BTreeSet<String> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = BTreeSet::new();
    let files = fs::read_dir(here.join("tests").join(name)).into_iter().flatten().flatten().map(|file| file.path());
    for path in files.chain([here.join(format!("../host/tests/runner/{name}.rs"))]) {
        let source = fs::read_to_string(&path).unwrap_or_default();
        let is_test = |part: &&str| part.starts_with("test]") || part.starts_with("tokio::test");
        for test in source.split("#[").filter(is_test) {
            let name = test.split("fn ").nth(1).unwrap_or_default();
            found.insert(name.split('_').next().unwrap_or_default().to_uppercase());
        }
    }
    found
}

/// Ids in the first table under a heading of `README.md`, each with a sentence.
fn excused(heading: &str) -> BTreeSet<String> {
    let readme = include_str!("README.md");
    let section = readme.split(heading).nth(1).unwrap_or_default();
    let lines = section.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    let rows = lines.skip(2).filter_map(|line| line.strip_prefix("| ")?.split_once(" | "));
    rows.filter(|(_, why)| why.len() > 20).map(|(id, _)| id.to_owned()).collect()
}

fn check(what: &str, wanted: &BTreeSet<String>, tested: &BTreeSet<String>, excused: &BTreeSet<String>) {
    let left: Vec<_> = wanted.iter().filter(|id| !tested.contains(*id) && !excused.contains(*id)).collect();
    assert!(left.is_empty(), "{what} without a test or a reason: {left:?}");
    let strange: Vec<_> = tested.iter().chain(excused).filter(|id| !wanted.contains(*id)).collect();
    assert!(strange.is_empty(), "tests or reasons for {what} that do not exist: {strange:?}");
    let both: Vec<_> = tested.intersection(excused).collect();
    assert!(both.is_empty(), "{what} with a test and an excuse: {both:?}");
}

#[test]
fn every_report_and_every_weakness_has_a_test_or_a_reason() {
    let Some(shared) = shared() else {
        // Straight to the descriptor: the harness swallows what a passing test prints.
        assert!(env::var_os("CI").is_none(), "skipped in CI: the shared folder is not there");
        let _ =
            writeln!(std::io::stderr(), "SKIPPED: no shared/cases/reports.jsonl; set FORESHORTEN_SHARED to its folder");
        return;
    };
    let rows = fs::read_to_string(shared.join("cases/reports.jsonl")).unwrap();
    let id = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()["id"].as_str().unwrap().to_owned();
    let reports: BTreeSet<String> = rows.lines().filter(|line| !line.trim().is_empty()).map(id).collect();
    assert!(reports.len() >= 47);
    check("reports", &reports, &tested("reports"), &excused("## Reports that are not the core's"));

    let text = fs::read_to_string(shared.join("reference/lovia_weaknesses.md")).unwrap();
    let is_id = |word: &&str| {
        let (letter, number) = word.split_at(word.len().min(1));
        "ABCDEP".contains(letter) && !letter.is_empty() && number.parse::<u32>().is_ok()
    };
    let weaknesses: BTreeSet<String> =
        text.lines().filter_map(|line| line.split(' ').next().filter(is_id)).map(str::to_owned).collect();
    assert!(weaknesses.len() >= 55, "{weaknesses:?}");
    check("weaknesses", &weaknesses, &tested("weaknesses"), &excused("## Weaknesses that are not the core's"));
}
