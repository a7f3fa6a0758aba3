#!/usr/bin/env python3
"""Real SDK loops: the official SDKs in an ordinary tool loop, every request piped through `foreshorten compact`, every recall answered by `foreshorten recall`.

The loop keeps the whole message list, as agents do. A transport under the SDK takes each request body, lets the program shorten it, and sends what comes out
to the provider of provider.py, whose window is far too small for the whole. Nothing here knows how the program works: only its flags, exit codes and notice file.
"""
import argparse
import json
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import anthropic
import httpx2
import openai

from provider import RECALL_TOOL, Provider

RESERVE, OUTPUT, THINKING, PAGE = 2000, 1200, 1024, 8000
SYSTEM = "You audit a small code base step by step. Use the tools; say what you found in one sentence each time."
TASKS = ["Audit the billing code. Start with the invoices.", "Good. Now the numbers of last year, please.", "Compare them with the ledger.", "请检查数据库迁移脚本。", "Look for flaky tests.", "هل توجد أخطاء في التقارير؟",
         "Which files changed most?", "Check the time zones again.", "Summarise what is left to do.", "One more round, with fresh eyes."]
ABOUT = {"read_file": "Read a source file", "search": "Search the code base", "run_tests": "Run a group of tests", "fetch_json": "Fetch a record of the service"}
PARAMETERS = {"type": "object", "properties": {"n": {"type": "integer", "description": "Which one"}}, "required": ["n"]}


# ---- the tools of the loop ------------------------------------------------------------------------------------------------------------------

def run_tool(name, n):
    """The same text for the same call, always; (text, failed). Mostly 0.2 to 8 KB, now and then 30 KB, an error or nothing."""
    rng = random.Random(f"{name} {n}")
    if rng.random() < .03:
        return "", False
    if rng.random() < .08:
        return f"{name} {n} failed: {rng.choice(['no such file', 'timed out after 30 s', 'permission denied', 'exit code 2'])} (attempt {rng.randint(1, 3)})", True
    size = 30_000 if rng.random() < .04 else int(200 * 40 ** rng.random())
    lines, length = [f"== {name} {n} =="], 0
    words = "invoice total booking ledger round migrate cache index retry window parse reader writer session branch commit 税金 données größer".split()
    while length < size:
        a, b, k = rng.choice(words), rng.choice(words), len(lines)
        lines.append({"read_file": lambda: f"{k:>4}  def {a}_{b}(value):  # {rng.choice(words)} {rng.choice(words)}", "search": lambda: f"src/{a}/{b}.py:{rng.randint(1, 900)}: {a} = {b}({rng.choice(words)})",
                      "run_tests": lambda: f"tests/test_{a}.py::test_{b}_{k} {rng.choice(['PASSED', 'PASSED', 'PASSED', 'FAILED 🔴', 'SKIPPED'])}", "fetch_json": lambda: json.dumps({"id": k, a: b, "note": f"{a} of {b}", "ok": rng.random() < .9}, ensure_ascii=False)}[name]())
        length += len(lines[-1].encode()) + 1
    return ("\r\n" if rng.random() < .1 else "\n").join(lines), False


# ---- bytes of a body --------------------------------------------------------------------------------------------------------------------------

def elements(text, key="messages"):
    """The array under a top-level key, as the raw text of its elements; whatever stands between them does not count."""
    decode, at = json.JSONDecoder().raw_decode, text.index("{") + 1

    def skip(i):
        while text[i] in " \t\r\n,:":
            i += 1
        return i

    while text[at := skip(at)] != "}":
        name, at = decode(text, at)
        if name != key:
            at = decode(text, skip(at))[1]
            continue
        found, at = [], skip(at) + 1
        while text[at := skip(at)] != "]":
            end = decode(text, at)[1]
            found.append(text[at:end])
            at = end
        return found
    raise KeyError(key)


# ---- one run -------------------------------------------------------------------------------------------------------------------------------------

