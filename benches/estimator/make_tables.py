#!/usr/bin/env python3
"""Writes core/src/estimate/tables.rs from the fitted weights.

    python make_tables.py WORK/weights.json > core/src/estimate/tables.rs

The JSON maps "family|symmetric" and "family|safe" to {"table": [44 rows of 44 integers]}: row-major, unit 1/64 token, the last
six rows for repetitions. The safe table is taken: it errs high on purpose.
"""

import json
import sys

ROWS, CLASSES = 44, 44

# Key in the JSON, name in Rust, what it describes. The order is the order in `Family`.
FAMILIES = [
    ("o200k", "O200K", "`o200k_base`: GPT-4o and every OpenAI model after it."),
    ("cl100k", "CL100K", "`cl100k_base`: GPT-4 and GPT-3.5."),
    ("llama3", "LLAMA3", "Llama 3."),
    ("qwen25", "QWEN25", "Qwen 2 to Qwen 3."),
    ("qwen35", "QWEN35", "Qwen 3.5 and later."),
    ("gemma3", "GEMMA3", "Gemma 3, which also stands in for Gemini."),
    ("ctok47", "CLAUDE47", "Claude 4.7 and later, fitted to an unofficial reconstruction of its counts."),
    ("ctok30", "CLAUDE3", "Claude 3 to 4.6, fitted to an unofficial reconstruction of its counts."),
    ("dsv3", "DEEPSEEK", "DeepSeek V3."),
    ("mistral", "MISTRAL", "Mistral's tekken."),
    ("glm47", "GLM", "GLM 4.7."),
]

HEAD = """\
//! Fitted weights, one table a tokenizer family. Written by `benches/estimator/make_tables.py`: do not edit.
//!
//! `table[state * CLASSES + class]` is what a byte of that class costs in that state, in 1/64 token. One line a state;
//! the last six are what repetitions cost besides: a line a length, a column a kind.
"""


def table(key, weights):
    cells = weights[f"{key}|safe"]["table"]
    if len(cells) != ROWS * CLASSES:
        sys.exit(f"{key}: {len(cells)} cells, expected {ROWS * CLASSES}")
    if any(not isinstance(cell, int) or not -128 <= cell <= 127 for cell in cells):
        sys.exit(f"{key}: a cell is not an i8")
    return cells


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as file:
        weights = json.load(file)
    out = [HEAD, "use super::automaton::Weights;"]
    for key, name, what in FAMILIES:
        cells = table(key, weights)
        rows = [cells[at : at + CLASSES] for at in range(0, len(cells), CLASSES)]
        out += ["", f"/// {what}", "#[rustfmt::skip]", f"pub(super) static {name}: Weights = ["]
        out += ["    " + ",".join(map(str, row)) + "," for row in rows]
        out += ["];"]
    print("\n".join(out))


if __name__ == "__main__":
    main()
