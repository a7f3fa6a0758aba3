//! What kind of file is this? Always with the reason.

use super::Format;
use super::error::FormatError;
use super::json::Json;
use super::parsed::Parsed;
use super::scan::skip_space;

/// A recognised format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detected {
    /// The format; for JSON lines of a protocol's messages, the protocol.
    pub format: Format,
    /// "looks like … because …".
    pub reason: String,
}

impl Detected {
    fn new(format: Format, because: &str) -> Self {
        Self { format, reason: format!("looks like {format} because {because}") }
    }
}

/// How many lines of a JSONL file are looked at.
const LINES: usize = 200;

/// Recognises a recorded session or a request body by its shape.
///
/// Only structure is looked at; whether the whole of it is sound is for the reader to say.
///
/// # Errors
/// When this is none of the formats that are read; the error lists them.
pub fn detect(bytes: &[u8]) -> Result<Detected, FormatError> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let at = error.valid_up_to();
        FormatError::at(bytes, at, "UTF-8 text", format!("byte 0x{:02x}", bytes[at]))
    })?;
    shape(text, &parse(text)?)
}

/// Parses text, with a refusal that lists what is read when it is no JSON at all.
pub(crate) fn parse(text: &str) -> Result<Parsed<'_>, FormatError> {
    let start = skip_space(text.as_bytes(), if text.starts_with('\u{FEFF}') { 3 } else { 0 });
    if !matches!(text.as_bytes().get(start), Some(b'{' | b'[')) {
        return Err(refuse(text, start, None));
    }
    Parsed::new(text)
}

/// Recognises parsed text.
pub(crate) fn shape(text: &str, parsed: &Parsed<'_>) -> Result<Detected, FormatError> {
    if parsed.is_lines() { jsonl(text, parsed) } else { document(parsed.root()) }
}

/// The refusal, with the list of what is read and, where it is known, what this is.
pub(crate) fn refuse(text: &str, at: usize, other: Option<&str>) -> FormatError {
    let expected = format!("one of the formats {}", Format::list());
    match other {
        Some(other) => FormatError::at(text.as_bytes(), at, expected, other),
        None => FormatError::here(text.as_bytes(), at, expected),
    }
}

/// The protocol of a request body or bare list. What is ambiguous is chat.
pub(crate) fn protocol(root: Json<'_>) -> Result<(Format, String), FormatError> {
    let found = document(root)?;
    if found.format.is_protocol() {
        return Ok((found.format, found.reason));
    }
    let expected = "a request body of openai-chat, openai-responses or anthropic-messages";
    Err(FormatError::at(root.source().as_bytes(), root.start(), expected, format!("what {}", found.reason)))
}

fn document(root: Json<'_>) -> Result<Detected, FormatError> {
    body(root, true)
}

