"""Texts that no package holds: logs, layouts, encodings, and what tools print about the packages themselves.

Each split has its own generators and its own commands: a format that was fitted is not scored as new.
"""

import base64
import os
import re
import subprocess
import uuid

LINES = 150_000  # bytes of a generated text at most; chunks are cut from it


def fill(rng, line):
    out, size = [], 0
    while size < LINES:
        out.append(line(rng))
        size += len(out[-1]) + 1
    return "\n".join(out)


class Words:
    """Words and identifiers of real texts of the same split, so that the vocabulary is not ours."""

    def __init__(self, rng, prose, code):
        pick = [word for text in prose for word in text.split() if 2 <= len(word) <= 14 and word.isascii()]
        names = [name for text in code for name in re.findall(r"[A-Za-z_][A-Za-z_0-9]{3,24}", text)]
        self.rng, self.pick, self.names = rng, pick, names

    def word(self):
        return self.rng.choice(self.pick)

    def name(self):
        return self.rng.choice(self.names)

    def phrase(self, low=2, high=9):
        return " ".join(self.word() for _ in range(self.rng.randint(low, high)))

    def path(self):
        parts = [self.name().lower() for _ in range(self.rng.randint(1, 4))]
        return "/" + "/".join(parts) + self.rng.choice([".rs", ".py", ".ts", ".log", ".json", "", ".c"])


def clock(rng):
    return f"{rng.randint(0, 23):02}:{rng.randint(0, 59):02}:{rng.randint(0, 59):02}"


def day(rng):
    return f"20{rng.randint(18, 27)}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"


def address(rng):
    return ".".join(str(rng.randint(1, 254)) for _ in range(4))


def logs(split, rng, words):
    level = ["INFO", "DEBUG", "WARN", "ERROR"]
    months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
    code, big = (lambda r: r.choice([200, 200, 200, 204, 301, 304, 400, 404, 500])), (lambda r: r.randint(100, 99_999))
    lines = {
        "fit": [
            lambda r: f"{r.choice(months)} {r.randint(1, 28):>2} {clock(r)} {words.name().lower()} {words.name()}"
            f"[{r.randint(200, 32000)}]: {words.phrase()}",
            lambda r: f'{address(r)} - - [{r.randint(1, 28):02}/{r.choice(months)}/2026:{clock(r)} +0000] "GET '
            f'{words.path()} HTTP/1.1" {code(r)} {big(r)} "-" "Mozilla/5.0 (X11; Linux x86_64) {words.name()}/{r.randint(1, 120)}.0"',
            lambda r: f'{{"ts":"{day(r)}T{clock(r)}.{r.randint(0, 999):03}Z","level":"{r.choice(level).lower()}",'
            f'"target":"{words.name()}::{words.name()}","msg":"{words.phrase()}","took_ms":{r.randint(0, 4000)}}}',
            lambda r: f"   Compiling {words.name().lower()} v{r.randint(0, 4)}.{r.randint(0, 40)}.{r.randint(0, 9)}"
            if r.random() < 0.6
            else f"warning: unused variable: `{words.name()}`\n  --> {words.path()[1:]}:{r.randint(1, 900)}:{r.randint(1, 80)}\n   |",
        ],
        "held": [
            lambda r: f"{day(r)} {clock(r)},{r.randint(0, 999):03} {r.choice(level):<5} [{words.name()}-{r.randint(1, 16)}] "
            f"org.{words.name().lower()}.{words.name()} - {words.phrase()}",
            lambda r: f"time={day(r)}T{clock(r)}Z level={r.choice(level).lower()} msg=\"{words.phrase()}\" "
            f"{words.name()}={r.randint(0, 9999)} peer={address(r)}:{r.randint(1024, 65535)}",
            lambda r: f"test {words.name().lower()}::{words.name().lower()} ... {r.choice(['ok', 'ok', 'ok', 'FAILED', 'ignored'])}",
        ],
        "fresh": [
            lambda r: f"{r.choice(level)[0]}{r.randint(1, 12):02}{r.randint(1, 28):02} {clock(r)}.{r.randint(0, 999999):06} "
            f"{r.randint(1, 9999):>7} {words.name().lower()}.go:{r.randint(1, 999)}] {words.phrase()}",
            lambda r: f"[{r.random() * 9999:12.6f}] {words.name().lower()} {r.randint(0, 9)}: {words.phrase(2, 6)} 0x{r.getrandbits(32):08x}",
            lambda r: f"{words.path()[1:]}::{words.name()} {r.choice(['PASSED', 'PASSED', 'FAILED', 'SKIPPED'])} [{r.randint(0, 100):>3}%]",
        ],
    }
    return [(f"generated log {at}", fill(rng, line)) for at, line in enumerate(lines[split])]