class Run(httpx2.BaseTransport):
    def __init__(self, binary, protocol, provider, folder, window):
        self.binary, self.protocol, self.provider, self.window = binary, protocol, provider, window
        self.full, self.state, self.store, self.notice = (folder / name for name in ("full.json", "state", "store", "notice.json"))
        self.inner, self.last_input, self.before = httpx2.HTTPTransport(), None, None
        self.faults = {name: [] for name in ("request accepted", "recall exact", "prefix kept while calm", "prefix kept by a pass", "notice right", "head unchanged")}
        self.counts = dict.fromkeys(("views", "calm", "passes", "bytes", "kept", "recalls", "note recalls"), 0)
        self.known = {}  # (tool, arguments) -> the texts that may stand for its result

    def program(self, *args, stdin=None):
        return subprocess.run([self.binary, *map(str, args)], input=stdin, capture_output=True, timeout=120)

    # -- requests: SDK -> compact -> provider --

    def handle_request(self, request):
        view = self.compact(request.read())
        headers = [(name, value) for name, value in request.headers.raw if name.lower() not in (b"content-length", b"transfer-encoding")]
        return self.inner.handle_request(httpx2.Request(request.method, request.url, headers=headers, content=view))

    def compact(self, body):
        self.full.write_bytes(body)
        self.notice.unlink(missing_ok=True)
        last = ["--last-input-tokens", self.last_input] if self.last_input is not None else []
        done = self.program("compact", "--window", self.window, "--reserve-output-tokens", RESERVE, "--state", self.state, "--store", self.store, *last, "--notice", self.notice, stdin=body)
        if done.returncode != 0:
            raise SystemExit(f"compact left with {done.returncode} at view {self.counts['views']}: {done.stderr.decode(errors='replace')[-2000:]}")
        self.judge(done.stdout.decode(), json.loads(self.notice.read_text()))
        return done.stdout

    def judge(self, view, notice):
        number = self.counts["views"]
        self.counts["views"] += 1
        if notice["history"] or notice["state_reset"] or notice["cannot_fit"]:
            self.faults["notice right"].append(f"view {number}: {notice}")
        if notice["tokens_after"] > notice["usable"] or (notice["compacted"] and notice["tokens_after"] >= notice["tokens_before"]):
            self.faults["notice right"].append(f"view {number}: {notice['tokens_before']} -> {notice['tokens_after']} of {notice['usable']}")
        now, before = elements(view), self.before
        self.before = now
        if notice["compacted"]:
            self.counts["passes"] += 1
        if before is None:
            return
        same = next((i for i, (a, b) in enumerate(zip(before, now)) if a != b), min(len(before), len(now)))
        self.counts["bytes"] += sum(len(m.encode()) for m in before)
        self.counts["kept"] += sum(len(m.encode()) for m in before[:same])
        if not notice["compacted"]:
            self.counts["calm"] += 1
            if same < len(before):
                self.faults["prefix kept while calm"].append(f"view {number}: message {same} of {len(before)} changed without a pass:\n    was {before[same][:300]}\n    now {now[same][:300] if same < len(now) else '(gone)'}")
        elif notice["first_changed"] is None or same < min(notice["first_changed"], len(before)):
            self.faults["prefix kept by a pass"].append(f"view {number}: changed from message {same} on, notice says {notice['first_changed']}")

    # -- recalls --

    def recall(self, reference):
        """Answers the model's call, and holds the answer against what the loop itself remembers."""
        asked, seen_in = self.provider.script.recalls[-1]
        assert asked == reference
        self.counts["recalls" if seen_in else "note recalls"] += 1
        where = ["--transcript", self.full, "--state", self.state, "--store", self.store, reference]
        done = self.program("recall", *where)
        if done.returncode != 0:
            self.faults["recall exact"].append(f"{reference} (seen in {seen_in}): exit {done.returncode}: {done.stderr.decode(errors='replace')[-300:]}")
            return f"recall failed: {reference}", {""}
        text = done.stdout.decode()
        if fault := self.result_fault(seen_in, text) if seen_in else self.note_fault(text):
            self.faults["recall exact"].append(f"{reference} (seen in {seen_in}): {fault}")
        page = self.program("recall", *where, "--limit", PAGE).stdout
        if not done.stdout.startswith(page) or len(page) < min(PAGE - 3, len(done.stdout)) or len(page) > PAGE:
            self.faults["recall exact"].append(f"{reference}: --limit {PAGE} gave {len(page)} of {len(done.stdout)} bytes")
        return page.decode(), {page.decode(), text}

    def result_fault(self, call, text):
        wanted = self.known.get(call_key(*call), set())
        if text not in wanted:
            return f"{len(text)} characters {text[:120]!r}, not the original of {[len(w) for w in wanted]} characters"

    def note_fault(self, text):
        """A note yields the messages it covers, one a line, in their order; or, when it names one result, that result."""
        if any(text in texts for texts in self.known.values()):
            return None
        all_messages = [json.dumps(m, sort_keys=True) for m in json.loads(self.full.read_bytes())["messages"]]
        try:
            lines = [json.dumps(json.loads(line), sort_keys=True) for line in text.rstrip("\n").split("\n")]
        except ValueError as error:
            return f"not JSON lines ({error}): {text[:200]!r}"
        at = 0
        for number, line in enumerate(lines):
            try:
                at = all_messages.index(line, at) + 1
            except ValueError:
                return f"line {number + 1} of {len(lines)} is no message of the transcript after message {at}: {line[:200]}"
        return None if lines else "empty"

    # -- tools --

    def perform(self, name, arguments):
        """(text, failed) of one call of the model."""
        if name == RECALL_TOOL:
            answer, accepted = self.recall(next(iter(arguments.values())))
            self.known.setdefault(call_key(name, json.dumps(arguments)), set()).update(accepted)
            return answer, False
        text, failed = run_tool(name, arguments["n"])
        self.known[call_key(name, json.dumps(arguments))] = {text}
        return text, failed


def call_key(name, arguments):
    return name, json.dumps(json.loads(arguments), sort_keys=True)


