"""A scripted provider on loopback: Chat Completions and Anthropic Messages, as strict about messages as the real ones, with a small window.

It holds three things: `check_chat` / `check_messages` (what a real endpoint refuses), `Provider` (HTTP, token counts, the window, usage with
cached tokens) and `Script` (the model: it calls tools, and recalls what the view it was sent tells it how to recall).
"""
import base64
import hashlib
import hmac
import json
import random
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import bpe_openai

ENCODING = bpe_openai.get_encoding("o200k_base")
RECALL_TOOL = "recall_tool_result"
REFERENCE = re.compile(RECALL_TOOL + r'\("([^"]+)"\)')
THINKING_KEY = b"nobody outside can sign a thought"


class Refused(Exception):
    """A request a real endpoint would answer with 400."""

    def __init__(self, message, code=None):
        super().__init__(message)
        self.code = code


def sign(thought):
    return base64.b64encode(hmac.digest(THINKING_KEY, thought.encode("utf-8", "surrogatepass"), hashlib.sha512)).decode()


# ---- what is refused ------------------------------------------------------------------------------------------------------------------

def check_chat(body):
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise Refused("[] is too short - 'messages'")
    waiting = {}  # call ids of the assistant message that still wait for their result
    for i, message in enumerate(messages):
        role, content = message.get("role"), message.get("content")
        if role not in ("system", "developer", "user", "assistant", "tool"):
            raise Refused(f"Invalid value: {role!r} - 'messages[{i}].role'")
        if role == "tool":
            if message.get("tool_call_id") not in waiting:
                raise Refused(f"Invalid parameter: messages with role 'tool' must be a response to a preceding message with 'tool_calls' (messages[{i}])")
            del waiting[message["tool_call_id"]]
        elif waiting:
            raise Refused(f"An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. No response before messages[{i}] for: {', '.join(waiting)}")
        calls = message.get("tool_calls")
        if role == "assistant" and calls is not None:
            if not calls:
                raise Refused(f"[] is too short - 'messages[{i}].tool_calls'")
            for call in calls:
                if call["id"] in waiting:
                    raise Refused(f"Duplicate tool call id {call['id']} in messages[{i}]")
                if not isinstance(json.loads(call["function"]["arguments"]), dict):
                    raise Refused(f"messages[{i}]: arguments are not an object")
                waiting[call["id"]] = call
        if content is None and not (role == "assistant" and calls):
            raise Refused(f"Invalid value for 'content': expected a string, got null. - 'messages[{i}].content'")
        if isinstance(content, list) and not content:
            raise Refused(f"[] is too short - 'messages[{i}].content'")
    if waiting:
        raise Refused("An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: " + ", ".join(waiting))


def blocks(content):
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def check_messages(body, issued=None):
    """`issued` maps a tool_use id to the thinking blocks its message was sent out with; those of the last assistant message must come back."""
    turns = []  # neighbours of one role count as one turn, as at the real endpoint
    for i, message in enumerate(body.get("messages", [])):
        if message["role"] not in ("user", "assistant"):
            raise Refused(f"messages.{i}: role {message['role']!r} is not allowed")
        content = blocks(message["content"])
        if not content:
            raise Refused(f"messages.{i}: all messages must have non-empty content")
        for block in content:
            if block["type"] == "text" and not block["text"].strip():
                raise Refused(f"messages.{i}: text content blocks must contain non-whitespace text")
            if block["type"] == "thinking" and block.get("signature") != sign(block["thinking"]):
                raise Refused(f"messages.{i}: Invalid `signature` in `thinking` block")
            if block["type"] == "tool_result" and isinstance(block.get("content"), list):
                if any(part["type"] == "text" and not part["text"] for part in block["content"]):
                    raise Refused(f"messages.{i}: text content blocks must be non-empty")
        if turns and turns[-1][0] == message["role"]:
            turns[-1][1].extend(content)
        else:
            turns.append((message["role"], list(content)))
    if not turns or turns[0][0] != "user":
        raise Refused("messages: first message must use the \"user\" role")
    if turns[-1][0] != "user":
        raise Refused("messages: the conversation must end with a user message")
    seen, wanted = set(), []
    for n, (role, content) in enumerate(turns):
        kinds = [block["type"] for block in content]
        if role == "assistant":
            wanted = [block["id"] for block in content if block["type"] == "tool_use"]
            if len(set(wanted)) < len(wanted) or seen & set(wanted):
                raise Refused("messages: `tool_use` ids must be unique")
            seen |= set(wanted)
            if wanted and not body.get("tools"):
                raise Refused("Requests which include `tool_use` or `tool_result` blocks must define tools")
            if "thinking" in kinds and kinds[0] != "thinking":
                raise Refused("messages: a `thinking` block must come first in its message")
            continue
        got = [block["tool_use_id"] for block in content if block["type"] == "tool_result"]
        for i in got:
            if i not in wanted:
                raise Refused(f"messages: unexpected `tool_use_id` found in `tool_result` blocks: {i}. Each `tool_result` block must have a corresponding `tool_use` block in the previous message.")
        if sorted(got) != sorted(wanted):
            raise Refused(f"messages: `tool_use` ids were found without `tool_result` blocks immediately after: {', '.join(sorted(set(wanted) - set(got))) or 'answered twice'}")
        if "tool_result" in kinds[len(got):]:
            raise Refused("messages: `tool_result` blocks must come first in the message")
        wanted = []
    last = next((content for role, content in reversed(turns) if role == "assistant"), [])
    uses = [block["id"] for block in last if block["type"] == "tool_use"]
    if uses and issued and body.get("thinking", {}).get("type") == "enabled" and uses[0] in issued:
        if [block for block in last if block["type"] == "thinking"] != issued[uses[0]]:
            raise Refused("messages: `thinking` blocks in the latest assistant message cannot be modified")


