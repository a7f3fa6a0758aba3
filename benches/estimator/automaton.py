"""The byte automaton of core/src/estimate/automaton.rs once more, as features of a fit.

Said twice so that each checks the other: score.py compares what both make of every chunk.
"""

import numpy

CLASSES = 37


def class_of(byte):
    char = chr(byte)
    for number, members in enumerate(["aeiou", "tnsrldcmph", "bfgy", "jkqvwxz"]):
        if char in members:
            return number
    if "A" <= char <= "Z":
        return 4
    if "0" <= char <= "9":
        return 5
    for number, members in enumerate([" ", "\n", "\t\r", "\"'`", "()[]{}", ".,;:!?", "_-/\\"], 6):
        if char in members:
            return number
    if byte < 0x80:
        return 13
    # The first byte of each range of continuations, then of leads.
    starts = [0x80, 0x81, 0x84, 0x90, 0xA4, 0xA6, 0xB0, 0xB8, 0xBC, 0xC0, 0xC3, 0xCB, 0xD0, 0xD4, 0xD8, 0xE0, 0xE1,
              0xE2, 0xE3, 0xE4, 0xEA, 0xEE, 0xF0]  # fmt: skip
    return 13 + sum(start <= byte for start in starts)


CLASS = [class_of(byte) for byte in range(256)]
CONTINUATION = range(14, 23)

(NEWLINE, SPACE, SPACES, TAB, WORD) = range(5)
(LONG, UPPER, UPPERS, DIGIT) = range(8, 12)
(PUNCTUATION, PUNCTUATIONS, MIXED_LETTER, MIXED_DIGIT) = range(14, 18)


class Automaton:
    """`mode`: ASCII after a letter with a mark (é, ü, ő) has rows of its own until the end of the line."""

    def __init__(self, four_body=True, mode=False, cyr=2, arab=2):
        self.names, self.mode = {}, mode
        ascii_states = ["nl", "sp", "sp2", "tab", "w1", "w2", "w3", "w4", "w5", "u1", "u2", "d1", "d2", "d3", "p1", "p2", "xl", "xd"]
        names = list(ascii_states) + ["c2", "lat", "greek"]
        names += [f"cyr{i}" for i in range(cyr)] + ["armheb"] + [f"arab{i}" for i in range(arab)]
        names += ["e0", "e0b", "e1", "e1b", "e2", "e2b", "e3", "e3b", "han", "hangul", "ee"]
        names += ["f0", "f0b"] if four_body else ["f0"]
        if mode:
            names += [f"m.{name}" for name in ascii_states if name not in ("nl", "tab")]
        self.state = {name: at for at, name in enumerate(names)}
        self.list = names
        self.cyr, self.arab, self.four_body = cyr, arab, four_body
        self.states = len(names)
        self.next = [[self.state[self.step(name, c)] for c in range(CLASSES)] for name in names]
        # One row more: what a byte that repeats costs besides (`runs`).
        self.cells = (self.states + 1) * CLASSES

    def step(self, name, c):
        marked = name.startswith("m.") or (self.mode and name == "lat")
        pre = "m." if marked else ""
        base = name.removeprefix("m.")
        if c <= 3:
            if base in ("w1", "w2"):
                return pre + {"w1": "w2", "w2": "w3"}[base]
            if base in ("w3", "w4"):
                return pre + (f"w{int(base[1]) + (c == 0)}")
            if base == "w5":
                return pre + "w5"
            if base in ("u1", "u2"):
                return pre + "w2"
            if base in ("d1", "d2", "d3", "xl", "xd"):
                return pre + "xl"
            return pre + ("w3" if base == "lat" else "w1")
        if c == 4:
            if base in ("u1", "u2"):
                return pre + "u2"
            return pre + ("xl" if base in ("d1", "d2", "d3", "xl", "xd") else "u1")
        if c == 5:
            if base in ("d1", "d2"):
                return pre + ("d2" if base == "d1" else "d3")
            if base in ("w1", "w2", "w3", "w4", "w5", "u1", "u2", "xl", "xd"):
                return pre + "xd"
            return pre + "d1"
        if c == 6:
            return pre + ("sp2" if base in ("sp", "sp2") else "sp")
        if c == 7:
            return "nl"
        if c == 8:
            return "tab"
        if c <= 13:
            return pre + ("p2" if base in ("p1", "p2") else "p1")
        if c in CONTINUATION:
            if base in ("e0", "e1", "e2", "e3") or (base == "f0" and self.four_body):
                return base + "b"
            return name
        if c in (26, 28):
            kind, most = ("cyr", self.cyr) if c == 26 else ("arab", self.arab)
            at = int(name[len(kind):]) + 1 if name.startswith(kind) else 0
            return f"{kind}{min(at, most - 1)}"
        return {23: "c2", 24: "lat", 25: "greek", 27: "armheb", 29: "e0", 30: "e1", 31: "e2", 32: "e3", 33: "han",
                34: "hangul", 35: "ee", 36: "f0"}[c]  # fmt: skip

    def count(self, data):
        """How often each cell is stepped through; the last row counts repeated bytes."""
        counts = numpy.zeros(self.cells, dtype=numpy.int32)
        rows = [[self.next[s][CLASS[b]] for b in range(256)] for s in range(self.states)]
        state = 0
        path = []
        for byte in data:
            path.append(state)
            state = rows[state][byte]
        values = numpy.frombuffer(data, dtype=numpy.uint8)
        classes = numpy.array(CLASS)[values]
        numpy.add.at(counts, numpy.array(path, dtype=numpy.int64) * CLASSES + classes, 1)
        numpy.add.at(counts, self.states * CLASSES + kinds(values, runs(values)), 1)
        return counts


