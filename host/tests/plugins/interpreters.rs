//! The examples in JavaScript and Python, with what they decide. Their components bring an interpreter along.

use std::process::Command;

use foreshorten::core::{
    plan::Level,
    transcript::{Entry, OwnedTranscript},
};

use crate::languages::{example, from_template_to_replay, level, over_sessions, passed, slow};
use crate::support::{alone, repository};

fn call(record: &mut OwnedTranscript, id: &str, tool: &str, arguments: &str, result: Entry) {
    record.push(Entry::tool_call(id, tool, arguments));
    record.push(result);
}

/// What lies behind the entries that matter, so that those are not in the tail.
fn end(record: &mut OwnedTranscript) {
    (0..12).for_each(|turn| record.push(Entry::user(format!("and {turn}?"))));
    record.push(Entry::assistant("Done. ".repeat(2_000)));
}

#[test]
fn a_plugin_in_javascript_from_an_empty_folder_to_a_replay() {
    from_template_to_replay("js");
}

#[test]
fn a_plugin_in_python_from_an_empty_folder_to_a_replay() {
    from_template_to_replay("python");
}

#[test]
fn the_example_in_javascript_keeps_failures_that_nothing_mended() {
    let Some(plugin) = example("keep-errors") else { return };
    let (plugins, plugin) = alone(plugin);
    let well = |id: &str, lines| Entry::tool_result(id, "ok: a line of text\n".repeat(lines));
    let mut record = OwnedTranscript::default();
    record.push(Entry::user("mend it"));
    let failed = |id: &str| Entry::tool_result(id, "error: cannot find it\n".repeat(30)).failed();
    call(&mut record, "a", "run", "{\"cmd\":\"test\"}", failed("a")); // 2: mended by c
    call(&mut record, "b", "run", "{\"cmd\":\"lint\"}", failed("b")); // 4: nothing mends it
    call(&mut record, "c", "run", "{\"cmd\":\"test\"}", well("c", 350)); // 6: out of date, by d
    call(&mut record, "d", "run", "{\"cmd\":\"test\"}", well("d", 1_000)); // 8: went well
    call(&mut record, "e", "run", "{\"cmd\":\"date\"}", Entry::tool_result("e", "Monday")); // 10: short
    call(&mut record, "f", "run", "{\"cmd\":\"push\"}", failed("f")); // 12: nothing mends it
    end(&mut record);
    let state = passed(&plugins, &plugin, &record, 27_000);
    let levels: Vec<Level> = [2, 4, 6, 8, 10, 12].map(|entry| level(&state, entry)).into();
    let (kept, gone) = (Level::Verbatim, Level::Cleared);
    assert_eq!(levels, [gone, kept, gone, gone, kept, kept]);
    assert_eq!(state.pins().iter().map(|pin| pin.index).collect::<Vec<_>>(), [4, 12]);
    over_sessions(&plugins, &plugin);
    assert!(plugin.metrics().accepted > 0, "{:?}", plugin.metrics());
}

#[test]
fn the_example_in_python_drops_listings_and_leaves_what_was_read() {
    if !slow() {
        return;
    }
    let Some(plugin) = example("drop-listings") else { return };
    let (plugins, plugin) = alone(plugin);
    let lines = "src/main.rs:12: a line of text\n".repeat(200);
    let mut record = OwnedTranscript::default();
    record.push(Entry::user("look around"));
    for (id, tool, arguments) in [
        ("a", "Glob", "{\"pattern\":\"**/*.rs\"}"),               // 2
        ("b", "read_file", "{\"path\":\"src/ls.rs\"}"),           // 4: no listing
        ("c", "bash", "{\"command\":\"rg -n main src | head\"}"), // 6
        ("d", "bash", "{\"command\":\"cargo test -- ls\"}"),      // 8: no listing
        ("e", "list_directory", "{\"path\":\".\"}"),              // 10
    ] {
        call(&mut record, id, tool, arguments, Entry::tool_result(id, lines.as_str()));
    }
    end(&mut record);
    let state = passed(&plugins, &plugin, &record, 28_000);
    let levels: Vec<Level> = [2, 4, 6, 8, 10].map(|entry| level(&state, entry)).into();
    let (kept, gone) = (Level::Verbatim, Level::Cleared);
    assert_eq!(levels, [gone, kept, gone, kept, gone]);
    over_sessions(&plugins, &plugin);
    assert!(plugin.metrics().accepted > 3, "{:?}", plugin.metrics());
}

#[test]
fn the_example_in_python_passes_its_unit_test() {
    let folder = repository().join("plugins/examples/drop-listings");
    match Command::new("python3").args(["-B", "-m", "unittest"]).current_dir(folder).output() {
        Ok(out) => assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr)),
        Err(error) => {
            assert!(std::env::var("CI").as_deref() != Ok("true"), "python3: {error}");
            println!("SKIPPED: no python3, so the unit test of drop-listings was not run");
        }
    }
}