RUNS = "aexnAZX0----====****####____....//~~++,:;!?\"'()[]{}<>|\\$%&@^█░▒▓■•●─━│═┄"
BOX = "│┃║", "─━═", "┌┏╔", "┐┓╗", "└┗╚", "┘┛╝"


def box(rng, words):
    kind = rng.randrange(3)
    side, rule, *corners = (part[kind] for part in BOX)
    rows = [words.phrase(1, 6) for _ in range(rng.randint(1, 6))]
    width = max(len(row) for row in rows) + rng.randint(2, 30)
    inner = "\n".join(f"{side} {row:<{width - 1}}{side}" for row in rows)
    return f"{corners[0]}{rule * width}{corners[1]}\n{inner}\n{corners[2]}{rule * width}{corners[3]}"


def grid(rng, words, sign):
    widths = [rng.randint(4, 24) for _ in range(rng.randint(2, 6))]
    rule = "+" + "+".join(sign * width for width in widths) + "+"
    row = lambda: "|" + "|".join(f" {words.name()[: width - 2]:<{width - 1}}" for width in widths) + "|"
    return "\n".join([rule, row(), rule.replace(sign, "="), *(row() for _ in range(rng.randint(2, 8))), rule])


def pipes(rng, words):
    columns = rng.randint(2, 6)
    row = lambda: "| " + " | ".join(words.phrase(1, 3) for _ in range(columns)) + " |"
    return "\n".join([row(), "|" + "|".join("-" * rng.randint(3, 18) for _ in range(columns)) + "|", *(row() for _ in range(8))])


def tree(rng, words):
    return "\n".join("│   " * rng.randint(0, 4) + rng.choice(["├── ", "├── ", "└── "]) + words.name() for _ in range(12))


def layout(split, rng, words, emoji):
    some = lambda r, most=4: "".join(r.choice(emoji) for _ in range(r.randint(1, most)))
    lines = {
        "fit": [
            lambda r: f"{r.choice('-=#*_~.+/') * r.choice([3, 5, 8, 20, 40, 60, 72, 79, 80, 100, 120])}\n{words.phrase()}",
            lambda r: box(r, words),
            lambda r: grid(r, words, "-"),
            lambda r: pipes(r, words),
            lambda r: tree(r, words),
            lambda r: f"{some(r)} {words.phrase()} {some(r) if r.random() < 0.3 else ''}",
            lambda r: some(r, 30),
            lambda r: f"{words.word()} {'█' * (n := r.randint(0, 40))}{r.choice('░▒ ') * (40 - n)} {n * 2}/80",
            lambda r: f"{words.name()} [{'#' * (n := r.randint(0, 40))}{'.' * (40 - n)}] {n * 100 // 40}%",
            lambda r: f"{words.phrase(3, 20)}\n{r.choice(RUNS) * r.randint(4, 200)} {words.phrase(0, 9)}",
        ],
        "held": [
            lambda r: f"/{'*' * r.randint(10, 90)}/\n{'//' * r.randint(1, 40)} {words.phrase()}\n{'#' * r.randint(2, 6)} {words.phrase()}",
            lambda r: box(r, words) + "\n" + tree(r, words),
            lambda r: grid(r, words, "-") if r.random() < 0.5 else pipes(r, words),
            lambda r: f"- {some(r, 2)} **{words.phrase(1, 3)}** {words.phrase()}",
            lambda r: f"{words.phrase(1, 3)}: {'█' * (n := r.randint(0, 30))}{'░' * (30 - n)} {n * 100 // 30}%",
            lambda r: " ".join(some(r, 3) for _ in range(20)),
            lambda r: f"{words.phrase(3, 20)}\n{r.choice('~^+:=-*_.━═▁5oO') * r.randint(4, 100)} {words.phrase(0, 9)}",
        ],
        "fresh": [
            lambda r: f"{'=' * r.randint(10, 70)} {words.phrase(1, 3)} {'=' * r.randint(10, 70)}",
            lambda r: f"{words.phrase(1, 4)} {'.' * r.randint(5, 60)} {r.randint(1, 400)}",
            lambda r: f"{box(r, words)}\n{pipes(r, words)}",
            lambda r: f"{words.phrase(3, 12)} {some(r, 3)}{r.choice('!?.')} {words.phrase(1, 8)} {some(r, 2)}",
            lambda r: "\n".join(f"{words.name():<20} {'▇' * r.randint(1, 50)} {r.randint(1, 9999)}" for _ in range(6)),
            lambda r: f"{words.phrase(3, 20)}\n{r.choice('=-#~╌┄━*.◆x%') * r.randint(4, 100)} {words.phrase(0, 9)}",
        ],
    }
    return [(f"generated layout {at}", fill(rng, line)) for at, line in enumerate(lines[split])]