# What repeats, by its last byte: the columns of the last row.
KINDS = ["abcdefghijklmnopqrstuvwxyz", "A", "BCDEFGHIJKLMNOPQRSTUVWXYZ", "-", "=", "*", "#", ".", "_", "/", "~", "+", ",", ":;!?",
         "\"'`", "()[]{}", "|", "<>", "\\", "$%&@^", "\t\r"]  # fmt: skip
KIND = numpy.array([next((at for at, members in enumerate(KINDS) if chr(byte) in members), 21) for byte in range(128)]
                   + [22] + 3 * [23] + 12 * [24] + 2 * [25] + 2 * [26] + 16 * [27] + 92 * [28])  # fmt: skip
NOT_E2, FULL_BLOCK, LIGHT_SHADE, OTHER_BLOCK = 29, 30, 31, 32


def kinds(values, at):
    at = numpy.flatnonzero(at)
    last, middle, lead = values[at], values[numpy.maximum(at - 1, 0)], values[numpy.maximum(at - 2, 0)]
    block = numpy.select([last == 0x88, last == 0x91], [FULL_BLOCK, LIGHT_SHADE], OTHER_BLOCK)
    three = numpy.where(lead != 0xE2, NOT_E2, numpy.where(middle == 0x96, block, KIND[last]))
    return numpy.where(last < 0x80, KIND[last], three)


def runs(values):
    """Where something repeats: an ASCII byte other than space, line feed and digit that the three before it equal,
    and the last byte of a three-byte character that the two before it equal."""
    out = numpy.zeros(len(values), dtype=bool)
    if len(values) >= 4:
        same = values[1:] == values[:-1]
        four = same[2:] & same[1:-1] & same[:-2]
        last = values[3:]
        out[3:] = four & (last < 0x80) & (last != 0x20) & (last != 0x0A) & ~((last >= 0x30) & (last <= 0x39))
    if len(values) >= 9:
        again = values[3:] == values[:-3]
        six = again[5:].copy()
        for back in range(1, 6):
            six &= again[5 - back : len(again) - back]
        at = numpy.flatnonzero(six) + 8
        lead = values[at - 2]
        out[at[(lead >= 0xE0) & (lead < 0xF0)]] = True
    return out
