//! Sessions of many turns over three of rig's clients, against a strict simulated endpoint with a window of 16,000 tokens.
#![allow(clippy::unwrap_used, reason = "this is test code")]

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use foreshorten::provider::{FinishReason, ModelRequest, Provider as _, ProviderError, Settings};
use foreshorten::record::{Message, Record};
use foreshorten::runner::{Agent, Runner, Session};
use foreshorten::tool::{Tool, ToolCall, ToolOutput, ToolSpec};
use foreshorten::view::View;
use foreshorten_core::transcript::{Entry, EntryKind, Part};
use foreshorten_example_framework::RigProvider;
use foreshorten_simulator::{
    Config, Fault, RateWording, Reason, Record as Request, RetryAfter, Rule, Simulator, Verdict,
};
use rig_core::providers::anthropic::AnthropicConfig;
use rig_core::providers::openai::{OpenAI, OpenAIConfig};
use serde_json::{Value, json};

/// Model calls of a session.
const CALLS: u32 = 60;

fn simulator(change: impl FnOnce(&mut Config)) -> Simulator {
    let mut config = Config { keep_bodies: true, ..Config::default() };
    config.window.tokens = 16_000;
    change(&mut config);
    Simulator::start(config).unwrap()
}

fn openai(simulator: &Simulator) -> OpenAI {
    OpenAIConfig::new(Config::KEY).with_base_url(format!("{}/v1", simulator.base_url())).client()
}

fn provider(model: impl Into<rig_core::DynModel<rig_core::operation::Completion>>) -> RigProvider {
    RigProvider::new(model, "simulator").bounds(2, Duration::from_secs(60))
}

/// A tool whose answers hold what is easily lost: quotes, line ends, other scripts, white space at the ends.
#[derive(Default)]
struct Gives(Mutex<HashMap<String, String>>);

#[async_trait::async_trait]
impl Tool for Gives {
    fn spec(&self) -> ToolSpec {
        let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
        ToolSpec::new("read_file", "Reads a file.", schema)
    }

    async fn call(&self, call: ToolCall<'_>) -> ToolOutput {
        let mut given = self.0.lock().unwrap();
        let number = given.len();
        let line = format!("\t{number} \"窗口\" C:\\temp {}\r\n", call.call_id);
        let text = format!("  {}\n", line.repeat(1 + number * 13 % 60));
        assert!(given.insert(call.call_id.into(), text.clone()).is_none(), "an id came twice");
        if number % 5 == 4 { ToolOutput::error(text) } else { ToolOutput::text(text) }
    }
}

/// Runs at least [`CALLS`] model calls. Answers the session and what the tool gave, by call id.
async fn work(provider: RigProvider, model: &str, settings: Settings) -> (Session, HashMap<String, String>) {
    let given = Arc::new(Gives::default());
    let agent = Agent::new(Arc::new(provider), model)
        .system("You look into things with tools.")
        .settings(settings)
        .tool(Arc::clone(&given) as Arc<dyn Tool>);
    let runner = Runner::new();
    let mut session = runner.open("s").await.unwrap();
    let (mut made, mut tasks) = (0, 0);
    while made < CALLS {
        tasks += 1;
        let said = Message::user(format!("Task {tasks}: look into it."));
        let outcome = runner.run(&agent, &mut session, said).await.unwrap();
        assert!(outcome.rounds > 0 && outcome.usage.input_tokens > 0);
        made += outcome.rounds;
    }
    let given = given.0.lock().unwrap().clone();
    (session, given)
}

/// The one request by which the adapter learns that a reasoning model takes no temperature.
fn asked_at_a_temperature(request: &Request) -> bool {
    matches!(request.verdict, Verdict::Refused(Reason::Temperature, _))
}

/// Nothing was turned down but the one prompt that taught the window, and a pass was made.
fn judge(simulator: &Simulator, session: &Session) -> Vec<Request> {
    let log = simulator.log();
    for request in log.iter().filter(|request| !asked_at_a_temperature(request)) {
        if let Verdict::Refused(reason, words) = &request.verdict {
            assert_eq!(reason.code(), "overflow", "request {}: {words}", request.number);
        }
    }
    let stats = simulator.stats();
    println!("{stats:?}");
    assert!(stats.answered >= u64::from(CALLS) && stats.overflows <= 1, "{stats:?}");
    let learned = log.iter().filter(|request| asked_at_a_temperature(request)).count();
    assert!(learned <= 1 && stats.refusals == learned as u64, "{stats:?}");
    assert!(session.last_notice().is_some(), "no pass was made");
    assert!(stats.cached_tokens > 0, "no prefix was stable");
    log
}