/// Recognises a document; `whole` unless it is already inside of another, so that nothing recurses.
fn body(root: Json<'_>, whole: bool) -> Result<Detected, FormatError> {
    if root.is_array() {
        return array(root);
    }
    let [messages, input, requests, history, trajectory, simulations, kwargs, answer, session] = root.fields([
        "messages",
        "input",
        "requests",
        "history",
        "trajectory",
        "simulations",
        "kwargs",
        "answer_generation",
        "sessionId",
    ]);
    if let Some(other) = foreign(root) {
        return Err(refuse(root.source(), root.start(), Some(other)));
    }
    if history.is_some_and(|list| list.is_array()) {
        if trajectory.is_some_and(|list| list.is_array()) {
            return Ok(Detected::new(Format::SweAgent, "it has both `history` and `trajectory`"));
        }
        if history.is_some_and(|list| list.items().take(8).any(is_event)) {
            return Ok(Detected::new(Format::OpenHands, "its `history` holds action and observation events"));
        }
        if history.is_some_and(|list| list.items().next().is_some_and(|first| first.get("role").is_some())) {
            return Ok(Detected::new(Format::SweAgent, "its `history` holds messages with roles"));
        }
    }
    if session.is_some() && messages.is_some_and(|list| list.items().take(8).any(is_gemini)) {
        return Ok(Detected::new(Format::GeminiCli, "it has a `sessionId` and messages of type user and gemini"));
    }
    if let Some(first) = requests.filter(|_| whole).and_then(|list| list.items().find(|request| request.is_object())) {
        let inside = body(first, false)?;
        return Ok(Detected { reason: format!("{}, in a list of recorded `requests`", inside.reason), ..inside });
    }
    if let Some(list) = messages.filter(|list| list.is_array()) {
        return Ok(messages_of(root, list.value));
    }
    if input.is_some()
        || root.fields(["previous_response_id", "conversation"]).into_iter().flatten().any(|id| !id.is_null())
    {
        return Ok(Detected::new(Format::OpenAiResponses, "it has an `input`, or continues a stored response"));
    }
    if simulations.is_some() || answer.is_some_and(|answer| answer.get("train_messages").is_some()) {
        return Ok(Detected::new(Format::OpenAiChat, "it holds recorded chats (tau2 or ToolBench)"));
    }
    if kwargs.is_some_and(|kwargs| kwargs.get("messages").is_some()) {
        return Ok(Detected::new(Format::OpenAiChat, "it is a litellm log with `kwargs.messages`"));
    }
    if whole
        && root.fields(["payload", "uuid", "role"]).iter().any(Option::is_some)
        && let Some(found) = record(root)
    {
        return Ok(found);
    }
    Err(refuse(root.source(), root.start(), None))
}

/// The protocol of `messages` in a body: what the messages say, then what stands beside them.
fn messages_of(root: Json<'_>, list: Json<'_>) -> Detected {
    if let Some((format, because)) = list.items().find_map(evidence)
        && format != Format::OpenAiResponses
    {
        return Detected::new(format, because);
    }
    let [system, tools, thinking, limit, model] = root.fields(["system", "tools", "thinking", "max_tokens", "model"]);
    let any = |names: [&str; 6]| root.fields(names).iter().any(Option::is_some);
    for tool in tools.into_iter().flat_map(|tools| tools.items()) {
        let [schema, function] = tool.fields(["input_schema", "function"]);
        if schema.is_some() {
            return Detected::new(Format::AnthropicMessages, "its tools have an `input_schema`");
        }
        if function.is_some() {
            return Detected::new(Format::OpenAiChat, "its tools have a `function`");
        }
    }
    if system.is_some() {
        return Detected::new(Format::AnthropicMessages, "`system` stands beside `messages`");
    }
    let of_chat =
        ["max_completion_tokens", "response_format", "stream_options", "functions", "frequency_penalty", "stop"];
    if any(of_chat) {
        return Detected::new(Format::OpenAiChat, "it has parameters only chat has");
    }
    let of_anthropic =
        ["anthropic_version", "stop_sequences", "context_management", "thread", "anthropic_beta", "mcp_servers"];
    if any(of_anthropic) || thinking.is_some_and(|thinking| thinking.get("budget_tokens").is_some()) {
        return Detected::new(Format::AnthropicMessages, "it has parameters only Anthropic Messages has");
    }
    if limit.is_some() && model.and_then(|model| model.inner()).is_some_and(|model| model.starts_with("claude")) {
        return Detected::new(Format::AnthropicMessages, "it asks for a Claude model and sets `max_tokens`");
    }
    Detected::new(Format::OpenAiChat, "it has `messages` and nothing that another protocol would have")
}

