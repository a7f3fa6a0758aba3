//! What the adapters send.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should stop")]

use crate::script::{Script, answer, recorded};
use foreshorten::formats::Format;
use foreshorten::provider::http::{
    AnthropicMessages, CacheMarks, CacheTtl, HttpOptions, OpenAiChat, OpenAiResponses, OutputLimit,
};
use foreshorten::provider::{ModelRequest, Provider, Settings};
use foreshorten::record::{Message, Record};
use foreshorten::tool::ToolSpec;
use foreshorten::view::View;
use serde_json::{Value, json};

fn options(script: &Script) -> HttpOptions {
    HttpOptions::new().base_url(&script.url).key("sk-test").retries(0)
}

fn tool() -> ToolSpec {
    ToolSpec::new("read", "Reads a file.", json!({"type": "object", "properties": {"temperature": {}}}))
}

fn conversation() -> Record {
    [Message::system("be brief"), Message::user("hi"), Message::of(vec![]), Message::user("again")]
        .into_iter()
        .collect()
}

const CHAT: &str = "chat-refusal";
const RESPONSES: &str = "responses-incomplete";
const ANTHROPIC: &str = "anthropic-window-full";

#[tokio::test]
async fn recorded_messages_are_sent_as_the_bytes_they_came_as() {
    let script = Script::play(vec![recorded(CHAT), recorded(RESPONSES), recorded(ANTHROPIC)]).await;
    let raw = [
        (
            Format::OpenAiChat,
            "{ \"role\":\"user\",\"content\" : \"a\\u00e9\", \"x\": 1.50}",
            "{\"role\": \"assistant\", \"content\": \"b\", \"unknown\": {\"z\":[1.0e0 ]} }",
        ),
        (
            Format::OpenAiResponses,
            "{ \"role\":\"user\",\"content\" : \"a\\u00e9\", \"x\": 1.50}",
            "{\"type\": \"message\", \"role\":\"assistant\", \"content\": [ {\"type\":\"output_text\",\"text\":\"b\", \"z\":1.0e0} ] }",
        ),
        (
            Format::AnthropicMessages,
            "{ \"role\":\"user\",\"content\" : [ {\"type\":\"text\" ,\"text\":\"a\\u00e9\", \"x\": 1.50} ]}",
            "{\"role\": \"assistant\", \"content\": [ {\"type\":\"thinking\",\"thinking\":\"t\", \"signature\":\"s=\"} , {\"type\":\"text\",\"text\":\"b\"} ] }",
        ),
    ];
    for (number, (format, first, second)) in raw.into_iter().enumerate() {
        let mut record = Record::new();
        record.push(Message::raw(format, first).unwrap());
        record.push(Message::raw(format, second).unwrap());
        record.push(Message::user("go on"));
        let (view, settings) = (View::of(&record), Settings::default());
        let request = ModelRequest::new("m", &record, &view, &settings);
        let options = options(&script);
        let provider: Box<dyn Provider> = match format {
            Format::OpenAiChat => Box::new(OpenAiChat::new(options).unwrap()),
            Format::OpenAiResponses => Box::new(OpenAiResponses::new(options).unwrap()),
            _ => Box::new(AnthropicMessages::new(options).unwrap()),
        };
        assert_eq!(provider.format(), Some(format));
        provider.complete(&request, &|_| {}).await.unwrap();
        let asked = &script.asked()[number];
        assert!(asked.body.contains(&format!("{second},")), "{}", asked.body);
        // The end of the call before carries a mark in Anthropic's protocol; the rest of its bytes are the same.
        let first = first.replace("1.50}", "1.50,\"cache_control\":{\"type\":\"ephemeral\"}}");
        let found = asked.body.contains(&first) || format != Format::AnthropicMessages;
        assert!(found && (format == Format::AnthropicMessages || asked.body.contains("\\u00e9\", \"x\": 1.50}")));
    }
    let asked = script.asked();
    assert_eq!(asked[0].line(), "POST /v1/chat/completions HTTP/1.1");
    assert_eq!(asked[1].line(), "POST /v1/responses HTTP/1.1");
    assert_eq!(asked[2].line(), "POST /v1/messages HTTP/1.1");
    assert!(asked[0].has("authorization", "Bearer sk-test") && asked[1].has("authorization", "Bearer sk-test"));
    assert!(asked[2].has("x-api-key", "sk-test") && asked[2].has("anthropic-version", "2023-06-01"));
    assert!(!asked[2].head.to_ascii_lowercase().contains("authorization"));
}

