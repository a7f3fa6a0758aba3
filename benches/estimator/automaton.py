"""The byte automaton of core/src/estimate and its repetitions once more, as features of a fit.

Said twice so that each checks the other: score.py compares what both make of every chunk.
"""

import numpy

# The ASCII classes, in order; a byte below 0x80 that is in none is in the one after them.
ASCII = ["aeiou", "tnsrldcm", "bfghpy", "kjzw", "qvx", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789", " ", "\n", "\t\r", "\"'`", "()[]{}",
         ".,;:!?", "_", "-/\\"]  # fmt: skip
# The first byte of each range of continuations, then of leads.
CONTINUATIONS = [0x80, 0x84, 0x90, 0xA4, 0xA6, 0xA8, 0xAA, 0xAC, 0xB0, 0xB2, 0xB4, 0xB6, 0xB8, 0xBC]
LEADS = [0xC0, 0xC3, 0xCB, 0xD0, 0xD4, 0xD8, 0xE0, 0xE1, 0xE2, 0xE3, 0xE4, 0xEA, 0xEE, 0xF0]
OTHER = len(ASCII)
CLASSES = OTHER + 1 + len(CONTINUATIONS) + len(LEADS)
LETTERS, UPPER, DIGIT, SPACE, NEWLINE, TAB, UNDERSCORE = range(5), 5, 6, 7, 8, 9, 13
LEAD = OTHER + 1 + len(CONTINUATIONS)

STATES = ["nl", "sp", "sp2", "tab", "w1", "w2", "w3", "w4", "w5", "u1", "u2", "d1", "d2", "d3", "p1", "p2", "xl", "xd",
          "lat", "greek", "cyr", "cyr2", "armheb", "arab", "arab2", "e0", "e0b", "e1", "e1b", "e2", "e2b", "e3", "e3b",
          "han", "hangul", "f0", "f0b", "snake"]  # fmt: skip
WORD = ("w1", "w2", "w3", "w4", "w5")
MIXED = ("d1", "d2", "d3", "xl", "xd")
OF_LEAD = ["greek", "lat", "greek", "cyr", "armheb", "arab", "e0", "e1", "e2", "e3", "han", "hangul", "hangul", "f0"]


def class_of(byte):
    if byte < 0x80:
        return next((number for number, members in enumerate(ASCII) if chr(byte) in members), OTHER)
    return OTHER + sum(start <= byte for start in CONTINUATIONS + LEADS)


def step(state, c):
    """The state after a byte of class `c`."""
    if c in LETTERS:
        if state in MIXED:
            return "xl"
        vowel = c == 0
        of = {"w1": "w2", "w2": "w3", "w3": "w4" if vowel else "w3", "w4": "w5" if vowel else "w4", "w5": "w5", "u1": "w2", "u2": "w2",
              "lat": "w3"}  # fmt: skip
        return of.get(state, "w1")
    if c == UPPER:
        return "xl" if state in MIXED else "u2" if state in ("u1", "u2") else "u1"
    if c == DIGIT:
        if state in ("d1", "d2"):
            return "d2" if state == "d1" else "d3"
        return "xd" if state in (*WORD, "u1", "u2", "xl", "xd") else "d1"
    if c == SPACE:
        return "sp2" if state in ("sp", "sp2") else "sp"
    if c in (NEWLINE, TAB):
        return "nl" if c == NEWLINE else "tab"
    if c == UNDERSCORE and state in (*WORD, *MIXED, "u1", "u2"):
        return "snake"
    if c <= OTHER:
        return "p2" if state in ("p1", "p2", "snake") else "p1"
    if c < LEAD:
        return state + "b" if state in ("e0", "e1", "e2", "e3", "f0") else state
    to = OF_LEAD[c - LEAD]
    return to + "2" if to in ("cyr", "arab") and state.startswith(to) else to


CLASS = numpy.array([class_of(byte) for byte in range(256)], dtype=numpy.int32)
NEXT = numpy.array([STATES.index(step(state, c)) for state in STATES for c in range(CLASSES)], dtype=numpy.int32)
# What a repetition costs besides has a row for each length, after those of the states, and a column for each kind.
LENGTHS = [3, 4, 5, 9, 17, 33]
CELLS = len(STATES) * CLASSES
ALL_CELLS = CELLS + len(LENGTHS) * CLASSES


