//! The window: refused in many words, truncated in silence, announced, changed. And the prompt cache.

#![allow(clippy::unwrap_used, reason = "helpers of tests; a failure here is a failed test")]

mod common;

use std::time::Duration;

use common::{PROTOCOLS, Talk, post, prompt_and_cached, start, stream};
use foreshorten_simulator::{Config, Dialect, Models, Overflow, Protocol, Reason, Simulator};
use serde_json::{Value, json};

fn long(protocol: Protocol) -> Value {
    let mut talk = Talk::new(protocol);
    for _ in 0..3 {
        talk = talk.say(&"one two three ".repeat(1_000));
        let answer = json!({"role": "assistant", "content": "Yes."});
        talk.items().push(answer);
    }
    talk.say("Now go on.").body
}

#[tokio::test]
async fn a_prompt_above_the_window_is_refused_in_the_native_words() {
    for protocol in PROTOCOLS {
        let simulator = start(|config| config.window.tokens = 8_000);
        let (status, error) = post(&simulator, protocol, &long(protocol)).await;
        let record = simulator.log().pop().unwrap();
        assert_eq!((status, record.verdict.refused()), (400, Some(Reason::Overflow)));
        let (prompt, message) = (record.prompt_tokens, error["error"]["message"].as_str().unwrap());
        match protocol {
            Protocol::Chat => {
                assert_eq!(error["error"]["code"], "context_length_exceeded");
                assert!(message.contains("maximum context length is 8000 tokens"), "{message}");
                assert!(message.contains(&format!("resulted in {prompt} tokens")), "{message}");
            }
            Protocol::Responses => assert_eq!(error["error"]["code"], "context_length_exceeded"),
            Protocol::Messages => {
                assert_eq!(message, format!("prompt is too long: {prompt} tokens > 8000 maximum"));
                assert_eq!(error["error"]["type"], "invalid_request_error");
            }
        }
        assert_eq!(simulator.stats().overflows, 1);
    }
}

#[tokio::test]
async fn output_counts_against_the_window_where_it_does_in_reality() {
    for protocol in PROTOCOLS {
        let simulator = start(|_| {});
        let mut body = long(protocol);
        post(&simulator, protocol, &body).await;
        let prompt = simulator.log()[0].prompt_tokens;
        simulator.update(|config| config.window.tokens = prompt + 3_000);
        let key = match protocol {
            Protocol::Chat => "max_completion_tokens",
            Protocol::Responses => "max_output_tokens",
            Protocol::Messages => "max_tokens",
        };
        body[key] = json!(3_000);
        assert_eq!(post(&simulator, protocol, &body).await.0, 200);
        body[key] = json!(3_001);
        let (status, error) = post(&simulator, protocol, &body).await;
        let message = error["error"]["message"].as_str().unwrap_or_default();
        let named = format!("{prompt} + 3001 > {}", prompt + 3_000);
        match protocol {
            Protocol::Chat => assert!(message.contains("(") && message.contains("3001 in the completion"), "{message}"),
            Protocol::Responses => assert_eq!(status, 200),
            Protocol::Messages => assert!(message.contains(&named), "{message}"),
        }
    }
}

#[tokio::test]
async fn every_dialect_has_its_own_words() {
    let (nothing, window) = ([Dialect::Bedrock, Dialect::Groq, Dialect::Zai, Dialect::NoBody], 8_000);
    let naming = [
        Dialect::Requested,
        Dialect::Azure,
        Dialect::Vllm,
        Dialect::LlamaCpp,
        Dialect::Sglang,
        Dialect::OpenRouter,
        Dialect::Mistral,
        Dialect::LmStudio,
    ];
    let mut seen = std::collections::HashSet::new();
    for dialect in nothing.into_iter().chain(naming) {
        let simulator = start(|config| {
            config.window.tokens = window;
            config.window.overflow = Overflow::Refuse(dialect);
        });
        let response = common::try_post(&simulator, Protocol::Chat, &long(Protocol::Chat)).await.unwrap();
        assert!([400, 413].contains(&response.status().as_u16()));
        let text = response.text().await.unwrap();
        assert_eq!(text.contains(&window.to_string()), naming.contains(&dialect), "{dialect:?}: {text}");
        assert!(seen.insert(text));
    }
}

#[tokio::test]
async fn an_overflow_can_arrive_in_a_stream() {
    let simulator = start(|config| {
        config.window.tokens = 8_000;
        config.window.overflow_in_stream = true;
    });
    let events = stream(&simulator, Protocol::Responses, &long(Protocol::Responses)).await;
    assert_eq!(events[0].0, "response.failed");
    assert_eq!(events[0].1["response"]["error"]["code"], "context_length_exceeded");
    assert_eq!(simulator.stats().overflows, 1);
}

#[tokio::test]
async fn silent_truncation_answers_and_counts_only_what_was_read() {
    for protocol in PROTOCOLS {
        for say in [false, true] {
            let simulator = start(|config| {
                config.window.tokens = 8_000;
                config.window.overflow = if say { Overflow::TruncateAndSay } else { Overflow::Truncate };
            });
            let (status, answer) = post(&simulator, protocol, &long(protocol)).await;
            assert_eq!(status, 200, "{answer}");
            let (prompt, _) = prompt_and_cached(protocol, &answer);
            let record = simulator.log().pop().unwrap();
            assert!(prompt == record.read_tokens && prompt <= 8_000 && record.prompt_tokens > 9_000);
            let text = answer.to_string();
            let stop = match protocol {
                Protocol::Chat => r#""finish_reason":"length""#,
                Protocol::Responses => r#""reason":"max_output_tokens""#,
                Protocol::Messages => r#""stop_reason":"model_context_window_exceeded""#,
            };
            assert_eq!(text.contains(stop), say, "{text}");
        }
    }
}