def drive_chat(run, provider, turns, messages):
    client = openai.OpenAI(api_key="none", base_url=provider.url + "/v1", max_retries=0, http_client=httpx2.Client(transport=run))
    tools = [{"type": "function", "function": {"name": name, "description": about, "parameters": PARAMETERS}} for name, about in ABOUT.items()]
    tasks = iter(TASKS * turns)
    messages += [{"role": "system", "content": SYSTEM}, {"role": "user", "content": next(tasks)}]
    while provider.script.tool_turns < turns:
        answer = client.chat.completions.create(model="scripted", messages=messages, tools=tools, max_completion_tokens=OUTPUT)
        run.last_input = answer.usage.prompt_tokens
        message = answer.choices[0].message
        messages.append(message.model_dump(exclude_none=True))
        for call in message.tool_calls or []:
            text, _ = run.perform(call.function.name, json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": text})
        if not message.tool_calls:
            messages.append({"role": "user", "content": next(tasks)})


def drive_messages(run, provider, turns, messages):
    client = anthropic.Anthropic(api_key="none", base_url=provider.url, max_retries=0, http_client=httpx2.Client(transport=run))
    tools = [{"name": name, "description": about, "input_schema": PARAMETERS} for name, about in ABOUT.items()]
    system = [{"type": "text", "text": SYSTEM, "cache_control": {"type": "ephemeral"}}]
    tasks = iter(TASKS * turns)
    messages.append({"role": "user", "content": next(tasks)})
    while provider.script.tool_turns < turns:
        answer = client.messages.create(model="scripted", system=system, messages=messages, tools=tools, max_tokens=OUTPUT, thinking={"type": "enabled", "budget_tokens": THINKING})
        usage = answer.usage
        run.last_input = usage.input_tokens + (usage.cache_read_input_tokens or 0) + (usage.cache_creation_input_tokens or 0)
        messages.append({"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in answer.content]})
        results = []
        for block in answer.content:
            if block.type == "tool_use":
                text, failed = run.perform(block.name, block.input)
                results.append({"type": "tool_result", "tool_use_id": block.id, "content": text, **({"is_error": True} if failed else {})})
        messages.append({"role": "user", "content": results or next(tasks)})


PROTOCOLS = {"chat": (drive_chat, "chat", False), "chat-reused-ids": (drive_chat, "chat", True), "messages": (drive_messages, "messages", False)}


def play(binary, name, turns, window, seed):
    """Runs one protocol; prints what happened; returns (passed, failed)."""
    drive, protocol, reuse_ids = PROTOCOLS[name]
    provider = Provider(protocol, window, seed, reuse_ids)
    with tempfile.TemporaryDirectory(prefix="foreshorten-sdk-") as folder:
        run, messages = Run(binary, protocol, provider, Path(folder), window), []
        try:
            drive(run, provider, turns, messages)
        except (openai.APIError, anthropic.APIError, SystemExit) as error:
            run.faults["request accepted"].append(str(error))
        whole = sum(provider.count(m) for m in messages)
    provider.close()
    run.faults["request accepted"] += [r for r in provider.refusals if r not in str(run.faults["request accepted"])]
    if len(set(provider.heads)) > 1 or (provider.heads and RECALL_TOOL not in provider.heads[0]):
        run.faults["head unchanged"].append(f"{len(set(provider.heads))} different heads (tools and system); the recall tool belongs to the first already")
    c, recalls = run.counts, run.counts["recalls"] + run.counts["note recalls"]
    ends = {f"{turns} tool-using turns": provider.script.tool_turns >= turns, "passes when the whole outgrew the window": c["passes"] > 0 or whole < window, "recalls when something was put away": recalls > 0 or not c["passes"] or turns < 50}
    print(f"\n{name}: {provider.script.tool_turns} tool-using turns, {len(provider.inputs)} requests, whole conversation {whole} tokens, window {window}")
    print(f"  passes {c['passes']}, largest prompt {max(provider.inputs, default=0)}, cached {100 * sum(provider.cached) // max(1, sum(provider.inputs))}% of {sum(provider.inputs)} prompt tokens, "
          f"bytes kept {100 * c['kept'] / max(1, c['bytes']):.1f}%, calm views {c['calm']}, recalls {c['recalls']} of results and {c['note recalls']} of notes")
    for what, fine in ends.items():
        print(f"  {'ok  ' if fine else 'FAIL'}  {what}")
    for what, faults in run.faults.items():
        print(f"  {'FAIL' if faults else 'ok  '}  every {what}" + (f" ({len(faults)} times not)" if faults else ""))
        for fault in faults[:3]:
            print(f"        {fault}")
    verdicts = [*ends.values(), *(not f for f in run.faults.values())]
    return sum(verdicts), len(verdicts) - sum(verdicts)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary", help="the foreshorten program")
    parser.add_argument("--turns", type=int, default=200)
    parser.add_argument("--protocol", choices=[*PROTOCOLS, "all"], default="all")
    parser.add_argument("--window", type=int, default=16_000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    binary = shutil.which(args.binary) or parser.error(f"no program {args.binary}")
    scores = [play(binary, name, args.turns, args.window, args.seed) for name in (PROTOCOLS if args.protocol == "all" else [args.protocol])]
    passed, failed = map(sum, zip(*scores))
    print(f"\n{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
