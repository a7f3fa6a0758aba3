"""Makes a corpus: fetches the packages of sources.py, cuts chunks, writes them to WORK/SPLIT.jsonl.

    python corpus.py WORK fit
    python corpus.py WORK held
    python corpus.py WORK fresh          at the very end, when tables and scripts do not change any more
    python corpus.py WORK                what the corpora that were made consist of, in Markdown

Chunks have 1 to 8 KB (log-uniform), begin at a line, and are spread evenly over the sources of a group, within a
source over its files. Everything is drawn from a fixed seed. WORK/SPLIT.manifest.json says what was taken.
"""

import collections
import fnmatch
import html
import json
import math
import random
import re
import sys
from pathlib import Path

import fetch
import generate
from sources import BY_LANGUAGE, GROUPS, LANGUAGES, SOURCES, WHAT

SEED = 20261130
# Chunks of one group. Groups of many languages or signs get more to learn from; all groups count the same in the fit.
QUOTA = {"fit": 400, "held": 110, "fresh": 80}
QUOTA_BY_LANGUAGE = {"fit": 800, "held": 170, "fresh": 90}
QUOTA_OF_LAYOUT = {"fit": 500, "held": 110, "fresh": 80}


def quota(group, split):
    return (QUOTA_BY_LANGUAGE if group in BY_LANGUAGE else QUOTA_OF_LAYOUT if group == "layout" else QUOTA)[split]


TAGS = re.compile(r"<script.*?</script>|<style.*?</style>|<[^>]*>", re.S)
# What a translation leaves in English says nothing of its language.
UNTRANSLATED = re.compile(r'<(\w+)[^>]*xml:lang="en"[^>]*>.*?</\1>', re.S)
ENGLISH = re.compile(r"\b(the|of|and|is|to|in|for|that|with|this)\b", re.I)
BLANKS = re.compile(r"[ \t]*\n\s*\n\s*")


def stripped(text):
    """The text between tags, entities resolved."""
    return BLANKS.sub("\n\n", html.unescape(TAGS.sub("", UNTRANSLATED.sub("", text)))).strip()


def values_of(text):
    """What a person reads of a file of messages: the part after the sign of equality."""
    lines = (line.partition("=")[2].strip() if re.match(r"[\w.-]+ ?= ?\S", line) else line.strip() for line in text.split("\n"))
    return "\n".join(line for line in lines if line and not line.startswith(("#", "[")))


def spellings(glob, group):
    """(language, globs): the one glob without a language, or one for each spelling of each language."""
    if "{lang}" not in glob:
        return [("", [glob])]
    return [(codes.split("/")[0], [glob.replace("{lang}", code) for code in codes.split("/")]) for codes in LANGUAGES[group]]


def texts_of(names, globs, rng):
    """Texts of the files that match, in an order drawn by lot. `~` before a glob strips tags."""
    strip = globs[0].startswith("~")
    patterns = [re.compile(fnmatch.translate(glob.lstrip("~"))) for glob in globs]
    found = [path for path, name in names if any(pattern.match(name) for pattern in patterns)]
    rng.shuffle(found)
    for path in found[:120]:
        text = fetch.text_of(path)
        if text and strip:
            text = stripped(text)
        elif text and path.suffix in (".ftl", ".properties"):
            text = values_of(text)
        if text and len(text.encode()) >= 700:
            yield text


