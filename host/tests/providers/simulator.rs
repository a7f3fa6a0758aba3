//! The adapters in tool loops against the simulated provider: its checks are those of the real ones.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should stop")]

use std::sync::Mutex;
use std::time::Duration;

use foreshorten::formats::Format;
use foreshorten::provider::http::{AnthropicMessages, HttpOptions, OpenAiChat, OpenAiResponses};
use foreshorten::provider::{Delta, FinishReason, ModelReply, ModelRequest, Provider, ProviderError, Settings};
use foreshorten::record::{Message, Record};
use foreshorten::tool::ToolSpec;
use foreshorten::view::View;
use foreshorten_core::transcript::EntryKind;
use foreshorten_simulator::{Config, Fault, Models, Overflow, RateWording, RetryAfter, Rule, Simulator, UsageLie};
use serde_json::json;

const FORMATS: [Format; 3] = [Format::OpenAiChat, Format::OpenAiResponses, Format::AnthropicMessages];

fn provider(simulator: &Simulator, format: Format, change: fn(HttpOptions) -> HttpOptions) -> Box<dyn Provider> {
    let quick = Duration::from_millis(2);
    let options = HttpOptions::new().base_url(simulator.base_url()).key(Config::KEY).backoff(quick, quick);
    let options = change(options);
    match format {
        Format::OpenAiChat => Box::new(OpenAiChat::new(options).unwrap()),
        Format::OpenAiResponses => Box::new(OpenAiResponses::new(options).unwrap()),
        _ => Box::new(AnthropicMessages::new(options).unwrap()),
    }
}

/// Time-outs that a hanging server reaches within a test. Not for others: the machine may be busy.
fn impatient(options: HttpOptions) -> HttpOptions {
    options.idle_timeout(Duration::from_millis(1_500)).first_byte_timeout(Duration::from_millis(1_500))
}

fn same(options: HttpOptions) -> HttpOptions {
    options
}

fn tools() -> Vec<ToolSpec> {
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
    vec![ToolSpec::new("read_file", "Reads a file.", schema.clone()), ToolSpec::new("list_dir", "Lists.", schema)]
}

/// A session of some calls, each answered by made-up results.
struct Session {
    record: Record,
    settings: Settings,
    model: &'static str,
}

impl Session {
    fn new(format: Format) -> Self {
        let mut settings = Settings { max_tokens: Some(2_000), temperature: Some(0.5), ..Settings::default() };
        if format == Format::AnthropicMessages {
            settings.temperature = None;
            settings.extra.insert("thinking".into(), json!({"type": "enabled", "budget_tokens": 1_024}));
        }
        let record = [Message::system("You read files."), Message::user("Read all of them — 全部 📄.")];
        let model = if format == Format::AnthropicMessages { "claude-sonnet-4-5" } else { "gpt-5" };
        Self { record: record.into_iter().collect(), settings, model }
    }

    async fn call(&mut self, provider: &dyn Provider) -> Result<(ModelReply, Vec<String>), ProviderError> {
        let tools = tools();
        let view = View::of(&self.record).settled_at(1, 2);
        let request = ModelRequest::new(self.model, &self.record, &view, &self.settings).with_tools(&tools);
        let told = Mutex::new(Vec::new());
        let tell = |delta: Delta<'_>| told.lock().unwrap().push(format!("{delta:?}"));
        let reply = provider.complete(&request, &tell).await?;
        for message in &reply.messages {
            self.record.push(message.clone());
        }
        let calls: Vec<_> = reply
            .messages
            .iter()
            .flat_map(Message::entries)
            .filter(|entry| entry.kind == EntryKind::ToolCall)
            .collect();
        assert_eq!(reply.finish == FinishReason::ToolCalls, !calls.is_empty());
        for call in &calls {
            self.record
                .push(Message::result(&call.call_id, format!("contents for {}: {}", call.name, "x".repeat(300))));
        }
        if calls.is_empty() {
            self.record.push(Message::user("Go on."));
        }
        Ok((reply, told.into_inner().unwrap()))
    }
}

/// Many calls, of which none may be refused.
async fn run(
    config: Config,
    format: Format,
    calls: usize,
    change: fn(HttpOptions) -> HttpOptions,
) -> (Simulator, Vec<ModelReply>) {
    let simulator = Simulator::start(config).unwrap();
    let provider = provider(&simulator, format, change);
    let mut session = Session::new(format);
    let mut replies = Vec::new();
    for number in 0..calls {
        let called = session.call(&*provider).await;
        replies.push(called.unwrap_or_else(|error| panic!("{format} call {number}: {error}")).0);
    }
    for record in simulator.log() {
        assert_eq!(record.verdict.refused(), None, "{format}: {record:?}");
    }
    (simulator, replies)
}

