//! Whole conversations, plain and streamed.

#![allow(clippy::unwrap_used, reason = "helpers of tests; a failure here is a failed test")]

mod common;

use common::{PROTOCOLS, Talk, post, prompt_and_cached, start, stream};
use foreshorten_simulator::{Protocol, Simulator, Stop};
use serde_json::{Value, json};

#[tokio::test]
async fn an_agent_gets_its_rounds_of_calls_and_then_an_answer() {
    for protocol in PROTOCOLS {
        let simulator = start(|config| config.agent.rounds = 5);
        let mut talk = Talk::new(protocol).say("Audit the billing code.");
        let (requests, _) = talk.run(&simulator, "fn main() {}").await;
        assert_eq!(requests, 6, "{protocol:?}");
        let mut talk = talk.say("And the tests?");
        assert_eq!(talk.run(&simulator, "ok").await.0, 6, "{protocol:?}");
        let stats = simulator.stats();
        assert_eq!((stats.requests, stats.answered, stats.refusals), (12, 12, 0));
        assert!(simulator.log()[0].calls.iter().all(|call| call.arguments.starts_with("{\"")));
    }
}

#[tokio::test]
async fn usage_is_what_the_log_says_and_grows_with_the_conversation() {
    for protocol in PROTOCOLS {
        let simulator = start(|_| {});
        let mut talk = Talk::new(protocol).say("Audit the billing code.");
        let mut before = 0;
        for round in 0..3 {
            let answer = talk.ask(&simulator).await;
            let (prompt, _) = prompt_and_cached(protocol, &answer);
            let record = simulator.log().pop().unwrap();
            assert_eq!(prompt, record.prompt_tokens, "{protocol:?}");
            assert!(prompt > before && record.output_tokens > 0 && record.reasoning_tokens < record.output_tokens);
            before = prompt;
            talk.results(&talk.calls(&answer), &format!("round {round}"));
        }
    }
}

#[tokio::test]
async fn a_known_prompt_weighs_what_its_tokens_weigh() {
    let simulator = start(|config| config.counting.hidden = 10);
    let text = "The quick brown fox jumps over the lazy dog.";
    let body = json!({"model": "sim-1", "messages": [{"role": "user", "content": text}]});
    let (_, answer) = post(&simulator, Protocol::Chat, &body).await;
    assert_eq!(answer["usage"]["prompt_tokens"], Simulator::tokens(text) + 4 + 3 + 10);
}

#[tokio::test]
async fn the_same_seed_says_the_same_whatever_the_view() {
    let said = |seed, view: &'static str| async move {
        let simulator = start(|config| config.seed = seed);
        let mut talk = Talk::new(Protocol::Chat).say("Audit the billing code.");
        talk.run(&simulator, view).await;
        let calls = |record: &foreshorten_simulator::Record| {
            let calls = record.calls.iter().map(|call| call.arguments.clone()).collect::<Vec<_>>();
            (record.text.clone(), calls)
        };
        simulator.log().iter().map(calls).collect::<Vec<_>>()
    };
    let first = said(3, "short").await;
    assert_eq!(first, said(3, "a longer result, of other words").await);
    assert_ne!(first, said(4, "short").await);
}

#[tokio::test]
async fn a_streamed_chat_answer_adds_up_to_the_plain_one() {
    let (plain, streamed) = (start(|_| {}), start(|_| {}));
    let mut talk = Talk::new(Protocol::Chat).say("hello");
    let answer = talk.ask(&plain).await;
    let mut body = Talk::new(Protocol::Chat).say("hello").body;
    body["stream_options"] = json!({"include_usage": true});
    let events = stream(&streamed, Protocol::Chat, &body).await;
    assert_eq!(events.last().unwrap().1, json!("[DONE]"));
    let (mut text, mut calls, mut finish) = (String::new(), Vec::<(String, String)>::new(), Value::Null);
    for (_, chunk) in &events[..events.len() - 2] {
        assert_eq!(chunk["usage"], Value::Null);
        let choice = &chunk["choices"][0];
        text += choice["delta"]["content"].as_str().unwrap_or_default();
        for call in choice["delta"]["tool_calls"].as_array().into_iter().flatten() {
            let index = usize::try_from(call["index"].as_u64().unwrap()).unwrap();
            if index == calls.len() {
                calls.push((call["id"].as_str().unwrap().to_owned(), String::new()));
            }
            calls[index].1 += call["function"]["arguments"].as_str().unwrap();
        }
        if !choice["finish_reason"].is_null() {
            finish = choice["finish_reason"].clone();
        }
    }
    let choice = &answer["choices"][0];
    assert_eq!(finish, choice["finish_reason"]);
    assert_eq!(text, choice["message"]["content"].as_str().unwrap_or_default());
    for ((id, arguments), call) in calls.iter().zip(choice["message"]["tool_calls"].as_array().unwrap()) {
        assert_eq!((json!(id), json!(arguments)), (call["id"].clone(), call["function"]["arguments"].clone()));
    }
    assert_eq!(events[events.len() - 2].1["usage"], answer["usage"]);
}

