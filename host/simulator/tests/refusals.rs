//! What real endpoints refuse is refused, and said in their shape.

#![allow(clippy::unwrap_used, reason = "helpers of tests; a failure here is a failed test")]

mod common;

use common::{Talk, post, start};
use foreshorten_simulator::{Config, Protocol, Reason, Simulator};
use serde_json::{Value, json};

/// A legal conversation with two answered rounds of calls, the newest one open to an answer.
async fn legal(simulator: &Simulator, protocol: Protocol) -> Value {
    let mut talk = Talk::new(protocol).say("Audit the billing code.");
    for round in 0..2 {
        let answer = talk.ask(simulator).await;
        let ids = talk.calls(&answer);
        talk.results(&ids, &format!("result of round {round}"));
    }
    talk.body
}

type Change = fn(&mut Value);

async fn refuses(simulator: &Simulator, protocol: Protocol, cases: &[(Reason, Change)]) {
    let body = legal(simulator, protocol).await;
    assert_eq!(post(simulator, protocol, &body).await.0, 200);
    for (number, (reason, change)) in cases.iter().enumerate() {
        let mut broken = body.clone();
        change(&mut broken);
        let (status, error) = post(simulator, protocol, &broken).await;
        let record = simulator.log().pop().unwrap();
        assert_eq!(record.verdict.refused(), Some(*reason), "{protocol:?} case {number}: {error}");
        assert!(status == 400 || status == 404, "{protocol:?} case {number}: {status}");
        assert_eq!(record.status, status);
        assert!(error["error"]["message"].as_str().unwrap().len() > 10);
        if protocol == Protocol::Messages {
            assert_eq!(error["type"], "error");
        } else {
            assert!(error["error"].get("param").is_some() && error["error"].get("code").is_some());
        }
    }
    assert_eq!(simulator.stats().refusals, cases.len() as u64);
}

fn list<'a>(body: &'a mut Value, key: &str) -> &'a mut Vec<Value> {
    body[key].as_array_mut().unwrap()
}

/// Place of the first item that has this under that key.
fn place(items: &[Value], key: &str, value: &str) -> usize {
    items.iter().position(|item| item[key] == value).unwrap()
}

fn last(items: &[Value], key: &str, value: &str) -> usize {
    items.iter().rposition(|item| item[key] == value).unwrap()
}

#[tokio::test]
async fn chat_refuses_what_openai_refuses() {
    let cases: &[(Reason, Change)] = &[
        (Reason::MissingField, |body| body["model"] = Value::Null),
        (Reason::NoMessages, |body| body["messages"] = json!([])),
        (Reason::CallWithoutResult, |body| drop(list(body, "messages").pop())),
        (Reason::CallWithoutResult, |body| {
            let messages = list(body, "messages");
            let at = place(messages, "role", "tool");
            messages.insert(at, json!({"role": "user", "content": "in between"}));
        }),
        (Reason::ResultWithoutCall, |body| {
            let messages = list(body, "messages");
            let at = place(messages, "role", "assistant");
            messages.remove(at);
        }),
        (Reason::ResultWithoutCall, |body| {
            let messages = list(body, "messages");
            let at = place(messages, "role", "tool");
            messages[at]["tool_call_id"] = json!("call_unheard_of");
        }),
        (Reason::RepeatedResult, |body| {
            let messages = list(body, "messages");
            let copy = messages.last().unwrap().clone();
            messages.push(copy);
        }),
        (Reason::RepeatedId, |body| {
            let messages = list(body, "messages");
            let at = place(messages, "role", "assistant");
            let calls = list(&mut messages[at], "tool_calls");
            let copy = calls[0].clone();
            calls.push(copy);
        }),
        (Reason::BadArguments, |body| {
            let messages = list(body, "messages");
            let at = place(messages, "role", "assistant");
            messages[at]["tool_calls"][0]["function"]["arguments"] = json!("{\"path\": \"cut off");
        }),
        (Reason::BadArguments, |body| {
            let messages = list(body, "messages");
            let at = place(messages, "role", "assistant");
            messages[at]["tool_calls"][0]["function"]["arguments"] = json!({"path": "an object"});
        }),
        (Reason::EmptyContent, |body| {
            let messages = list(body, "messages");
            let at = place(messages, "role", "assistant");
            messages[at]["tool_calls"] = json!([]);
        }),
        (Reason::EmptyContent, |body| list(body, "messages")[1]["content"] = Value::Null),
        (Reason::EmptyContent, |body| list(body, "messages")[1]["content"] = json!([])),
        (Reason::UnknownType, |body| {
            list(body, "messages")[1]["content"] = json!([{"type": "input_text", "text": "x"}]);
        }),
        (Reason::WrongRole, |body| list(body, "messages")[1]["role"] = json!("human")),
        (Reason::BadTools, |body| body["tools"] = json!([])),
        (Reason::BadTools, |body| list(body, "tools")[0]["function"]["name"] = json!("grep")),
        (Reason::BadField, |body| body["stream_options"] = json!({"include_usage": true})),
        (Reason::Temperature, |body| {
            body["model"] = json!("gpt-5-mini");
            body["temperature"] = json!(0.2);
        }),
        (Reason::Temperature, |body| {
            body["model"] = json!("o4-mini");
            body["temperature"] = json!(0);
        }),
        (Reason::UnsupportedParameter, |body| {
            body["model"] = json!("o3");
            body["max_tokens"] = json!(100);
        }),
    ];
    refuses(&start(|_| {}), Protocol::Chat, cases).await;
}

