//! The report in its three forms, from made-up sessions.
#![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

use foreshorten::economics::{
    BASELINE_NAMES, Baselines, EntryFact, FactKind, Money, PriceTable, Request, Segment, Simulator, Totals, break_even,
};
use foreshorten::report::table::{self, Style};
use foreshorten::report::{BaselineRow, Decided, LevelColumn, PassRow, ReplayReport, TurnRow, html, json};

const VERBATIM: u8 = 0;
const CLEARED: u8 = 4;
const COVERED: u8 = 5;

/// A session of `turns` model calls in a window of `window`, played with a toy policy: at 85 % of usable, tool results
/// outside the newest 10 entries are cleared down to 60 %, and if that is not enough the oldest entries are covered.
fn sample(turns: u64, window: u64) -> ReplayReport {
    let table = PriceTable::builtin().unwrap();
    let row = table.row("anthropic-5m").unwrap();
    let usable = window - 16_384.min(window / 2);
    let (trigger, target) = (usable * 85 / 100, usable * 60 / 100);
    let mut facts: Vec<EntryFact> = Vec::new();
    let mut levels: Vec<u8> = Vec::new();
    let mut simulator = Simulator::new(row);
    let mut baselines = Baselines::new(row, window, usable);
    let mut report = ReplayReport {
        session: "astropy__astropy-12907.jsonl".into(),
        format: "claude-code".into(),
        format_reason: "looks like a Claude Code session because every line has `uuid` and `parentUuid`".into(),
        policy: "OffloadToolResults, ClearToolResults, SummarizeHistory (extractive); compact_at 0.85, compact_to 0.60"
            .into(),
        window,
        usable,
        trigger,
        target,
        price: row.into(),
        baselines: BASELINE_NAMES.map(|name| BaselineRow { name: name.into(), ..BaselineRow::default() }).to_vec(),
        ..ReplayReport::default()
    };
    let mut seed = 7_u64;
    let mut random = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    let weight = |fact: &EntryFact, level: u8| match level {
        VERBATIM => fact.tokens,
        CLEARED => 24.min(fact.tokens),
        _ => 0,
    };
    for turn in 1..=turns {
        let known = facts.len();
        let entry = |kind, tokens: u64| EntryFact { kind, tokens, bytes: tokens * 4, group: turn as u32 };
        if turn == 1 {
            facts.push(EntryFact { group: 0, ..entry(FactKind::System, 3_100) });
            facts.push(entry(FactKind::Other, 420));
        } else {
            facts.push(entry(FactKind::Other, 60 + random(220)));
            for _ in 0..1 + random(2) {
                facts.push(entry(FactKind::Other, 30 + random(80)));
                let heavy = if random(9) == 0 { 6_000 } else { 900 };
                facts.push(entry(FactKind::Result, 40 + random(heavy)));
            }
        }
        levels.resize(facts.len(), VERBATIM);
        let total = |levels: &[u8]| facts.iter().zip(levels).map(|(fact, level)| weight(fact, *level)).sum::<u64>();
        let before = total(&levels);
        if before > trigger {
            let old = levels.clone();
            let tail = facts.len() - 10;
            let mut now = before;
            for (to, from) in [(CLEARED, 0), (COVERED, 2)] {
                for index in from..tail {
                    let eligible = to == COVERED || facts[index].kind == FactKind::Result;
                    if now > target && eligible && levels[index] < to {
                        now -= weight(&facts[index], levels[index]) - weight(&facts[index], to);
                        levels[index] = to;
                    }
                }
            }
            let first = old.iter().zip(&levels).position(|(a, b)| a != b).unwrap();
            let kept: u64 = facts[..first].iter().zip(&old).map(|(fact, level)| weight(fact, *level)).sum();
            let rose = |to: u8| old.iter().zip(&levels).filter(|(a, b)| a != b && **b == to).count() as u64;
            let after = total(&levels);
            let covered = rose(COVERED);
            let mut reasons = vec!["ClearToolResults".to_owned()];
            if covered > 0 {
                reasons.push("SummarizeHistory".to_owned());
            }
            report.passes.push(PassRow {
                turn,
                reasons,
                tokens_before: before,
                tokens_after: after,
                decided: Decided { cleared: rose(CLEARED), covered, ..Decided::default() },
                first_changed: Some(first as u64),
                bytes_before: before * 4,
                prefix_kept_bytes: kept * 4,
                verbatim_tokens: after / 2,
                verbatim_percent: 20,
                ladder: report.passes.len() == 4,
                break_even: Some(break_even(row, before, kept, before - after)),
                detail: vec![
                    format!("cleared {} results of `read_file` and `bash`", rose(CLEARED)),
                    format!("{} tokens freed", before - after),
                ],
                ..PassRow::default()
            });
            report.levels.push(LevelColumn::of(turn, levels.iter().copied()));
        }
        let view: Vec<Segment> = facts
            .iter()
            .zip(&levels)
            .enumerate()
            .filter(|(_, (_, level))| **level != COVERED)
            .map(|(index, (fact, level))| {
                let tokens = weight(fact, *level);
                Segment { hash: index as u64 * 8 + u64::from(*level), bytes: tokens * 4, tokens }
            })
            .collect();
        let bill = simulator.feed(&Request { segments: &view, marks: &[1], output_tokens: 180, ..Request::default() });
        report.totals.add(&bill, window);
        report.turns.push(TurnRow {
            turn,
            entries: facts.len() as u64,
            tokens: bill.sent_tokens,
            bytes: bill.bytes,
            prefix_kept_bytes: bill.prefix_bytes,
            cached: bill.cached,
            written: bill.written,
            uncached: bill.uncached,
            cost: bill.cost,
        });
        let bills = baselines.call(&facts[known..], 180, None);
        for (row, bill) in report.baselines.iter_mut().zip(bills) {
            row.totals.add(&bill, window);
            row.cumulative.push(row.totals.cost);
        }
    }
    report
}