#[tokio::test]
async fn a_streamed_responses_answer_adds_up_to_the_plain_one() {
    let (plain, streamed) = (start(|_| {}), start(|_| {}));
    let talk = Talk::new(Protocol::Responses).say("hello");
    let (_, answer) = post(&plain, Protocol::Responses, &talk.body).await;
    let events = stream(&streamed, Protocol::Responses, &talk.body).await;
    assert_eq!((events[0].0.as_str(), events[1].0.as_str()), ("response.created", "response.in_progress"));
    for (number, (name, data)) in events.iter().enumerate() {
        assert_eq!((json!(name), json!(number)), (data["type"].clone(), data["sequence_number"].clone()));
    }
    let done = |kind: &str| events.iter().filter(|(name, _)| name == kind).map(|(_, data)| data).collect::<Vec<_>>();
    let items: Vec<Value> = done("response.output_item.done").iter().map(|data| data["item"].clone()).collect();
    assert_eq!(json!(items), answer["output"]);
    assert_eq!(items[0]["type"], "reasoning");
    assert_eq!(done("response.completed")[0]["response"], answer);
    let last = items.len() - 1;
    let deltas = done("response.function_call_arguments.delta");
    let of_last = deltas.iter().filter(|data| data["output_index"] == last);
    let arguments: String = of_last.map(|data| data["delta"].as_str().unwrap()).collect();
    assert_eq!(arguments, items[last]["arguments"].as_str().unwrap());
}

#[tokio::test]
async fn a_streamed_messages_answer_adds_up_to_the_plain_one() {
    let (plain, streamed) = (start(|_| {}), start(|config| config.frame_bytes = Some(7)));
    let talk = Talk::new(Protocol::Messages).say("hello");
    let (_, answer) = post(&plain, Protocol::Messages, &talk.body).await;
    let events = stream(&streamed, Protocol::Messages, &talk.body).await;
    let mut content: Vec<Value> = Vec::new();
    let mut json_parts = String::new();
    for (name, data) in &events {
        assert_eq!(data["type"], json!(name));
        let mut append = |key: &str, part: &str| {
            let block = content.last_mut().unwrap();
            block[key] = json!(block[key].as_str().unwrap().to_owned() + data["delta"][part].as_str().unwrap());
        };
        match data["delta"]["type"].as_str() {
            Some("thinking_delta") => append("thinking", "thinking"),
            Some("signature_delta") => append("signature", "signature"),
            Some("text_delta") => append("text", "text"),
            Some("input_json_delta") => json_parts += data["delta"]["partial_json"].as_str().unwrap(),
            _ if name == "content_block_start" => content.push(data["content_block"].clone()),
            _ if name == "content_block_stop" && !json_parts.is_empty() => {
                content.last_mut().unwrap()["input"] = serde_json::from_str(&json_parts).unwrap();
                json_parts.clear();
            }
            _ => {}
        }
    }
    assert_eq!(json!(content), answer["content"]);
    assert_eq!(content[0]["type"], "thinking");
    let names: Vec<&str> = events.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!((names[0], names[names.len() - 1]), ("message_start", "message_stop"));
    assert!(names.contains(&"ping"));
    let end = &events[events.len() - 2].1;
    assert_eq!(end["delta"]["stop_reason"], answer["stop_reason"]);
    assert_eq!(end["usage"]["output_tokens"], answer["usage"]["output_tokens"]);
    assert_eq!(events[0].1["message"]["usage"]["input_tokens"], answer["usage"]["input_tokens"]);
}

#[tokio::test]
async fn an_answer_longer_than_allowed_is_cut_for_length() {
    for protocol in PROTOCOLS {
        let simulator = start(|_| {});
        let mut body = Talk::new(protocol).say("hello").body;
        body.as_object_mut().unwrap().retain(|key, _| key != "thinking" && key != "reasoning");
        let key = match protocol {
            Protocol::Responses => "max_output_tokens",
            _ => "max_tokens",
        };
        body[key] = json!(16);
        let (_, answer) = post(&simulator, protocol, &body).await;
        let stop = match protocol {
            Protocol::Chat => &answer["choices"][0]["finish_reason"],
            Protocol::Responses => &answer["incomplete_details"]["reason"],
            Protocol::Messages => &answer["stop_reason"],
        };
        let record = simulator.log().pop().unwrap();
        if record.stop == Some(Stop::Length) {
            assert!(["length", "max_output_tokens", "max_tokens"].contains(&stop.as_str().unwrap()), "{answer}");
        }
        assert!(record.output_tokens <= 16, "{protocol:?}");
    }
}

