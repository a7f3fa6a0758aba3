//! Every misbehaviour, as a client meets it.

#![allow(clippy::unwrap_used, reason = "helpers of tests; a failure here is a failed test")]

mod common;

use std::time::{Duration, Instant};

use common::{PROTOCOLS, Talk, events, post, prompt_and_cached, start, stream, try_post};
use foreshorten_simulator::{
    Fault, Of, Protocol, RateWording, RetryAfter, Rule, Simulator, Summary, UsageLie, Verdict, When,
};
use serde_json::{Value, json};

fn with(fault: Fault) -> Simulator {
    start(|config| config.faults = vec![Rule::at(1, fault)])
}

fn streamed(protocol: Protocol) -> Value {
    let mut body = Talk::new(protocol).say("hello").body;
    body["stream"] = json!(true);
    body
}

/// The text of a stream that may end badly: what came, and whether the end was a proper one.
async fn raw(simulator: &Simulator, protocol: Protocol) -> (String, bool) {
    let mut response = try_post(simulator, protocol, &streamed(protocol)).await.unwrap();
    let mut bytes = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) => bytes.extend_from_slice(&chunk),
            Ok(None) => return (String::from_utf8_lossy(&bytes).into_owned(), true),
            Err(_) => return (String::from_utf8_lossy(&bytes).into_owned(), false),
        }
    }
}

const fn terminal(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Chat => "[DONE]",
        Protocol::Responses => "response.completed",
        Protocol::Messages => "message_stop",
    }
}

#[tokio::test]
async fn a_rate_limit_says_when_to_come_back() {
    for protocol in PROTOCOLS {
        let limited = |retry_after, wording| Some(Fault::RateLimit { retry_after, wording });
        let simulator = start(|config| {
            config.faults = Rule::script([
                limited(RetryAfter::Seconds(3), RateWording::Requests),
                limited(RetryAfter::Millis(250), RateWording::TokensPerMinute),
                None,
                limited(RetryAfter::InText(1_500), RateWording::Quota),
            ]);
        });
        let body = Talk::new(protocol).say("hello").body;
        let first = try_post(&simulator, protocol, &body).await.unwrap();
        assert_eq!((first.status().as_u16(), &first.headers()["retry-after"]), (429, &"3".parse().unwrap()));
        let second = try_post(&simulator, protocol, &body).await.unwrap();
        assert_eq!(second.headers()["retry-after-ms"], "250");
        assert!(second.text().await.unwrap().contains("per min"));
        assert_eq!(try_post(&simulator, protocol, &body).await.unwrap().status(), 200);
        assert!(post(&simulator, protocol, &body).await.1.to_string().contains("try again in 1.500s"));
        assert_eq!(simulator.log()[0].fault, Some("rate_limit"));
        assert_eq!((simulator.stats().faults, simulator.stats().answered), (3, 1));
    }
}

#[tokio::test]
async fn server_errors_have_the_protocols_shape() {
    for (status, kind) in [(500, "api_error"), (502, "api_error"), (503, "api_error"), (529, "overloaded_error")] {
        let simulator = with(Fault::Status(status));
        let (got, error) = post(&simulator, Protocol::Messages, &Talk::new(Protocol::Messages).say("x").body).await;
        assert_eq!((got, &error["error"]["type"]), (status, &json!(kind)));
        let simulator = with(Fault::Status(status));
        let (got, error) = post(&simulator, Protocol::Chat, &Talk::new(Protocol::Chat).say("x").body).await;
        assert_eq!((got, &error["error"]["type"]), (status, &json!("server_error")));
        assert_eq!(simulator.log()[0].verdict, Verdict::Faulted);
    }
}

#[tokio::test]
async fn a_connection_is_reset_before_the_answer() {
    for protocol in PROTOCOLS {
        let simulator = with(Fault::Reset);
        let failed = try_post(&simulator, protocol, &streamed(protocol)).await;
        assert!(failed.unwrap_err().is_request());
        assert_eq!(simulator.log()[0].status, 0);
        assert_eq!(try_post(&simulator, protocol, &streamed(protocol)).await.unwrap().status(), 200);
    }
}

#[tokio::test]
async fn a_hang_ends_in_a_reset() {
    let simulator = with(Fault::Hang(Duration::from_millis(300)));
    let begun = Instant::now();
    assert!(try_post(&simulator, Protocol::Chat, &streamed(Protocol::Chat)).await.is_err());
    assert!(begun.elapsed() >= Duration::from_millis(300));
}

