"""Fits the weights of the automaton to the true counts of the split `fit`, writes WORK/weights.json.

    python fit.py WORK [FAMILY...]

Two tables a family, in 1/64 token: the symmetric one (near the median of the relative error) for reports, and the safe one (a
further price on what is too low, and fitted to somewhat more than the truth) that ships. A quantile is fitted by ridge regression
on relative errors with weights made anew from the errors of the step before; each group of texts counts the same, whatever it has
of chunks. A cell is thought of as the effect of its state plus that of its class plus its own: cells that are seen rarely fall
back on the first two. What repeats is thought of likewise, by length and kind.
"""

import collections
import json
import sys
from pathlib import Path

import numpy

import automaton
import truth
from automaton import ALL_CELLS, CELLS, CLASSES

# Quantiles by group: of the symmetric table, where errors on sources that were not fitted lean to one side; of the safe one, the same
# for all.
QUANTILES = {
    "symmetric": {"": 0.50, "prose": 0.46, "code": 0.48, "markup": 0.45, "tables": 0.52, "logs": 0.52, "tools": 0.43, "hex": 0.45,
                  "cjk": 0.53, "cyrillic": 0.56, "latin": 0.70},
    "safe": {"": 0.60},
}  # fmt: skip
# How much more than the truth the safe table is fitted to, by group: more where a source that was not fitted may be of a kind of its
# own, less where its texts come out high as it is. By family: more where that leaves the mean below 6 %, less where it does not.
MARGIN = {
    "prose": -0.019, "code": 0.007, "markup": -0.02, "json": -0.003, "tables": 0.004, "logs": 0.01, "listings": 0.004, "hex": -0.002,
    "base64": -0.002, "layout": 0.02, "cjk": 0.005, "cyrillic": 0.012, "latin": 0.014, "rtl_indic_thai": 0.008,
}  # fmt: skip
SHIFT = {"o200k": 0.004, "qwen25": 0.003, "qwen35": 0.008, "gemma3": 0.02, "ctok47": 0.006, "dsv3": 0.013, "mistral": 0.019,
         "ctok30": 0.004,
         "cl100k": -0.004, "llama3": -0.019, "glm47": -0.014}  # fmt: skip
# And both at once: paths cost the two Claudes more than others.
BOTH = {("ctok47", "listings"): 0.03, ("ctok30", "listings"): 0.03}
KINDS = ("symmetric", "safe")
# Beyond the first, what an error costs rises: by the second, too low, and by the third, too high.
PRICE = {"symmetric": (0.07, 1, 1), "safe": (0.05, 6, 0)}
# Errors smaller than the floor count by their square.
STEPS, FLOOR = 9, 0.03
# Strength of the ridge on cells, on the effects of states and classes, and on what repeats.
OWN, SHARED, REPEATED = {"symmetric": 2.5e-5, "safe": 1e-4}, 3e-5, 3e-4
UNIT = 64


class Corpus:
    """The chunks of some splits, their features (kept beside the texts) and what they truly count."""

    def __init__(self, work, splits):
        self.records, features = [], []
        for split in splits:
            records = [json.loads(line) for line in open(work / f"{split}.jsonl")]
            texts = [record.pop("text") for record in records]
            for record, text in zip(records, texts):
                record["key"], record["size"] = truth.key(text), len(text.encode())
            self.records += records
            path = work / f"{split}.features.npy"
            if path.exists() and path.stat().st_mtime > (work / f"{split}.jsonl").stat().st_mtime:
                features.append(numpy.load(path))
                assert features[-1].shape == (len(records), ALL_CELLS), f"stale features: remove {path}"
            else:
                features.append(automaton.features([text.encode() for text in texts]))
                numpy.save(path, features[-1])
        self.features = numpy.concatenate(features)
        self.counts = truth.counts_of(work, [record["key"] for record in self.records])
        self.sizes = numpy.array([record["size"] for record in self.records])
        self.splits = numpy.array([record["split"] for record in self.records])
        self.groups = numpy.array([record["group"] for record in self.records])

    def of(self, split, family):
        """Which chunks are of the split and have tokens enough: of next to nothing but blanks, one token is half an error."""
        return (self.splits == split) & (self.counts[family] * 25 >= self.sizes)


def balance(groups):
    """A weight for each chunk, so that groups weigh the same."""
    of = collections.Counter(groups)
    return numpy.array([1 / of[group] for group in groups]) / len(of)


