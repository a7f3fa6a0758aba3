//! Any input gives a value, and text that is no rejection teaches nothing.

use super::fixture::{own, shared, shared_root};
use crate::overflow::{bind, explain, guards, normalize, pattern, words::Text};
use alloc::{
    collections::BTreeSet,
    format,
    string::{String, ToString},
    vec::Vec,
};
use proptest::prelude::*;

extern crate std;
use std::{
    fs, println,
    time::{Duration, Instant},
};

/// Words and numbers of the trade, in any order: the hardest input for rules that read words and numbers.
fn jumble() -> impl Strategy<Value = String> {
    let words = prop::sample::select(alloc::vec![
        "maximum",
        "context",
        "length",
        "is",
        "of",
        "tokens",
        "token",
        "exceeds",
        "limit",
        "prompt",
        "input",
        "output",
        "max_tokens",
        "too",
        "long",
        "per",
        "minute",
        "(",
        ")",
        "[",
        "]",
        ":",
        ">",
        "+",
        "-",
        ",",
        ".",
        "4096",
        "131,072",
        "128k",
        "-5",
        "[1, 8192]",
        "{\"error\":{\"message\":\"",
        "\\\"",
        "\\u003e",
        "&gt;",
        "<p>",
        "</p>",
        "n_ctx",
        "requested",
        "超过",
        "上下文长度为",
        "99999999999999999999999",
        "1_000",
        "0",
    ]);
    prop::collection::vec(words, 0..40).prop_map(|words| words.join(" "))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_gives_a_value(status in any::<Option<u16>>(), body in any::<String>()) {
        let found = explain(status, &body);
        prop_assert!(!found.why.is_empty());
        prop_assert!(found.window != Some(0));
    }

    #[test]
    fn any_jumble_gives_a_value(status in any::<Option<u16>>(), body in jumble()) {
        let found = explain(status, &body);
        if let Some(window) = found.window {
            // A window is always a number that the text spells out.
            let plain = body.replace([',', '_'], "");
            prop_assert!(plain.contains(&window.to_string()), "{window} from {body}");
            prop_assert!(found.is_overflow() || found.class.as_str() == "output_cap");
        }
    }

    #[test]
    fn no_digits_no_window(body in jumble()) {
        let body: String = body.chars().filter(|c| !c.is_ascii_digit()).collect();
        prop_assert_eq!(explain(Some(400), &body).window, None);
    }
}

/// A stream that breaks off, a log that truncates: the rest of an overflow names its window or none. (Of other
/// errors the cut may take the word that said so.)
#[test]
fn a_row_cut_anywhere_names_no_other_window() {
    for row in shared().into_iter().chain(own()).filter(|row| row.window.is_some()) {
        for (end, next) in row.text.char_indices() {
            let cut = &row.text[..end];
            // A number that is cut in two is still a number; nobody can see that.
            if cut.ends_with(|c: char| c.is_ascii_digit() || ",_. \u{202f}".contains(c)) || next.is_ascii_digit() {
                continue;
            }
            let window = explain(row.status, cut).window;
            assert!(window.is_none() || window == row.window, "{}: {window:?} from {cut}", row.id);
        }
    }
}

#[test]
fn prose_is_no_overflow() {
    let root = shared_root();
    let mut texts: Vec<String> = Vec::new();
    if let Some(samples) = root.as_ref().and_then(|root| fs::read_dir(root.join("samples")).ok()) {
        for file in samples.flatten() {
            let text = fs::read_to_string(file.path()).unwrap_or_default();
            texts.extend(text.lines().map(ToString::to_string));
            texts.push(text);
        }
    } else {
        assert!(std::env::var_os("CI").is_none(), "skipped in CI: the shared folder is not there");
        println!("SKIPPED: no shared/samples; set FORESHORTEN_SHARED");
    }
    for sentence in [
        "The quick brown fox jumps over the lazy dog.",
        "In this context, 4096 people attended the event.",
        "The input was 300 pages and took 12 hours.",
        "I think the context window should be larger than 200000 tokens.",
        "The maximum speed is 120 km/h in towns of more than 5000 people.",
        "error[E0308]: mismatched types --> src/main.rs:4096:12",
    ] {
        texts.push(sentence.to_string());
    }
    // A text that names an error's code cannot be told from one that is that error.
    for text in texts.iter().filter(|text| !text.contains("ContextOverflowError")) {
        let found = explain(Some(400), text);
        let blank = text.trim().is_empty();
        assert!(blank || (!found.is_overflow() && found.window.is_none()), "{found:?} from {text}");
    }
}

#[test]
fn every_wording_is_used_by_some_row() {
    let texts: Vec<Text> =
        shared().into_iter().chain(own()).map(|row| Text::new(normalize::unwrap(&row.text))).collect();
    if shared().is_empty() {
        return;
    }
    assert!(guards::wordings().chain(bind::wordings()).all(|wording| !wording.starts_with(['?', '~', '&', '!'])));
    let dead: BTreeSet<_> = guards::wordings()
        .chain(bind::wordings())
        .filter(|wording| !texts.iter().any(|text| pattern::occurs(text, wording)))
        .collect();
    assert!(dead.is_empty(), "{} dead: {dead:#?}", dead.len());
}

/// Bodies made to be slow: the time per byte stays what it is for a short one.
#[test]
fn long_bodies_take_linear_time() {
    for unit in [
        "<p",
        "context ",
        "max context length is ",
        "\\",
        "&amp;",
        "1,",
        "[1,",
        "\" ' ",
        "message : ",
        "exceeds # token > ",
        "a-",
    ] {
        let time = |bytes: usize| {
            let body: String = unit.chars().cycle().take(bytes).collect();
            let start = Instant::now();
            let _ = explain(Some(400), &body);
            start.elapsed()
        };
        time(1000);
        // On a busy machine any one time may be long, but not every one.
        let mut times = (Duration::ZERO, Duration::ZERO);
        let linear = (0..20).any(|_| {
            times = (time(8_000), time(64_000));
            times.1.as_micros() < 60 * times.0.as_micros().max(5_000)
        });
        assert!(linear, "{unit:?}: {:?} for 8 kB, {:?} for 64 kB", times.0, times.1);
        assert!(explain(Some(400), &format!("{}context length is 9000", unit.repeat(70_000))).window.is_none());
    }
}
