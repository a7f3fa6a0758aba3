//! What the adapters do when things go wrong.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should stop")]

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::script::{Answer, Script, answer, recorded, silent, sse, with};
use foreshorten::provider::http::{AnthropicMessages, HttpOptions, OpenAiChat, OpenAiResponses};
use foreshorten::provider::{Delta, FinishReason, ModelReply, ModelRequest, Provider, ProviderError, Settings};
use foreshorten::record::{Message, Record};
use foreshorten::view::View;
use tracing_subscriber::fmt::MakeWriter;

const KEY: &str = "sk-very-secret-key";

fn options(script: &Script) -> HttpOptions {
    let quick = Duration::from_millis(1);
    HttpOptions::new().base_url(&script.url).key(KEY).backoff(quick, quick)
}

fn chat(script: &Script) -> OpenAiChat {
    OpenAiChat::new(options(script)).unwrap()
}

async fn call(provider: &dyn Provider, settings: &Settings) -> (Result<ModelReply, ProviderError>, Vec<String>) {
    let record: Record = [Message::user("hi")].into_iter().collect();
    let view = View::of(&record);
    let request = ModelRequest::new("m", &record, &view, settings);
    let told = Mutex::new(Vec::new());
    let result = provider.complete(&request, &|delta| told.lock().unwrap().push(format!("{delta:?}"))).await;
    (result, told.into_inner().unwrap())
}

async fn ask(provider: &dyn Provider) -> Result<ModelReply, ProviderError> {
    call(provider, &Settings::default()).await.0
}

#[tokio::test]
async fn a_rate_limit_is_waited_out_and_counted() {
    let limited = with(
        429,
        &[("retry-after-ms", "30"), ("content-type", "application/json")],
        r#"{"error":{"message":"slow down"}}"#,
    );
    let script = Script::play(vec![limited, answer(503, "text/plain", "busy"), recorded("chat-no-done")]).await;
    let begun = Instant::now();
    let reply = ask(&chat(&script)).await.unwrap();
    assert_eq!((reply.attempts, reply.finish), (3, FinishReason::Length));
    assert!(begun.elapsed() >= Duration::from_millis(30));
    let asked = script.asked();
    assert!(asked.iter().all(|one| one.body == asked[0].body));
}

#[tokio::test]
async fn a_long_wait_comes_back_at_once_with_its_length() {
    let script = Script::play(vec![with(429, &[("retry-after", "3600")], "later")]).await;
    let ProviderError::RateLimited { retry_after, .. } = ask(&chat(&script)).await.unwrap_err() else { panic!() };
    assert_eq!(retry_after, Some(Duration::from_secs(3_600)));
    assert_eq!(script.asked().len(), 1);
}

#[tokio::test]
async fn an_overflow_is_never_tried_again() {
    let body = r#"{"error":{"message":"This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens."}}"#;
    for status in [400, 413, 500, 503] {
        let script = Script::play(vec![with(status, &[("x-should-retry", "true")], body)]).await;
        let ProviderError::Overflow(rejection) = ask(&chat(&script)).await.unwrap_err() else { panic!("{status}") };
        assert_eq!((rejection.window, rejection.status), (Some(8_192), Some(status)));
        assert_eq!(script.asked().len(), 1);
    }
}

