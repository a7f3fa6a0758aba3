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
            lambda r: f"{r.choice(level)[0]}{r.randint(1, 12):02}{r.randint(1, 28):02} {clock(r)}.{r.randint(0, 999999):06} "
            f"{r.randint(1, 9999):>7} {words.name().lower()}.go:{r.randint(1, 999)}] {words.phrase()}",
            lambda r: f"{words.path()[1:]}::{words.name()} {r.choice(['PASSED', 'PASSED', 'FAILED', 'SKIPPED'])} [{r.randint(0, 100):>3}%]",
            lambda r: f"[Wed {r.choice(months)} {r.randint(1, 28):02} {clock(r)}.{r.randint(0, 999999):06} 2026] [{words.name().lower()}:{r.choice(level).lower()}] "
            f"[pid {r.randint(100, 99999)}:tid {r.getrandbits(46)}] [client {address(r)}:{big(r)}] AH{r.randint(0, 9999):05}: {words.phrase()}",
            lambda r: f"{clock(r)}.{r.randint(0, 999):03} [{words.name().lower()}-{r.randint(1, 64)}] {r.choice(level):<5} c.{words.name()[0].lower()}.{words.name()} - {words.phrase()}",
            lambda r: f"{words.name().lower()}_{r.randint(1, 4)}  | {day(r)}T{clock(r)}.{r.getrandbits(29):09}Z {words.phrase(2, 12)}",
            lambda r: f"Collecting {words.name().lower()}=={r.randint(0, 9)}.{r.randint(0, 40)}\n  Downloading {words.name().lower()}-{r.randint(0, 9)}.{r.randint(0, 40)}"
            f".{r.randint(0, 9)}-py3-none-any.whl ({r.randint(1, 999)} kB)",
            lambda r: f"asset {words.name()}.{r.getrandbits(32):08x}.js {r.random() * 900:.1f} KiB [emitted] [immutable] (name: {words.name()}) {r.randint(1, 40)} related assets",
            lambda r: f"{r.randint(0, 59)}m{r.randint(0, 59)}s  {r.choice(['Normal', 'Warning'])}  {words.name()}  pod/{words.name().lower()}-{r.getrandbits(36):x}  {words.phrase()}",
            lambda r: f"{day(r).replace('-', '/')} {clock(r)} [{r.choice(level).lower()}] {r.randint(100, 9999)}#0: *{r.randint(1, 99999)} "
            f"{words.phrase(2, 7)}, client: {address(r)}, server: {words.name().lower()}.example, request: \"POST {words.path()} HTTP/2.0\"",
            lambda r: f"[{r.choice(level)}] {words.phrase(1, 6)} @ {words.name()}.{words.name()}({words.name()}.java:{r.randint(10, 999)})",
            lambda r: f"--- {r.choice(['PASS', 'PASS', 'FAIL', 'SKIP'])}: Test{words.name()}/{words.name()} ({r.random() * 3:.2f}s)\n"
            f"    {words.name().lower()}_test.go:{r.randint(9, 600)}: {words.phrase(2, 8)}",
            lambda r: f"{r.choice(months)} {r.randint(1, 28):02} {clock(r)} {words.name().lower()} kernel: [{r.random() * 99999:.6f}] IN={words.name()[:5].lower()} OUT= MAC={':'.join(f'{r.randint(0, 255):02x}' for _ in range(14))} "
            f"SRC={address(r)} DST={address(r)} LEN={r.randint(40, 1500)} TOS=0x00 PREC=0x00 TTL={r.randint(1, 255)} ID={r.randint(0, 65535)} PROTO=TCP SPT={big(r)} DPT={r.randint(1, 65535)}",
            lambda r: f"{r.choice(months)} {r.randint(1, 28):2} {clock(r)} {words.name().lower()} postfix/{words.name().lower()}[{r.randint(100, 99999)}]: {r.getrandbits(44):011X}: to=<{words.name().lower()}@{words.name().lower()}.example>, "
            f"relay={words.name().lower()}[{address(r)}]:25, delay={r.random() * 9:.2f}, delays=0.0{r.randint(1, 9)}/0/0.{r.randint(1, 9)}/0.{r.randint(1, 9)}, dsn=2.0.0, status=sent ({words.phrase(1, 4)})",
            lambda r: f'Started {r.choice(["GET", "POST"])} "{words.path()}" for {address(r)} at {day(r)} {clock(r)} +0000\nProcessing by {words.name().title()}Controller#{words.name().lower()} as {r.choice(["HTML", "JSON"])}\n'
            f"Completed {code(r)} OK in {r.randint(1, 900)}ms (Views: {r.random() * 90:.1f}ms | ActiveRecord: {r.random() * 9:.1f}ms)",
            lambda r: f"thread '{words.name().lower()}::{words.name().lower()}' panicked at {words.path()[1:]}:{r.randint(1, 900)}:{r.randint(1, 60)}:\nassertion `left == right` failed: {words.phrase(1, 6)}\n  left: {r.randint(0, 999)}\n right: {words.name()}",
            lambda r: f"frame={r.randint(1, 99999):5} fps={r.randint(1, 240):3} q={r.random() * 30:.1f} size={r.randint(1, 999999):>8}kB time=00:{r.randint(0, 59):02}:{r.random() * 59:05.2f} bitrate={r.random() * 4000:.1f}kbits/s speed={r.random() * 9:.2f}x",
            lambda r: f"[{r.randint(1, 900)}/{r.randint(900, 2000)}] {r.choice(['Building CXX object', 'Linking CXX static library', 'Generating'])} {words.path()[1:]}/CMakeFiles/{words.name()}.dir/{words.name()}.cpp.o",
            lambda r: f'{{"t":{{"$date":"{day(r)}T{clock(r)}.{r.randint(0, 999):03}+00:00"}},"s":"{r.choice("IWED")}","c":"{words.name().upper()}","id":{r.randint(10000, 9999999)},"ctx":"conn{r.randint(1, 9999)}","msg":"{words.phrase(2, 6)}","attr":{{"{words.name()}":{r.getrandbits(30)},"remote":"{address(r)}:{big(r)}"}}}}',
            lambda r: f"64 bytes from {address(r)}: icmp_seq={r.randint(1, 999)} ttl={r.randint(30, 64)} time={r.random() * 200:.{r.randint(1, 3)}f} ms",
            lambda r: f"{words.path()[1:]}:{r.randint(1, 2000)}:{r.randint(1, 120)}: {r.choice(['error', 'warning', 'note'])}: {words.phrase(2, 9)} [{r.choice(['-W', 'E0', 'no-'])}{words.name().lower()}]\n  {r.randint(1, 2000):>4} |     {words.name()}({words.name()}, {words.name()});\n       |     {'^' * r.randint(1, 20)}",
        ],
        "held": [
            lambda r: f"{day(r)} {clock(r)},{r.randint(0, 999):03} {r.choice(level):<5} [{words.name()}-{r.randint(1, 16)}] "
            f"org.{words.name().lower()}.{words.name()} - {words.phrase()}",
            lambda r: f"time={day(r)}T{clock(r)}Z level={r.choice(level).lower()} msg=\"{words.phrase()}\" "
            f"{words.name()}={r.randint(0, 9999)} peer={address(r)}:{r.randint(1024, 65535)}",
            lambda r: f"test {words.name().lower()}::{words.name().lower()} ... {r.choice(['ok', 'ok', 'ok', 'FAILED', 'ignored'])}",
            lambda r: f"[{r.random() * 9999:12.6f}] {words.name().lower()} {r.randint(0, 9)}: {words.phrase(2, 6)} 0x{r.getrandbits(32):08x}",
            lambda r: f"{r.randint(1_500_000_000, 1_900_000_000)}.{r.randint(0, 999):03} {address(r)} {r.choice(['TCP_MISS', 'TCP_HIT', 'NONE'])}/{code(r)} "
            f"{big(r)} CONNECT {words.name().lower()}:443 - HIER_DIRECT/{address(r)}",
        ],
        "fresh": [
            lambda r: f"{day(r)} {clock(r)}.{r.randint(0, 999):03} UTC [{r.randint(100, 99999)}] {words.name().lower()}@{words.name().lower()} {r.choice(['LOG', 'ERROR', 'STATEMENT', 'DETAIL'])}:  "
            f"{words.phrase(3, 9)}, duration: {r.random() * 900:.3f} ms",
            lambda r: f"#{r.randint(4, 30)} [{words.name().lower()} {r.randint(1, 9)}/{r.randint(9, 14)}] {r.choice(['RUN', 'COPY', 'ADD'])} {words.phrase(1, 4)} {words.path()}\n"
            f"#{r.randint(4, 30)} sha256:{r.getrandbits(256):064x} {r.random() * 90:.2f}MB / {r.random() * 90:.2f}MB {r.random() * 60:.1f}s done",
            lambda r: f"{day(r)}T{clock(r)}.{r.getrandbits(23):07}Z {r.choice(['', '', '##[group]', '##[error]', '##[warning]'])}{words.phrase(2, 10)}",
            lambda r: f"<{r.randint(0, 191)}>1 {day(r)}T{clock(r)}.{r.randint(0, 999999):06}+0{r.randint(0, 9)}:00 {words.name().lower()} {words.name()} {r.randint(1, 65535)} ID{r.randint(1, 99)} "
            f'[{words.name()}@{r.randint(1, 99999)} {words.name()}="{r.randint(0, 9999)}" {words.name()}="{words.word()}"] {words.phrase(2, 7)}',
            lambda r: "\n".join(["Traceback (most recent call last):", *(f'  File "{words.path()}", line {r.randint(1, 2000)}, in {words.name()}\n    {words.name()}.{words.name()}({words.name()}={words.name()})'
            for _ in range(r.randint(1, 5))), f"{words.name()}Error: {words.phrase(2, 8)}"]),
            lambda r: f"  {r.choice('+~-')} {words.name().lower()} = {r.choice([f'{chr(34)}{words.name()}{chr(34)}', '(known after apply)', 'true', 'null', str(r.randint(1, 9000))])}\n"
            f"{words.name().lower()}.{words.name().lower()}[{r.randint(0, 9)}]: {r.choice(['Creating...', 'Refreshing state...', 'Still creating...'])} [id={words.name().lower()}-{r.getrandbits(32):08x}]",
            lambda r: f"  {r.choice('✓✓✓✕')} {words.phrase(2, 8)} ({r.randint(1, 900)} ms)" if r.random() < 0.8 else f" {r.choice(['PASS', 'FAIL'])}  {words.path()[1:]} ({r.random() * 20:.3f} s)",
        ],
    }
    return [(f"generated log {at}", fill(rng, line)) for at, line in enumerate(lines[split])]


