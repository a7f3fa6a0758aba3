//! A simulated LLM provider on loopback.
//!
//! Real sockets, the three protocols that matter (OpenAI Chat Completions, OpenAI Responses, Anthropic Messages), plain
//! and streamed. It counts prompts with a real tokenizer, enforces a window, refuses what the real endpoints refuse,
//! keeps a prompt cache, plays an agent's model out of a seed, and misbehaves when told to. It knows nothing of
//! Foreshorten: it is the judge of it.
//!
//! # Use
//!
//! ```
//! use foreshorten_simulator::{Config, Fault, Rule, Simulator};
//!
//! let mut config = Config { seed: 7, ..Config::default() };
//! config.window.tokens = 32_000;
//! config.faults.push(Rule::every(13, Fault::Status(503)));
//! let simulator = Simulator::start(config)?;
//! // Point any client at it: OpenAI's base URL ends in /v1, Anthropic's does not.
//! let (openai, anthropic) = (format!("{}/v1", simulator.base_url()), simulator.base_url());
//! // … the agent runs …
//! assert_eq!(simulator.stats().overflows, 0);
//! assert!(simulator.log().iter().all(|record| record.verdict.refused().is_none()));
//! # drop((openai, anthropic));
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! [`Simulator::start`] is an ordinary function: it brings its own runtime and can be called from a blocking test and
//! from an asynchronous one alike. Dropping the simulator closes every socket. [`Config`] is plain data with defaults;
//! what each field does stands beside it. The key is [`Config::KEY`] unless chosen otherwise.
//!
//! # What the model does
//!
//! After each user message it makes [`Agent::rounds`] rounds of tool calls with arguments that fit the schemas offered,
//! then says something and stops. What it says depends on the seed and on the number of answers that were delivered
//! whole, never on the bytes of the view: two policies over one agent see the same session. The one exception are
//! recalls. Where a text of a user or a tool holds `recall_tool_result("REF")` and that tool is offered, it is called
//! with that reference now and then ([`Agent::recall_percent`]).
//!
//! A request whose system prompt or newest user text names the six headings of a summary gets one
//! ([`Config::summaries`]). A request without tools that is none gets a few sentences, and is no turn of the agent.
//! Several agents at one simulator are kept apart by the header `x-simulator-session`.
//!
//! # What is refused
//!
//! In the protocol's own shape, with status 400 unless noted, and written to the log under [`Reason::code`].
//!
//! | what | Chat | Responses | Messages |
//! |---|---|---|---|
//! | no model; no or empty conversation | yes | yes | yes |
//! | unknown model ([`Strictness::known_models`]) | 404 | 404 | 404 |
//! | wrong key ([`Config::key`]) | 401 | 401 | 401 |
//! | body too large ([`Strictness::max_body`]) | 413 | 413 | 413 |
//! | unknown role, or role in the wrong place | yes | yes | yes, `system` too |
//! | first message not the user's | – | – | yes |
//! | content missing, `null` (without calls) or an empty list | yes | yes | yes; the last assistant message may be |
//! | empty text | option | option | yes, white space too; in results only an empty text block |
//! | unknown type of part, block or item, or in the wrong role | yes | yes | yes |
//! | unknown field of a message or block | – | – | yes (option) |
//! | call without a result | yes | yes | yes |
//! | result without a call | yes | yes | yes |
//! | two results for a call | yes | yes | yes |
//! | something between calls and their results | yes | yes (option; stricter than OpenAI) | yes, results come first |
//! | one id for two calls | within a message | among open calls | in the whole conversation |
//! | arguments that are no JSON object | yes (option) | yes (option) | `input` is an object |
//! | id of the wrong form | not empty | `fc_`, `rs_`, `msg_` | letters, digits, `_`, `-` |
//! | one item id twice | – | yes | – |
//! | reasoning not sealed or signed by this server | – | `encrypted_content` | `signature` of exactly this text |
//! | reasoning without content while `store` is false | – | 404 | – |
//! | reasoning without the item it led to | – | yes | – |
//! | an item (with its id) without its reasoning | – | yes | – |
//! | newest turn with calls lacks its thinking, or changed it | – | – | yes, while thinking is on |
//! | more than four cache marks; a mark on an empty text | – | – | yes |
//! | tools without name or object schema, names twice | yes | yes | yes |
//! | `tools: []`, or `tool_choice` without tools | yes | – | – |
//! | calls in the history and no tools offered | – | – | yes |
//! | `temperature` or `top_p` for `gpt-5…`, `o1…`, `o3…` | other than 1 | any | other than 1 while thinking |
//! | `max_tokens` | not for those models | not at all | required, above the thinking budget |
//! | thinking with a budget below 1,024 or a forced tool | – | – | yes |
//! | last message the assistant's | – | – | with open calls, while thinking, or ending in white space |
//! | `stream_options` without `stream` | yes | – | – |
//! | no `anthropic-version` header | – | – | yes |
//! | output above the cap ([`Window::max_output`]) | yes | yes | yes |
//! | prompt, or prompt and output, above the window | yes | prompt only | yes |
//! | `previous_response_id`, `conversation`, `item_reference`; `thread`, `context_management` | – | not served | not served |
//!
//! # How it counts
//!
//! Texts, names, arguments and schemas by o200k_base, each message, tool or block once and then known by its bytes; four
//! tokens around each (one around each further block), five more around calls, results and tools, images flat, three
//! for the opening of the answer. [`Counting`] has the knobs. The cache: OpenAI's reads the longest prefix that any
//! answered request began with, in steps of 128 from 1,024 on; Anthropic's reads and writes at cache marks only and looks
//! back 20 blocks. A prefix ends between messages (or Anthropic's blocks), never within one. Nothing expires.
//!
//! # What is not modelled
//!
//! - State held by the server: `previous_response_id`, `conversation`, `thread`, stored responses, batches, files.
//! - Hosted tools, custom (free-text) tools as calls of the model, structured output, `n` above 1, log probabilities,
//!   audio; `redacted_thinking`, `compaction` items and server-side context management. `tool_choice` is heeded as far as
//!   `none`, `parallel_tool_calls` (or `disable_parallel_tool_use`) as far as one call at a time.
//! - Tokenizers other than o200k_base. Anthropic's counts are those times a factor, so their error is even over all
//!   kinds of text; the real one is not.
//! - Rate limits that follow from use: a 429 comes when a rule says so. No tiers, no HTTP/2, no TLS, no compression.
//! - Cache expiry, cache routing, hits within a message, the price of one hour against five minutes.
//! - The exact order in which a real endpoint notices several mistakes at once. Texts of errors were taken from clients
//!   and reports, not from live endpoints.

mod agent;
mod arguments;
mod cache;
mod config;
mod count;
mod digest;
mod fault;
mod legality;
mod log;
mod models;
mod overflow;
mod prose;
mod refusal;
mod reply;
mod request;
mod server;
mod simulator;
mod state;
mod summary;
mod trouble;
mod wire;

pub use config::{Agent, Config, Counting, Dialect, Models, Overflow, Protocol, Strictness, Summary, Window};
pub use fault::{Fault, Of, RateWording, RetryAfter, Rule, UsageLie, When};
pub use log::{Call, Record, Stats, Stop, Verdict};
pub use refusal::Reason;
pub use simulator::Simulator;
