"""What all drivers in Python share: the workload, the provider's count, and the trace that `foreshorten-peer bill` reads.

A trace is one JSON object a line. The first names the policy; each later one is a request, given as what changed:

    {"keep": 12, "messages": ["{...}", ...], "pass": false, "summaries": [[input bytes, output bytes], ...]}

`keep` messages are those of the request before. The bytes of a request are its messages with one byte between them.
"""

import json
import sys

SUMMARY_CHARS = 4_000
RESERVE = 16_384
# What fills a summary: words, since a tokenizer does not take a run of one letter for text.
FILLER = "what was done so far is noted here, and what is still to do; "


def summary(sections, number: int) -> str:
    """The stub's answer: the sections asked for, in SUMMARY_CHARS characters, different each time."""
    text = "".join(f"{section}\nfold {number}\n" for section in sections) or f"fold {number} "
    return (text + FILLER * (SUMMARY_CHARS // len(FILLER) + 1))[:SUMMARY_CHARS]


def read_workload(path: str) -> list[list[dict]]:
    with open(path, encoding="utf-8") as lines:
        return [json.loads(line)["messages"] for line in lines]


def encode(message: dict) -> str:
    return json.dumps(message, ensure_ascii=False, separators=(",", ":"))


def size(messages: list[str]) -> int:
    """Bytes of a request: its messages, and one byte between each two."""
    return sum(len(message.encode()) for message in messages) + max(0, len(messages) - 1)


def counted(total: int) -> int:
    """What the provider counts for a request of so many bytes: nine tenths of bytes/4."""
    return total * 9 // 40


class Trace:
    """Writes requests, and answers each with the provider's count."""

    def __init__(self, policy: str, window: int):
        self.before: list[str] = []
        self._line({"policy": policy, "window": window})

    def request(self, messages: list[str], passed: bool, summaries=()) -> int:
        keep = 0
        for old, new in zip(self.before, messages):
            if old != new:
                break
            keep += 1
        self._line({"keep": keep, "messages": messages[keep:], "pass": passed, "summaries": list(summaries)})
        self.before = messages
        return counted(size(messages))

    @staticmethod
    def _line(value: dict) -> None:
        sys.stdout.write(json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n")
