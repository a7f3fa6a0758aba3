"""The planner in a Python host: drives the component over a session and prints one digest over all views and states.

    planner.py COMPONENT SESSION        (needs the package `wasmtime`)

SESSION is a body in the format of OpenAI Chat Completions. Every message is one turn, in a window of 8,000 tokens; a summary is
taken from the entries themselves, so no model is needed.
"""

import hashlib
import json
import sys

from wasmtime import Engine, Store
from wasmtime.component import Component, Linker, Record

INTERFACE = "foreshorten:planner/planning@0.1.0"
WINDOW = 8_000
RESERVE = 1_000


def record(**fields):
    made = Record()
    for name, value in fields.items():
        setattr(made, name.replace("_", "-"), value)
    return made


class Planner:
    """The functions of the component, by name."""

    def __init__(self, path):
        engine = Engine()
        self.store = Store(engine)
        component = Component.from_file(engine, path)
        # Nothing is linked: the component imports nothing.
        self.instance = Linker(engine).instantiate(self.store, component)
        self.interface = self.instance.get_export_index(self.store, INTERFACE)

    def call(self, name, *arguments):
        index = self.instance.get_export_index(self.store, name, self.interface)
        function = self.instance.get_func(self.store, index)
        answer = function(self.store, *arguments)
        function.post_return(self.store)
        return answer


def part(text):
    return record(kind=0, text=text, data=b"", media_type="", name="")


def image(url):
    """An image as it stands in the message: base64 is not decoded, as no decision depends on it."""
    media_type, data = url.removeprefix("data:").split(";base64,")
    return record(kind=1, text="", data=data.encode(), media_type=media_type, name="")


def parts(content):
    if isinstance(content, str):
        return [part(content)]
    return [part(item["text"]) if item["type"] == "text" else image(item["image_url"]["url"]) for item in content]


def entry(kind, content, call_id="", name=""):
    return record(kind=kind, call_id=call_id, name=name, error=False, sealed=False, parts=parts(content))


def entries(message):
    """The entries of one message."""
    role, content = message["role"], message.get("content")
    if role == "tool":
        return [entry(5, content, message["tool_call_id"])]
    if role != "assistant":
        return [entry({"system": 0, "user": 1}[role], content)]
    out = []
    if message.get("reasoning_content"):
        out.append(entry(3, message["reasoning_content"]))
    if content:
        out.append(entry(2, content))
    for call in message.get("tool_calls") or []:
        out.append(entry(4, call["function"]["arguments"], call["id"], call["function"]["name"]))
    return out


class Digest:
    """SHA-256 over fields, each with its length."""

    def __init__(self):
        self.hash = hashlib.sha256()

    def bytes(self, data):
        self.hash.update(len(data).to_bytes(4, "little"))
        self.hash.update(data)

    def number(self, value):
        self.bytes(value.to_bytes(4, "little"))

    def text(self, text):
        self.bytes(text.encode())


def main():
    planner = Planner(sys.argv[1])
    with open(sys.argv[2], encoding="utf-8") as file:
        messages = json.load(file)["messages"]
    policy = record(
        context_window=WINDOW, compact_at=None, compact_to=None, keep_recent_tokens=None,
        reserve_output_tokens=RESERVE, stages=[], model="", archive=True,
    )
    session = answer(planner.call("[static]session.open", policy, b""))
    call = lambda name, *arguments: planner.call(f"[method]session.{name}", session, *arguments)
    digest, turns, passes = Digest(), 0, 0
    for message in messages:
        answer(call("push", entries(message)))
        call("begin", record(
            window=None, scope="", schema_tokens=0, overflow=False, reported_window=None,
            cache_cold=False, manual=False, can_summarize=True,
        ))
        while True:
            step = call("poll")
            if step.tag == "summarize":
                call("summarized-by-extract", 1_500)
            elif step.tag == "archive":
                call("archived", True)
            else:
                outcome = step.payload
                break
        turns += 1
        passes += outcome.compacted
        for piece in call("view", 0):
            digest.text(piece.tag)
            value = piece.payload
            if piece.tag == "entry":
                digest.number(value)
            elif piece.tag == "note":
                digest.text(value)
            else:
                digest.number(value[0])
                digest.text(value[-1])
        digest.bytes(bytes(call("state")))
    print(f"digest {digest.hash.hexdigest()}")
    print(f"{turns} turns, {passes} passes, Python")


def answer(result):
    """The value of a result, or its error raised. Results come as what is in them; an error is text."""
    if isinstance(result, str):
        raise ValueError(result)
    return result

main()