def hexes(split, rng, words, binary):
    digits = lambda r, count: f"{r.getrandbits(4 * count):0{count}x}"
    lines = {
        "fit": [
            lambda r: f"{digits(r, 40)} {words.path()[1:]}",
            lambda r: f'{{"id":"{uuid.UUID(int=r.getrandbits(128))}","sha256":"{digits(r, 64)}"}}',
            lambda r: f"0x{digits(r, 16)}: {' '.join(digits(r, 2) for _ in range(8))}",
            lambda r: digits(r, 64).upper(),
            lambda r: " ".join(f"{r.getrandbits(60)}"[: r.randint(1, 18)] for _ in range(r.randint(1, 12))),
            lambda r: "".join(str(r.randint(0, 9)) for _ in range(r.randint(10, 200))),
        ],
        "held": [
            lambda r: f"{digits(r, 128)}  {words.name()}",
            lambda r: f"{digits(r, 7)} {words.phrase()}",
            lambda r: "".join(str(r.randint(0, 9)) for _ in range(60)) + r.choice(["", ","]),
            lambda r: f"{words.name()}={uuid.UUID(int=r.getrandbits(128))}",
        ],
        "fresh": [
            lambda r: f"{words.name()}@sha512:{digits(r, 96)}",
            lambda r: ":".join(digits(r, 2) for _ in range(r.choice([6, 16, 20]))),
            lambda r: f"#{digits(r, 6)} {words.name()} 0x{digits(r, 8)}",
        ],
    }
    out = [(f"generated hex {at}", fill(rng, line)) for at, line in enumerate(lines[split])]
    dump = {"fit": ["xxd"], "held": ["od", "-A", "x", "-t", "x1"], "fresh": ["xxd", "-p"]}[split]
    return out + [("dump", printed([*dump, str(path)])) for path in binary[:2]]


def bases(split, rng, words, binary, archives):
    random_bytes = lambda r, low, high: r.randbytes(r.randint(low, high))
    parts = []
    # One library, full of zeros, and two archives, which look like pictures and fonts.
    for path in [*binary[:1], *archives[:2]]:
        data = path.read_bytes()
        at = rng.randrange(max(1, len(data) - 40_000))
        text = base64.b64encode(data[at : at + 40_000]).decode()
        width = {"fit": 76, "held": 10**9, "fresh": 64}[split]
        parts.append((f"base64 of {path.name}", "\n".join(text[at : at + width] for at in range(0, len(text), width))))
    code = lambda data: base64.b64encode(data).decode()
    lines = {
        "fit": [
            lambda r: code(random_bytes(r, 57, 57)),
            lambda r: f'{{"name":"{words.name()}","data":"{code(random_bytes(r, 100, 900))}"}}',
            lambda r: f"{words.name()}: {base64.urlsafe_b64encode(random_bytes(r, 20, 60)).decode().rstrip('=')}",
        ],
        "held": [
            lambda r: f'      "integrity": "sha512-{code(random_bytes(r, 64, 64))}",',
            lambda r: f"url(data:font/woff2;base64,{code(random_bytes(r, 300, 2000))})",
        ],
        "fresh": [
            lambda r: ".".join(base64.urlsafe_b64encode(random_bytes(r, 27, 120)).decode().rstrip("=") for _ in range(3)),
            lambda r: f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{code(random_bytes(r, 32, 32))[:43]} {words.name()}@{words.name()}",
            lambda r: f"<img src=\"data:image/png;base64,{code(random_bytes(r, 400, 3000))}\">",
        ],
    }
    return parts + [(f"generated base64 {at}", fill(rng, line)) for at, line in enumerate(lines[split])]


def printed(command, cwd=None):
    env = {**os.environ, "LC_ALL": "C.UTF-8", "TZ": "UTC", "COLUMNS": "120"}
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, timeout=120)
    return done.stdout[:400_000].decode("utf-8", "replace")