#[test]
fn a_report_adds_up() {
    let report = sample(150, 64_000);
    assert!(report.passes.len() >= 3 && report.passes.len() == report.levels.len());
    assert_eq!(report.cumulative().last(), Some(&report.totals.cost));
    assert!(report.turns.iter().all(|turn| turn.cached + turn.written + turn.uncached == turn.tokens));
    assert!(report.totals.cost < report.baselines[1].totals.cost, "stickiness pays against dropping every turn");
    let broken = report.totals.prefix_breaks;
    assert_eq!(broken, report.passes.len() as u64, "the prefix breaks at passes and nowhere else");
}

/// Two passes and one baseline, every figure chosen by hand.
fn small() -> ReplayReport {
    let totals = |cost, over_window| Totals {
        turns: 1_200,
        sent_tokens: 4_102_334,
        cached: 3_900_000,
        written: 202_334,
        output_tokens: 90_000,
        largest_tokens: 54_310,
        bytes: 16_409_336,
        prefix_bytes: 15_769_371,
        previous_bytes: 16_200_000,
        prefix_breaks: 2,
        over_window,
        cost: Money::from_microdollars(cost),
        output_cost: Money::from_microdollars(2_250_000),
        ..Totals::default()
    };
    let turn = |turn, tokens| TurnRow {
        turn,
        entries: turn * 3,
        tokens,
        bytes: tokens * 4,
        prefix_kept_bytes: tokens * 3,
        cached: tokens - 100,
        written: 100,
        cost: Money::from_microdollars(tokens),
        ..TurnRow::default()
    };
    ReplayReport {
        session: "session.jsonl".into(),
        format: "openai-chat".into(),
        policy: "default".into(),
        window: 64_000,
        usable: 47_616,
        trigger: 40_473,
        target: 28_569,
        price: PriceTable::builtin().unwrap().row("anthropic-5m").unwrap().into(),
        turns: vec![turn(41, 38_902), turn(42, 40_000), turn(1_168, 20_000)],
        passes: vec![
            PassRow {
                turn: 41,
                reasons: vec!["ClearToolResults".into()],
                tokens_before: 54_310,
                tokens_after: 38_902,
                decided: Decided { cleared: 12, preview: 3, ..Decided::default() },
                first_changed: Some(17),
                bytes_before: 217_240,
                prefix_kept_bytes: 67_344,
                verbatim_tokens: 30_210,
                verbatim_percent: 55,
                ..PassRow::default()
            },
            PassRow {
                turn: 1_168,
                reasons: vec!["OffloadToolResults".into(), "reactive_summary".into()],
                aggressive: true,
                tokens_before: 140_688,
                tokens_after: 9_093,
                decided: Decided { covered: 1_284, ..Decided::default() },
                verbatim_tokens: 8_100,
                verbatim_percent: 3,
                ladder: true,
                ..PassRow::default()
            },
        ],
        totals: totals(12_340_000, 0),
        baselines: vec![BaselineRow {
            name: "no compaction".into(),
            totals: totals(35_800_000, 61),
            cumulative: vec![],
        }],
        ..ReplayReport::default()
    }
}

const GOLDEN: &str = "\
session.jsonl
format  openai-chat
policy  default
window  64,000 tokens, 47,616 usable; compacts above 40,473 down to 28,569

  turn  reason               tokens before → after  decided        from entry  prefix kept
    41  ClearToolResults          54,310 →  38,902  3 preview,             17       30.9 %
                                                    12 cleared