RARE = ("╌┄┈╍┅⋯…◇◆○◎●▪▫▸▹▶▷►◀☆★✦✧✱❖♦♥♣♠♪·•‣⁃∙∘∗≡≈∼―–—‾¯¤§¶†‡°¨«»‹›⎯▔▀▄▌▐▖╱╲╳█▓▒░→←↑↓⇒➜➤✓✔✗✘⠿⣿⣀│║┊═─━▁▂▃▅▆▇□■△▲▽▼"
        "〜～＝－＊＃・。、ー一口〇¦÷×±√∞≤≥≠∑∂∆☐☑☒☀☁☎☺⚙⚡⌘⏎↵⇧⌥")  # fmt: skip
RUNS = "aexnAZX0----====****####____....//~~++,:;!?\"'()[]{}<>|\\$%&@^█░▒▓■•●─━│═┄▇▆▃▁╌·★◆→"


def long(rng):
    """A length of a run: as many between 2 and 4 as between 64 and 128."""
    return int(2 ** rng.uniform(1, 7))


def steady(choices):
    """One of the choices for some thirty calls on end: a text of one kind of rule tells more than one of all kinds."""
    state = {"left": 0}

    def pick(rng):
        if state["left"] == 0:
            state.update(left=rng.randint(10, 50), choice=rng.choice(choices))
        state["left"] -= 1
        return state["choice"]

    return pick


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