#[tokio::test]
async fn responses_refuses_what_openai_refuses() {
    let cases: &[(Reason, Change)] = &[
        (Reason::NoMessages, |body| body["input"] = json!([])),
        (Reason::MissingField, |body| drop(body.as_object_mut().unwrap().remove("input"))),
        (Reason::UnsupportedParameter, |body| body["messages"] = json!([])),
        (Reason::UnsupportedParameter, |body| body["max_tokens"] = json!(100)),
        (Reason::NotServed, |body| body["previous_response_id"] = json!("resp_1")),
        (Reason::CallWithoutResult, |body| drop(list(body, "input").pop())),
        (Reason::ResultWithoutCall, |body| {
            let items = list(body, "input");
            let at = place(items, "type", "function_call_output");
            items[at]["call_id"] = json!("call_unheard_of");
        }),
        (Reason::RepeatedResult, |body| {
            let items = list(body, "input");
            let copy = items.last().unwrap().clone();
            items.push(copy);
        }),
        (Reason::ResultNotAdjacent, |body| {
            let items = list(body, "input");
            let at = place(items, "type", "function_call_output");
            items.insert(at, json!({"role": "user", "content": "in between"}));
        }),
        (Reason::ResultWithoutCall, |body| {
            let items = list(body, "input");
            let result = items.pop().unwrap();
            items.insert(0, result);
        }),
        (Reason::BadArguments, |body| {
            let items = list(body, "input");
            let at = place(items, "type", "function_call");
            items[at]["arguments"] = json!("[1]");
        }),
        (Reason::BadId, |body| {
            let items = list(body, "input");
            let at = place(items, "type", "function_call");
            items[at]["id"] = json!("call_1");
        }),
        (Reason::RepeatedId, |body| {
            let items = list(body, "input");
            let (first, second) = (place(items, "type", "function_call"), last(items, "type", "function_call"));
            items[second]["id"] = items[first]["id"].clone();
        }),
        (Reason::UnknownType, |body| list(body, "input")[0]["type"] = json!("tool_result")),
        (Reason::UnknownType, |body| {
            list(body, "input")[0]["content"] = json!([{"type": "output_text", "text": "x"}]);
        }),
        (Reason::WrongRole, |body| list(body, "input")[0]["role"] = json!("tool")),
        (Reason::EmptyContent, |body| list(body, "input")[0]["content"] = json!([])),
        (Reason::BadEncryptedContent, |body| {
            let items = list(body, "input");
            let at = place(items, "type", "reasoning");
            let sealed = items[at]["encrypted_content"].as_str().unwrap().replace('a', "b");
            items[at]["encrypted_content"] = json!(sealed);
        }),
        (Reason::BadEncryptedContent, |body| {
            let items = list(body, "input");
            let at = place(items, "type", "reasoning");
            items[at].as_object_mut().unwrap().remove("encrypted_content");
        }),
        (Reason::ItemWithoutReasoning, |body| {
            let items = list(body, "input");
            let at = place(items, "type", "reasoning");
            items.remove(at);
        }),
        (Reason::ReasoningWithoutItem, |body| {
            let items = list(body, "input");
            let at = place(items, "type", "reasoning");
            let reasoning = items.remove(at);
            // What it led to lost its id, so only the reasoning can tell.
            items[at].as_object_mut().unwrap().remove("id");
            items.push(reasoning);
        }),
        (Reason::Temperature, |body| {
            body["model"] = json!("gpt-5");
            body["temperature"] = json!(1);
        }),
        (Reason::BadTools, |body| {
            body["tools"] = json!([{"type": "function", "function": {"name": "nested", "parameters": {}}}]);
        }),
        (Reason::BadField, |body| body["max_output_tokens"] = json!(3)),
    ];
    refuses(&start(|_| {}), Protocol::Responses, cases).await;
}