!1,168  OffloadToolResults,      140,688 →   9,093  1,284 covered           –            –
        reactive_summary
        (aggressive)
! the ladder of last resorts was needed
at least 8,100 tokens of the record (3 %) stood word for word after every pass

                           this policy  no compaction
turns                            1,200          1,200
passes                               2              –
tokens sent                  4,102,334      4,102,334
largest request                 54,310         54,310
requests over the window             0             61
prefix, of bytes sent           96.0 %         96.0 %
prefix, of request before       97.3 %         97.3 %
requests that broke it               2              2
cached tokens                3,900,000      3,900,000
written to the cache           202,334        202,334
uncached tokens                      0              0
cost                            $12.34        $35.80*
  of which output                $2.25          $2.25
  against this policy                –           2.9×
* 61 of 1,200 requests of `no compaction` are larger than the window: a provider would have refused
them.
Simulated with price row `anthropic-5m` (Anthropic, Claude Opus 5) of 2026-11-29. Source: Vendor's
price and prompt-caching pages ($5 / 0.50 / 6.25 / 25; minimum 512 for Opus 5; 5 minutes, refreshed
on use).
";

#[test]
fn the_terminal_shows_this() {
    let text = table::report(&small(), Style { colour: false });
    assert_eq!(text, GOLDEN, "\n{text}");
}

#[test]
fn every_turn_is_a_row() {
    let text = table::turns(&small(), Style { colour: false });
    assert_eq!(text, TURNS, "\n{text}");
}

const TURNS: &str = "\
\x20 turn  entries  tokens  of usable  prefix kept  cached  not cached     cost
   *41      123  38,902     81.6 %            –  38,802         100  $0.0389
    42      126  40,000     84.0 %       77.1 %  39,900         100  $0.0400
*1,168    3,504  20,000     42.0 %       37.5 %  19,900         100  $0.0200
* a pass ran before this call
";

#[test]
fn no_line_is_wider_than_the_terminal() {
    let mut wild = small();
    wild.session = "一二三四五".repeat(40);
    wild.policy = "x".repeat(400);
    wild.notes = vec!["\x1b[2J\u{202e}gnp.exe".into()];
    wild.passes[0].reasons = vec!["a_very_long_reason_code_of_a_plugin_stage".repeat(3)];
    wild.passes[0].tokens_before = 1_000_000_000;
    for report in [small(), wild, ReplayReport::default()] {
        let all = [
            table::report(&report, Style { colour: false }),
            table::turns(&report, Style { colour: false }),
            table::overview(&[report.clone(), report], Style { colour: false }),
        ];
        for line in all.iter().flat_map(|text| text.lines()) {
            let wide = line.chars().filter(|c| matches!(c, '\u{4e00}'..='\u{9fff}')).count();
            assert!(line.chars().count() + wide <= table::WIDTH, "{line}");
            assert!(!line.contains('\x1b') && !line.contains('\u{202e}'));
        }
    }
}

#[test]
fn colour_is_for_terminals_only() {
    let coloured = table::report(&small(), Style { colour: true });
    assert!(coloured.contains("\x1b[1m") && coloured.contains("\x1b[33m"));
    let plain: String = coloured.replace("\x1b[1m", "").replace("\x1b[33m", "").replace("\x1b[0m", "");
    assert_eq!(plain, table::report(&small(), Style { colour: false }), "colour changes no place");
}

#[test]
fn json_has_stable_names() {
    let mut out = Vec::new();
    let mut report = small();
    report.levels = vec![LevelColumn::of(41, [0, 4, 4, 0])];
    json::write(std::slice::from_ref(&report), &mut out).unwrap();
    let value: serde_json::Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(value["schema"], json::SCHEMA);
    let session = &value["sessions"][0];
    let names: Vec<&str> = session.as_object().unwrap().keys().map(String::as_str).collect();
    let mut expected = vec![
        "session",
        "format",
        "format_reason",
        "policy",
        "window",
        "usable",
        "trigger",
        "target",
        "price",
        "turns",
        "passes",
        "totals",
        "baselines",
        "levels",
        "notes",
        "plugins",
    ];
    expected.sort_unstable();
    let mut sorted = names;
    sorted.sort_unstable();
    assert_eq!(sorted, expected);
    assert_eq!(session["totals"]["cost_microdollars"], 12_340_000);
    assert_eq!(session["levels"][0]["runs"].to_string(), "[[0,1],[4,2],[0,1]]");
    assert_eq!(session["passes"][0]["decided"]["cleared"], 12);
    assert_eq!(session["passes"][1]["first_changed"], serde_json::Value::Null);
    assert_eq!(session["turns"][0]["prefix_kept_bytes"], 38_902 * 3);
    assert!(out.ends_with(b"\n"));
}

