"""Drives one policy over the workload, turn by turn, and writes the trace of its requests.

    drive.py POLICY WINDOW WORKLOAD

POLICY is one of `nothing`, `drop-oldest`, `keep-newest-3` (what people do without a policy), `lovia`, and `harness-tiered`,
`harness-summarizing`, the two ways in which pydantic-ai-harness's own documentation sets up compaction for a window.
"""

import asyncio
import sys

from record import RESERVE, SUMMARY_CHARS, Trace, counted, encode, read_workload, size, summary


def nothing(window, workload, trace):
    sent = [encode(message) for message in workload[0]]
    for turn in workload[1:]:
        sent = sent + [encode(message) for message in turn]
        trace.request(sent, False)


def groups(messages):
    """Messages that may only go together: a user's, or an assistant's with its results."""
    out = []
    for message in messages:
        if message["role"] == "tool" and out:
            out[-1].append(encode(message))
        else:
            out.append([encode(message)])
    return out


def drop_oldest(window, workload, trace):
    """Each turn as many whole groups as needed go from the front, until the rest is at most 85 % of what is usable."""
    limit = (window - RESERVE) * 85 // 100
    system, body = [encode(workload[0][0])], groups(workload[0][1:])
    for turn in workload[1:]:
        body += groups(turn)
        sizes = [size(group) + 1 for group in body]
        total, gone = size(system) + sum(sizes), 0
        while counted(total) > limit and gone + 1 < len(body):
            total -= sizes[gone]
            gone += 1
        body = body[gone:]
        trace.request(system + [message for group in body for message in group], gone > 0)


def keep_newest(window, workload, trace):
    """Each turn all tool results but the newest three are a stub. Nothing bounds the rest."""
    everything = list(workload[0])
    for turn in workload[1:]:
        everything += turn
        results = [at for at, message in enumerate(everything) if message["role"] == "tool"]
        old = set(results[:-3])
        stub = lambda message: message | {"content": "[Earlier tool result left out.]"}
        trace.request([encode(stub(m) if at in old else m) for at, m in enumerate(everything)], True)


async def lovia(window, workload, trace):
    from lovia.context import Compaction, CompactionRequest
    from lovia.context.prompts import REQUIRED_SECTIONS
    from lovia.providers.openai_chat import entries_to_openai_messages
    from lovia.transcript import AssistantTextEntry, InputEntry, ToolCallEntry, ToolResultEntry

    def entries(message):
        if message["role"] in ("system", "user"):
            return [InputEntry(role=message["role"], content=message["content"])]
        if message["role"] == "tool":
            return [ToolResultEntry(call_id=message["tool_call_id"], output=message["content"])]
        calls = [(call["id"], call["function"]) for call in message["tool_calls"]]
        made = [ToolCallEntry(call_id=id, name=f["name"], arguments=f["arguments"]) for id, f in calls]
        return [AssistantTextEntry(content=message["content"]), *made]

    class Stub:
        """Answers at once with the sections asked for, in so many characters, different each time."""

        calls = 0

        async def summarize(self, entries, *, req, prior_summary=None):
            self.calls += 1
            taken = sum(size([encode(message)]) for message in entries_to_openai_messages(list(entries)))
            pending.append([taken + len(prior_summary or ""), SUMMARY_CHARS])
            return summary(REQUIRED_SECTIONS, self.calls)

    class Provider:
        name, model, supports_json_schema = "stub", "stub-model", False

        def context_window(self):
            return None

    pending: list[list[int]] = []
    policy, provider, scratch, last = Compaction(context_window=window, summarizer=Stub()), Provider(), {}, None
    record = [entry for message in workload[0] for entry in entries(message)]
    for turn in workload[1:]:
        record += [entry for message in turn for entry in entries(message)]
        given = CompactionRequest(
            entries=list(record), provider=provider, model="stub-model", scratch=scratch, last_input_tokens=last
        )
        answer = await policy.compact(given)
        view = answer.entries if answer.changed else record
        last = trace.request([encode(m) for m in entries_to_openai_messages(view)], answer.compacted, pending)
        pending.clear()