#[tokio::test]
async fn messages_refuses_what_anthropic_refuses() {
    let cases: &[(Reason, Change)] = &[
        (Reason::MissingField, |body| drop(body.as_object_mut().unwrap().remove("max_tokens"))),
        (Reason::NoMessages, |body| body["messages"] = json!([])),
        (Reason::FirstNotUser, |body| drop(list(body, "messages").remove(0))),
        (Reason::WrongRole, |body| {
            list(body, "messages").insert(0, json!({"role": "system", "content": "you are"}));
        }),
        (Reason::WrongRole, |body| list(body, "messages")[0]["role"] = json!("tool")),
        (Reason::CallWithoutResult, |body| drop(list(body, "messages").pop())),
        (Reason::CallWithoutResult, |body| list(body, "messages")[2]["content"] = json!("no results")),
        (Reason::ResultWithoutCall, |body| drop(list(body, "messages").remove(1))),
        (Reason::ResultWithoutCall, |body| {
            list(body, "messages")[2]["content"][0]["tool_use_id"] = json!("toolu_unheard_of");
        }),
        (Reason::RepeatedResult, |body| {
            let content = list(&mut list(body, "messages")[2], "content");
            let copy = content[0].clone();
            content.push(copy);
        }),
        (Reason::ResultNotAdjacent, |body| {
            list(&mut list(body, "messages")[2], "content").insert(0, json!({"type": "text", "text": "first"}));
        }),
        (Reason::RepeatedId, |body| {
            let messages = list(body, "messages");
            let copies = [messages[1].clone(), messages[2].clone()];
            messages.splice(1..1, copies);
        }),
        (Reason::BadId, |body| {
            let messages = list(body, "messages");
            let at = last(messages[1]["content"].as_array().unwrap(), "type", "tool_use");
            messages[1]["content"][at]["id"] = json!("not an id");
        }),
        (Reason::BadArguments, |body| {
            let messages = list(body, "messages");
            let at = last(messages[1]["content"].as_array().unwrap(), "type", "tool_use");
            messages[1]["content"][at]["input"] = json!("{}");
        }),
        (Reason::EmptyContent, |body| list(body, "messages")[0]["content"] = json!("")),
        (Reason::EmptyContent, |body| list(body, "messages")[0]["content"] = json!([])),
        (Reason::EmptyText, |body| {
            list(body, "messages")[0]["content"] = json!([{"type": "text", "text": ""}]);
        }),
        (Reason::EmptyText, |body| list(body, "messages")[0]["content"] = json!(" \n")),
        (Reason::UnknownType, |body| {
            list(body, "messages")[0]["content"] = json!([{"type": "image_url", "image_url": {}}]);
        }),
        (Reason::ExtraField, |body| list(body, "messages")[0]["id"] = json!("msg_1")),
        (Reason::ExtraField, |body| {
            list(&mut list(body, "messages")[2], "content")[0]["name"] = json!("read_file");
        }),
        (Reason::BadSignature, |body| {
            list(body, "messages")[1]["content"][0]["thinking"] = json!("other words");
        }),
        (Reason::BadSignature, |body| {
            list(body, "messages")[1]["content"][0]["signature"] = json!("forged");
        }),
        (Reason::MissingThinking, |body| {
            list(&mut list(body, "messages")[3], "content").remove(0);
        }),
        (Reason::ChangedThinking, |body| {
            let earlier = list(body, "messages")[1]["content"][0].clone();
            list(body, "messages")[3]["content"][0] = earlier;
        }),
        (Reason::NoTools, |body| drop(body.as_object_mut().unwrap().remove("tools"))),
        (Reason::BadTools, |body| list(body, "tools")[0]["name"] = json!("grep")),
        (Reason::TooManyBreakpoints, |body| {
            let mark = json!({"type": "ephemeral"});
            body["system"] = json!([{"type": "text", "text": "x", "cache_control": mark}]);
            for tool in &mut list(body, "tools")[..3] {
                tool["cache_control"] = mark.clone();
            }
            list(&mut list(body, "messages")[2], "content")[0]["cache_control"] = mark;
        }),
        (Reason::BadBreakpoint, |body| {
            list(&mut list(body, "messages")[2], "content")[0]["cache_control"] = json!({"type": "persistent"});
        }),
        (Reason::Temperature, |body| body["temperature"] = json!(0.5)),
        (Reason::BadField, |body| body["thinking"]["budget_tokens"] = json!(4_000)),
        (Reason::WrongEnd, |body| {
            list(body, "messages").push(json!({"role": "assistant", "content": "I think"}));
        }),
        (Reason::NotServed, |body| body["thread"] = json!({"type": "create"})),
    ];
    refuses(&start(|_| {}), Protocol::Messages, cases).await;
}