def chunk(text, rng):
    data = text.encode()
    want = int(math.exp(rng.uniform(math.log(1000), math.log(8000))))
    at = rng.randrange(max(1, len(data) - want // 2))
    line = data.rfind(b"\n", 0, at) + 1
    # A text of one long line is cut anywhere, but between characters.
    at = line if at - line < 2000 else at
    return data[at : at + want].decode("utf-8", "ignore").lstrip("\ufffd")


def english(piece):
    return len(ENGLISH.findall(piece)) * 12 > len(piece.split())


def cut(texts, quota, rng, foreign):
    """`quota` chunks, going round the texts; a text is not asked for more than it holds. `foreign`: none in English."""
    texts, out, seen = list(texts), [], set()
    for turn in range(40):
        for text in texts:
            if len(out) == quota:
                return out
            if turn and len(text.encode()) < 3000 * turn:
                continue
            piece = chunk(text, rng)
            if len(piece.encode()) >= 700 and len(piece.split()) * 25 >= 25 and piece not in seen and not (foreign and english(piece)):
                seen.add(piece)
                out.append(piece)
    return out


def entries(split, store):
    """(group, source, language, texts) of a split: what packages hold, what commands print, what is generated."""
    prose, code = [], []
    for of, registry, spec, _, groups in SOURCES:
        if of != split:
            continue
        folder = fetch.fetch(registry, spec, store / split)
        names = [(path, path.relative_to(folder).as_posix()) for path in fetch.files_below(folder)] if groups else []
        for group, globs in groups.items():
            for number, glob in enumerate(globs):
                again = f" {number}" if glob in globs[:number] else ""
                for language, patterns in spellings(glob, group):
                    rng = random.Random(f"{SEED} {spec} {glob} {language}")
                    texts = list(texts_of(names, patterns, rng))
                    if group == "prose":
                        prose += texts[:20]
                    if group == "code":
                        code += texts[:20]
                    if texts:
                        yield group, f"{registry} {spec} {glob}{again}", language, texts
    rng = random.Random(f"{SEED} {split}")
    words = generate.Words(rng, prose, code)
    libraries = sorted(path for path in (store / split).rglob("*.so") if path.is_file() and path.stat().st_size > 100_000)
    archives = sorted(path for path in (store / split).glob("*/*") if path.suffix in (".whl", ".tgz", ".deb"))
    (emoji_table,) = (store / "all/npm-unicode-emoji-json@0.9.0/files").rglob("data-ordered-emoji.json")
    emoji = json.loads(emoji_table.read_text())
    for group, name, text in generate.commands(split, store / split, libraries):
        yield group, name, "", [text]
    for group, made in [
        ("logs", generate.logs(split, rng, words)),
        ("layout", generate.layout(split, rng, words, emoji)),
        ("hex", generate.hexes(split, rng, words, libraries)),
        ("base64", generate.bases(split, rng, words, libraries, archives)),
    ]:
        for name, text in made:
            yield group, name, "", [text]


def describe(work):
    made = {split: json.loads((work / f"{split}.manifest.json").read_text()) for split in QUOTA if (work / f"{split}.manifest.json").exists()}
    cell = lambda pairs: f"{sum(count for count, _ in pairs)} ({sum(size for _, size in pairs) // 1000} kB)"
    print(f"| group | what | {' | '.join(made)} |\n|---|---|{'--:|' * len(made)}")
    for group in GROUPS:
        print(f"| {group} | {WHAT[group]} | {' | '.join(cell([manifest['taken'][group]]) for manifest in made.values())} |")
    print(f"| all | | {' | '.join(cell(manifest['taken'].values()) for manifest in made.values())} |")
    print("\n| split | registry | package | file | licence |\n|---|---|---|---|---|")
    for manifest in made.values():
        print("\n".join(manifest["packages"]))


def main():
    work = Path(sys.argv[1])
    if len(sys.argv) == 2:
        return describe(work)
    split = sys.argv[2]
    store = work / "packages"
    # Side by side, so that commands have a tree to look at.
    (store / split).mkdir(parents=True, exist_ok=True)
    fetch.fetch_debs([spec for of, registry, spec, *_ in SOURCES if (of, registry) == (split, "deb")], store / split)
    fetch.fetch("npm", "unicode-emoji-json@0.9.0", store / "all")
    by_group = collections.defaultdict(list)
    for group, source, language, texts in entries(split, store):
        by_group[group].append((source, language, texts))
    taken = {}
    with open(work / f"{split}.jsonl", "w") as out:
        for group in GROUPS:
            found = by_group[group]
            left = quota(group, split)
            taken[group] = [0, 0]
            # The poorest first, so that what they cannot give goes to the others.
            found.sort(key=lambda entry: (sum(map(len, entry[2])), entry[:2]))
            for done, (source, language, texts) in enumerate(found):
                rng = random.Random(f"{SEED} {split} {group} {source} {language}")
                pieces = cut(texts, math.ceil(left / (len(found) - done)), rng, group in BY_LANGUAGE)
                left -= len(pieces)
                for piece in pieces:
                    record = {"split": split, "group": group, "source": source, "language": language, "text": piece}
                    out.write(json.dumps(record, ensure_ascii=False) + "\n")
                    taken[group][0] += 1
                    taken[group][1] += len(piece.encode())
    packages = [f"| {split} | {registry} | {spec} | {fetch.version_of(registry, spec, store / split)} | {licence} |"
                for of, registry, spec, licence, _ in SOURCES if of == split]  # fmt: skip
    (work / f"{split}.manifest.json").write_text(json.dumps({"taken": taken, "packages": packages}))
    print(f"{split}: {sum(count for count, _ in taken.values()):,} chunks, {sum(size for _, size in taken.values()):,} bytes")


if __name__ == "__main__":
    main()