fn tokio_run<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

#[test]
fn forty_turns_are_legal_in_every_protocol_streamed_or_not_and_counted_exactly() {
    for format in FORMATS {
        for change in [same, |options: HttpOptions| options.stream(false)] {
            let (simulator, replies) = tokio_run(run(Config::default(), format, 40, change));
            let counted: Vec<u64> = simulator.log().iter().map(|record| record.read_tokens).collect();
            let told: Vec<u64> = replies.iter().map(|reply| reply.usage.unwrap().input_tokens).collect();
            assert_eq!(told, counted, "{format}");
            let (cached, sent) = (simulator.stats().cached_tokens, simulator.stats().prompt_tokens);
            assert!(cached * 10 > sent * 6, "{format}: {cached} of {sent} cached");
        }
    }
}

#[test]
fn bytes_that_come_in_any_pieces_make_the_same_session() {
    for format in FORMATS {
        let messages = |frame_bytes| {
            let config = Config { frame_bytes, ..Config::default() };
            let (_, replies) = tokio_run(run(config, format, 3, same));
            replies.into_iter().map(|reply| (reply.messages, reply.usage, reply.finish)).collect::<Vec<_>>()
        };
        let whole = messages(None);
        for bytes in [5, 61] {
            assert_eq!(messages(Some(bytes)), whole, "{format} in pieces of {bytes}");
        }
    }
}

#[test]
fn every_passing_trouble_is_survived_and_nothing_of_it_is_recorded() {
    let long = Duration::from_secs(5);
    let troubles = [
        Fault::RateLimit { retry_after: RetryAfter::Millis(20), wording: RateWording::Requests },
        Fault::RateLimit { retry_after: RetryAfter::Unsaid, wording: RateWording::Requests },
        Fault::Status(500),
        Fault::Status(502),
        Fault::Status(503),
        Fault::Status(504),
        Fault::Status(529),
        Fault::Reset,
        Fault::Hang(long),
        Fault::HangMidStream(long),
        Fault::ResetMidStream,
        Fault::Truncated,
        Fault::NoTerminalEvent,
        Fault::InvalidJson,
        Fault::ErrorEvent,
        Fault::Html(502),
        Fault::ForeignCharset,
    ];
    for format in FORMATS {
        for trouble in &troubles {
            let config = Config { faults: vec![Rule::at(2, trouble.clone())], ..Config::default() };
            let hangs = matches!(trouble, Fault::Hang(_) | Fault::HangMidStream(_));
            let (_, replies) = tokio_run(run(config, format, 3, if hangs { impatient } else { same }));
            let attempts: Vec<u32> = replies.iter().map(|reply| reply.attempts).collect();
            // A charset shows only where there is something that it spoils.
            let spared = *trouble == Fault::ForeignCharset && attempts == [1, 1, 1];
            let met = attempts[1] >= 2 && (hangs || attempts == [1, 2, 1]);
            assert!(spared || met, "{format} {trouble:?}: {attempts:?}");
        }
    }
}

#[test]
fn an_answer_that_begins_anew_says_so_before_its_second_first_word() {
    for format in FORMATS {
        let config = Config { faults: vec![Rule::at(1, Fault::Truncated)], ..Config::default() };
        let simulator = Simulator::start(config).unwrap();
        let provider = provider(&simulator, format, same);
        let (_, told) = tokio_run(Session::new(format).call(&*provider)).unwrap();
        // Nothing is void before the first word; what comes after the mark is all of the answer.
        let restarts: Vec<usize> = (0..told.len()).filter(|&at| told[at] == "Restart").collect();
        assert!(restarts.len() <= 1 && restarts.first() != Some(&0), "{told:?}");
        let first = |told: &[String]| told[0].split('(').next().map(str::to_owned);
        if let Some(&at) = restarts.first() {
            assert_eq!(first(&told[at + 1..]), first(&told), "{told:?}");
        }
        assert_eq!(simulator.stats().requests, 2);
    }
}