#[tokio::test]
async fn a_window_can_shrink_in_mid_session_and_be_announced_wrongly() {
    let simulator = start(|config| {
        config.window.changes = vec![(2, 8_000)];
        config.window.announced = Some(128_000);
        config.models.window_field = Some("top_provider.context_length".to_owned());
    });
    let body = long(Protocol::Chat);
    assert_eq!(post(&simulator, Protocol::Chat, &body).await.0, 200);
    assert_eq!(post(&simulator, Protocol::Chat, &body).await.0, 400);
    let models = listing(&simulator, "/v1/models/sim-1").await.1;
    assert_eq!(models["top_provider"]["context_length"], 128_000);
}

#[tokio::test]
async fn an_output_cap_is_no_overflow() {
    for protocol in PROTOCOLS {
        let simulator = start(|config| config.window.max_output = Some(2_000));
        let mut body = Talk::new(protocol).say("hi").body;
        body[if protocol == Protocol::Responses { "max_output_tokens" } else { "max_tokens" }] = json!(5_000);
        assert_eq!(post(&simulator, protocol, &body).await.0, 400);
        assert_eq!(simulator.log()[0].verdict.refused(), Some(Reason::OutputCap));
    }
}

async fn listing(simulator: &Simulator, path: &str) -> (u16, Value) {
    let client = common::builder().timeout(Duration::from_secs(1)).build().unwrap();
    let response = client.get(simulator.base_url() + path).bearer_auth(Config::KEY).send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

#[tokio::test]
async fn the_listing_names_the_window_where_servers_do() {
    let simulator = start(|config| config.window.tokens = 32_768);
    assert!(!listing(&simulator, "/v1/models").await.1.to_string().contains("32768"));
    for field in Models::FIELDS {
        simulator.update(|config| config.models.window_field = Some(field.to_owned()));
        let (_, models) = listing(&simulator, "/v1/models").await;
        let mut value = &models["data"][0];
        for key in field.split('.') {
            value = &value[key];
        }
        assert_eq!(value, 32_768, "{field}");
        assert_eq!(models["data"][0]["id"], "sim-1");
    }
    assert_eq!(listing(&simulator, "/v1/models/unheard-of").await.0, 404);
}

#[tokio::test]
async fn the_listing_can_fail_at_first_and_hang() {
    let simulator = start(|config| config.models.fail_first = 2);
    let mut statuses = Vec::new();
    for _ in 0..3 {
        statuses.push(listing(&simulator, "/v1/models").await.0);
    }
    assert_eq!(statuses, [500, 500, 200]);
    assert_eq!(simulator.stats().listings, 3);
    simulator.update(|config| config.models.hang = Some(Duration::from_secs(60)));
    let client = common::builder().timeout(Duration::from_millis(200)).build().unwrap();
    let hung = client.get(simulator.base_url() + "/v1/models").bearer_auth(Config::KEY).send().await;
    assert!(hung.unwrap_err().is_timeout());
}

#[tokio::test]
async fn openai_caches_the_longest_known_prefix_in_steps() {
    for protocol in [Protocol::Chat, Protocol::Responses] {
        let simulator = start(|_| {});
        let mut body = long(protocol);
        let (_, first) = post(&simulator, protocol, &body).await;
        assert_eq!(prompt_and_cached(protocol, &first).1, 0);
        let (_, again) = post(&simulator, protocol, &body).await;
        let (prompt, cached) = prompt_and_cached(protocol, &again);
        assert!(cached % 128 == 0 && cached + 131 > prompt, "{cached} of {prompt}");
        let log = simulator.log();
        assert!(log[0].uncached_bytes > 30_000 && log[1].uncached_bytes == 0);
        // A change in the middle keeps what stands before it.
        let key = if protocol == Protocol::Chat { "messages" } else { "input" };
        let items = body[key].as_array_mut().unwrap();
        let middle = items.len() / 2;
        items[middle]["content"] = json!("changed");
        let (_, changed) = post(&simulator, protocol, &body).await;
        let (prompt, kept) = prompt_and_cached(protocol, &changed);
        assert!(kept > 2_000 && kept + 2_000 < prompt, "{kept} of {prompt}");
    }
}

#[tokio::test]
async fn anthropic_caches_up_to_marks_only_and_looks_back() {
    let simulator = start(|_| {});
    let mut body = long(Protocol::Messages);
    let (_, unmarked) = post(&simulator, Protocol::Messages, &body).await;
    assert_eq!(unmarked["usage"]["cache_creation_input_tokens"], 0);
    let mark = |body: &mut Value| {
        let last = body["messages"].as_array_mut().unwrap().last_mut().unwrap();
        let text = last["content"].take();
        last["content"] = json!([{"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}]);
    };
    mark(&mut body);
    let usage = post(&simulator, Protocol::Messages, &body).await.1["usage"].clone();
    let written = usage["cache_creation_input_tokens"].as_u64().unwrap();
    assert!(written > 9_000 && usage["cache_read_input_tokens"] == 0 && usage["input_tokens"].as_u64().unwrap() < 20);
    // The mark moves to the new end, as agents do it; the old one goes.
    body["messages"].as_array_mut().unwrap().last_mut().unwrap()["content"][0]
        .as_object_mut()
        .unwrap()
        .remove("cache_control");
    body["messages"].as_array_mut().unwrap().push(json!({"role": "user", "content": "More."}));
    mark(&mut body);
    let usage = post(&simulator, Protocol::Messages, &body).await.1["usage"].clone();
    assert_eq!(usage["cache_read_input_tokens"], written);
    let rest = usage["cache_creation_input_tokens"].as_u64().unwrap();
    assert!(rest > 0 && rest < 20, "{usage}");
}