#[test]
fn a_hostile_name_stays_text() {
    let mut report = sample(60, 32_000);
    report.session = HOSTILE.into();
    report.format = HOSTILE.into();
    report.format_reason = HOSTILE.into();
    report.policy = HOSTILE.into();
    report.notes = vec![HOSTILE.into()];
    report.price.id = HOSTILE.into();
    report.price.source = HOSTILE.into();
    for pass in &mut report.passes {
        pass.reasons = vec![HOSTILE.into()];
        pass.detail = vec![HOSTILE.into(), "<!--<script>".into()];
    }
    for baseline in &mut report.baselines {
        baseline.name = HOSTILE.into();
    }
    for reports in [vec![report.clone()], vec![report.clone(), report]] {
        let page = html::page(&reports);
        assert_eq!(page.matches("<script").count(), 1 + reports.len(), "the page's own scripts and no other");
        assert_eq!(page.matches("</script").count(), 1 + reports.len());
        assert!(!page.contains("<img") && !page.contains("<!--"));
        for block in page.split("class=\"data\">").skip(1).filter(|block| block.starts_with('{')) {
            let json = block.split("</script>").next().unwrap();
            assert!(!json.contains(['<', '>', '&', '\u{2028}']));
            let value: serde_json::Value = serde_json::from_str(json).unwrap();
            assert_eq!(value["passes"][0]["reasons"][0], HOSTILE, "and the script still reads the true name");
        }
    }
}

#[test]
fn a_page_needs_nothing_but_itself() {
    let page = html::page(&[sample(60, 32_000)]);
    for outside in ["http://", "https://", "src=", "@import", "url(", "<link"] {
        assert!(!page.contains(outside), "{outside}");
    }
    for wanted in ["prefers-color-scheme", "Content-Security-Policy", "role=\"img\"", "<noscript>", "aria-label"] {
        assert!(page.contains(wanted), "{wanted}");
    }
    assert!(!page.contains("NaN") && !page.contains("inf\""), "every coordinate is a number");
}

#[test]
fn empty_states_say_so() {
    assert!(html::page(&[]).contains("No session was replayed"));
    assert!(html::page(&[sample(0, 64_000)]).contains("No model call is recorded"));
    let calm = html::page(&[sample(1, 64_000)]);
    assert!(calm.contains("No pass: the largest view had 3,520 tokens, the trigger is 40,473."));
    assert!(calm.contains("in 1 turn<") && !calm.contains("NaN"));
    assert!(table::report(&sample(3, 64_000), Style::default()).contains("No pass: the largest view had"));
}

#[test]
fn a_long_session_makes_a_page_of_bounded_size() {
    let mut report = small();
    report.turns = (1..=60_000)
        .map(|turn| TurnRow { turn, entries: turn * 2, tokens: 10_000 + turn % 77, ..TurnRow::default() })
        .collect();
    report.passes = (1..=600)
        .map(|n| PassRow { turn: n * 100, tokens_before: 50_000, tokens_after: 9_000, ..PassRow::default() })
        .collect();
    report.levels = (1..=600).map(|n| LevelColumn::of(n * 100, (0..n * 200).map(|entry| (entry % 5) as u8))).collect();
    let page = html::page(&[report]);
    assert!(page.len() < 4_000_000, "{}", page.len());
}

/// Writes pages to look at: `FORESHORTEN_SAMPLES=DIR cargo test -p foreshorten --test economics report:: -- --ignored`.
#[test]
#[ignore = "writes files"]
fn write_sample_pages() {
    let folder = std::path::PathBuf::from(std::env::var_os("FORESHORTEN_SAMPLES").unwrap());
    let mut hostile = sample(40, 32_000);
    hostile.session = HOSTILE.into();
    let big = sample(6_000, 128_000);
    for (name, reports) in [
        ("session", vec![sample(150, 64_000)]),
        ("calm", vec![sample(12, 200_000)]),
        ("one-turn", vec![sample(1, 64_000)]),
        ("empty", vec![sample(0, 64_000)]),
        ("long", vec![big]),
        ("several", vec![sample(60, 32_000), hostile, sample(5, 64_000)]),
        ("none", vec![]),
    ] {
        html::write(&reports, std::fs::File::create(folder.join(format!("{name}.html"))).unwrap()).unwrap();
        let text: String = reports.iter().map(|report| table::report(report, Style { colour: false })).collect();
        std::fs::write(folder.join(format!("{name}.txt")), text + &table::overview(&reports, Style::default()))
            .unwrap();
        json::write(&reports, std::fs::File::create(folder.join(format!("{name}.json"))).unwrap()).unwrap();
    }
}

const HOSTILE: &str = "</script><script>alert(1)</script><img src=x onerror=alert(1)> \" ' & \u{2028}.jsonl";