#[tokio::test]
async fn what_breaks_off_begins_anew_and_says_so() {
    let half = "data: {\"choices\":[{\"delta\":{\"content\":\"Hel\"}}]}\n\n";
    let whole = "data: {\"choices\":[{\"delta\":{\"content\":\"Hello\"}}]}\n\ndata: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let script = Script::play(vec![sse(half), sse(whole)]).await;
    let (result, told) = call(&chat(&script), &Settings::default()).await;
    let reply = result.unwrap();
    assert_eq!(reply.attempts, 2);
    assert_eq!(reply.messages[0].raw_json().unwrap().json, r#"{"role":"assistant","content":"Hello"}"#);
    assert_eq!(told, [r#"Text("Hel")"#, "Restart", r#"Text("Hello")"#]);
    assert_eq!(format!("{:?}", Delta::Restart), "Restart");

    let script = Script::play(vec![sse(half); 3]).await;
    let (result, _) = call(&chat(&script), &Settings::default()).await;
    assert!(matches!(result, Err(ProviderError::Garbled(_))));
    assert_eq!(script.asked().len(), 3);
}

#[tokio::test]
async fn silence_ends_in_a_time_out() {
    let half = "data: {\"choices\":[{\"delta\":{\"content\":\"Hel\"}}]}\n\n";
    let script = Script::play(vec![silent(half), Answer::Hang(Vec::new())]).await;
    let short = Duration::from_millis(80);
    let idle = OpenAiChat::new(options(&script).retries(0).idle_timeout(short)).unwrap();
    assert_eq!(ask(&idle).await, Err(ProviderError::TimedOut(short)));
    let first = OpenAiChat::new(options(&script).retries(0).first_byte_timeout(short)).unwrap();
    assert_eq!(ask(&first).await, Err(ProviderError::TimedOut(short)));
    let script = Script::play(vec![silent(half)]).await;
    let total = OpenAiChat::new(options(&script).retries(0).total_timeout(short)).unwrap();
    assert_eq!(ask(&total).await, Err(ProviderError::TimedOut(short)));
}

#[tokio::test]
async fn what_a_model_refuses_is_left_out_from_then_on() {
    let refusal = |text: &str| answer(400, "application/json", &format!(r#"{{"error":{{"message":"{text}"}}}}"#));
    let script = Script::play(vec![
        refusal("Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."),
        refusal("Unsupported value: 'temperature' does not support 0.5 with this model."),
        refusal("stream_options: unknown field"),
        recorded("chat-no-done"),
        recorded("chat-no-done"),
    ])
    .await;
    let provider = chat(&script);
    let settings = Settings { max_tokens: Some(5), temperature: Some(0.5), ..Settings::default() };
    assert_eq!(call(&provider, &settings).await.0.unwrap().attempts, 4);
    assert_eq!(call(&provider, &settings).await.0.unwrap().attempts, 1);
    let asked = script.asked();
    assert_eq!(asked.len(), 5);
    assert_eq!(asked[3].body, asked[4].body);
    let last = asked[4].json();
    assert_eq!(last["max_completion_tokens"], 5);
    for gone in ["max_tokens", "temperature", "stream_options"] {
        assert!(last.get(gone).is_none(), "{gone}");
    }
}

#[tokio::test]
async fn answers_that_come_at_once_are_kept_as_they_came() {
    let message = r#"{"role": "assistant", "content" : "hi", "annotations":[ ], "n":1.50,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{ }"}}]}"#;
    let body = format!(
        r#"{{"model":"x","choices":[{{"message": {message} ,"finish_reason":"tool_calls"}}],"usage":{{"prompt_tokens":3,"completion_tokens":2}}}}"#
    );
    let content = r#"[ {"type":"text", "text":"hi","n":1.50}]"#;
    let anthropic = format!(
        r#"{{"type":"message","content":{content},"stop_reason":"end_turn","usage":{{"input_tokens":3,"output_tokens":2}}}}"#
    );
    let item = r#"{"type":"function_call", "call_id":"c","name":"f","arguments":"{ }","n":1.50}"#;
    let responses = format!(
        r#"{{"status":"completed","output":[ {item} ],"error":null,"usage":{{"input_tokens":3,"output_tokens":2}}}}"#
    );
    let json = "application/json";
    // The second under a wrong type: what it is shows in its first byte.
    let script = Script::play(vec![
        answer(200, json, &body),
        answer(200, "text/plain", &anthropic),
        answer(200, json, &responses),
    ])
    .await;
    let options = || options(&script).stream(false);
    let providers: [Box<dyn Provider>; 3] = [
        Box::new(OpenAiChat::new(options()).unwrap()),
        Box::new(AnthropicMessages::new(options()).unwrap()),
        Box::new(OpenAiResponses::new(options()).unwrap()),
    ];
    let whole = [message.to_owned(), format!(r#"{{"role":"assistant","content":{content}}}"#), item.to_owned()];
    for (provider, whole) in providers.iter().zip(whole) {
        let (result, told) = call(&**provider, &Settings::default()).await;
        let reply = result.unwrap();
        assert_eq!(reply.messages[0].raw_json().unwrap().json, whole);
        assert_eq!(reply.usage.unwrap().input_tokens, 3);
        assert!(!told.is_empty());
    }
    assert!(script.asked().iter().all(|asked| asked.json()["stream"] == false));
}

#[tokio::test]
async fn pages_empty_bodies_and_too_much_are_no_answers() {
    let page = "<html><body>Bad gateway</body></html>";
    let endless = format!("data: {{\"x\":\"{}\"}}\n\n", "a".repeat(4_000));
    let script = Script::play(vec![
        answer(200, "text/html", page),
        answer(200, "application/json", ""),
        answer(502, "text/html", page),
        sse(&endless),
        answer(200, "application/json", r#"{"choices":[]}"#),
        answer(200, "application/json", r#"{"error":{"message":"no","code":401}}"#),
        answer(401, "application/json", "{}"),
    ])
    .await;
    let provider = OpenAiChat::new(options(&script).retries(0).most_bytes(2_000)).unwrap();
    assert!(matches!(ask(&provider).await, Err(ProviderError::Garbled(_))));
    assert!(matches!(ask(&provider).await, Err(ProviderError::Garbled(_))));
    assert!(matches!(ask(&provider).await, Err(ProviderError::Unavailable { status: Some(502), .. })));
    assert!(matches!(ask(&provider).await, Err(ProviderError::Garbled(_))));
    assert!(matches!(ask(&provider).await, Err(ProviderError::Garbled(_))));
    assert!(matches!(ask(&provider).await, Err(ProviderError::Denied { .. })));
    assert!(matches!(ask(&provider).await, Err(ProviderError::Denied { status: 401, .. })));
    assert_eq!(script.asked().len(), 7);
}

#[tokio::test]
async fn a_key_does_not_follow_a_redirect_to_another_place() {
    let elsewhere = Script::play(vec![recorded("chat-no-done")]).await;
    let target = format!("{}/v1/chat/completions", elsewhere.url);
    let script = Script::play(vec![with(307, &[("location", &target)], "")]).await;
    assert!(matches!(ask(&chat(&script)).await, Err(ProviderError::Invalid { status: Some(307), .. })));
    assert!(elsewhere.asked().is_empty());
    let script = Script::play(vec![with(307, &[("location", "/v2/other")], ""), recorded("chat-no-done")]).await;
    ask(&chat(&script)).await.unwrap();
    assert_eq!(script.asked()[1].line(), "POST /v2/other HTTP/1.1");
}

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

#[tokio::test]
async fn keys_and_conversations_show_up_in_no_error_debug_or_trace() {
    let lines = Lines::default();
    let subscriber = tracing_subscriber::fmt()
        .with_writer(lines.clone())
        .with_max_level(tracing::Level::TRACE)
        .with_span_events(tracing_subscriber::fmt::format::FmtSpan::FULL)
        .finish();
    let guard = tracing::subscriber::set_default(subscriber);
    let script =
        Script::play(vec![Answer::Echo, answer(503, "text/plain", KEY), recorded("chat-tools-interleaved")]).await;
    let provider = OpenAiChat::new(options(&script).header("x-token", "token-of-mine")).unwrap();
    let error = ask(&provider).await.unwrap_err();
    let text = format!("{error} {error:?} {provider:?} {:?}", options(&script));
    assert!(text.contains("[redacted]"), "{text}");
    assert!(!text.contains(KEY) && !text.contains("token-of-mine"), "{text}");
    ask(&provider).await.unwrap();
    let nobody =
        OpenAiChat::new(HttpOptions::new().base_url(format!("http://127.0.0.1:1/?key={KEY}")).retries(0)).unwrap();
    let error = ask(&nobody).await.unwrap_err();
    assert!(matches!(error, ProviderError::Connection(_)));
    assert!(!format!("{error} {error:?} {nobody:?} {}", nobody.endpoint()).contains(KEY));
    drop(guard);
    let traced = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    for field in
        ["gen_ai.request.model=\"m\"", "gen_ai.usage.input_tokens=1200", "error.type=\"connection\"", "trying again"]
    {
        assert!(traced.contains(field), "{field}: {traced}");
    }
    assert!(!traced.contains(KEY) && !traced.contains("Two files") && !traced.contains("token-of-mine"), "{traced}");
}

#[tokio::test]
async fn a_window_is_read_from_the_models_own_entry_or_from_the_list() {
    let json = "application/json";
    let list = r#"{"data":[{"id":"other","max_model_len":1000},{"id":"vendor/m","max_model_len":32768}]}"#;
    let script = Script::play(vec![
        answer(200, json, r#"{"id":"m","max_input_tokens":200000}"#),
        answer(404, json, "{}"),
        answer(200, json, list),
        answer(200, json, r#"{"id":"m","object":"model"}"#),
        answer(404, json, "{}"),
        answer(500, json, KEY),
        answer(500, json, KEY),
        Answer::Hang(Vec::new()),
    ])
    .await;
    let provider = AnthropicMessages::new(options(&script).listing_timeout(Duration::from_secs(2))).unwrap();
    assert_eq!(provider.listed_window("m").await, Ok(Some(200_000)));
    assert_eq!(provider.listed_window("m").await, Ok(Some(32_768)));
    assert_eq!(provider.listed_window("m").await, Ok(None));
    let error = provider.listed_window("m").await.unwrap_err();
    assert!(matches!(&error, ProviderError::Unavailable { message, .. } if message == "[redacted]"), "{error:?}");
    assert!(matches!(provider.listed_window("m").await, Err(ProviderError::TimedOut(_))));
    let asked = script.asked();
    assert_eq!((asked[0].line(), asked[2].line()), ("GET /v1/models/m HTTP/1.1", "GET /v1/models HTTP/1.1"));
    assert!(asked[0].has("x-api-key", KEY) && asked[0].has("anthropic-version", "2023-06-01"));
}
