"""The long session every policy is driven over: 601 turns of an agent with tools, from one seed.

    workload.py OUT.jsonl [--turns 600]       writes it: one line a turn, {"messages": [...]}
    workload.py --check FOLDER [--turns 600]  compares it, message by message, with what the generator in FOLDER gives

The first line is the system prompt and one turn, and no call is made after it; every later line is one turn, and one model
call follows it. FOLDER holds the peer's own bench scripts (`common.py`, which needs `lovia`): the workload is theirs, described
here anew, so that a comparison does not rest on a session of our choice.
"""

import argparse
import hashlib
import json
import random
import sys

SEED = 7
TURNS = 600
# SHA-256 of the file of 600 turns: whoever changes the generator by accident hears of it.
DIGEST = "9043fa2a3389609e68e8e710dfc9343781f1169d285865806681e765377a7733"

VOCABULARY = (
    "error build parse index query server module token commit branch value return async await cargo match struct trait "
    "result option panic thread buffer stream socket packet header json field schema table column row /usr/lib/x.so "
    "src/main.rs 0x7ffe 127.0.0.1 200 404 TODO fixme warn info"
).split()


class Workload:
    """Turns, one after another. The order in which random numbers are drawn is part of what it is."""

    def __init__(self, seed: int = SEED):
        self.random = random.Random(seed)
        self.counter = 0
        self.made = 0
        self.pool = " ".join(self.random.choice(VOCABULARY) for _ in range(200_000))

    def _text(self, least: int, most: int) -> str:
        length = self.random.randint(least, most)
        start = self.random.randint(0, len(self.pool) - length - 1)
        return f"{self.counter}:{self.pool[start : start + length]}"

    def system(self) -> dict:
        return {"role": "system", "content": "You are a coding agent. " * 40}

    def turn(self) -> list[dict]:
        """Every fifth turn a user's message; then a text with one to three calls, and their results of 2 to 8 kB."""
        self.made += 1
        self.counter += 1
        messages = []
        if self.made % 5 == 1:
            messages.append({"role": "user", "content": self._text(80, 600)})
        said = self._text(60, 500)
        ids = []
        for _ in range(self.random.choice((1, 1, 1, 2, 3))):
            self.counter += 1
            ids.append(f"call_{self.counter:08d}")
        calls = []
        for call in ids:
            arguments = json.dumps({"cmd": self._text(20, 160)})
            calls.append({"id": call, "type": "function", "function": {"name": "run", "arguments": arguments}})
        messages.append({"role": "assistant", "content": said, "tool_calls": calls})
        for call in ids:
            messages.append({"role": "tool", "content": self._text(2_000, 8_000), "tool_call_id": call})
        return messages


def lines(turns: int = TURNS) -> list[list[dict]]:
    """The messages of every line."""
    workload = Workload()
    first = [workload.system(), *workload.turn()]
    return [first, *(workload.turn() for _ in range(turns))]


def encode(message: dict) -> str:
    """A message as it goes over the wire, and as all policies are measured."""
    return json.dumps(message, ensure_ascii=False, separators=(",", ":"))


def write(path: str, turns: int) -> None:
    digest = hashlib.sha256()
    with open(path, "w", encoding="utf-8") as out:
        for messages in lines(turns):
            line = '{"messages":[' + ",".join(map(encode, messages)) + "]}\n"
            digest.update(line.encode())
            out.write(line)
    if turns == TURNS and digest.hexdigest() != DIGEST:
        sys.exit(f"{path}: the workload has changed: its SHA-256 is {digest.hexdigest()}, where {DIGEST} is expected")


def check(folder: str, turns: int) -> None:
    sys.path.insert(0, folder)
    from common import Gen, wire  # the peer's

    theirs = Gen()
    entries = theirs.build(2)
    for at, messages in enumerate(lines(turns)):
        if at > 0:
            entries = theirs.turn()
        ours, expected = [encode(message) for message in messages], wire(entries)
        if ours != expected:
            sys.exit(f"turn {at + 1} differs:\n  here   {ours}\n  theirs {expected}"[:2_000])
    print(f"{turns + 1} turns are the same, byte for byte")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("out", nargs="?")
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--check", metavar="FOLDER")
    options = parser.parse_args()
    if options.check:
        check(options.check, options.turns)
    elif options.out:
        write(options.out, options.turns)
    else:
        parser.error("where to? Give a file, or --check FOLDER")


if __name__ == "__main__":
    main()