def features(chunks):
    """How often each chunk steps through each cell; then how often it repeats what, by length and kind.

    All chunks are walked at once, byte by byte; the longest first, so that those which go on are always the first ones.
    """
    order = sorted(range(len(chunks)), key=lambda at: -len(chunks[at]))
    sizes = numpy.array([len(chunks[at]) for at in order])
    classes = numpy.zeros((sizes[0], len(chunks)), dtype=numpy.uint8)
    for row, at in enumerate(order):
        classes[: sizes[row], row] = CLASS[numpy.frombuffer(chunks[at], dtype=numpy.uint8)]
    path = numpy.zeros(classes.shape, dtype=numpy.int16)
    state = numpy.zeros(len(chunks), dtype=numpy.int32)
    for at in range(sizes[0]):
        on = numpy.searchsorted(-sizes, -at, side="left")
        cell = state[:on] * CLASSES + classes[at, :on]
        path[at, :on] = cell
        state[:on] = NEXT[cell]
    out = numpy.zeros((len(chunks), ALL_CELLS), dtype=numpy.float32)
    for row, at in enumerate(order):
        out[at, :CELLS] = numpy.bincount(path[: sizes[row], row], minlength=CELLS)
        out[at, CELLS:] = repetitions(chunks[at])
    return out


# What repeats: the columns of the rows of lengths. Control characters are the last kind of ASCII.
KINDS = ["abcdefghijklmnopqrstuvwxyz", "A", "BCDEFGHIJKLMNOPQRSTUVWXYZ", "-", "=", "*", "#", ".", "_", "/", "~", "+", ",", ":;!?",
         "\"'`", "()[]{}", "|", "<>", "\\", "$%&@^", "\t\r"]  # fmt: skip
KIND = numpy.array([next((at for at, members in enumerate(KINDS) if chr(byte) in members), len(KINDS)) for byte in range(256)])
TWO_BYTES, TWO_BYTE_SIGN = len(KINDS) + 1, len(KINDS) + 2


def kind_of_three(lead, middle, last):
    """Rules and other signs of boxes; blocks and shades; shapes; punctuation; other symbols; and letters."""
    box, block = (middle == 0x94) | (middle == 0x95), middle == 0x96
    rules = [(middle == 0x94) & (last == 0x80), (middle == 0x94) & (last == 0x81), (middle == 0x95) & (last == 0x90), box]
    bars = [block & (last == 0x81), block & (last < 0x88), block & (last == 0x88), block & (last == 0x91), block & (last < 0xA0)]
    others = [(middle >= 0x96) & (middle <= 0x9B), middle == 0x80, middle >= 0]
    conditions = [lead != 0xE2, *rules, *bars, *others]
    first = TWO_BYTE_SIGN + 1
    return numpy.select(conditions, [first + len(conditions) - 1, *range(first, first + len(conditions) - 1)])


def shifted(values, by):
    """Each position's byte `by` positions before it; 0 before the text."""
    return numpy.concatenate([numpy.zeros(min(by, len(values)), dtype=values.dtype), values[: len(values) - by]])[: len(values)]


def same(values, period):
    """How many in a row, up to each position, equal the one `period` before them."""
    equal = numpy.zeros(len(values), dtype=bool)
    equal[period:] = values[period:] == values[:-period]
    at = numpy.arange(len(values))
    return at - numpy.maximum.accumulate(numpy.where(equal, -1, at))


def repetitions(chunk):
    """The third in a row and later ones, of ASCII bytes other than space, line feed and digit, and of characters of two and of
    three bytes."""
    values = numpy.frombuffer(chunk, dtype=numpy.uint8)
    out = numpy.zeros((len(LENGTHS), CLASSES), dtype=numpy.float32)
    one, two = shifted(values, 1), shifted(values, 2)
    counted = (values < 0x80) & (values != 0x20) & (values != 0x0A) & ~((values >= 0x30) & (values <= 0x39))
    for where, times, kind in [
        (counted, same(values, 1), KIND[values]),
        ((values >= 0x80) & (one >= 0xC0) & (one < 0xE0), same(values, 2) // 2, numpy.where(one == 0xC2, TWO_BYTE_SIGN, TWO_BYTES)),
        ((values >= 0x80) & (two >= 0xE0) & (two < 0xF0), same(values, 3) // 3, kind_of_three(two, one, values)),
    ]:
        at = numpy.flatnonzero(where & (times >= LENGTHS[0] - 1))
        numpy.add.at(out, (numpy.searchsorted(LENGTHS, times[at] + 1, side="right") - 1, kind[at]), 1)
    return out.ravel()