def commands(split, folder, binary):
    """Group, name and output of commands run over the packages of a split."""
    shell = lambda line: printed(["bash", "-c", line], cwd=folder)
    library = str(binary[0])
    lines = {
        "fit": [
            ("listings", "ls -lR ./wheel*"), ("listings", "ls -lR --time-style=long-iso ./crate* ./npm*"),
            ("listings", "find . -name '*.py' -o -name '*.rs' | sort"), ("listings", "tar cf - ./npm-lodash* | tar tvf -"),
            ("listings", "du -a ./crate* | tail -3000"),
            ("tools", "grep -rn --include=*.rs 'fn ' . | sort | head -2500"), ("tools", "wc -l $(find . -name '*.ts' | sort)"),
            ("tools", f"readelf -sW {library} | head -2500"), ("tools", f"objdump -d {library} | sed -n 4000,7000p"),
            ("tools", f"readelf -rW {library} | head -1500"), ("tools", f"nm {library} | head -2500"), ("tools", f"strings -n 6 {library} | head -3000"),
            ("tools", "grep -rn -B2 -A2 --include=*.rs unsafe ./crate-tokio* | head -3000"), ("tools", "git diff --no-index --stat ./crate-regex* ./crate-tokio* | head -700"),
            ("tools", "diff -y -W 130 ./npm-rxjs*/files/package/src/internal/{Observable,Subject}.ts"), ("tools", "grep -rl --include=*.py class ./wheel-Django* | xargs wc"),
            ("tools", "sha256sum ./*/*.whl ./*/*.tgz; file $(find . -type f | sort | head -800)"),
            ("listings", "ls -la $(find . -type d | sort | sed -n '1~9p' | head -300)"), ("listings", "find . -type f -ls | sort -k11 | sed -n '1~7p' | head -2000"),
            ("listings", "du -h ./npm* | head -1000"), ("listings", "python3 -m zipfile -l ./wheel-numpy*/*.whl"), ("listings", "ls -R ./npm*"),
            ("tools", "diff -u ./npm-rxjs*/files/package/src/internal/operators/{map,filter}.ts; diff -ru ./crate-regex* ./crate-tokio* | head -3000"),
            ("tools", "grep -rc --include=*.py import ./wheel* | sort"), ("listings", "stat -c '%A %h %U %s %y %n' $(find . -type f | sort | head -1500)"),
            ("logs", "cat /var/log/dpkg.log"), ("logs", "python3 -X importtime -c 'import asyncio, email, http.server, xmlrpc.client' 2>&1"),
            ("hex", "find ./wheel* -type f | sort | head -900 | xargs md5sum"), ("hex", "find ./npm* -type f | sort | head -600 | xargs sha256sum"),
        ],
        "held": [
            ("listings", "ls -la $(find . -type d | sort | head -300)"), ("listings", "find . -type f -ls | head -3000"),
            ("listings", "find ./wheel-SQL* ./npm-svelte* | sort"), ("listings", "du -h ./wheel* | head -1500"),
            ("tools", "grep -rnE -C1 --include=*.py 'raise [A-Z]' ./wheel-SQL* | head -3000"), ("tools", f"nm -D {library} | head -3000"),
            ("tools", f"readelf -rW {library} | head -2000"), ("tools", "git diff --no-index --stat ./crate-hyper* ./crate-clap* | head -900"),
            ("tools", "diff -y -W 120 $(find ./crate-hyper* -name '*.rs' | sort | head -2) | head -900"), ("hex", "find ./wheel* -type f | sort | head -600 | xargs sha1sum"),
        ],
        "fresh": [
            ("listings", "ls -R ./wheel*"), ("listings", "ls -lhS ./*/files/*"), ("listings", "find . -type f -printf '%s %TY-%Tm-%Td %p\\n' | head -3000"),
            ("listings", "python3 -m zipfile -l ./wheel-pandas*/*.whl; tar tvzf ./npm-zod*/*.tgz"),
            ("tools", "grep -rn --include=*.ts 'export ' ./npm-zod* | head -2500"), ("tools", f"objdump -T {library} | head -2500"),
            ("tools", f"strings -n 8 {library} | head -3000"), ("tools", "git diff --no-index $(find ./crate-axum* -name '*.rs' | sort | sed -n '3p;9p') | head -2000"),
            ("tools", "grep -rl --include=*.py async . | sort | xargs wc"), ("logs", "python3 -v -c 'import asyncio, json, http.client' 2>&1 | grep -v ^Python"),
            ("hex", "find ./wheel* -type f | sort | head -500 | xargs sha224sum"),
        ],
    }  # fmt: skip
    return [(group, line, shell(line)) for group, line in lines[split]]