/// The results in the bodies, by call id, each as often as it was sent.
fn sent(log: &[Request], read: impl Fn(&Value) -> Vec<(String, String)>) -> HashMap<String, Vec<String>> {
    let mut all: HashMap<String, Vec<String>> = HashMap::new();
    for request in log.iter().filter(|request| !request.summary && request.verdict == Verdict::Answered) {
        let body: Value = serde_json::from_slice(request.body.as_deref().unwrap()).unwrap();
        for (id, text) in read(&body) {
            all.entry(id).or_default().push(text);
        }
    }
    all
}

/// Every result arrived byte for byte at least once, and was else replaced by a text that says how to get it back.
fn results_arrived(given: &HashMap<String, String>, sent: &HashMap<String, Vec<String>>) {
    assert!(given.len() > 40, "{}", given.len());
    for (id, text) in given {
        let seen = sent.get(id).map(Vec::as_slice).unwrap_or_default();
        assert!(seen.contains(text), "{id} never arrived whole");
        for other in seen.iter().filter(|seen| *seen != text) {
            assert!(other.contains("recall_tool_result"), "{id} arrived as {other:?}");
        }
    }
}

fn string(value: &Value) -> String {
    value.as_str().unwrap().into()
}

/// The text of a result: a string, or the parts that a recalled one has.
fn text(content: &Value) -> String {
    let parts = content.as_array().into_iter().flatten();
    content.as_str().map_or_else(|| parts.map(|part| string(&part["text"])).collect(), Into::into)
}

#[tokio::test]
async fn forty_turns_over_chat_completions_with_results_that_arrive_exactly() {
    let simulator = simulator(|_| ());
    let settings = Settings { max_tokens: Some(1_000), temperature: Some(0.7), ..Settings::default() };
    let (session, given) = work(provider(openai(&simulator).chat("gpt-4.1")), "gpt-4.1", settings).await;
    let log = judge(&simulator, &session);
    let sent = sent(&log, |body| {
        assert_eq!(body["temperature"], json!(0.7));
        let messages = body["messages"].as_array().unwrap().iter();
        let results = messages.filter(|message| message["role"] == "tool");
        results.map(|result| (string(&result["tool_call_id"]), text(&result["content"]))).collect()
    });
    results_arrived(&given, &sent);
}

#[tokio::test]
async fn forty_turns_over_responses_with_encrypted_reasoning_given_back() {
    let simulator = simulator(|_| ());
    let mut settings = Settings { max_tokens: Some(1_000), ..Settings::default() };
    settings.extra.insert("store".into(), json!(false));
    settings.extra.insert("include".into(), json!(["reasoning.encrypted_content"]));
    settings.extra.insert("reasoning".into(), json!({"summary": "auto"}));
    let (session, given) = work(provider(openai(&simulator).responses("gpt-5")), "gpt-5", settings).await;
    let log = judge(&simulator, &session);
    let sent = sent(&log, |body| {
        let items = body["input"].as_array().unwrap().iter();
        let results = items.filter(|item| item["type"] == "function_call_output");
        results.map(|result| (string(&result["call_id"]), text(&result["output"]))).collect()
    });
    results_arrived(&given, &sent);
    assert!(String::from_utf8_lossy(log.last().unwrap().body.as_deref().unwrap()).contains("encrypted_content\":\""));
}