def psql(rng, words):
    widths = [rng.randint(5, 24) for _ in range(rng.randint(2, 5))]
    row = lambda: " " + " | ".join(f"{words.name()[:width]:<{width}}" for width in widths)
    rows = [row() for _ in range(rng.randint(1, 8))]
    return "\n".join([row(), "-" + "-+-".join("-" * width for width in widths) + "-", *rows, f"({len(rows)} rows)\n"])


def layout(split, rng, words, emoji):
    signs = [steady(RUNS) for _ in range(7)]
    rare = [steady(RARE)]
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
            # Rules and bars of every length, with words around them: what a run costs depends on both.
            lambda r: f"{(c := signs[0](r)) * long(r)} {words.phrase(1, 3)} {c * long(r)}",
            lambda r: f"{words.phrase(1, 4)} {signs[1](r) * long(r)} {r.randint(1, 400)}",
            lambda r: f"{words.phrase(1, 6)}\n{signs[2](r) * long(r)}",
            lambda r: " ".join(signs[3](r) * long(r) for _ in range(9)),
            lambda r: f"{words.phrase(1, 9)}\n{(c := signs[4](r)) * long(r)}{words.word()}{c * long(r)}",
            lambda r: "\n".join(f"{words.name():<20} {signs[5](r) * long(r)} {r.randint(1, 9999)}" for _ in range(6)),
            lambda r: f"{signs[6](r) * int(2 ** r.uniform(4, 7))}\n{words.phrase(1, 5)}",
            lambda r: "\n".join(f"{words.name():<20} {'▇' * r.randint(1, 50)} {r.randint(1, 9999)}" for _ in range(6)),
            lambda r: f"{words.phrase(3, 12)} {some(r, 3)}{r.choice('!?.')} {words.phrase(1, 8)} {some(r, 2)}",
            lambda r: f"{box(r, words)}\n{pipes(r, words)}",
            lambda r: f"#{'-' * (n := r.randint(8, 76))}\n# {words.phrase(1, 5)}\n#{'-' * n}",
            lambda r: f"{words.phrase(1, 3):*^{r.randint(20, 80)}}",
            lambda r: f"{r.randint(0, 100):>3}%|{'▓' * (n := r.randint(0, 50))}{'·' * (50 - n)}| {r.randint(0, 99)}/{r.randint(100, 999)} {words.phrase(1, 3)}",
            lambda r: f"╭{'─' * (n := r.randint(6, 90))}╮\n│ {words.phrase(1, 4)}\n├{'╌' * n}┤\n╰{'─' * n}╯",
            lambda r: "\n".join(f"{'|   ' * r.randint(0, 4)}{r.choice(['|-- ', '`-- '])}{words.name()}" for _ in range(10)),
            lambda r: f"{some(r, 2)} {words.name()} {'★' * (n := r.randint(0, 5))}{'☆' * (5 - n)} {words.phrase(0, 4)}",
            lambda r: f"{words.phrase(3, 20)}\n{r.choice(':+<>!_,yz▆◇▸') * r.randint(4, 90)} {words.phrase(0, 9)}",
            # Rare signs share the price of their kind: as many of them as there are.
            lambda r: f"{words.phrase(1, 9)}\n{rare[0](r) * long(r)} {words.phrase(1, 9)}",
            lambda r: f"{r.choice(RARE)} {words.phrase(1, 9)} {r.choice(RARE)} {words.name()}",
            lambda r: f"|{'|'.join(r.choice(['---', ':---:', '---:', ':--']) for _ in range(r.randint(2, 6)))}|\n|{'|'.join(f' {words.phrase(1, 3)} ' for _ in range(r.randint(2, 6)))}|",
            lambda r: f"{r.choice('>*-+')} {words.phrase(2, 9)}\n{'  ' * r.randint(1, 3)}{r.choice('*-+')} `{words.name()}`: {words.phrase(1, 9)}",
            lambda r: f"[{day(r)}] {'▓' * (n := r.randint(0, 20))}{'▒' * (20 - n)} {n * 5}% │ {words.phrase(1, 4)}",
            lambda r: f"{words.phrase(1, 4)}{'.' * r.randint(3, 70)}{r.choice(['ok', 'done', 'failed', 'OK', 'yes', 'no'])}",
            lambda r: "".join(r.choice("......x,EF") * r.randint(1, 40) for _ in range(r.randint(1, 9))) + f" {words.name()}",
            lambda r: f"{words.phrase(1, 3):{r.choice('=-*#~.')}^{r.randint(30, 100)}}\n{words.phrase(1, 9)}",
        ],
        "held": [
            lambda r: f"/{'*' * r.randint(10, 90)}/\n{'//' * r.randint(1, 40)} {words.phrase()}\n{'#' * r.randint(2, 6)} {words.phrase()}",
            lambda r: box(r, words) + "\n" + tree(r, words),
            lambda r: grid(r, words, "-") if r.random() < 0.5 else pipes(r, words),
            lambda r: f"- {some(r, 2)} **{words.phrase(1, 3)}** {words.phrase()}",
            lambda r: f"{words.phrase(1, 3)}: {'█' * (n := r.randint(0, 30))}{'░' * (30 - n)} {n * 100 // 30}%",
            lambda r: " ".join(some(r, 3) for _ in range(20)),
            lambda r: f"{words.phrase(3, 20)}\n{r.choice('~^+:=-*_.━═▁5oO') * r.randint(4, 100)} {words.phrase(0, 9)}",
            lambda r: f"{'=' * r.randint(10, 70)} {words.phrase(1, 3)} {'=' * r.randint(10, 70)}",
            lambda r: f"{words.phrase(1, 4)} {'.' * r.randint(5, 60)} {r.randint(1, 400)}",
            lambda r: f"{words.phrase(3, 20)}\n{r.choice('=-#~╌┄━*.◆x%') * r.randint(4, 100)} {words.phrase(0, 9)}",
            lambda r: f"{words.name():_<{r.randint(20, 60)}}{r.randint(1, 9999):_>8}",
            lambda r: f"  {'.' * r.randint(2, 70)}s{'.' * r.randint(2, 20)}F{'.' * r.randint(1, 30)} [{r.randint(1, 100):>3}%]",
            lambda r: f"{words.phrase(1, 4)}\n{r.choice('=~^-') * r.randint(4, 50)}\n\n{words.phrase(6, 20)}",
        ],
        "fresh": [
            lambda r: "\n".join(f"{'│ ' * r.randint(0, 3)}{r.choice(['├─┬ ', '├── ', '└─┬ ', '└── '])}{words.name().lower()}@{r.randint(0, 20)}.{r.randint(0, 30)}.{r.randint(0, 9)}" for _ in range(9)),
            lambda r: psql(r, words),
            lambda r: (lambda widths: "\n".join([rule := "  ".join("=" * width for width in widths), *("  ".join(f"{words.name()[:width]:<{width}}" for width in widths) for _ in range(r.randint(2, 8))), rule]))(
                [r.randint(4, 28) for _ in range(r.randint(2, 5))]),
            lambda r: f"## {some(r, 1)} {words.phrase(1, 5)}\n\n- [{r.choice('x ')}] {words.phrase(2, 9)}\n- [{r.choice('x ')}] {some(r, 1)} **{words.phrase(1, 3)}**: {words.phrase(2, 9)}\n\n> {words.phrase(3, 12)}\n\n---\n",
            lambda r: f"╔{'═' * (a := r.randint(4, 40))}╤{'═' * (b := r.randint(4, 40))}╗\n║ {words.name()[:a - 2]:<{a - 2}} │ {words.name()[:b - 2]:<{b - 2}} ║\n╟{'─' * a}┼{'─' * b}╢\n"
            f"║ {words.name()[:a - 2]:<{a - 2}} │ {words.name()[:b - 2]:<{b - 2}} ║\n╚{'═' * a}╧{'═' * b}╝",
            lambda r: f"     {'━' * (n := r.randint(0, 40))}{r.choice('╸╺')}{'━' * (40 - n)} {r.random() * 90:.1f}/{r.random() * 900:.1f} MB {r.random() * 20:.1f} MB/s eta 0:{r.randint(0, 59):02}:{r.randint(0, 59):02}",
            lambda r: f"    {words.word().title()} [{'=' * (n := r.randint(0, 26))}>{' ' * (26 - n)}] {r.randint(1, 300)}/{r.randint(300, 500)}: {words.name().lower()}, {words.name().lower()}(build)...",
            lambda r: f"{words.name():>18} {'█' * r.randint(0, 40)}{r.choice('▏▎▍▌▋▊▉')} {r.random() * 100:.1f}",
            lambda r: f"/* {'-' * (n := r.randint(3, 34))} {words.phrase(1, 3)} {'-' * n} */\n{words.phrase(2, 9)};\n{r.choice(['//', '##', ';;', '--', '%%'])}{r.choice('=-~/#*') * r.randint(10, 76)}",
            lambda r: "\n".join(" ".join(r.choice("....123*?#") for _ in range(r.randint(8, 30))) for _ in range(6)) + f"\n{words.phrase(1, 6)}",
            lambda r: f"{r.choice('⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏✔✖ℹ⚠')} {words.phrase(2, 8)}{r.choice(['...', '', ' ›'])} {words.name()}",
            lambda r: f"{(title := words.phrase(1, 5))}\n{r.choice(chr(34) + chr(39) + '^`~+.:_') * len(title)}\n\n{words.phrase(4, 25)}",
            lambda r: f"    {words.name()[0]}[{words.phrase(1, 3)}] {r.choice(['-->', '-.->', '==>', '---'])}|{words.word()}| {words.name()[0]}{{{words.phrase(1, 3)}}}",
            lambda r: f"{words.phrase(2, 12)}\n\n{r.choice(['* * *', '-' * 60, '⁂', '~' * 40, '· · ·', '_' * 50, '❦', '※' * 20, '—' * 30, '¯' * 40, '＝' * 20, '◈' * 12, '╾' * 30])}\n",
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
            lambda r: ":".join(digits(r, 2) for _ in range(r.choice([6, 16, 20]))),
            lambda r: ", ".join(f"0x{digits(r, 2)}" for _ in range(12)) + ",",
            lambda r: f"{':'.join(digits(r, 4) for _ in range(8))}/{r.randint(1, 128)} dev {words.name().lower()}",
            lambda r: f"index {digits(r, 10)}..{digits(r, 10)} 100644 {words.path()}",
            lambda r: f"{words.name()}-{digits(r, 8)}.{r.choice(['js', 'css', 'map'])} {r.getrandbits(40)}",
        ],
        "held": [
            lambda r: f"{digits(r, 128)}  {words.name()}",
            lambda r: f"{digits(r, 7)} {words.phrase()}",
            lambda r: "".join(str(r.randint(0, 9)) for _ in range(60)) + r.choice(["", ","]),
            lambda r: f"{words.name()}={uuid.UUID(int=r.getrandbits(128))}",
            lambda r: f"{words.name()}@sha512:{digits(r, 96)}",
            lambda r: f"#{digits(r, 6)} {words.name()} 0x{digits(r, 8)}",
            lambda r: f"{{{str(uuid.UUID(int=r.getrandbits(128))).upper()}}} {words.phrase(1, 4)}",
        ],
        "fresh": [
            lambda r: f"{r.choice('*|')} {digits(r, 8)} ({r.choice(['HEAD -> ', 'tag: ', 'origin/'])}{words.name().lower()}) {words.phrase(2, 8)}",
            lambda r: f"100{r.choice(['644', '755'])} blob {digits(r, 40)} {r.randint(1, 90000):>7}\t{words.path()[1:]}",
            lambda r: f"{r.choice(['rax', 'rbx', 'rcx', 'rdx', 'rsi', 'rdi', 'rbp', 'rsp', 'r8', 'r12', 'rip'])}            0x{digits(r, r.randint(1, 16))}      {r.getrandbits(r.randint(4, 48))}",
            lambda r: "b'" + "".join(f"\\x{digits(r, 2)}" for _ in range(r.randint(8, 40))) + "'",
            lambda r: f'      "{words.name()}": "0x{digits(r, r.choice([40, 64]))}",',
            lambda r: f"{r.randint(0, 255):02x}:{r.randint(0, 31):02x}.{r.randint(0, 7)} {words.phrase(1, 3)} [{digits(r, 4)}]: {words.phrase(1, 5)} [{digits(r, 4)}:{digits(r, 4)}] (rev {digits(r, 2)})",
            lambda r: f"{r.randint(1, 99999)},{uuid.UUID(int=r.getrandbits(128))},{words.name()},{r.getrandbits(33)},{r.random():.6f}",
        ],
    }
    out = [(f"generated hex {at}", fill(rng, line)) for at, line in enumerate(lines[split])]
    dumps = {"fit": [["xxd"], ["xxd", "-p"], ["od", "-t", "x4"]], "held": [["od", "-A", "x", "-t", "x1"], ["hexdump", "-C"]],
             "fresh": [["xxd", "-u", "-c", "32"], ["od", "-A", "d", "-t", "x2z"]]}[split]  # fmt: skip
    return out + [(f"{' '.join(dump)} of {path.name}", printed([*dump, str(path)])) for dump in dumps for path in binary[:2]]