#[tokio::test]
async fn thinking_of_older_turns_may_be_left_out() {
    let simulator = start(|_| {});
    let mut body = legal(&simulator, Protocol::Messages).await;
    list(&mut list(&mut body, "messages")[1], "content").remove(0);
    assert_eq!(post(&simulator, Protocol::Messages, &body).await.0, 200);
    // Without thinking, the newest may be left out too.
    list(&mut list(&mut body, "messages")[3], "content").remove(0);
    body.as_object_mut().unwrap().remove("thinking");
    assert_eq!(post(&simulator, Protocol::Messages, &body).await.0, 200);
}

#[tokio::test]
async fn reasoning_items_without_ids_of_their_followers_may_be_left_out() {
    let simulator = start(|_| {});
    let mut body = legal(&simulator, Protocol::Responses).await;
    let items = list(&mut body, "input");
    items.retain(|item| item["type"] != "reasoning");
    for item in items {
        item.as_object_mut().unwrap().remove("id");
    }
    assert_eq!(post(&simulator, Protocol::Responses, &body).await.0, 200);
}

#[tokio::test]
async fn a_wrong_key_is_refused_and_never_written_down() {
    let simulator = start(|config| config.key = Some("another".to_owned()));
    for protocol in common::PROTOCOLS {
        let (status, error) = post(&simulator, protocol, &Talk::new(protocol).say("hi").body).await;
        assert_eq!(status, 401);
        assert!(error["error"]["message"].as_str().unwrap().to_lowercase().contains("key"));
    }
    let log = simulator.log();
    assert!(log.iter().all(|record| record.key_seen && record.verdict.refused() == Some(Reason::BadKey)));
    assert!(!format!("{simulator:?}{log:?}").contains(Config::KEY));
    assert_eq!(simulator.stats().unauthorized, 3);
}

#[tokio::test]
async fn broken_json_and_unknown_models_and_paths_are_refused() {
    let simulator = start(|config| config.strictness.known_models = vec!["sim-2".to_owned()]);
    let client = common::builder().build().unwrap();
    let send = |path: &str, body: &'static str| {
        client.post(simulator.base_url() + path).bearer_auth(Config::KEY).body(body).send()
    };
    assert_eq!(send("/v1/chat/completions", "{\"model\":").await.unwrap().status(), 400);
    assert_eq!(send("/v1/chat/completions", r#"{"model":"sim-1","messages":[]}"#).await.unwrap().status(), 404);
    assert_eq!(send("/v1/completions", "{}").await.unwrap().status(), 404);
    let messages = send("/v1/messages", r#"{"model":"sim-2","max_tokens":9,"messages":[]}"#).await.unwrap();
    assert!(messages.text().await.unwrap().contains("anthropic-version"));
    let reasons: Vec<_> = simulator.log().iter().filter_map(|record| record.verdict.refused()).collect();
    assert_eq!(reasons, [Reason::InvalidJson, Reason::UnknownModel, Reason::MissingField]);
}

#[tokio::test]
async fn a_body_above_the_limit_is_too_large() {
    let simulator = start(|config| config.strictness.max_body = 5_000);
    let talk = Talk::new(Protocol::Messages).say(&"x".repeat(6_000));
    let (status, error) = post(&simulator, Protocol::Messages, &talk.body).await;
    assert_eq!((status, &error["error"]["type"]), (413, &json!("request_too_large")));
}
