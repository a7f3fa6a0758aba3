//! A short session with tools: Foreshorten's runner, a model of rig, and a simulated endpoint with a window of 16,000
//! tokens which it does not announce. Against a real one, build with `--features rig-core/rustls`, and take
//! `rig_core::providers::openai::OpenAI::from_env()` in place of the client here.

use std::error::Error;
use std::sync::Arc;

use async_trait::async_trait;
use foreshorten::provider::Settings;
use foreshorten::record::Message;
use foreshorten::runner::{Agent, Event, Runner};
use foreshorten::tool::{Tool, ToolCall, ToolOutput, ToolSpec};
use foreshorten_example_framework::RigProvider;
use foreshorten_simulator::{Config, Simulator};
use rig_core::providers::openai::OpenAIConfig;
use serde_json::json;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut config = Config::default();
    config.window.tokens = 16_000;
    let simulator = Simulator::start(config)?;
    let url = format!("{}/v1", simulator.base_url());

    let client = OpenAIConfig::new(Config::KEY).with_base_url(&url).client();
    let provider = RigProvider::new(client.chat("gpt-4.1"), url);
    let agent = Agent::new(Arc::new(provider), "gpt-4.1")
        .system("You look into things with tools. Be brief.")
        .settings(Settings { max_tokens: Some(1_000), ..Settings::default() })
        .tool(Arc::new(Chapters));
    let runner = Runner::new();
    let mut events = runner.subscribe();
    let mut session = runner.open("framework-example").await?;

    let (mut calls, mut sent, mut cached) = (0, 0, 0);
    for task in ["What is it about?", "Who tells it?", "Where?", "When?", "Why?"] {
        println!("\nuser: {task}");
        let outcome = runner.run(&agent, &mut session, Message::user(task)).await?;
        while let Ok(event) = events.try_recv() {
            tell(&event);
        }
        println!("model, after {} calls: {}", outcome.rounds, outcome.text);
        calls += outcome.rounds;
        sent += outcome.usage.input_tokens;
        cached += outcome.usage.cache_read_tokens;
    }
    let stats = simulator.stats();
    println!(
        "\n{calls} calls, {} turned down as too long; {sent} prompt tokens, of them {cached} cached; {} entries recorded.",
        stats.overflows,
        session.record().entries().count(),
    );
    Ok(())
}

fn tell(event: &Event) {
    match event {
        Event::ContextCompacted(event) => println!(
            "  compacted ({}): {} -> {} tokens",
            event.reason.as_deref().unwrap_or_default(),
            event.notice.tokens_before,
            event.notice.tokens_after,
        ),
        Event::PromptRejected { rejection, .. } => println!("  turned down: {}", rejection.message),
        Event::Window { window, .. } => println!("  the window is {} tokens", window.tokens),
        _ => {}
    }
}

/// A tool: chapters of a book that says little.
struct Chapters;

#[async_trait]
impl Tool for Chapters {
    fn spec(&self) -> ToolSpec {
        let path = json!({"type": "string", "description": "Which chapter."});
        let schema = json!({"type": "object", "properties": {"path": path}, "required": ["path"]});
        ToolSpec::new("read_chapter", "Reads a chapter.", schema)
    }

    async fn call(&self, call: ToolCall<'_>) -> ToolOutput {
        let lines = 20 + call.call_id.len() % 7 * 10;
        let line = |number| format!("{number}. {}: the window, and what is seen through it.\n", call.call_id);
        ToolOutput::text((0..lines).map(line).collect::<String>())
    }
}
