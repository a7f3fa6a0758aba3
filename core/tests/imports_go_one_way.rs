//! transcript → estimate → budget → plan → state → render → view: a room uses rooms to its left and the shelf.

use std::{collections::BTreeSet, fs, path::Path};

const ROOMS: [&str; 7] = ["transcript", "estimate", "budget", "plan", "state", "render", "view"];

/// Rooms the shelf and others may use besides, and why.
const ALLOWED: [(&str, &[&str], &str); 10] = [
    ("text", &[], "the shelf: cuts and counts over plain text"),
    ("error", &[], "the shelf: what can be wrong with a configuration"),
    ("digest", &["transcript"], "the shelf: it hashes what a transcript lends"),
    ("marker", &["transcript"], "the shelf: all model-visible text; it knows the name of the recall tool"),
    ("overflow", &[], "reads error texts, and stands alone"),
    ("render", &["view"], "a view's vocabulary is what rendering produces"),
    ("notice", &["plan"], "the account of a pass counts refusals by their reason"),
    ("recall", &["transcript", "plan", "state"], "goes back from a decision to the record"),
    ("summary", &["transcript", "plan", "state"], "writes entries as a view shows them"),
    ("config", &["transcript", "estimate", "budget", "plan"], "names every parameter"),
];
const SHELF: [&str; 4] = ["text", "error", "digest", "marker"];

/// The names after `crate::` in a source, comments left out, groups in braces taken apart.
fn imports(source: &str) -> BTreeSet<String> {
    let code: String =
        source.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n");
    let mut found = BTreeSet::new();
    for after in code.split("crate::").skip(1) {
        let Some(group) = after.strip_prefix('{') else {
            found.insert(after.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect());
            continue;
        };
        let (mut depth, mut item) = (1, String::new());
        for c in group.chars() {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 1 => item.push('\n'),
                c if depth == 1 => item.push(c),
                _ => {}
            }
            if depth == 0 {
                break;
            }
        }
        let name =
            |path: &str| path.trim().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
        found.extend(item.split('\n').map(name).filter(|name| !name.is_empty()));
    }
    found
}

fn check(module: &str, path: &Path, wrong: &mut Vec<String>) {
    if path.is_dir() {
        for file in fs::read_dir(path).into_iter().flatten().flatten() {
            check(module, &file.path(), wrong);
        }
        return;
    }
    let known = |name: &str| ROOMS.contains(&name) || ALLOWED.iter().any(|(module, ..)| *module == name);
    let at = ROOMS.iter().position(|room| *room == module);
    let extra = ALLOWED.iter().find(|(name, ..)| *name == module).map_or(&[][..], |(_, extra, _)| *extra);
    for name in imports(&fs::read_to_string(path).unwrap_or_default()) {
        let left = at.zip(ROOMS.iter().position(|room| *room == name)).is_some_and(|(here, there)| there <= here);
        let fine = name == module || left || SHELF.contains(&name.as_str()) || extra.contains(&name.as_str());
        // Types of the crate's root in a doc example are written in comments, which were left out.
        if !fine {
            let what = if known(&name) { "may not use" } else { "uses the unknown" };
            wrong.push(format!("{} {what} `{name}`", path.display()));
        }
    }
}

#[test]
fn every_room_uses_only_what_stands_to_its_left() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut wrong = Vec::new();
    let mut seen = 0;
    for file in fs::read_dir(&src).unwrap().map(|file| file.unwrap().path()) {
        let module = file.file_stem().unwrap().to_string_lossy().into_owned();
        if module == "policy" || module == "lib" {
            continue; // the one place that touches all of them, and the list of modules
        }
        seen += 1;
        check(&module, &file, &mut wrong);
    }
    assert!(seen >= ROOMS.len() + ALLOWED.len() - 1, "modules found: {seen}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_reader_of_imports_reads() {
    let source = "use crate::{\n    plan::{Desk, Level as L},\n    state::Guard as G, // crate::policy\n    text,\n};\nfn f() { crate::digest::g() }";
    let found: Vec<String> = imports(source).into_iter().collect();
    assert_eq!(found, ["digest", "plan", "state", "text"]);
}