# ---- the model ------------------------------------------------------------------------------------------------------------------------

class Script:
    """Every turn calls one or two tools; every fifth also recalls something, if the view says how. After 25 turns it answers in plain words."""

    TOOLS = ["read_file", "search", "run_tests", "fetch_json"]
    ROUND = 25

    def __init__(self, seed):
        self.rng, self.tool_turns, self.answered = random.Random(seed), 0, True
        self.recalls = []  # (reference, the call whose result held the marker, or None for a note), in the order asked

    def next(self, view, recall_argument):
        """`view` lists (call, text) of what the model was shown: call is (name, arguments), or None for a user's text."""
        if self.tool_turns and self.tool_turns % self.ROUND == 0 and not self.answered:
            self.answered = True
            return f"After {self.tool_turns} steps: the numbers agree so far. What is next?", []
        self.answered = False
        self.tool_turns += 1
        calls = [(self.rng.choice(self.TOOLS), {"n": 10 * self.tool_turns + i}) for i in range(self.rng.choice([1, 1, 2]))]
        references = [(reference, call) for call, text in view for reference in REFERENCE.findall(text)]
        if references and self.tool_turns % 5 == 0:
            notes = [found for found in references if found[1] is None]
            choice = self.rng.choice(notes if notes and self.rng.random() < .5 else references)
            self.recalls.append(choice)
            calls[-1] = (RECALL_TOOL, {recall_argument: choice[0]})
        return f"Step {self.tool_turns}: {self.rng.choice(['next', 'then', 'now'])} {' and '.join(name for name, _ in calls)}.", calls


# ---- the endpoint -----------------------------------------------------------------------------------------------------------------------