#[tokio::test]
async fn streams_end_too_early_in_every_way() {
    let pause = Duration::from_millis(300);
    for protocol in PROTOCOLS {
        for (fault, proper) in [
            (Fault::HangMidStream(pause), false),
            (Fault::ResetMidStream, false),
            (Fault::Truncated, true),
            (Fault::NoTerminalEvent, true),
        ] {
            let simulator = with(fault.clone());
            let (text, ended) = raw(&simulator, protocol).await;
            assert_eq!(ended, proper, "{protocol:?} {fault:?}");
            assert!(!text.contains(terminal(protocol)) && events(&text).len() > 2, "{protocol:?} {fault:?}: {text}");
            // The next request gets what this one should have had.
            let (again, _) = raw(&simulator, protocol).await;
            assert!(again.contains(terminal(protocol)));
            let log = simulator.log();
            assert_eq!(log[0].text, log[1].text);
            assert_eq!(log[0].calls[0].arguments, log[1].calls[0].arguments);
            assert_ne!(log[0].calls[0].id, log[1].calls[0].id);
        }
    }
}

#[tokio::test]
async fn an_event_can_hold_broken_json_or_an_error() {
    for protocol in PROTOCOLS {
        let (text, _) = raw(&with(Fault::InvalidJson), protocol).await;
        let data = text.lines().filter_map(|line| line.strip_prefix("data: ")).filter(|data| *data != "[DONE]");
        assert_eq!(data.filter(|data| serde_json::from_str::<Value>(data).is_err()).count(), 1);
        assert!(text.contains(terminal(protocol)));
        let (text, _) = raw(&with(Fault::ErrorEvent), protocol).await;
        let (name, data) = events(&text).pop().unwrap();
        match protocol {
            Protocol::Chat => assert_eq!(data["error"]["type"], "server_error"),
            Protocol::Responses => {
                assert_eq!((name.as_str(), &data["response"]["status"]), ("response.failed", &json!("failed")))
            }
            Protocol::Messages => {
                assert_eq!((name.as_str(), &data["error"]["type"]), ("error", &json!("overloaded_error")));
            }
        }
    }
}

#[tokio::test]
async fn usage_can_be_wrong_in_four_ways() {
    for protocol in PROTOCOLS {
        let body = Talk::new(protocol).say("hello").body;
        let simulator = start(|config| {
            let lies = [UsageLie::Zero, UsageLie::Huge, UsageLie::OutputAsInput, UsageLie::Missing];
            config.faults = Rule::script(lies.map(|lie| Some(Fault::Usage(lie))));
        });
        let mut told = Vec::new();
        for _ in 0..3 {
            told.push(prompt_and_cached(protocol, &post(&simulator, protocol, &body).await.1).0);
        }
        let log = simulator.log();
        let (prompt, output) = (log[2].prompt_tokens, log[2].output_tokens);
        assert_eq!(told, [0, prompt * 1_000, prompt + output]);
        let (_, missing) = post(&simulator, protocol, &body).await;
        assert!(missing["usage"].is_null());
    }
}

#[tokio::test]
async fn an_answer_can_be_empty() {
    for protocol in PROTOCOLS {
        let simulator = with(Fault::EmptyAnswer);
        let mut talk = Talk::new(protocol).say("hello");
        let (status, answer) = post(&simulator, protocol, &talk.body).await;
        assert_eq!((status, talk.calls(&answer).len()), (200, 0));
        // The turn is not lost.
        let answer = talk.ask(&simulator).await;
        assert!(!talk.calls(&answer).is_empty());
    }
}

#[tokio::test]
async fn bodies_can_be_html_or_in_another_charset_or_under_another_type() {
    let body = Talk::new(Protocol::Chat).say("hello").body;
    let response = try_post(&with(Fault::Html(502)), Protocol::Chat, &body).await.unwrap();
    assert_eq!((response.status().as_u16(), &response.headers()["content-type"]), (502, &"text/html".parse().unwrap()));
    assert!(response.text().await.unwrap().starts_with("<html>"));
    let response = try_post(&with(Fault::ForeignCharset), Protocol::Chat, &body).await.unwrap();
    assert_eq!(response.headers()["content-type"], "application/json; charset=iso-8859-1");
    assert!(std::str::from_utf8(&response.bytes().await.unwrap()).is_err());
    let response = try_post(&with(Fault::WrongContentType), Protocol::Chat, &body).await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/plain");
    assert!(response.json::<Value>().await.is_ok());
    let raw = Fault::Raw { status: 413, content_type: "text/plain".into(), body: b"too big".to_vec() };
    assert_eq!(try_post(&with(raw), Protocol::Chat, &body).await.unwrap().text().await.unwrap(), "too big");
}

#[tokio::test]
async fn a_slow_stream_comes_piece_by_piece() {
    let simulator = with(Fault::Slow(Duration::from_millis(10)));
    let begun = Instant::now();
    let events = stream(&simulator, Protocol::Messages, &Talk::new(Protocol::Messages).say("hello").body).await;
    assert!(begun.elapsed() >= Duration::from_millis(10) * u32::try_from(events.len()).unwrap());
}

