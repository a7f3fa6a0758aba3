"""Fits the weights of the automaton to the true counts of the split `fit`, writes WORK/weights.json.

    python fit.py WORK [FAMILY...]

Two tables a family, in 1/64 token: the symmetric one (a little above the median of the relative error) for reports, and the safe
one (a high quantile) that ships. A quantile is fitted by ridge regression on relative errors with weights made anew from the
errors of the step before; each group of texts counts the same, whatever it has of chunks. A cell is the effect of its state
plus that of its class plus its own: cells that are seen rarely fall back on the first two.
"""

import collections
import json
import sys
from pathlib import Path

import numpy

import truth
from automaton import CLASSES, Automaton

AUTOMATON = Automaton()
# Quantiles of the symmetric and of the safe table, by group. Where most of what is fitted of a language is messages and
# manuals, and other prose costs more, they are higher; where the languages of a group differ most, lower.
QUANTILES = {"": (0.55, 0.89), "cjk": (0.62, 0.88), "cyrillic": (0.58, 0.86), "latin": (0.68, 0.91), "rtl_indic_thai": (0.52, 0.82)}
KINDS = ("symmetric", "safe")
STEPS, FLOOR = 9, 0.01
# Strength of the ridge on cells, and on the effects of states and classes.
OWN, SHARED = 3e-4, 1e-4
UNIT = 64


def load(work, automaton=AUTOMATON, name="features"):
    """Records without texts, features and sizes; features are kept beside the corpus."""
    records = [json.loads(line) for line in open(work / "corpus.jsonl")]
    path = work / f"{name}.npz"
    if path.exists():
        features = numpy.load(path)["features"]
    else:
        features = numpy.stack([automaton.count(record["text"].encode()) for record in records])
        numpy.savez_compressed(path, features=features)
    assert features.shape == (len(records), automaton.cells), "stale features: remove WORK/features.npz"
    return records, features


def blank(tokens, size):
    """Chunks of next to nothing but blanks: one token is already more than half an error."""
    return tokens * 25 < size


def balance(groups):
    """A weight for each chunk, so that groups weigh the same."""
    of = collections.Counter(groups)
    return numpy.array([1 / of[group] for group in groups]) / len(of)


def fit(features, tokens, groups, kind, own=OWN, shared=SHARED, cells_of=None):
    cells = cells_of or AUTOMATON.cells
    rows = numpy.arange(cells) // CLASSES
    states = cells // CLASSES
    # Cell, state and class side by side.
    design = features / tokens[:, None] / UNIT
    by_state = numpy.stack([design[:, rows == state].sum(1) for state in range(states)], 1)
    by_class = numpy.stack([design[:, c : cells - CLASSES : CLASSES].sum(1) for c in range(CLASSES)], 1)
    design = numpy.concatenate([design, by_state, by_class], 1)
    ridge = numpy.concatenate([numpy.full(cells, own), numpy.full(states + CLASSES, shared)]) / UNIT**2
    group_weight = balance(groups)
    tau = numpy.array([QUANTILES.get(group, QUANTILES[""])[KINDS.index(kind)] for group in groups])
    weight = group_weight.copy()
    for _ in range(STEPS):
        scaled = design * weight[:, None]
        theta = numpy.linalg.solve(scaled.T @ design + numpy.diag(ridge), scaled.sum(0))
        error = design @ theta - 1
        # Quantile loss: an error below zero is an estimate too low.
        weight = group_weight * numpy.where(error < 0, tau, 1 - tau) / numpy.maximum(abs(error), FLOOR)
    cell = theta[:cells] + theta[cells + rows]
    cell[: cells - CLASSES] += numpy.tile(theta[cells + states :], states - 1)
    seen = features.sum(0) > 0
    # What no text of the fit has shown is charged as what is most like it: its class and its state.
    cell[cells - CLASSES :][~seen[cells - CLASSES :]] = 0
    table = numpy.clip(numpy.rint(cell), -128, 127)
    return polish(features / tokens[:, None] / UNIT, table, cell, group_weight, tau, own, seen).astype(int)


def polish(design, table, smooth, weight, tau, own, seen):
    """Moves one cell after another by whole units for as long as the loss falls: rounding and the limits of a
    byte cost accuracy that other cells can win back."""
    error = design @ table - 1

    for step in (8, 4, 2, 1, 1):
        for cell in numpy.flatnonzero(seen):
            column = design[:, cell]
            rows = numpy.flatnonzero(column)
            column, part, w, q = column[rows], error[rows], weight[rows], tau[rows]
            best = None
            for move in (-step, step):
                value = table[cell] + move
                if -128 <= value <= 127:
                    new = part + move * column
                    gain = (w * (numpy.maximum(-q * part, (1 - q) * part) - numpy.maximum(-q * new, (1 - q) * new))).sum()
                    gain -= own * ((value - smooth[cell]) ** 2 - (table[cell] - smooth[cell]) ** 2) / UNIT**2
                    if gain > 1e-9 and (best is None or gain > best[0]):
                        best = gain, value, new
            if best:
                table[cell] = best[1]
                error[rows] = best[2]
    return table


def estimate(features, table, sizes):
    """As the core counts: the sum to the nearest token, between bytes/128 and bytes."""
    total = features.astype(numpy.int64) @ table
    return numpy.clip((total + UNIT // 2) // UNIT, -(-sizes // 128), sizes)


def main():
    work = Path(sys.argv[1])
    records, features = load(work)
    counts = truth.counts_of(work, records)
    sizes = numpy.array([len(record["text"].encode()) for record in records])
    path = work / "weights.json"
    weights = json.loads(path.read_text()) if path.exists() else {}
    for family in sys.argv[2:] or counts:
        tokens = counts[family]
        keep = numpy.array([record["split"] == "fit" for record in records]) & ~blank(tokens, sizes)
        groups = [record["group"] for record, kept in zip(records, keep) if kept]
        for kind in KINDS:
            table = fit(features[keep].astype(float), tokens[keep].astype(float), groups, kind)
            weights[f"{family}|{kind}"] = {"table": table.tolist()}
        path.write_text(json.dumps(weights))
        print(f"{family}: fitted to {keep.sum()} chunks", flush=True)


if __name__ == "__main__":
    main()