async def harness(window, workload, trace, tiered):
    from pydantic_ai.messages import (
        CompactionPart, ModelRequest, ModelResponse, SystemPromptPart, TextPart, ToolCallPart, ToolReturnPart,
        UserPromptPart,
    )
    from pydantic_ai.models import ModelRequestContext, ModelRequestParameters
    from pydantic_ai.models.function import FunctionModel
    from pydantic_ai.tools import RunContext
    from pydantic_ai.usage import RequestUsage, RunUsage
    from pydantic_ai_harness.compaction import ClearToolResults, SummarizingCompaction, TieredCompaction

    pending: list[list[int]] = []
    made = 0

    def summarize(messages, info):
        nonlocal made
        made += 1
        asked = sum(len(str(part.content).encode()) for m in messages for part in m.parts if hasattr(part, "content"))
        pending.append([asked, SUMMARY_CHARS])
        return ModelResponse(parts=[TextPart(content=summary((), made))])

    model = FunctionModel(summarize)
    usable = window - RESERVE
    if tiered:
        # The two tiers of its documentation, with the target at the trigger that the others have.
        tiers = [ClearToolResults(max_tokens=1), SummarizingCompaction(model=model, max_messages=1)]
        policy = TieredCompaction(tiers=tiers, target_fraction=0.85, context_window=usable)
    else:
        policy = SummarizingCompaction(model=model, max_fraction=0.9, keep_messages=20, context_window=usable)

    def recorded(message, count):
        if message["role"] == "system":
            return ModelRequest(parts=[SystemPromptPart(content=message["content"])])
        if message["role"] == "user":
            return ModelRequest(parts=[UserPromptPart(content=message["content"])])
        if message["role"] == "tool":
            id = message["tool_call_id"]
            return ModelRequest(parts=[ToolReturnPart(tool_name="run", content=message["content"], tool_call_id=id)])
        calls = [
            ToolCallPart(tool_name="run", args=call["function"]["arguments"], tool_call_id=call["id"])
            for call in message["tool_calls"]
        ]
        said = counted(size([encode(message)]))
        usage = RequestUsage(input_tokens=count, output_tokens=said) if count else RequestUsage()
        return ModelResponse(parts=[TextPart(content=message["content"]), *calls], usage=usage, model_name="stub")

    def wire(history):
        out = []
        for message in history:
            if isinstance(message, ModelResponse):
                said = "".join(part.content for part in message.parts if isinstance(part, TextPart))
                calls = [
                    {
                        "id": part.tool_call_id,
                        "type": "function",
                        "function": {"name": part.tool_name, "arguments": part.args},
                    }
                    for part in message.parts
                    if isinstance(part, ToolCallPart)
                ]
                out.append({"role": "assistant", "content": said, "tool_calls": calls})
                continue
            for part in message.parts:
                match part:
                    case SystemPromptPart():
                        out.append({"role": "system", "content": part.content})
                    case UserPromptPart() | CompactionPart():
                        out.append({"role": "user", "content": part.content})
                    case ToolReturnPart():
                        out.append({"role": "tool", "content": part.content, "tool_call_id": part.tool_call_id})
                    case other:
                        sys.exit(f"harness: a part that is not known here: {type(other).__name__}")
        return [encode(message) for message in out]

    history = [recorded(message, 0) for message in workload[0]]
    count = 0
    for turn in workload[1:]:
        history += [recorded(message, count) for message in turn]
        context = RunContext(deps=None, model=model, usage=RunUsage(), messages=history)
        request = ModelRequestContext(
            model=model, messages=list(history), model_settings=None, model_request_parameters=ModelRequestParameters()
        )
        before = list(history)
        answer = await policy.before_model_request(context, request)
        # What it decides is kept in the history: the next turn begins from there.
        history = list(context.messages)
        passed = len(before) != len(history) or any(old is not new for old, new in zip(before, history))
        count = trace.request(wire(answer.messages), passed, pending)
        pending.clear()


def main():
    policy, window, path = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    workload, trace = read_workload(path), Trace(policy, window)
    match policy:
        case "nothing":
            nothing(window, workload, trace)
        case "drop-oldest":
            drop_oldest(window, workload, trace)
        case "keep-newest-3":
            keep_newest(window, workload, trace)
        case "lovia":
            asyncio.run(lovia(window, workload, trace))
        case "harness-tiered" | "harness-summarizing":
            asyncio.run(harness(window, workload, trace, policy == "harness-tiered"))
        case other:
            sys.exit(f"no policy {other}; there are: {__doc__}")


if __name__ == "__main__":
    main()
