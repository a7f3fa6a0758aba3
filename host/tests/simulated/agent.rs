//! An agent against the simulated provider: what long runs share.
#![allow(dead_code, reason = "every test crate uses its own part")]
#![allow(clippy::unwrap_used, reason = "this is test code")]

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use foreshorten::provider::Provider;
use foreshorten::provider::http::{AnthropicMessages, HttpOptions, OpenAiChat, OpenAiResponses};
use foreshorten::tool::{Tool, ToolCall, ToolOutput, ToolSpec};
use foreshorten_simulator::{Config, Protocol, Simulator};

/// The protocols, and a model each that takes a temperature.
pub(crate) const PROTOCOLS: [(Protocol, &str); 3] =
    [(Protocol::Chat, "gpt-4.1"), (Protocol::Responses, "gpt-4.1"), (Protocol::Messages, "claude-sonnet-4-5")];

/// How long the agent waits for the next byte. Far longer than the simulator needs on a busy machine: a call that is given up though
/// its answer was on the way would be counted as one of the simulator's faults.
pub(crate) const PATIENCE: Duration = Duration::from_secs(12);

pub(crate) fn provider(simulator: &Simulator, protocol: Protocol, session: &str) -> Arc<dyn Provider> {
    let options = HttpOptions::new()
        .key(Config::KEY)
        .header("x-simulator-session", session)
        .backoff(Duration::from_millis(1), Duration::from_millis(4))
        .first_byte_timeout(PATIENCE)
        .idle_timeout(PATIENCE)
        .retries(2);
    let (openai, anthropic) = (format!("{}/v1", simulator.base_url()), simulator.base_url());
    match protocol {
        Protocol::Chat => Arc::new(OpenAiChat::new(options.base_url(openai)).unwrap()),
        Protocol::Responses => Arc::new(OpenAiResponses::new(options.base_url(openai)).unwrap()),
        Protocol::Messages => Arc::new(AnthropicMessages::new(options.base_url(anthropic)).unwrap()),
    }
}

/// Kinds of content, by turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    English,
    Chinese,
    Code,
    Logs,
    Mixed,
}

impl Content {
    pub(crate) const ALL: [Self; 5] = [Self::English, Self::Chinese, Self::Code, Self::Logs, Self::Mixed];

    /// Text of about `bytes` bytes; other numbers give other text.
    pub(crate) fn text(self, number: u64, bytes: usize) -> String {
        let mut dice = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut roll = move |below: usize| {
            dice ^= dice << 13;
            dice ^= dice >> 7;
            dice ^= dice << 17;
            (dice % below as u64) as usize
        };
        let mut out = String::with_capacity(bytes + 200);
        while out.len() < bytes {
            let kind = if self == Self::Mixed { Self::ALL[roll(4)] } else { self };
            match kind {
                Self::English => {
                    let words = [
                        "the",
                        "window",
                        "was",
                        "opened",
                        "slowly",
                        "by",
                        "an",
                        "old",
                        "gardener",
                        "who",
                        "never",
                        "explained",
                        "anything",
                        "about",
                        "his",
                        "seventeen",
                        "apprentices",
                        "and",
                        "their",
                        "unlikely",
                        "journeys",
                    ];
                    for _ in 0..14 {
                        out.push_str(words[roll(words.len())]);
                        out.push(' ');
                    }
                    out.push_str(".\n");
                }
                Self::Chinese => {
                    let words = [
                        "上下文",
                        "窗口",
                        "压缩",
                        "之后",
                        "模型",
                        "仍然",
                        "可以",
                        "看到",
                        "最近",
                        "的",
                        "消息",
                        "，",
                        "工具",
                        "结果",
                        "被",
                        "标记",
                        "替换",
                        "。",
                    ];
                    for _ in 0..20 {
                        out.push_str(words[roll(words.len())]);
                    }
                    out.push('\n');
                }
                Self::Code => {
                    let names = ["index", "buffer", "entries", "weight", "cursor", "offset"];
                    let (a, b) = (names[roll(6)], names[roll(6)]);
                    out.push_str(&format!(
                        "    if {a}.len() > {} {{\n        {b}.push({a}[{}].clone()); // keep\n    }}\n    let {b}_{} = &mut self.{a};\n",
                        roll(512), roll(64), roll(100),
                    ));
                }
                _ => {
                    let levels = ["INFO", "WARN", "DEBUG"];
                    out.push_str(&format!(
                        "{{\"ts\":\"2026-11-30T{:02}:{:02}:{:02}.{:03}Z\",\"level\":\"{}\",\"worker\":{},\"path\":\"/api/v1/items/{}\",\"ms\":{}.{}}}\n",
                        roll(24), roll(60), roll(60), roll(1000), levels[roll(3)], roll(16), roll(100_000), roll(900), roll(100),
                    ));
                }
            }
        }
        out
    }
}

/// Everything that tools gave out, by call id and text: what recall is held against.
pub(crate) type Given = Arc<Mutex<HashMap<String, Vec<String>>>>;

/// A tool that answers with content of a kind, small and large by turns, and notes what it gave.
pub(crate) struct Gives {
    pub(crate) name: &'static str,
    pub(crate) content: Content,
    pub(crate) most: usize,
    pub(crate) given: Given,
}

#[async_trait::async_trait]
impl Tool for Gives {
    fn spec(&self) -> ToolSpec {
        let schema = serde_json::json!({
            "type": "object",
            "properties": {"path": {"type": "string", "description": "The file."}},
            "required": ["path"],
        });
        ToolSpec::new(self.name, "Reads something from the project.", schema)
    }

    async fn call(&self, call: ToolCall<'_>) -> ToolOutput {
        let mut given = self.given.lock().unwrap();
        let number: u64 = given.values().map(|all| all.len() as u64).sum::<u64>() + 1;
        let bytes = match number % 7 {
            0 => self.most,
            1 | 4 => self.most / 3,
            _ => self.most / 12,
        };
        let text = self.content.text(number, bytes);
        given.entry(call.call_id.into()).or_default().push(text.clone());
        if number % 11 == 10 { ToolOutput::error(text) } else { ToolOutput::text(text) }
    }
}

/// The tools of an agent.
pub(crate) fn tools(content: Content, most: usize, given: &Given) -> Vec<Arc<dyn Tool>> {
    let tool = |name| Arc::new(Gives { name, content, most, given: Arc::clone(given) }) as Arc<dyn Tool>;
    vec![tool("read_file"), tool("grep")]
}