#[test]
fn usage_that_is_missing_is_none_and_the_rest_is_passed_on() {
    for format in FORMATS {
        for (lie, expected) in [(UsageLie::Missing, None), (UsageLie::Zero, Some(0))] {
            let config = Config { faults: vec![Rule::at(1, Fault::Usage(lie))], ..Config::default() };
            let (_, replies) = tokio_run(run(config, format, 1, same));
            assert_eq!(replies[0].usage.map(|usage| usage.input_tokens), expected, "{format} {lie:?}");
        }
    }
}

#[test]
fn odd_answers_are_taken_for_what_they_are() {
    for format in FORMATS {
        let config = Config {
            faults: vec![
                Rule::at(1, Fault::WrongContentType),
                Rule::at(2, Fault::EmptyAnswer),
                Rule::at(3, Fault::Slow(Duration::from_millis(5))),
            ],
            ..Config::default()
        };
        let simulator = Simulator::start(config).unwrap();
        let provider = provider(&simulator, format, same);
        let mut session = Session::new(format);
        let first = tokio_run(session.call(&*provider)).unwrap().0;
        assert!(!first.messages.is_empty());
        let empty = tokio_run(session.call(&*provider)).unwrap().0;
        let texts: String = empty.messages.iter().map(|message| message.text_of(EntryKind::Assistant)).collect();
        assert_eq!(texts, "", "{format}: {empty:?}");
        tokio_run(session.call(&*provider)).unwrap();
    }
}

#[test]
fn an_overflow_names_its_window_once_whatever_way_it_comes() {
    for format in FORMATS {
        for in_stream in [false, true] {
            let mut config = Config::default();
            config.window.tokens = 1_100;
            config.window.overflow_in_stream = in_stream;
            let simulator = Simulator::start(config).unwrap();
            let provider = provider(&simulator, format, same);
            let mut session = Session::new(format);
            session.settings = Settings { max_tokens: Some(20), ..Settings::default() };
            session.record.push(Message::user("word ".repeat(3_000)));
            let error = tokio_run(session.call(&*provider)).unwrap_err();
            let ProviderError::Overflow(rejection) = &error else { panic!("{format}: {error}") };
            assert!(rejection.window.is_none_or(|window| window == 1_100), "{rejection:?}");
            assert_eq!(simulator.stats().requests, 1);
        }
    }
}

#[test]
fn a_window_that_was_full_while_writing_shows_in_the_reason() {
    let mut config = Config::default();
    config.window.tokens = 1_100;
    config.window.overflow = Overflow::TruncateAndSay;
    let simulator = Simulator::start(config).unwrap();
    let provider = provider(&simulator, Format::AnthropicMessages, same);
    let mut session = Session::new(Format::AnthropicMessages);
    session.settings = Settings { max_tokens: Some(20), ..Settings::default() };
    session.record.push(Message::user("word ".repeat(3_000)));
    let tools = tools();
    let view = View::of(&session.record);
    let request = ModelRequest::new("m", &session.record, &view, &session.settings).with_tools(&tools);
    let reply = tokio_run(provider.complete(&request, &|_| {})).unwrap();
    assert_eq!(reply.finish, FinishReason::ContextWindow);
}

#[test]
fn a_wrong_key_is_denied_and_not_shown() {
    for format in FORMATS {
        let simulator = Simulator::start(Config::default()).unwrap();
        let provider = provider(&simulator, format, |options| options.key("sk-wrong-key"));
        let error = tokio_run(Session::new(format).call(&*provider)).unwrap_err();
        assert!(matches!(error, ProviderError::Denied { status: 401, .. }), "{error}");
        assert!(!format!("{error}{error:?}").contains("sk-wrong-key"));
        assert_eq!(simulator.stats().unauthorized, 1);
    }
}

#[test]
fn the_window_a_server_lists_is_found_under_every_name_but_that_of_training() {
    for field in Models::FIELDS {
        let mut config = Config::default();
        config.models.window_field = Some(field.to_owned());
        config.window.tokens = 32_768;
        let simulator = Simulator::start(config).unwrap();
        let provider = provider(&simulator, Format::OpenAiChat, same);
        let listed = tokio_run(provider.listed_window("sim-1"));
        let expected = (field != "meta.n_ctx_train").then_some(32_768);
        assert_eq!(listed, Ok(expected), "{field}");
    }
    let mut config = Config::default();
    config.models.fail_first = 2;
    let simulator = Simulator::start(config).unwrap();
    let provider = provider(&simulator, Format::OpenAiResponses, same);
    assert!(tokio_run(provider.listed_window("sim-1")).is_err());
    assert_eq!(tokio_run(provider.listed_window("sim-1")), Ok(None));
}