#[tokio::test]
async fn one_request_alone_can_be_truncated() {
    let simulator = with(Fault::Truncate { keep: 200, say: true });
    let talk = Talk::new(Protocol::Messages).say(&"word ".repeat(2_000)).say("last");
    let (_, answer) = post(&simulator, Protocol::Messages, &talk.body).await;
    assert_eq!(answer["stop_reason"], "model_context_window_exceeded");
    let log = simulator.log();
    assert!(log[0].read_tokens < 1_000 && log[0].prompt_tokens > 2_000);
    assert_eq!(post(&simulator, Protocol::Messages, &talk.body).await.1["stop_reason"], "tool_use");
}

#[tokio::test]
async fn rules_apply_by_number_period_and_kind() {
    let simulator = start(|config| {
        config.faults = vec![
            Rule::every(3, Fault::Status(503)),
            Rule { when: When::In(vec![2, 5]), of: Of::All, fault: Fault::Status(500) },
            Rule { when: When::Always, of: Of::Summaries, fault: Fault::Status(502) },
        ];
    });
    let mut statuses = Vec::new();
    for _ in 0..6 {
        statuses.push(post(&simulator, Protocol::Chat, &Talk::new(Protocol::Chat).say("x").body).await.0);
    }
    assert_eq!(statuses, [200, 500, 503, 200, 500, 503]);
    assert_eq!(post(&simulator, Protocol::Chat, &summary_request(Protocol::Chat)).await.0, 502);
    simulator.reset();
    assert_eq!(simulator.stats().requests, 0);
    assert_eq!(post(&simulator, Protocol::Chat, &Talk::new(Protocol::Chat).say("x").body).await.0, 200);
}

const INSTRUCTION: &str = "Use these headings:\n## Session intent\n## Current state\n## Key facts and decisions\n\
                           ## Artifacts\n## Constraints\n## Next steps";

fn summary_request(protocol: Protocol) -> Value {
    let mut body = Talk::new(protocol).say("The record.").say(INSTRUCTION).body;
    body.as_object_mut().unwrap().retain(|key, _| !["tools", "thinking", "reasoning"].contains(&key.as_str()));
    body
}

fn text_of(protocol: Protocol, answer: &Value) -> String {
    let value = match protocol {
        Protocol::Chat => &answer["choices"][0]["message"]["content"],
        Protocol::Responses => &answer["output"][0]["content"][0]["text"],
        Protocol::Messages => &answer["content"][0]["text"],
    };
    value.as_str().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn summaries_come_in_every_quality() {
    for protocol in PROTOCOLS {
        let simulator = start(|config| {
            config.summaries = vec![
                Summary::Good,
                Summary::EmptyHeadings,
                Summary::EmptyText,
                Summary::Refusal,
                Summary::TooLong(3_000),
                Summary::CutByLength,
                Summary::NoHeadings,
                Summary::NoTemperature,
            ];
        });
        let mut answers = Vec::new();
        for _ in 0..7 {
            answers.push(post(&simulator, protocol, &summary_request(protocol)).await.1);
        }
        let texts: Vec<String> = answers.iter().map(|answer| text_of(protocol, answer)).collect();
        let headings = |text: &str| text.lines().filter(|line| line.starts_with("## ")).count();
        assert_eq!((headings(&texts[0]), headings(&texts[1]), headings(&texts[6])), (6, 6, 0));
        assert!(texts[0].len() > 600 && texts[1].len() < 150 && texts[2].is_empty());
        let tokens = Simulator::tokens(&texts[4]);
        assert!((2_500..5_000).contains(&tokens), "{tokens}");
        assert!((1..6).contains(&headings(&texts[5])));
        let [refused, cut] = [3, 5].map(|n: usize| answers[n].to_string());
        let (refusal, length) = match protocol {
            Protocol::Chat => (r#""refusal":"I'm"#, r#""finish_reason":"length""#),
            Protocol::Responses => (r#""type":"refusal""#, r#""status":"incomplete""#),
            Protocol::Messages => (r#""stop_reason":"refusal""#, r#""stop_reason":"max_tokens""#),
        };
        assert!(refused.contains(refusal) && cut.contains(length), "{refused} {cut}");
        let mut warm = summary_request(protocol);
        warm["temperature"] = json!(0);
        assert_eq!(post(&simulator, protocol, &warm).await.0, 400);
        assert_eq!(post(&simulator, protocol, &summary_request(protocol)).await.0, 200);
        assert_eq!(simulator.stats().summaries, 9);
    }
}

#[tokio::test]
async fn a_summary_further_up_is_not_asked_for_again() {
    let simulator = start(|_| {});
    let mut talk = Talk::new(Protocol::Chat).say(INSTRUCTION).say("Go on.");
    let answer = talk.ask(&simulator).await;
    assert!(!talk.calls(&answer).is_empty() && simulator.stats().summaries == 0);
}
