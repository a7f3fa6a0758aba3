"""What one turn of lovia 0.9.119 costs, by CPU time, and how large its state is: the other side of goals 1, 2 and 4.

    lovia_times.py [--entries 50000] [--calls 9] [--first 3]

The session is the workload of workload.py, as long as asked for. Measured are, with three stages and a window of 200,000 tokens
(`default`), without summaries in a window that a pass leaves room in (`clear`), and in a window that never fills (`below`):

    first_ms   compact() on the whole session with no state: the least of `--first` tries
    warm_ms    compact() with one more turn and the state of the call before, of calls that decide nothing: the least of `--calls`,
               and `warm_median_ms`. As its runner does, each call is given a copy of the list of entries, which is timed
    state      bytes of the state as JSON, and the CPU time to write and to read it: the least of seven

Times are CPU time of the thread, so that others on the machine disturb less. Prints one JSON object.
"""

import argparse
import asyncio
import json
import statistics
import sys
import time

from lovia.context import ClearToolResults, Compaction, CompactionRequest, OffloadToolResults
from lovia.context.prompts import REQUIRED_SECTIONS
from lovia.transcript import AssistantTextEntry, InputEntry, ToolCallEntry, ToolResultEntry, to_json_safe
from record import summary
from workload import Workload


class Summarizer:
    made = 0

    async def summarize(self, entries, *, req, prior_summary=None):
        self.made += 1
        return summary(REQUIRED_SECTIONS, self.made)


class Provider:
    name, model, supports_json_schema = "stub", "stub-model", False

    def context_window(self):
        return None


def entries_of(messages):
    for message in messages:
        match message["role"]:
            case "tool":
                yield ToolResultEntry(call_id=message["tool_call_id"], output=message["content"])
            case "assistant":
                yield AssistantTextEntry(content=message["content"])
                for call in message["tool_calls"]:
                    function = call["function"]
                    yield ToolCallEntry(call_id=call["id"], name=function["name"], arguments=function["arguments"])
            case role:
                yield InputEntry(role=role, content=message["content"])


def cpu_ms(act):
    start = time.thread_time()
    result = act()
    return (time.thread_time() - start) * 1e3, result


def policy_of(case, weight):
    match case:
        case "below":
            return Compaction(context_window=10 * weight + 100_000, summarizer=Summarizer())
        case "clear":
            stages = [OffloadToolResults(), ClearToolResults()]
            return Compaction(context_window=weight * 9 // 10 + 16_384, compact_at=0.85, compact_to=0.30, stages=stages)
        case _:
            return Compaction(context_window=200_000, summarizer=Summarizer())


def measure(case, options):
    loop = asyncio.new_event_loop()
    workload, record = Workload(), []
    record.extend(entries_of([workload.system()]))
    while len(record) < options.entries:
        record.extend(entries_of(workload.turn()))
    weight = sum(len(getattr(e, "output", "") or getattr(e, "content", "") or getattr(e, "arguments", "")) for e in record)
    weight = weight // 4 + 8 * len(record)
    policy, provider = policy_of(case, weight), Provider()

    def call(scratch):
        given = CompactionRequest(entries=list(record), provider=provider, model="stub-model", scratch=scratch)
        return loop.run_until_complete(policy.compact(given))

    first = []
    for _ in range(options.first):
        scratch = {}
        first.append(cpu_ms(lambda: call(scratch))[0])
    warm, passes = [], 0
    while len(warm) < options.calls and passes < 4 * options.calls:
        record.extend(entries_of(workload.turn()))
        spent, answer = cpu_ms(lambda: call(scratch))
        if answer.compacted:
            passes += 1
        else:
            warm.append(spent)
    write = [cpu_ms(lambda: json.dumps(to_json_safe(scratch), ensure_ascii=False)) for _ in range(7)]
    text = write[0][1]
    read = [cpu_ms(lambda: json.loads(text))[0] for _ in range(7)]
    context = scratch["context"]
    loop.close()
    return {
        "entries": len(record),
        "first_ms": round(min(first), 3),
        "warm_ms": round(min(warm), 4) if warm else None,
        "warm_median_ms": round(statistics.median(warm), 4) if warm else None,
        "warm_calls": len(warm),
        "passes_between": passes,
        "decisions": len(context["offloaded"]) + len(context["cleared"]),
        "covered": context["summary"]["covered"] if context["summary"] else 0,
        "state_bytes": len(text.encode()),
        "state_write_ms": round(min(spent for spent, _ in write), 3),
        "state_read_ms": round(min(read), 3),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--entries", type=int, default=50_000)
    parser.add_argument("--calls", type=int, default=9)
    parser.add_argument("--first", type=int, default=3)
    parser.add_argument("--cases", default="default,clear,below")
    options = parser.parse_args()
    cases = {case: measure(case, options) for case in options.cases.split(",")}
    json.dump({"system": "lovia 0.9.119", "python": sys.version.split()[0], "cases": cases}, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