class Provider:
    def __init__(self, protocol, window, seed, reuse_ids=False):
        self.protocol, self.window, self.reuse_ids = protocol, window, reuse_ids
        self.script = Script(seed)
        self.refusals, self.inputs, self.cached, self.heads = [], [], [], []
        self._before, self._counts, self._issued, self._next_id = [], {}, {}, 0
        provider = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                status, answer = provider.answer(self.path.split("?")[0], body)
                raw = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def answer(self, path, body):
        chat = self.protocol == "chat"
        try:
            if path != ("/v1/chat/completions" if chat else "/v1/messages"):
                return 404, {"error": {"message": f"no such path {path}", "type": "invalid_request_error", "code": None}}
            check_chat(body) if chat else check_messages(body, self._issued)
            used, cached = self.measure(body)
        except Refused as problem:
            self.refusals.append(str(problem))
            if chat:
                return 400, {"error": {"message": str(problem), "type": "invalid_request_error", "param": "messages", "code": problem.code}}
            return 400, {"type": "error", "error": {"type": "invalid_request_error", "message": str(problem)}, "request_id": f"req_{len(self.inputs)}"}
        self.inputs.append(used)
        self.cached.append(cached)
        return 200, (self.chat_answer if chat else self.messages_answer)(body, used, cached)

    def count(self, value):
        text = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace").decode()
        if text not in self._counts:
            self._counts[text] = len(ENCODING.encode_ordinary(text)) + 3
        return self._counts[text]

    def measure(self, body):
        """Input tokens, and how many of them stood at the same place in the request before."""
        head = [body.get("tools", []), body.get("system", [])]
        self.heads.append(json.dumps(head))
        parts = head + body["messages"]
        sizes = [self.count(part) for part in parts]
        used, room = sum(sizes), body.get("max_completion_tokens") or body["max_tokens"]
        if used + room > self.window:
            if self.protocol == "chat":
                raise Refused(f"This model's maximum context length is {self.window} tokens. However, you requested {used + room} tokens ({used} in the messages, {room} in the completion). "
                              "Please reduce the length of the messages or completion.", "context_length_exceeded")
            if used > self.window:
                raise Refused(f"prompt is too long: {used} tokens > {self.window} maximum")
            raise Refused(f"input length and `max_tokens` exceed context limit: {used} + {room} > {self.window}, decrease input length or `max_tokens` and try again")
        same = 0
        while same < min(len(parts), len(self._before)) and parts[same] == self._before[same]:
            same += 1
        self._before = parts
        return used, sum(sizes[:same])

    def new_id(self, prefix, i):
        self._next_id += 1
        return f"call_{i}" if self.reuse_ids else f"{prefix}{self._next_id:06}"

    def chat_answer(self, body, used, cached):
        view, calls = [], {}
        for message in body["messages"]:
            text = message.get("content") or ""
            text = text if isinstance(text, str) else "\n".join(part.get("text", "") for part in text)
            for call in message.get("tool_calls") or []:
                calls[call["id"]] = (call["function"]["name"], call["function"]["arguments"])
            if message["role"] in ("tool", "user"):
                view.append((calls[message["tool_call_id"]] if message["role"] == "tool" else None, text))
        parameters = next((tool["function"]["parameters"] for tool in body["tools"] if tool["function"]["name"] == RECALL_TOOL), None)
        text, wanted = self.script.next(view if parameters else [], first_argument(parameters))
        message = {"role": "assistant", "content": text}
        if wanted:
            message["tool_calls"] = [{"id": self.new_id("call_", i), "type": "function", "function": {"name": name, "arguments": json.dumps(given)}} for i, (name, given) in enumerate(wanted)]
        out = self.count(message)
        return {"id": f"chatcmpl-{len(self.inputs)}", "object": "chat.completion", "created": 1767225600, "model": body["model"],
                "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls" if wanted else "stop", "logprobs": None}],
                "usage": {"prompt_tokens": used, "completion_tokens": out, "total_tokens": used + out, "prompt_tokens_details": {"cached_tokens": cached}}}

    def messages_answer(self, body, used, cached):
        view, calls = [], {}
        for message in body["messages"]:
            for block in blocks(message["content"]):
                if block["type"] == "tool_use":
                    calls[block["id"]] = (block["name"], json.dumps(block["input"]))
                elif block["type"] == "tool_result":
                    view.append((calls[block["tool_use_id"]], "\n".join(part.get("text", "") for part in blocks(block.get("content") or []))))
                elif message["role"] == "user" and block["type"] == "text":
                    view.append((None, block["text"]))
        schema = next((tool["input_schema"] for tool in body["tools"] if tool["name"] == RECALL_TOOL), None)
        text, wanted = self.script.next(view if schema else [], first_argument(schema))
        content = []
        if self.script.tool_turns % 2 == 0:
            thought = f"I have seen {len(view)} pieces. {text} That should settle step {self.script.tool_turns}."
            content.append({"type": "thinking", "thinking": thought, "signature": sign(thought)})
        content.append({"type": "text", "text": text})
        uses = [{"type": "tool_use", "id": self.new_id("toolu_", i), "name": name, "input": given} for i, (name, given) in enumerate(wanted)]
        for use in uses:
            self._issued[use["id"]] = content[:-1]
        return {"id": f"msg_{len(self.inputs)}", "type": "message", "role": "assistant", "model": body["model"], "content": content + uses, "stop_reason": "tool_use" if uses else "end_turn", "stop_sequence": None,
                "usage": {"input_tokens": used - cached, "cache_read_input_tokens": cached, "cache_creation_input_tokens": 0, "output_tokens": self.count(content + uses)}}


def first_argument(schema):
    return next(iter((schema or {}).get("required") or (schema or {}).get("properties") or ["reference"]))