#[tokio::test]
async fn call_ids_can_repeat_in_every_turn() {
    for protocol in [Protocol::Chat, Protocol::Responses] {
        let simulator = start(|config| config.agent.repeat_call_ids = true);
        let mut talk = Talk::new(protocol).say("hello");
        talk.run(&simulator, "x").await;
        let log = simulator.log();
        let ids: Vec<&str> = log.iter().filter_map(|record| Some(record.calls.first()?.id.as_str())).collect();
        assert!(ids.len() == 8 && ids.iter().all(|id| *id == "call_0"));
    }
}

#[tokio::test]
async fn a_marker_is_recalled_with_its_own_reference() {
    for protocol in PROTOCOLS {
        let simulator = start(|config| config.agent.recall_percent = 100);
        let mut talk = Talk::new(protocol).say("hello");
        let marker = "[Earlier result cleared.\n Call recall_tool_result(\"call_17\") to retrieve it.]";
        talk.run(&simulator, marker).await;
        let log = simulator.log();
        let recalls: Vec<&str> = log
            .iter()
            .flat_map(|record| &record.calls)
            .filter(|call| call.name == "recall_tool_result")
            .map(|call| call.arguments.as_str())
            .collect();
        // The first request holds no marker yet, the last one ends the turn.
        assert_eq!(recalls, [r#"{"reference":"call_17"}"#; 7], "{protocol:?}");
        assert_eq!(simulator.stats().recalls, 7);
    }
}

#[tokio::test]
async fn several_agents_at_one_simulator_are_kept_apart() {
    let simulator = start(|config| {
        config.agent.rounds = 2;
        config.keep_bodies = true;
    });
    let client = common::builder().build().unwrap();
    let mut said = Vec::new();
    for session in ["a", "b", "a", "b"] {
        let body = Talk::new(Protocol::Chat).say("hello").body;
        let request = client.post(simulator.base_url() + "/v1/chat/completions").json(&body);
        let request = request.bearer_auth("simulator-key").header("x-simulator-session", session);
        assert_eq!(request.send().await.unwrap().status(), 200);
        let record = simulator.log().pop().unwrap();
        assert_eq!(record.session, session);
        assert_eq!(serde_json::from_slice::<Value>(&record.body.unwrap()).unwrap(), body);
        said.push((record.text, record.calls[0].arguments.clone()));
    }
    assert!(said[0] == said[1] && said[2] == said[3] && said[0] != said[2]);
}

#[tokio::test]
async fn a_request_without_tools_is_no_turn_of_the_agent() {
    let simulator = start(|_| {});
    let mut talk = Talk::new(Protocol::Chat).say("hello");
    talk.ask(&simulator).await;
    simulator.reset();
    let title = json!({"model": "sim-1", "messages": [{"role": "user", "content": "Give this chat a title."}]});
    let (_, answer) = post(&simulator, Protocol::Chat, &title).await;
    assert_eq!(answer["choices"][0]["finish_reason"], "stop");
    let mut again = Talk::new(Protocol::Chat).say("hello");
    again.ask(&simulator).await;
    let arguments = |talk: &Talk| talk.body["messages"][2]["tool_calls"][0]["function"]["arguments"].clone();
    assert_eq!(arguments(&talk), arguments(&again));
}

#[test]
fn a_simulator_starts_and_stops_without_a_runtime_around_it() {
    let simulator = start(|_| {});
    assert!(simulator.base_url().starts_with("http://127.0.0.1:"));
    drop(simulator);
}

#[tokio::test]
async fn a_model_told_to_call_nothing_or_one_thing_at_a_time_obeys() {
    for (protocol, none, one) in [
        (Protocol::Chat, json!({"tool_choice": "none"}), json!({"parallel_tool_calls": false})),
        (Protocol::Responses, json!({"tool_choice": "none"}), json!({"parallel_tool_calls": false})),
        (
            Protocol::Messages,
            json!({"tool_choice": {"type": "none"}}),
            json!({"tool_choice": {"type": "auto", "disable_parallel_tool_use": true}}),
        ),
    ] {
        let simulator = start(|_| {});
        let with = |extra: &Value| {
            let mut talk = Talk::new(protocol).say("hello");
            talk.body.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
            talk
        };
        for _ in 0..6 {
            with(&one).ask(&simulator).await;
        }
        assert!(simulator.log().iter().all(|record| record.calls.len() == 1), "{protocol:?}");
        with(&none).ask(&simulator).await;
        assert!(simulator.log().pop().unwrap().calls.is_empty(), "{protocol:?}");
    }
}