fn array(root: Json<'_>) -> Result<Detected, FormatError> {
    let Some(first) = root.items().next() else {
        return Ok(Detected::new(Format::OpenAiChat, "it is an empty list"));
    };
    let first_of_pair = first.items().next().unwrap_or(first);
    if is_event(first_of_pair) {
        return Ok(Detected::new(Format::OpenHands, "it is a list of action and observation events"));
    }
    if first.get("traj").is_some_and(Json::is_array) {
        return Ok(Detected::new(Format::OpenAiChat, "it is a list of runs, each with a chat as `traj` (tau-bench)"));
    }
    if let Some((format, because)) = root.items().find_map(evidence) {
        return Ok(Detected::new(format, because));
    }
    if root.items().any(|item| item.get("role").is_some_and(Json::is_string)) {
        return Ok(Detected::new(Format::OpenAiChat, "it is a list of messages, and nothing says another protocol"));
    }
    Err(refuse(root.source(), root.start(), None))
}

/// What one message or item says about its protocol. Roles alone say nothing: chat and Responses share them.
pub(crate) fn evidence(message: Json<'_>) -> Option<(Format, &'static str)> {
    use Format::{AnthropicMessages, OpenAiChat, OpenAiResponses};
    let [kind, role, content, calls, call_id, call] =
        message.fields(["type", "role", "content", "tool_calls", "tool_call_id", "function_call"]);
    let kind = kind.and_then(|kind| kind.string());
    let kind = kind.as_deref();
    if role.is_none() {
        return match kind {
            Some("reasoning" | "item_reference" | "compaction") => Some((OpenAiResponses, "it has Responses items")),
            Some(kind) if kind.ends_with("_call") || kind.ends_with("_call_output") => {
                Some((OpenAiResponses, "it has items of calls and outputs"))
            }
            _ => None,
        };
    }
    if [calls, call_id, call].iter().flatten().any(|field| !field.is_null()) {
        return Some((OpenAiChat, "a message has `tool_calls` or answers one"));
    }
    if role.is_some_and(|role| role.is("tool") || role.is("function")) {
        return Some((OpenAiChat, "a message has the role tool"));
    }
    if let Some(content) = content.filter(|content| content.is_array()) {
        for part in content.items() {
            let [kind, source] = part.fields(["type", "source"]);
            match kind.and_then(|kind| kind.string()).as_deref() {
                Some("input_text" | "output_text" | "input_image" | "input_file") => {
                    return Some((OpenAiResponses, "a message has parts input_text or output_text"));
                }
                Some(
                    "tool_use" | "tool_result" | "thinking" | "redacted_thinking" | "server_tool_use" | "mcp_tool_use"
                    | "search_result",
                ) => return Some((AnthropicMessages, "a message has blocks of tool use, tool result or thinking")),
                Some("image" | "document") if source.is_some() => {
                    return Some((AnthropicMessages, "a message has an image or document with a `source`"));
                }
                Some("image_url" | "input_audio") => return Some((OpenAiChat, "a message has an image_url part")),
                _ => {}
            }
        }
    }
    (kind == Some("message")).then_some((OpenAiResponses, "a message says that its type is message"))
}

fn jsonl(text: &str, parsed: &Parsed<'_>) -> Result<Detected, FormatError> {
    let mut seen = None;
    for value in parsed.values().take(LINES) {
        if let Some(other) = foreign(value) {
            return Err(refuse(text, value.start(), Some(other)));
        }
        match record(value) {
            Some(found) if found.format == Format::OpenAiChat => seen = seen.or(Some(found)),
            Some(found) => return Ok(found),
            None => {}
        }
    }
    // Messages that could be any protocol's are chat unless a later line says otherwise.
    seen.ok_or_else(|| refuse(text, parsed.root().start(), None))
}

