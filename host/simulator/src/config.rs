//! What a simulated provider is: its window, its manners, its model.

use std::time::Duration;

use crate::fault::Rule;

/// The three protocols served. All are served by every simulator, whatever its configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Protocol {
    /// `POST /v1/chat/completions`.
    Chat,
    /// `POST /v1/responses`.
    Responses,
    /// `POST /v1/messages`.
    Messages,
}

/// Everything that can be chosen. `Config::default()` is a well-behaved provider with a window of 200,000 tokens.
#[derive(Debug, Clone)]
pub struct Config {
    /// TCP port on 127.0.0.1; 0 (the default) takes a free one.
    pub port: u16,
    /// The key that must be sent, as `Authorization: Bearer …` or `x-api-key`. `None` accepts any and none.
    /// Default: [`Config::KEY`].
    pub key: Option<String>,
    /// Seed of everything the model says. Default 1.
    pub seed: u64,
    /// How prompts are counted.
    pub counting: Counting,
    /// The window and how it is enforced.
    pub window: Window,
    /// What is refused besides prompts that are too long.
    pub strictness: Strictness,
    /// What the model does.
    pub agent: Agent,
    /// How summary requests are answered: the n-th with the n-th mode, and all later ones with the last.
    /// Empty (the default) means [`Summary::Good`].
    pub summaries: Vec<Summary>,
    /// What `GET /v1/models` says.
    pub models: Models,
    /// Misbehaviours, in order of precedence: of each request the first rule that applies is taken.
    pub faults: Vec<Rule>,
    /// Size in bytes of the pieces a streamed body is cut into. `None` (the default) sends one event a piece.
    pub frame_bytes: Option<usize>,
    /// Whether the log keeps every body. Default false: long runs send hundreds of megabytes.
    pub keep_bodies: bool,
}

impl Config {
    /// The key expected by default. It is no secret.
    pub const KEY: &str = "simulator-key";
}

impl Default for Config {
    fn default() -> Self {
        Self {
            port: 0,
            key: Some(Self::KEY.to_owned()),
            seed: 1,
            counting: Counting::default(),
            window: Window::default(),
            strictness: Strictness::default(),
            agent: Agent::default(),
            summaries: Vec::new(),
            models: Models::default(),
            faults: Vec::new(),
            frame_bytes: None,
            keep_bodies: false,
        }
    }
}

/// How prompts are counted: o200k_base tokens of every text, plus what providers add around them.
#[derive(Debug, Clone)]
pub struct Counting {
    /// Tokens of an Anthropic prompt per thousand o200k tokens. Default 1,150: its tokenizers make more of them.
    pub messages_permille: u64,
    /// Tokens no client can see: added to every prompt. Default 0.
    pub hidden: u64,
    /// Tokens of an image or file, whatever its size. Default 1,000.
    pub image: u64,
    /// Whether reasoning of turns before the newest user text still counts. Default true; `false` is what servers
    /// do that drop it silently: a prompt can then become smaller by growing.
    pub old_reasoning: bool,
}

impl Default for Counting {
    fn default() -> Self {
        Self { messages_permille: 1_150, hidden: 0, image: 1_000, old_reasoning: true }
    }
}

/// The window: enforced, and announced.
#[derive(Debug, Clone)]
pub struct Window {
    /// Tokens that are enforced. Default 200,000.
    pub tokens: u64,
    /// Tokens that the models listing names. `None` (the default) names the enforced ones.
    pub announced: Option<u64>,
    /// `(n, tokens)`: from POST request `n` (the first is 1) on, `tokens` are enforced. Default: none.
    pub changes: Vec<(u64, u64)>,
    /// Whether the requested output counts against the window too. `None` (the default) does as the real endpoint
    /// does: yes for Chat and Messages, no for Responses.
    pub count_output: Option<bool>,
    /// The largest output that may be asked for; above it the request is refused, which is no overflow. Default: none.
    pub max_output: Option<u64>,
    /// What happens to a prompt that is too long.
    pub overflow: Overflow,
    /// Whether an overflow of a streamed Responses request arrives as HTTP 200 and `response.failed`. Default false.
    pub overflow_in_stream: bool,
}

impl Default for Window {
    fn default() -> Self {
        Self {
            tokens: 200_000,
            announced: None,
            changes: Vec::new(),
            count_output: None,
            max_output: None,
            overflow: Overflow::Refuse(Dialect::Native),
            overflow_in_stream: false,
        }
    }
}

/// What happens to a prompt that is too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overflow {
    /// An error in these words.
    Refuse(Dialect),
    /// The oldest messages are dropped and the rest is answered as if nothing had happened; usage counts the rest.
    Truncate,
    /// As [`Overflow::Truncate`], but the stop reason is `length` or `model_context_window_exceeded`.
    TruncateAndSay,
}

/// The wordings of an overflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// The protocol owner's own: OpenAI's `context_length_exceeded`, Anthropic's two.
    Native,
    /// OpenAI's old four-number form, also sent by DeepSeek and old vLLM servers.
    Requested,
    /// Azure: `Input tokens exceed the configured limit of …`.
    Azure,
    /// vLLM: `… and your prompt contains at least … input tokens`, which is clipped, not measured.
    Vllm,
    /// llama.cpp: `exceed_context_size_error`, with numbers also in fields of their own.
    LlamaCpp,
    /// SGLang: `Requested token count exceeds the model's maximum context length of …`.
    Sglang,
    /// OpenRouter: `This endpoint's maximum context length is …`, about.
    OpenRouter,
    /// Mistral: `Prompt contains … tokens, too large for model with … maximum context length`.
    Mistral,
    /// LM Studio: `Cannot truncate prompt with n_keep (…) >= n_ctx (…)`.
    LmStudio,
    /// Bedrock: `Input is too long for requested model.` Names nothing.
    Bedrock,
    /// Groq: `Please reduce the length of the messages or completion.` Names nothing.
    Groq,
    /// Z.ai: `Prompt exceeds max length` under code 1261. Names nothing, but has a number in it.
    Zai,
    /// Status 413 and no body at all.
    NoBody,
}