#[tokio::test]
async fn forty_turns_over_messages_with_signed_thinking_error_flags_and_cache_marks() {
    let simulator = simulator(|_| ());
    let client = AnthropicConfig::new(Config::KEY).with_base_url(simulator.base_url()).client();
    let mut model = client.completion("claude-sonnet-4-5");
    model.wire = model.wire.with_prompt_caching();
    let mut settings = Settings { max_tokens: Some(4_000), ..Settings::default() };
    settings.extra.insert("thinking".into(), json!({"type": "enabled", "budget_tokens": 1_024}));
    let (session, given) = work(provider(model), "claude-sonnet-4-5", settings).await;
    let log = judge(&simulator, &session);
    let failed = session.record().entries().filter(|entry| entry.is_error).count();
    let flags = Mutex::new(0);
    let sent = sent(&log, |body| {
        let blocks = body["messages"].as_array().unwrap().iter().flat_map(|message| message["content"].as_array());
        let results = blocks.flatten().filter(|block| block["type"] == "tool_result");
        results
            .map(|result| {
                *flags.lock().unwrap() += u32::from(result["is_error"] == true);
                (string(&result["tool_use_id"]), text(&result["content"]))
            })
            .collect()
    });
    results_arrived(&given, &sent);
    assert!(failed > 5 && *flags.lock().unwrap() as usize >= failed);
}

async fn ask(provider: &RigProvider, record: &Record) -> Result<foreshorten::provider::ModelReply, ProviderError> {
    let (view, settings) = (View::of(record), Settings::default());
    provider.complete(&ModelRequest::new("gpt-4.1", record, &view, &settings), &|_| ()).await
}

#[tokio::test]
async fn an_overflow_is_told_from_a_wrong_key_a_rate_limit_and_a_broken_answer() {
    let long: Record = [Message::user("word ".repeat(40_000))].into_iter().collect();
    let short: Record = [Message::user("hello")].into_iter().collect();

    let one = simulator(|_| ());
    let Err(ProviderError::Overflow(rejection)) = ask(&provider(openai(&one).chat("gpt-4.1")), &long).await else {
        panic!("no overflow")
    };
    assert_eq!((rejection.window, rejection.status), (Some(16_000), Some(400)));
    let one = simulator(|config| config.window.overflow_in_stream = true);
    let overflow = ask(&provider(openai(&one).responses("gpt-4.1")), &long).await;
    assert!(matches!(overflow, Err(ProviderError::Overflow(_))), "{overflow:?}");

    let stranger = OpenAIConfig::new("wrong").with_base_url(format!("{}/v1", one.base_url())).client();
    let denied = ask(&provider(stranger.chat("gpt-4.1")), &short).await;
    assert!(matches!(denied, Err(ProviderError::Denied { status: 401, .. })), "{denied:?}");

    let limit = Fault::RateLimit { retry_after: RetryAfter::Seconds(90), wording: RateWording::TokensPerMinute };
    let one = simulator(|config| config.faults.push(Rule::every(1, limit)));
    let limited = ask(&provider(openai(&one).chat("gpt-4.1")), &short).await;
    let wait = Some(Duration::from_secs(90));
    assert!(
        matches!(&limited, Err(ProviderError::RateLimited { retry_after, .. }) if *retry_after == wait),
        "{limited:?}"
    );

    let one = simulator(|config| config.faults.push(Rule::at(1, Fault::Truncated)));
    let reply = ask(&provider(openai(&one).chat("gpt-4.1")), &short).await.unwrap();
    assert_eq!((reply.attempts, reply.finish), (2, FinishReason::Stop));
}

#[tokio::test]
async fn images_cross_and_odd_entries_break_nothing() {
    let simulator = simulator(|_| ());
    let image = Part::Image("image/png".into(), b"iVBORw0KGgo=".to_vec());
    let record: Record = [
        Message::system("be brief"),
        Message::of(vec![Entry::user("look").with(image).with(Part::File("text/x".into(), "a.x".into(), vec![1]))]),
        Message::of(vec![Entry::reasoning("hm"), Entry::tool_call("c1", "look", "{\"a\": [1"), Entry::assistant("")]),
        Message::result("c1", ""),
        Message::of(vec![Entry { parts: vec![Part::Opaque(b"?".to_vec())], ..Entry::reasoning("").sealed() }]),
        Message::of(vec![Entry { parts: Vec::new(), ..Entry::user("") }]),
    ]
    .into_iter()
    .collect();
    let reply = ask(&provider(openai(&simulator).chat("gpt-4.1")), &record).await.unwrap();
    assert!(reply.messages.iter().any(|message| !message.text_of(EntryKind::Assistant).is_empty()));
    let body = simulator.log().pop().unwrap().body.unwrap();
    let body: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(body["messages"][1]["content"][1]["image_url"]["url"], "data:image/png;base64,iVBORw0KGgo=");
    assert_eq!(body["messages"][1]["content"][2]["text"], "[file a.x text/x]");
}