/// What one line of JSONL (or a document that is such a line) says.
fn record(value: Json<'_>) -> Option<Detected> {
    if !value.is_object() {
        return value.is_array().then(|| array(value).ok()).flatten();
    }
    let [kind, payload, uuid, session, message, role, instructions, state, content] = value.fields([
        "type",
        "payload",
        "uuid",
        "sessionId",
        "message",
        "role",
        "instructions",
        "record_type",
        "content",
    ]);
    let is = |names: &[&str]| kind.is_some_and(|kind| names.iter().any(|name| kind.is(name)));
    if payload.is_some()
        && is(&["session_meta", "response_item", "event_msg", "turn_context", "compacted", "world_state"])
    {
        return Some(Detected::new(
            Format::Codex,
            "its lines have a type such as session_meta or response_item, and a payload",
        ));
    }
    if state.is_some() || (instructions.is_some() && kind.is_none() && value.get("id").is_some()) {
        return Some(Detected::new(Format::Codex, "it starts with the header of an old rollout"));
    }
    if message.is_some_and(|message| message.is_object()) && is(&["user", "assistant"]) {
        return Some(Detected::new(Format::ClaudeCode, "its lines are of type user or assistant and wrap a `message`"));
    }
    if (session.is_some()
        && (kind.is_some() && (uuid.is_some() || is(&["summary", "queue-operation", "file-history-snapshot"]))))
        || is(&["file-history-snapshot"])
    {
        return Some(Detected::new(Format::ClaudeCode, "its lines have a type, a `sessionId` and a `uuid`"));
    }
    if is(&["gemini"]) && content.is_some() {
        return Some(Detected::new(Format::GeminiCli, "its lines are messages of type gemini"));
    }
    if let Some((format, because)) = evidence(value) {
        return Some(Detected::new(format, because));
    }
    if role.is_some_and(|role| role.is_string()) {
        return Some(Detected::new(Format::OpenAiChat, "its lines are messages, and nothing says another protocol"));
    }
    let nested = value.fields(["messages", "input", "history", "requests"]).iter().any(Option::is_some);
    nested.then(|| body(value, false).ok()).flatten()
}

fn is_event(value: Json<'_>) -> bool {
    let [action, observation, args, content, source] =
        value.fields(["action", "observation", "args", "content", "source"]);
    (action.is_some() && args.is_some()) || (observation.is_some() && (content.is_some() || source.is_some()))
}

fn is_gemini(value: Json<'_>) -> bool {
    let [kind, role] = value.fields(["type", "role"]);
    role.is_none() && kind.is_some_and(|kind| kind.is("gemini") || kind.is("user"))
}

/// Known kinds of files that are not read, so that the refusal can name them.
fn foreign(value: Json<'_>) -> Option<&'static str> {
    let [
        kind,
        message,
        payload,
        dir,
        steps,
        schema,
        samples,
        agent_steps,
        values,
        system_prompt,
        messages,
        sessions,
        question,
        event,
    ] = value.fields([
        "type",
        "message",
        "payload",
        "dir",
        "steps",
        "schema_version",
        "samples",
        "agent_steps",
        "values",
        "system_prompt",
        "messages",
        "sessions",
        "question",
        "kind",
    ]);
    if schema.is_some() && steps.is_some() {
        return Some("an ATIF trajectory");
    }
    if dir.is_some() && event.is_some() && payload.is_some() {
        return Some("a Codex TUI log");
    }
    if samples.is_some_and(|list| list.is_array()) {
        return Some("an Inspect AI log");
    }
    if agent_steps.is_some() {
        return Some("a Trae trajectory");
    }
    if values.is_some_and(|values| values.get("messages").is_some()) {
        return Some("a LangGraph thread");
    }
    if system_prompt.is_some() && messages.is_some() {
        return Some("a Cline session");
    }
    if sessions.is_some_and(|list| list.is_array()) {
        return Some("an opencode export");
    }
    if question.is_some() && messages.is_none() {
        return Some("a BFCL question");
    }
    if message.is_some_and(|message| message.get("role").is_some()) && kind.is_some_and(|kind| kind.is("message")) {
        return Some("a pi session");
    }
    let human = |item: Json<'_>| {
        item.get("role").is_none() && item.get("type").is_some_and(|kind| kind.is("human") || kind.is("ai"))
    };
    messages.is_some_and(|list| list.items().take(4).any(human)).then_some("LangChain messages")
}