/// What is refused. The table in the crate's documentation lists all of it; here is what can be changed.
#[derive(Debug, Clone)]
pub struct Strictness {
    /// Tool arguments in the history must be JSON objects. Default true (OpenAI itself does not look; many servers do).
    pub arguments_are_objects: bool,
    /// Chat and Responses: a text may not be empty. Default false, as at OpenAI; Anthropic always refuses it.
    pub no_empty_text: bool,
    /// Responses: only calls, results and reasoning may stand between a call and its result. Default true, though
    /// OpenAI does not look: most other servers translate to Chat, where it is an error.
    pub results_adjacent: bool,
    /// Messages: fields nobody has heard of are refused, as the real endpoint does. Default true.
    pub no_extra_fields: bool,
    /// Models that exist. Empty (the default) means any.
    pub known_models: Vec<String>,
    /// Longest request body in bytes; above it the answer is 413 `request_too_large`. Default 32 MB.
    pub max_body: usize,
}

impl Default for Strictness {
    fn default() -> Self {
        Self {
            arguments_are_objects: true,
            no_empty_text: false,
            results_adjacent: true,
            no_extra_fields: true,
            known_models: Vec::new(),
            max_body: 32_000_000,
        }
    }
}

/// What the model does. All of it is a function of the seed and of the number of answers given so far, not of what the
/// view holds, so that runs with different views can be compared; recalls excepted.
#[derive(Debug, Clone)]
pub struct Agent {
    /// Tool rounds after each user message before it stops; 0 never calls a tool. Default 8. A request that ends in a
    /// user's text begins a new count.
    pub rounds: u64,
    /// Calls in one round are 1 to this many. Default 3.
    pub max_parallel: u64,
    /// How often, of a hundred rounds, text stands before the calls. Default 40.
    pub text_percent: u64,
    /// How often, of a hundred rounds, one call is a recall, when the view tells how. Default 20.
    pub recall_percent: u64,
    /// Name of the recall tool. Default `recall_tool_result`.
    pub recall_tool: String,
    /// `call_0`, `call_1` … again in every round, as some servers do (Chat and Responses). Default false.
    pub repeat_call_ids: bool,
    /// Chat: reasoning arrives as `reasoning_content`, as at DeepSeek. Default false.
    pub reasoning_content: bool,
    /// How often, of a hundred answers, there is reasoning, where the request allows it. Default 100. Of an Anthropic
    /// answer that calls tools with thinking enabled, reasoning is always a part.
    pub reasoning_percent: u64,
    /// Sentences of one reasoning, 1 to this many. Default 4.
    pub reasoning_sentences: u64,
}

impl Default for Agent {
    fn default() -> Self {
        Self {
            rounds: 8,
            max_parallel: 3,
            text_percent: 40,
            recall_percent: 20,
            recall_tool: "recall_tool_result".to_owned(),
            repeat_call_ids: false,
            reasoning_content: false,
            reasoning_percent: 100,
            reasoning_sentences: 4,
        }
    }
}

/// How a summary request is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Summary {
    /// All six headings with substance.
    Good,
    /// All six headings with nothing under them.
    EmptyHeadings,
    /// No text at all.
    EmptyText,
    /// A refusal, in the protocol's own form.
    Refusal,
    /// All six headings and about this many tokens under them.
    TooLong(u64),
    /// Stops in the middle, for length.
    CutByLength,
    /// A 400 when `temperature` is given, a good summary otherwise.
    NoTemperature,
    /// The model calls a tool instead (the first offered, else a good summary).
    CallsTool,
    /// Free prose without headings.
    NoHeadings,
}

/// What `GET /v1/models` and `GET /v1/models/{id}` say.
#[derive(Debug, Clone)]
pub struct Models {
    /// Ids listed. `GET /v1/models/{id}` answers 404 for others. Default: a few well-known names.
    pub ids: Vec<String>,
    /// Where the window is named, as a path of keys with dots (`top_provider.context_length`). `None` (the default)
    /// is silent about it, as OpenAI's own listing is. [`Models::FIELDS`] lists what servers use.
    pub window_field: Option<String>,
    /// The first this many listing requests fail. Default 0.
    pub fail_first: u64,
    /// The status they fail with. Default 500.
    pub fail_status: u16,
    /// Listing requests wait this long before they are answered. Default: not at all.
    pub hang: Option<Duration>,
}

impl Models {
    /// Fields under which servers name the window.
    pub const FIELDS: [&str; 8] = [
        "context_length",
        "max_model_len",
        "context_window",
        "max_input_tokens",
        "top_provider.context_length",
        "loaded_context_length",
        "max_context_length",
        "meta.n_ctx_train",
    ];
}

impl Default for Models {
    fn default() -> Self {
        let ids = ["sim-1", "gpt-4.1", "gpt-5", "o4-mini", "claude-sonnet-4-5"];
        Self { ids: ids.map(str::to_owned).to_vec(), window_field: None, fail_first: 0, fail_status: 500, hang: None }
    }
}