#[tokio::test]
async fn the_frame_stands_first_and_the_callers_members_win() {
    let script = Script::play(vec![recorded(CHAT), recorded(RESPONSES), recorded(ANTHROPIC)]).await;
    let record = conversation();
    let view = View::of(&record);
    let extra = json!({"stream": true, "seed": 7, "temperature": 0.9, "messages": [], "input": []});
    let settings =
        Settings { max_tokens: Some(100), temperature: Some(0.2), extra: extra.as_object().unwrap().clone() };
    let tools = [tool()];
    let request = ModelRequest::new("m", &record, &view, &settings).with_tools(&tools).for_summary(Some("sum\"up"));
    OpenAiChat::new(options(&script)).unwrap().complete(&request, &|_| {}).await.unwrap();
    OpenAiResponses::new(options(&script)).unwrap().complete(&request, &|_| {}).await.unwrap();
    AnthropicMessages::new(options(&script)).unwrap().complete(&request, &|_| {}).await.unwrap();
    let asked = script.asked();
    for asked in &asked {
        let body = asked.json();
        assert_eq!((&body["seed"], &body["temperature"], &body["model"]), (&json!(7), &json!(0.9), &json!("m")));
        assert_eq!(body["tools"].as_array().unwrap().len(), 1);
    }
    let (chat, responses, anthropic) = (asked[0].json(), asked[1].json(), asked[2].json());
    assert!(
        asked[0]
            .body
            .contains(r#","messages":[{"role":"system","content":"be brief"},{"role":"user","content":"hi"},"#)
    );
    assert_eq!(chat["messages"].as_array().unwrap().last().unwrap(), &json!({"role": "user", "content": "sum\"up"}));
    assert_eq!((&chat["tool_choice"], &chat["max_tokens"]), (&json!("none"), &json!(100)));
    assert_eq!(chat["stream_options"], json!({"include_usage": true}));
    assert_eq!((&responses["instructions"], &responses["store"]), (&json!("be brief"), &json!(false)));
    assert_eq!(responses["include"], json!(["reasoning.encrypted_content"]));
    assert_eq!((&responses["max_output_tokens"], &responses["tool_choice"]), (&json!(100), &json!("none")));
    assert_eq!(responses["input"].as_array().unwrap().last().unwrap()["content"][0]["text"], "sum\"up");
    assert_eq!(anthropic["tool_choice"], json!({"type": "none"}));
    assert_eq!(anthropic["messages"].as_array().unwrap().last().unwrap()["content"], "sum\"up");
}

#[tokio::test]
async fn names_of_limits_and_temperatures_go_by_the_model() {
    let script = Script::play(vec![recorded(CHAT); 5]).await;
    let record: Record = [Message::user("hi")].into_iter().collect();
    let view = View::of(&record);
    let settings = Settings { max_tokens: Some(9), temperature: Some(0.2), ..Settings::default() };
    let chat = OpenAiChat::new(options(&script)).unwrap();
    for model in ["llama-3", "gpt-5-mini"] {
        chat.complete(&ModelRequest::new(model, &record, &view, &settings), &|_| {}).await.unwrap();
    }
    let forced = OpenAiChat::new(options(&script)).unwrap().output_limit(OutputLimit::MaxCompletionTokens);
    forced.complete(&ModelRequest::new("llama-3", &record, &view, &settings), &|_| {}).await.unwrap();
    let mut own = settings.clone();
    own.extra.insert("max_completion_tokens".into(), json!(5));
    chat.complete(&ModelRequest::new("llama-3", &record, &view, &own), &|_| {}).await.unwrap();
    let bodies: Vec<Value> = script.asked().iter().map(crate::script::Asked::json).collect();
    assert_eq!((&bodies[0]["max_tokens"], &bodies[0]["temperature"]), (&json!(9), &json!(0.2)));
    assert_eq!((&bodies[1]["max_completion_tokens"], bodies[1].get("temperature")), (&json!(9), None));
    assert_eq!((&bodies[2]["max_completion_tokens"], bodies[2].get("max_tokens")), (&json!(9), None));
    assert_eq!((&bodies[3]["max_completion_tokens"], bodies[3].get("max_tokens")), (&json!(5), None));
}

#[tokio::test]
async fn anthropics_marks_stand_at_head_settled_end_and_view_end_and_never_above_four() {
    let script = Script::play(vec![recorded(ANTHROPIC); 4]).await;
    let mut record: Record = [Message::system("rules")].into_iter().collect();
    for turn in 0..4 {
        record.push(Message::user(format!("question {turn}")));
        record.push(
            Message::raw(
                Format::AnthropicMessages,
                format!(r#"{{"role":"assistant","content":[{{"type":"text","text":"answer {turn}"}},{{"type":"thinking","thinking":"t","signature":"s"}}]}}"#),
            )
            .unwrap(),
        );
    }
    record.push(Message::user("last"));
    // Head: the system entry; settled: up to the first answer (system, question, text, thinking).
    let view = View::of(&record).settled_at(1, 4);
    let settings = Settings::default();
    let request = ModelRequest::new("m", &record, &view, &settings);
    let one_hour = AnthropicMessages::new(options(&script)).unwrap().cache_ttl(CacheTtl::OneHour);
    one_hour.complete(&request, &|_| {}).await.unwrap();
    let summary = request.for_summary(Some("sum up"));
    one_hour.complete(&summary, &|_| {}).await.unwrap();
    let asked = script.asked();
    let body = asked[0].json();
    let mark = json!({"type": "ephemeral", "ttl": "1h"});
    assert_eq!(asked[0].body.matches("cache_control").count(), 4);
    assert_eq!(body["system"][0]["cache_control"], mark);
    let messages = body["messages"].as_array().unwrap();
    assert_eq!(messages[1]["content"][0]["cache_control"], mark, "the settled end, not on the thoughts");
    assert_eq!(messages[6]["content"][0]["cache_control"], mark, "the end of the call before");
    assert_eq!(messages[8]["content"][0]["cache_control"], mark, "the end of the view");
    assert_eq!(body["max_tokens"], 8_192);
    // A summary reads the same prefix, and writes nothing of its instruction.
    let summary = asked[1].json();
    assert_eq!(asked[1].body.matches("cache_control").count(), 4);
    assert_eq!(summary["messages"][8], messages[8]);
    assert_eq!(summary["messages"][9]["content"], "sum up");

    // Three of the caller's own leave room for one: the end of the view.
    let marked = r#"{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}},{"type":"text","text":"b","cache_control":{"type":"ephemeral"}}]}"#;
    let mut record: Record = [Message::system("rules")].into_iter().collect();
    record.push(Message::raw(Format::AnthropicMessages, marked).unwrap());
    record.push(Message::user("last"));
    let view = View::of(&record).settled_at(1, 1);
    let mut settings = Settings::default();
    settings
        .extra
        .insert("tools".into(), json!([{"name": "t", "input_schema": {}, "cache_control": {"type": "ephemeral"}}]));
    let provider = AnthropicMessages::new(options(&script)).unwrap();
    provider.complete(&ModelRequest::new("m", &record, &view, &settings), &|_| {}).await.unwrap();
    let off = AnthropicMessages::new(options(&script).cache_marks(CacheMarks::Off)).unwrap();
    off.complete(&ModelRequest::new("m", &record, &view, &settings), &|_| {}).await.unwrap();
    let asked = script.asked();
    assert_eq!(asked[2].body.matches("cache_control").count(), 4);
    assert!(asked[2].body.contains(marked));
    assert!(asked[2].json()["messages"][1]["content"][0].get("cache_control").is_some());
    assert_eq!(asked[3].body.matches("cache_control").count(), 3);
}

#[tokio::test]
async fn openais_breakpoints_are_placed_when_asked_for_and_given_up_when_refused() {
    let refused = answer(
        400,
        "application/json",
        r#"{"error":{"message":"Unknown parameter: 'input[0].content[0].prompt_cache_breakpoint'."}}"#,
    );
    let script =
        Script::play(vec![recorded(RESPONSES), recorded(CHAT), refused, recorded(RESPONSES), recorded(RESPONSES)])
            .await;
    let record: Record = [
        Message::system("rules"),
        Message::user("q"),
        Message::raw(
            Format::OpenAiResponses,
            r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"}]}"#,
        )
        .unwrap(),
        Message::user("last"),
    ]
    .into_iter()
    .collect();
    let view = View::of(&record).settled_at(1, 3);
    let settings = Settings::default();
    let request = ModelRequest::new("gpt-5.6", &record, &view, &settings);
    let on = || options(&script).cache_marks(CacheMarks::On);
    let responses = OpenAiResponses::new(on()).unwrap();
    responses.complete(&request, &|_| {}).await.unwrap();
    OpenAiChat::new(on()).unwrap().prompt_cache_key("s1").complete(&request, &|_| {}).await.unwrap();
    responses.complete(&request, &|_| {}).await.unwrap();
    responses.complete(&request, &|_| {}).await.unwrap();
    let asked = script.asked();
    let mark = json!({"mode": "explicit"});
    let first = asked[0].json();
    assert_eq!(first["input"][0]["role"], "developer");
    assert_eq!(first["input"][0]["content"][0]["prompt_cache_breakpoint"], mark);
    assert_eq!(first["input"][1]["content"][0]["prompt_cache_breakpoint"], mark, "answers take none");
    assert_eq!(asked[0].body.matches("prompt_cache_breakpoint").count(), 2);
    let chat = asked[1].json();
    assert_eq!(chat["messages"][0]["content"][0]["prompt_cache_breakpoint"], mark);
    assert_eq!(chat["prompt_cache_key"], "s1");
    assert_eq!(asked[1].body.matches("prompt_cache_breakpoint").count(), 2);
    for later in &asked[3..] {
        assert!(!later.body.contains("prompt_cache_breakpoint"));
        assert_eq!(later.json()["instructions"], "rules");
    }
}

#[tokio::test]
async fn headers_betas_and_versions_are_sent() {
    let script = Script::play(vec![recorded(ANTHROPIC), recorded(CHAT)]).await;
    let record = conversation();
    let (view, settings) = (View::of(&record), Settings::default());
    let request = ModelRequest::new("m", &record, &view, &settings);
    let bearer = HttpOptions::new().base_url(format!("{}/proxy", script.url)).bearer("tok").header("X-Team", "blue");
    let provider = AnthropicMessages::new(bearer).unwrap();
    let provider = provider.beta("one-1").unwrap().beta("two-2").unwrap().version("2024-01-01").unwrap();
    provider.complete(&request, &|_| {}).await.unwrap();
    let chat = OpenAiChat::new(options(&script).organization("org-1").project("proj-1")).unwrap();
    chat.complete(&request, &|_| {}).await.unwrap();
    let asked = script.asked();
    assert_eq!(asked[0].line(), "POST /proxy/v1/messages HTTP/1.1");
    for (name, value) in [
        ("authorization", "Bearer tok"),
        ("x-team", "blue"),
        ("anthropic-beta", "one-1,two-2"),
        ("anthropic-version", "2024-01-01"),
    ] {
        assert!(asked[0].has(name, value), "{name}: {}", asked[0].head);
    }
    assert!(asked[1].has("openai-organization", "org-1") && asked[1].has("openai-project", "proj-1"));
    assert!(AnthropicMessages::new(HttpOptions::new().header("bad name", "x")).is_err());
    let error = OpenAiChat::new(HttpOptions::new().key("sk-\nsecret")).unwrap_err();
    assert!(!error.to_string().contains("secret"), "{error}");
}