def bases(split, rng, words, binary, archives):
    random_bytes = lambda r, low, high: r.randbytes(r.randint(low, high))
    parts = []
    # One library, full of zeros, and two archives, which look like pictures and fonts.
    for path in [*binary[:1], *archives[:2]]:
        data = path.read_bytes()
        at = rng.randrange(max(1, len(data) - 40_000))
        text = base64.b64encode(data[at : at + 40_000]).decode()
        for width in {"fit": [76, 10**9], "held": [64], "fresh": [70]}[split]:
            parts.append((f"base64 of {path.name} by {width}", "\n".join(text[at : at + width] for at in range(0, len(text), width))))
    code = lambda data: base64.b64encode(data).decode()
    lines = {
        "fit": [
            lambda r: code(random_bytes(r, 57, 57)),
            lambda r: f'{{"name":"{words.name()}","data":"{code(random_bytes(r, 100, 900))}"}}',
            lambda r: f"{words.name()}: {base64.urlsafe_b64encode(random_bytes(r, 20, 60)).decode().rstrip('=')}",
            # Texts and zeros, not only random bytes.
            lambda r: code(words.phrase(10, 100).encode()),
            lambda r: code(b"".join(random_bytes(r, 0, 9) + bytes(r.randint(0, 40)) for _ in range(9))),
            lambda r: ".".join(base64.urlsafe_b64encode(random_bytes(r, 27, 120)).decode().rstrip("=") for _ in range(3)),
            lambda r: f"Authorization: Basic {code(random_bytes(r, 12, 40))}\nSet-Cookie: {words.name()}={base64.urlsafe_b64encode(random_bytes(r, 30, 90)).decode()}",
            lambda r: f"-----BEGIN RSA PRIVATE KEY-----\n" + "\n".join(code(random_bytes(r, 48, 48)) for _ in range(r.randint(9, 25))) + "\n-----END RSA PRIVATE KEY-----",
            lambda r: f"h1:{code(random_bytes(r, 32, 32))} {words.path()[1:]}",
        ],
        "held": [
            lambda r: f'      "integrity": "sha512-{code(random_bytes(r, 64, 64))}",',
            lambda r: f"url(data:font/woff2;base64,{code(random_bytes(r, 300, 2000))})",
            lambda r: f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{code(random_bytes(r, 32, 32))[:43]} {words.name()}@{words.name()}",
            lambda r: f"<img src=\"data:image/png;base64,{code(random_bytes(r, 400, 3000))}\">",
            lambda r: f"//# sourceMappingURL=data:application/json;base64,{code(words.phrase(20, 200).encode())}",
        ],
        "fresh": [
            lambda r: f"  {words.name().lower()}: {code(random_bytes(r, 6, 400))}",
            lambda r: f'<script src="{words.path()}" integrity="sha384-{code(random_bytes(r, 48, 48))}" crossorigin="anonymous"></script>',
            lambda r: f"{words.name()}={code(random_bytes(r, 60, 500)).replace('+', '%2B').replace('/', '%2F').replace('=', '%3D')}&{words.name()}={words.word()}",
            lambda r: "-----BEGIN OPENSSH PRIVATE KEY-----\n" + (lambda text: "\n".join(text[at : at + 70] for at in range(0, len(text), 70)))(code(b"openssh-key-v1\0" + random_bytes(r, 380, 1800))) + "\n-----END OPENSSH PRIVATE KEY-----",
            lambda r: f"Cookie: session={base64.urlsafe_b64encode(random_bytes(r, 40, 200)).decode()}; {words.name()}={r.getrandbits(64):016x}",
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
    # The libraries of Cython have other names and texts in them than those of C.
    library, other, another = str(binary[0]), str(binary[len(binary) // 2]), str(binary[len(binary) * 3 // 4])
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
            ("listings", "ls -lhS ./*/files/*"), ("listings", "find . -type f -printf '%s %TY-%Tm-%Td %p\\n' | head -3000"),
            ("tools", "cat -n $(find ./wheel-Django* -name '*.py' -size +4k | sort | sed -n '1~97p' | head -40)"),
            ("tools", "head -n 15 $(find ./npm-rxjs* -name '*.ts' | sort | sed -n '1~29p' | head -60)"),
            ("tools", "grep -rn -A3 --include=*.py '    def ' ./wheel-pandas* | head -2500"), ("tools", "dpkg -l | head -1500"),
            ("tools", "apt-cache show $(ls -d deb-* | sed 's/^deb-//' | head -60)"),
            ("tools", "git diff --no-index ./npm-rxjs*/files/package/dist/esm ./npm-rxjs*/files/package/dist/cjs | head -4000"),
            ("tools", "grep -rho --include=*.py 'import .*' . | sort | uniq -c | sort -rn | head -2500"),
            ("tools", f"readelf -lW {other}; readelf -VW {other}; ldd {other}"), ("tools", "grep -rhoE --include=*.h '[A-Z][A-Z0-9_]{6,}' . | sort -u | head -6000"),
            ("tools", "grep -rhoE --include=*.c --include=*.h '[a-z]+_[A-Za-z_0-9]+' . | sort -u | sed -n '1~5p' | head -6000"),
            ("listings", "find . -type d | sort | sed -n '1~3p' | head -2500"), ("listings", "ls -R ./deb-c* ./deb-l*"), ("listings", "du -k -d 6 . | head -2500"),
            ("listings", "stat $(find . -type f | sort | sed -n '1~50p' | head -500)"), ("listings", "ls -lt $(find ./wheel-pandas* -type d | head -150)"),
            ("listings", "tar tzf ./npm-rxjs*/*.tgz; find . -name '*.mo' -size +20k"),
            ("tools", f"strings -n 6 {other} | head -4000"), ("tools", f"nm -D {other}; nm {other} | head -1500"), ("tools", f"readelf -sW {other} | head -1500"),
            ("tools", f"strings -n 10 {another} | head -3000"), ("tools", f"objdump -T {library} | head -2500"), ("tools", "grep -rn --include=*.ts 'export ' ./npm-zod* | head -2500"),
            ("hex", "find ./wheel* -type f | sort | head -900 | xargs md5sum"), ("hex", "find ./npm* -type f | sort | head -600 | xargs sha256sum"),
            ("listings", "ls -1sR ./crate-r* ./npm-d* ./npm-l*"), ("listings", "ls -lnA --full-time $(find . -type d | sort | sed -n '2~5p' | head -250)"),
            ("listings", "du -ab --time ./wheel* | head -2500"), ("listings", "unzip -v ./wheel-rich*/*.whl; dpkg-deb -c ./deb-libdancer2-perl/*.deb"),
            ("listings", "wc -c $(find . -name '*.py' | sort | head -1200)"), ("listings", "wc -c $(find . -name '*.html' -o -name '*.c' | sort | sed -n '1~9p' | head -1200)"),
            ("tools", "grep -rnoE --include=*.py 'def [a-z_]+' ./wheel-rich* | head -2500"), ("tools", f"objdump -p {library} | head -400; objdump -h {library}"),
            ("tools", f"objdump -d --no-show-raw-insn {library} | sed -n 3000,5500p"), ("tools", f"objdump -d --no-show-raw-insn {another} | sed -n 9000,9900p"),
            ("tools", "git diff --no-index --numstat ./crate-rayon* ./crate-axum*"), ("tools", "diff -rq ./npm-immer* ./npm-marked*; diff ./deb-ruby-mustache/files/usr/share/doc/*/* ./deb-luarocks/files/usr/share/doc/*/*"),
            ("tools", "git diff --no-index -U1 $(find ./npm-d3* -name '*.js' -size -20k | sort | sed -n '40p;90p')"), ("tools", "python3 -m dis $(find ./wheel-rich* -name 'text.py') | head -3000"),
            ("listings", "du -h ./wheel-[DSps]* ./deb-[r-w]* | head -1500"), ("listings", "du -h -a ./crate-* | sed -n '1~3p' | head -1500"),
            ("tools", "cksum $(find . -type f | sort | sed -n '1~20p' | head -800)"), ("tools", "sum $(find . -type f | sort | sed -n '5~40p' | head -800)"),
            ("logs", "python3 -m compileall -f -o 2 $(find ./wheel-rich* -name rich -type d) 2>&1"), ("hex", "find ./crate* ./npm* -type f | sort | head -700 | xargs sha384sum"),
        ],
        "held": [
            ("listings", "ls -la $(find . -type d | sort | head -300)"), ("listings", "find . -type f -ls | head -3000"),
            ("listings", "find ./wheel-SQL* ./npm-svelte* | sort"), ("listings", "du -h ./wheel* | head -1500"),
            ("tools", "grep -rnE -C1 --include=*.py 'raise [A-Z]' ./wheel-SQL* | head -3000"), ("tools", f"nm -D {library} | head -3000"),
            ("tools", f"readelf -rW {library} | head -2000"), ("tools", "git diff --no-index --stat ./crate-hyper* ./crate-clap* | head -900"),
            ("tools", "diff -y -W 120 $(find ./crate-hyper* -name '*.rs' | sort | head -2) | head -900"), ("hex", "find ./wheel* -type f | sort | head -600 | xargs sha1sum"),
            ("listings", "ls -R ./wheel*"), ("listings", "tar tvzf ./npm-svelte*/*.tgz"), ("tools", f"strings -n 8 {library} | head -3000"),
            ("tools", "git diff --no-index $(find ./crate-rustls* -name '*.rs' | sort | sed -n '3p;9p') | head -2000"),
            ("tools", "grep -rl --include=*.py async . | sort | xargs wc"), ("logs", "python3 -v -c 'import asyncio, json, http.client' 2>&1 | grep -v ^Python"),
            ("listings", "find . -type f -printf '%M %n %-8u %10s %P\\n' | sort | sed -n '1~5p' | head -2500"), ("tools", "apt-cache depends $(ls -d deb-* | sed 's/^deb-//')"),
            ("tools", f"readelf -SW {library}; readelf -d {library}; objdump -s -j .rodata {library} | head -600"), ("hex", "find ./deb* -type f | sort | head -900 | xargs b2sum -l 160"),
            ("tools", "cksum $(find . -type f | sort | sed -n '1~30p' | head -500)"),
        ],
        "fresh": [
            ("listings", "ls -lR --time-style=+%s ./npm* | head -4000"), ("listings", "ls -liS $(find ./wheel* -type d | sort | sed -n '1~4p' | head -200)"), ("listings", "ls -FC $(find . -type d | sort | sed -n '1~7p' | head -250)"),
            ("listings", "find . -type f -printf '%TY-%Tm-%Td %TH:%TM %9k KB %h/%f\\n' | sort | sed -n '1~9p' | head -2500"), ("listings", "python3 -m tarfile -l ./npm-hono*/*.tgz"),
            ("listings", "dpkg -c ./deb-crawl-common/*.deb | sed -n '1~2p'"), ("listings", "du -d 5 -h --apparent-size . | sort -h | tail -2000"), ("listings", "ls -m $(find ./crate* -type d | sort | head -150)"),
            ("tools", "grep -rnH --include=*.rs 'impl' . | sort | head -2500"), ("tools", f"nm -S --size-sort {library}; nm -C {other} | head -1500"), ("tools", f"objdump -t {other} | head -1500; size -A {other}"),
            ("tools", f"strings -t x -n 7 {another} | head -3000"), ("tools", f"readelf -hln {library}; readelf -sW --dyn-syms {other} | head -1500"), ("tools", f"objdump -d -M intel {another} | sed -n 2000,4500p"),
            ("tools", "diff -c $(find ./crate-nom* -name '*.rs' -size -30k | sort | sed -n '2p;6p'); diff -c $(find ./crate-itertools* -name '*.rs' -size -30k | sort | sed -n '5p;9p')"),
            ("tools", "git diff --no-index --word-diff $(find ./wheel-click* -name '*.py' -size -40k | sort | sed -n '3p;7p')"), ("tools", "nl -ba $(find ./wheel-networkx* -name '*.py' -size +3k | sort | sed -n '1~61p' | head -40)"),
            ("tools", "python3 -m tokenize $(find ./wheel-click* -name 'types.py') | head -3000"), ("tools", "apt-cache policy $(ls -d deb-* | sed 's/^deb-//')"), ("tools", "dpkg -s $(dpkg-query -W -f '${Package}\\n' | head -80)"),
            ("tools", "grep -rhoE --include=*.rs '[a-z_]+!?\\(' . | sort | uniq -c | sort -rn | head -2500"), ("tools", "tail -n 12 $(find ./npm-vega-lite* -name '*.ts' | sort | sed -n '1~31p' | head -60)"),
            ("logs", "apt-get -s install gnome-core inkscape 2>/dev/null"), ("logs", "bash -xc 'for f in $(find ./npm-hono* -name \"*.ts\" | sort | head -150); do d=$(dirname $f); b=${f##*/}; test -s $f && echo ${#b} $d; done' 2>&1"),
            ("logs", "python3 -m cProfile -s tottime -m compileall -f -q $(find ./wheel-click* -name click -type d) 2>&1"),
            ("hex", "find ./wheel* ./crate* -type f | sort | sed -n '1~3p' | head -700 | xargs sha224sum"), ("hex", "find ./deb-c* ./deb-e* -type f | sort | sed -n '1~2p' | head -800 | xargs md5sum --tag"),
        ],
    }  # fmt: skip
    return [(group, line, shell(line)) for group, line in lines[split]]