def prior(some, others, own):
    """How much two cells are expected to have in common, in the terms of a ridge: covariance."""
    row, column, repeats = (lambda cells: cells // CLASSES), (lambda cells: cells % CLASSES), (lambda cells: cells >= CELLS)
    pair = lambda of: (of(some)[:, None], of(others)[None])
    (repeats_a, repeats_b), (row_a, row_b), (column_a, column_b) = pair(repeats), pair(row), pair(column)
    alike = (repeats_a == repeats_b) * ((row_a == row_b) * 1.0 + (column_a == column_b) * (1.0 + repeats_a))
    itself = (some[:, None] == others[None]) * 1.0
    return numpy.where(repeats_a, (alike + itself) / REPEATED, alike / SHARED + itself / own) * UNIT**2


class Fit:
    """Fits to some chunks; what does not depend on the family is made once."""

    def __init__(self, features, groups):
        self.seen = numpy.flatnonzero(features.any(0))
        self.features = features[:, self.seen] / numpy.float32(UNIT)
        self.penalty = {kind: numpy.linalg.inv(prior(self.seen, self.seen, OWN[kind])) for kind in KINDS}
        # What no text of the fit has shown is charged as what is most like it; a repetition not at all.
        self.unseen = numpy.setdiff1d(numpy.arange(CELLS), self.seen)
        self.groups, self.group_weight = groups, balance(groups)

    def table(self, tokens, kind, family):
        margin = lambda group: MARGIN.get(group, 0.0) + SHIFT.get(family, 0.0) + BOTH.get((family, group), 0.0) if kind == "safe" else 0.0
        target = tokens * numpy.array([1 + margin(group) for group in self.groups])
        design = self.features / target[:, None].astype(numpy.float32)
        tau = numpy.array([QUANTILES[kind].get(group, QUANTILES[kind][""]) for group in self.groups])
        (beyond, low, high), weight = PRICE[kind], self.group_weight
        for _ in range(STEPS):
            scaled = design * numpy.sqrt(weight)[:, None].astype(numpy.float32)
            ours = design.T @ weight.astype(numpy.float32)
            smooth = numpy.linalg.solve((scaled.T @ scaled).astype(float) + self.penalty[kind], ours.astype(float))
            error = design @ smooth.astype(numpy.float32) - 1
            # The loss rises so at an error: one below zero is an estimate too low.
            slope = numpy.where(error < 0, tau, 1 - tau) + low * (error < -beyond) + high * (error > beyond)
            weight = self.group_weight * slope / numpy.maximum(abs(error), FLOOR)
        table = numpy.zeros(ALL_CELLS, dtype=int)
        start = numpy.clip(numpy.rint(smooth), -128, 127)
        table[self.seen] = self.polish(design, start, smooth, tau, kind)
        guess = prior(self.unseen, self.seen, OWN[kind]) @ self.penalty[kind] @ smooth
        table[self.unseen] = numpy.clip(numpy.rint(guess), -128, 127)
        return table

    def polish(self, design, table, smooth, tau, kind):
        """Moves one cell after another by whole units for as long as the loss falls: rounding and the limits of a
        byte cost accuracy that other cells can win back."""
        error = design.astype(float) @ table - 1
        own, (beyond, low, high) = numpy.where(self.seen < CELLS, OWN[kind], REPEATED), PRICE[kind]
        columns = [(rows, design[rows, cell].astype(float)) for cell in range(len(table)) for rows in [numpy.flatnonzero(design[:, cell])]]
        for step in (8, 4, 2, 1, 1):
            for cell, (rows, column) in enumerate(columns):
                part, w, q = error[rows], self.group_weight[rows], tau[rows]
                loss = lambda e: (w * (numpy.maximum(-q * e, (1 - q) * e) + low * numpy.maximum(-e - beyond, 0) + high * numpy.maximum(e - beyond, 0))).sum()
                before, best = loss(part), None
                for move in (-step, step):
                    value = table[cell] + move
                    if -128 <= value <= 127:
                        new = part + move * column
                        gain = before - loss(new) - own[cell] * ((value - smooth[cell]) ** 2 - (table[cell] - smooth[cell]) ** 2) / UNIT**2
                        if gain > 1e-9 and (best is None or gain > best[0]):
                            best = gain, value, new
                if best:
                    table[cell] = best[1]
                    error[rows] = best[2]
        return table


def estimate(features, table, sizes):
    """As the core counts: the sum to the nearest token, between bytes/128 and bytes."""
    total = numpy.rint(features @ table.astype(numpy.float64)).astype(numpy.int64)
    return numpy.clip((total + UNIT // 2) // UNIT, -(-sizes // 128), sizes)


def main():
    work = Path(sys.argv[1])
    corpus = Corpus(work, ["fit"])
    path = work / "weights.json"
    weights = json.loads(path.read_text()) if path.exists() else {}
    fits = {}
    for family in sys.argv[2:] or corpus.counts:
        chunks = numpy.flatnonzero(corpus.of("fit", family))
        if chunks.tobytes() not in fits:
            fits = {chunks.tobytes(): Fit(corpus.features[chunks], corpus.groups[chunks])}
        (fit,) = fits.values()
        for kind in KINDS:
            weights[f"{family}|{kind}"] = {"table": fit.table(corpus.counts[family][chunks], kind, family).tolist()}
        path.write_text(json.dumps(weights))
        print(f"{family}: fitted to {len(chunks)} chunks", flush=True)


if __name__ == "__main__":
    main()
