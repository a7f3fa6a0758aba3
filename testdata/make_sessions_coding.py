"""Plays a coding agent over the invented project of make_sessions_harborlog.py and records it in the shape of Claude Code's session files.

The tools are real in the small: Read, Grep, Glob, Edit and `git diff` work on the files in memory, and what pytest says is judged by the
text of the sources, so the recording is consistent: a file read twice shows the edit made in between. The words are ours.
"""
import base64
import difflib
import json
import random
import re
import uuid
from datetime import datetime, timedelta

import make_sessions_harborlog as harborlog

ROOT = "/home/mara/harborlog/"
MODEL = "claude-sonnet-4-5"


class Failed(Exception):
    """A tool call that ends in an error; the text is what the model sees."""


# ---- tools over the files in memory -------------------------------------------------------------------------------------------------

class Tools:
    def __init__(self, rng):
        self.rng, self.files = rng, harborlog.files()
        self.base = dict(self.files)
        self.commits = ["0.6.2", "Sort free berths by length", "Accept decimal commas in the gauge export", "Shore power is a line of its own", "Drop the flask dependency",
                        "Encode decimals as strings", "Index bookings by berth and arrival", "WAL mode", "Tide table for one harbour day", "Reminder mail, first cut",
                        "Refuse vessels that do not fit", "Quote: split at the season border", "Import of the gauge export", "Ledger in memory", "First commit"]
        self.commits = [(self.sha(), c) for c in self.commits]

    def sha(self):
        return f"{self.rng.getrandbits(28):07x}"

    def path(self, p):
        if not p.startswith(ROOT) or p[len(ROOT):] not in self.files:
            raise Failed(f"<tool_use_error>There is no file {p}. The working directory is {ROOT[:-1]}.</tool_use_error>")
        return p[len(ROOT):]

    def Read(self, file_path, offset=1, limit=2000):
        lines = self.files[self.path(file_path)].split("\n")
        return "\n".join(f"{n:>6}→{line}" for n, line in list(enumerate(lines, 1))[offset - 1:offset - 1 + limit])

    def Glob(self, pattern):
        tail = pattern.replace("**/", "").lstrip("*")
        return "\n".join(ROOT + p for p in sorted(self.files) if p.endswith(tail)) or "No files match."

    def Grep(self, pattern, path="", output_mode="content"):
        hits = [(p, n, line) for p, text in sorted(self.files.items()) if p.startswith(path) for n, line in enumerate(text.split("\n"), 1) if re.search(pattern, line)]
        if output_mode == "files_with_matches":
            return "\n".join(dict.fromkeys(ROOT + p for p, _, _ in hits)) or "No files match."
        return "\n".join(f"{p}:{n}:{line}" for p, n, line in hits) or "No matches."

    def Edit(self, file_path, old_string, new_string):
        p = self.path(file_path)
        count = self.files[p].count(old_string)
        if count != 1:
            raise Failed(f"<tool_use_error>old_string occurs {count} times in {p}; it must occur exactly once. Nothing was changed.</tool_use_error>")
        at = self.files[p][:self.files[p].index(old_string)].count("\n")
        self.files[p] = self.files[p].replace(old_string, new_string)
        lines = self.files[p].split("\n")
        snippet = "\n".join(f"{n + 1:>6}→{lines[n]}" for n in range(max(0, at - 3), min(len(lines), at + new_string.count("\n") + 4)))
        return f"{file_path} changed. The lines around the change now read:\n{snippet}"

    def Write(self, file_path, content):
        self.files[file_path[len(ROOT):]] = content
        return f"{file_path} written, {len(content.splitlines())} lines."

    def Bash(self, command, description=""):
        verb = command.split()
        if "pytest" in command:
            return self.pytest(command)
        if verb[:2] == ["git", "diff"]:
            return self.diff(command)
        if verb[:2] == ["git", "log"]:
            return "\n".join(f"{sha} {title}" for sha, title in self.commits)
        if verb[:2] == ["git", "status"]:
            return "\n".join(f" M {p}" if p in self.base else f"?? {p}" for p in sorted(self.files) if self.files[p] != self.base.get(p)) or "nothing to commit, working tree clean"
        if "git commit" in command:
            changed = [p for p in self.files if self.files[p] != self.base.get(p)]
            self.base, title = dict(self.files), re.search(r'-m "([^"]+)"', command)[1]
            self.commits.insert(0, (self.sha(), title))
            return f"[main {self.commits[0][0]}] {title}\n {len(changed)} files changed"
        if verb[0] == "tail":
            return "\n".join(self.files[verb[-1]].split("\n")[-int(verb[2]):])
        if verb[0] == "wc":
            return "\n".join(f"{self.files[p].count(chr(10)):>5} {p}" for p in sorted(self.files) if re.match(verb[-1].replace("*", ".*"), p))
        if verb[0] == "grep":
            return "\n".join(line for line in self.files[verb[-1]].split("\n") if re.search(command.split("'")[1], line))
        if verb[0] == "curl":
            return harborlog.bookings_json(random.Random(11)) if "bookings" in command else self.files["data/berths.json"]
        if verb[0] == "ruff":
            return "All checks passed!"
        raise AssertionError(command)

    def diff(self, command):
        out = []
        for p in sorted(self.files):
            old, new = self.base.get(p, ""), self.files[p]
            if old == new:
                continue
            body = list(difflib.unified_diff(old.split("\n"), new.split("\n"), "a/" + p, "b/" + p, lineterm=""))
            if "--stat" in command:
                plus, minus = (sum(line.startswith(c) for line in body) - 1 for c in "+-")
                out.append(f" {p:<28} | {plus + minus:>3} {'+' * plus}{'-' * minus}"[:100])
            else:
                out += [f"diff --git a/{p} b/{p}", f"index {self.sha()}..{self.sha()} 100644", *body]
        return "\n".join(out)

    def pytest(self, command):
        """Collects the test functions out of the text, and fails those whose bug is still in the sources."""
        chosen = re.findall(r"tests/test_\w+\.py", command) or sorted(p for p in self.files if p.startswith("tests/test_"))
        pick, stop = re.search(r"-k (\w+)", command), " -x" in command
        nodes = [(p, node) for p in chosen for node in self.collect(p) if not pick or pick[1] in node]
        bad, done, failures = self.broken(), [], []
        for p, node in nodes:
            done.append((p, node, node in bad))
            if node in bad:
                failures.append((p, node, bad[node]))
                if stop:
                    break
        out = ["============================= test session starts ==============================", "platform linux -- Python 3.11.9, pytest-8.3.3, pluggy-1.5.0",
               f"rootdir: {ROOT[:-1]}", "configfile: pyproject.toml", f"collected {len(nodes)} items", ""]
        if " -v" in command:
            out += [f"{p}::{node} {'FAILED' if failed else 'PASSED'}".ljust(88) + f"[{100 * (i + 1) // len(nodes):>3}%]" for i, (p, node, failed) in enumerate(done)]
        else:
            for p in dict.fromkeys(p for p, _, _ in done):
                out.append(f"{p} " + "".join("F" if failed else "." for q, _, failed in done if q == p))
        if failures:
            out += ["", "=================================== FAILURES ==================================="]
        for p, node, error in failures:
            name = node.split("[")[0]
            body = re.search(rf"(?:^@[^\n]*\n)*^def {name}\(.*?(?=\n\n\n|\Z)", self.files[p], re.S | re.M)[0].rstrip().split("\n")
            marked = [("> " + line[2:] if i == len(body) - 1 else line) for i, line in enumerate("    " + line for line in body)]
            row = self.files[p][:self.files[p].index(f"def {name}(")].count("\n") + len(body)
            out += [f" {node} ".center(80, "_"), "", *marked, *("E       " + line for line in error.split("\n")), "", f"{p}:{row}: {error.split(':')[0].split()[0]}"]
        seconds = f"{0.04 * len(done) + self.rng.random():.2f}s"
        if failures:
            out += ["=========================== short test summary info ============================"] + [f"FAILED {p}::{node} - {error.splitlines()[0]}" for p, node, error in failures]
        verdict = f"{len(failures)} failed, {len(done) - len(failures)} passed" if failures else f"{len(done)} passed"
        text = "\n".join(out + [f" {verdict} in {seconds} ".center(80, "=")])
        if failures:
            raise Failed("Exit code 1\n" + text)
        return text

    def collect(self, p):
        nodes = []
        for marks, name in re.findall(r"((?:^@pytest\.mark[^\n]*\n(?:^[^\n@d][^\n]*\n)*)*)^def (test_\w+)", self.files[p], re.M):
            ids = [""]
            if "CASES" in marks:
                ids = [f"[{case}]" for case in harborlog.API_CASES] if "api" in p else [f"[{m}]" for m in re.findall(r'^    \("([\d.]+)"', self.files[p], re.M)]
                ids = [i if ids.count(i) == 1 else f"{i[:-1]}-{n}]" for n, i in enumerate(ids)]
            elif "range(1, 13)" in marks:
                ids = [f"[{month}]" for month in range(1, 13)]
            elif "day, hours" in marks:
                ids = [f"[day{i}-hours{i}]" for i in range(marks.count("(date("))]
            nodes += [name + i for i in ids]
        return nodes

    def broken(self):
        f, bad = self.files, {}
        if "arrive <= stay.leave" in f["harborlog/ledger.py"]:
            bad["test_touching_stays_do_not_conflict"] = "harborlog.ledger.BerthTaken: A01 is taken by booking 1 (2026-07-03 to 2026-07-05)"
        elif "another_leaves_is_refused" in f["tests/test_api.py"]:
            bad["test_arriving_on_the_day_another_leaves_is_refused"] = "AssertionError: assert 201 == 409\n +  where 201 = Response(status=201).status"
        if '"13.85"' not in f["tests/test_tariff.py"]:
            pass
        elif "ROUND_HALF_UP" not in f["harborlog/tariff.py"]:
            for node, was, want in (("[13.85]", "118.95", "118.96"), ("[6.35]", "346.88", "346.89"), ("[10.90]", "99.29", "99.31")):
                bad["test_totals_match_the_price_list" + node] = f"AssertionError: assert '{was}' == '{want}'\n  - {want}\n  + {was}"
        elif 'WEEKLY_DISCOUNT = 0.15' in f["harborlog/tariff.py"]:
            for node in ("[9.40-1]", "[6.35]", "[13.20]"):
                bad["test_totals_match_the_price_list" + node] = "TypeError: unsupported operand type(s) for *: 'decimal.Decimal' and 'float'"
        if 'encoding="utf-8")' in f["harborlog/gauges.py"]:
            bad["test_the_sample_of_the_office_reads_completely"] = "harborlog.gauges.BadRow: row 1: unknown columns ['\\ufeffstation', 'utc', 'level_m', 'quality']"
        if "[:-1]" in f["harborlog/gauges.py"]:
            bad["test_the_last_row_counts_without_a_line_feed"] = "AssertionError: assert [] == [Decimal('1.42')]\n  Right contains one more item: Decimal('1.42')"
            if 'encoding="utf-8")' not in f["harborlog/gauges.py"]:
                bad["test_the_sample_of_the_office_reads_completely"] = "AssertionError: assert 215 == 216\n +  where 215 = len([Reading(station='west mole', ...), ...])"
        if "midnight.utcoffset()" in f["harborlog/tides.py"]:
            for i, (day, shown) in enumerate((("2026, 3, 29", [4, 10, 16, 22]), ("2026, 10, 25", [5, 11, 17, 23])), 2):
                wanted = re.search(rf"\(date\({day}\), \[(.*?)\]", f["tests/test_tides.py"])
                if wanted and wanted[1] != str(shown)[1:-1]:
                    bad[f"test_times_are_on_the_harbour_clock[day{i}-hours{i}]"] = f"assert {shown} == [{wanted[1]}]\n  At index 0 diff: {shown[0]} != {wanted[1].split(',')[0]}"
        if "store.mark_reminded(sent, now)" in f["harborlog/reminders.py"]:
            bad["test_a_stop_in_the_middle_loses_nothing_that_was_sent"] = "AssertionError: assert ['a@x.example', 'b@x.example', 'a@x.example', 'b@x.example'] == ['a@x.example', 'b@x.example']"
        return bad


# ---- the recorder -----------------------------------------------------------------------------------------------------------------------

class Session:
    """Writes the lines: one a content block, as the real files have it."""

    HEAD_TOKENS = 15_800  # system prompt and tool schemas, which the files do not hold

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.tools = Tools(self.rng)
        self.lines, self.parent, self.now = [], None, datetime(2026, 6, 30, 7, 42, 5, 120000)
        self.session = self.uuid()
        self.tokens, self.cached, self.calls = self.HEAD_TOKENS, 0, 0

    def uuid(self):
        return str(uuid.UUID(int=self.rng.getrandbits(128), version=4))

    def id(self, prefix, n=24):
        return prefix + "".join(self.rng.choice("ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz123456789") for _ in range(n))

    def stamp(self, seconds=0.0):
        self.now += timedelta(milliseconds=int(1000 * seconds) + self.rng.randint(20, 900))
        return self.now.strftime("%Y-%m-%dT%H:%M:%S.") + f"{self.now.microsecond // 1000:03}Z"

    def line(self, kind, wait=0.0, parent=None, **rest):
        me = self.uuid()
        self.lines.append({"parentUuid": parent or self.parent, "isSidechain": False, "cwd": ROOT[:-1], "sessionId": self.session, "version": "2.1.40",
                           "gitBranch": "main", "type": kind, **rest, "uuid": me, "timestamp": self.stamp(wait)})
        self.parent = me
        return me

    def weigh(self, value):
        self.tokens += len(json.dumps(value, ensure_ascii=False).encode()) * 10 // 37

    def user(self, text, meta=False):
        self.weigh(text)
        if not meta:
            self.lines.append({"type": "file-history-snapshot", "messageId": self.uuid(), "snapshot": {"trackedFileBackups": {}, "timestamp": self.stamp(120)}, "isSnapshotUpdate": False})
        self.line("user", 0 if meta else 40, message={"role": "user", "content": text}, **({"isMeta": True} if meta else {}))

    def turn(self, text=None, *calls, think=None, answered=True, interleaved=False):
        """One model call: thinking, text, tool calls; then the results, each on a line of its own."""
        message, request, self.calls = self.id("msg_01", 22), self.id("req_011C", 20), self.calls + 1
        blocks = []
        if think:
            blocks.append({"type": "thinking", "thinking": think, "signature": base64.b64encode(b"\x12\x88\x02" + self.rng.randbytes(150)).decode()})
        if text:
            blocks.append({"type": "text", "text": text})
        for name, given in calls:
            blocks.append({"type": "tool_use", "id": self.id("toolu_01", 22), "name": name, "input": {k: v for k, v in given.items() if k != "out"}})
        out = len(json.dumps(blocks)) * 10 // 37 + 3
        usage = {"input_tokens": self.rng.randint(3, 10), "cache_creation_input_tokens": self.tokens - self.cached, "cache_read_input_tokens": self.cached, "output_tokens": out}
        self.cached = self.tokens
        self.weigh(blocks)
        wait, uses = 2 + out / 60, []

        def result(block, given, caller):
            failed = False
            try:
                content = given["out"] if "out" in given else getattr(self.tools, block["name"])(**block["input"])
                failed = isinstance(content, Failed)
                content = str(content)
            except Failed as problem:
                content, failed = str(problem), True
            body = {"tool_use_id": block["id"], "type": "tool_result", "content": content, **({"is_error": True} if failed else {})}
            self.weigh(body)
            self.line("user", .3, parent=caller, message={"role": "user", "content": [body]})

        for i, block in enumerate(blocks):
            me = self.line("assistant", wait / len(blocks), message={"model": MODEL, "id": message, "type": "message", "role": "assistant", "content": [block],
                           "stop_reason": None, "usage": usage}, requestId=request)
            if block["type"] == "tool_use":
                uses.append((block, calls[len(uses)][1], me))
                if interleaved and i + 1 < len(blocks):  # a quick tool is done before the next block of the same message has been written
                    result(*uses[-1])
                    uses[-1] = None
        for use in filter(None, uses):
            if answered:
                result(*use)

    def system(self, subtype, **rest):
        self.line("system", .1, subtype=subtype, isMeta=False, **rest)


# ---- shorthands, so that the story reads as a story ----------------------------------------------------------------------------------

def read(path, **part):
    return "Read", {"file_path": ROOT + path, **part}


def grep(pattern, **more):
    return "Grep", {"pattern": pattern, "output_mode": "content", **more}


def bash(command, why, **out):
    return "Bash", {"command": command, "description": why, **out}


def edit(path, old, new):
    return "Edit", {"file_path": ROOT + path, "old_string": old, "new_string": new}


def todo(*items):
    """`x done`, `> under way`, everything else is to do."""
    state = {"x": "completed", ">": "in_progress"}
    return "TodoWrite", {"todos": [{"content": i.lstrip("x> "), "status": state.get(i[0], "pending")} for i in items], "out": "The task list was updated."}


REMINDER = "<system-reminder>\n{}\nThis note was added by the client, not by the user; there is no need to answer it.\n</system-reminder>"


def table(rng, head, rows, make):
    widths = [max(len(h), 12) for h in head]
    body = ["  ".join(str(c).ljust(w) for c, w in zip(row, widths)).rstrip() for row in ([head] + [["-" * w for w in widths]] + [make(rng, i) for i in range(rows)])]
    return "\n".join(body)


def build():
    s = Session(20260630)
    tell_overlap(s)
    tell_tariff(s)
    tell_gauges(s)
    tell_tides(s)
    tell_reminders(s)
    tell_wrap_up(s)
    return s


def closing(s, title, full="All green.", docs=None, how="-q"):
    """The routine after a fix: whole suite, lint, diff, commit. The same commands again and again, as in real sessions."""
    s.turn("Now the whole suite, to see that nothing else moved.", bash(f"python -m pytest {how}", "Run the whole test suite"))
    s.turn(full, bash("ruff check .", "Lint"), bash("git diff --stat", "Size of the change"))
    if docs:
        s.turn("A line for the changelog." if "CHANGELOG" in docs[1]["file_path"] else "The documentation still says the old thing.", docs)
    s.turn("One last look at the complete change before I commit it.", bash("git diff", "Show the change"))
    s.turn(None, bash(f'git add -A && git commit -m "{title}"', "Commit"))


def tell_overlap(s):
    s.user(REMINDER.format("Contents of " + ROOT + "AGENTS.md:\n\n- Run `python -m pytest` before every commit; one commit per change.\n- Tests are named as sentences.\n"
           "- No new dependencies. No reformatting of lines you do not otherwise change.\n- The price list of the office and the rules in README.md are the truth; code that disagrees is wrong."), meta=True)
    s.user("Two bookings that only touch (one crew leaves on the 14th, the next arrives on the 14th) are refused with berth_taken. The office does same-day turnovers all summer long and now "
           "enters them as phone notes. Please find out why, fix it and add a test. Check as well whether anything else in the code relies on the wrong rule.")
    s.turn("I'll get an overview first: the README, the layout, and what changed lately.", read("README.md"), ("Glob", {"pattern": "**/*.py"}), bash("git log --oneline -15", "Recent commits"),
           think="The user reports that back-to-back stays conflict. That smells like a closed interval comparison where a half-open one is meant. I should look at the ledger, but first at the stated rule: "
                 "is a stay counted in days or nights? If the README says nights, the fix is a strict comparison. I also have to look for other callers of the same rule.")
    s.turn(None, grep(r"overlap|conflict|berth_taken|BerthTaken"))
    s.turn("`conflicts()` is the only place with the rule. Reading it together with the records and the tests.", read("harborlog/ledger.py"), read("harborlog/models.py"), read("tests/test_ledger.py"))
    s.turn(None, bash("python -m pytest tests/test_ledger.py -v", "Run the ledger tests"))
    s.turn("The suite is green because no test lets two stays touch. A short reproduction:", bash(
        "python - <<'EOF'\nfrom tests.test_ledger import *\nl = BookingLedger([Berth('A01', 'A', Decimal('10'), Decimal('2.4'))])\nl.book('A01', SLOOP, Stay(d(12), d(14)))\nl.book('A01', SLOOP, Stay(d(14), d(16)))\nEOF",
        "Reproduce the refusal", out=Failed("Exit code 1\nTraceback (most recent call last):\n  File \"<stdin>\", line 4, in <module>\n  File \"" + ROOT + "harborlog/ledger.py\", line 66, in book\n"
        "    raise BerthTaken(berth, taken[0])\nharborlog.ledger.BerthTaken: A01 is taken by booking 1 (2026-07-12 to 2026-07-14)")))
    s.turn("Reproduced. Before I touch it I want to know who else asks `conflicts()` or compares arrival with departure.", grep(r"conflicts\(|\.leave\b|\.arrive\b"), read("harborlog/api.py"), interleaved=True)
    s.turn(None, edit("harborlog/ledger.py", "if arrive < stay.leave and stay.arrive <= other.stay.leave:", "if arrive < stay.leave and stay.arrive < other.stay.leave:"),
           think="Both comparisons must be strict: [arrive, leave) intervals overlap iff a.arrive < b.leave and b.arrive < a.leave. occupancy() asks with a one-night stay, so with the closed rule it would also "
                 "report a guest who left that morning: that was a second symptom nobody reported. Strict comparison cures both.")
    s.turn("My `old_string` was already half corrected; the line in the file has `<=` twice. Reading the place again.", read("harborlog/ledger.py", offset=36, limit=18))
    s.turn(None, edit("harborlog/ledger.py", "if arrive <= stay.leave and stay.arrive <= other.stay.leave:", "if arrive < stay.leave and stay.arrive < other.stay.leave:"))
    s.turn("And the test that was missing, next to the one about the same nights. I'll cover `occupancy` on a turnover day too.", edit("tests/test_ledger.py", "def test_a_stay_inside_another_is_refused(ledger):",
           "def test_touching_stays_do_not_conflict(ledger):\n    first = ledger.book(\"A01\", SLOOP, Stay(d(3), d(5)))\n    second = ledger.book(\"A01\", SLOOP, Stay(d(5), d(8)))\n"
           "    assert ledger.occupancy(d(4)) == {\"A01\": first.id}\n    assert ledger.occupancy(d(5)) == {\"A01\": second.id}\n\n\ndef test_a_stay_inside_another_is_refused(ledger):"))
    s.turn(None, bash("python -m pytest tests/test_ledger.py -v", "Run the ledger tests"))
    s.turn("The ledger is right now. The whole suite:", bash("python -m pytest -q", "Run the whole test suite"))
    s.turn("An API test holds the old behaviour. Let me see whether that was meant.", read("tests/test_api.py"), bash("git log --oneline -15", "When was that test added"))
    s.turn(None, bash("git log --oneline -S another_leaves_is_refused -- tests/test_api.py", "Who wrote the test", out="9c41d0e Refuse vessels that do not fit"), bash("git show 9c41d0e --stat", "What that commit was about",
           out="commit 9c41d0e\n    Refuse vessels that do not fit\n\n    Also a few API tests, written from what the server does today.\n\n harborlog/ledger.py | 9 +++++++--\n tests/test_api.py   | 7 +++++++\n 2 files changed, 14 insertions(+), 2 deletions(-)"))
    s.turn(None, edit("tests/test_api.py", 'def test_arriving_on_the_day_another_leaves_is_refused():', 'def test_arriving_on_the_day_another_leaves_is_fine():'),
           edit("tests/test_api.py", 'make_vessel("A01", "2026-07-05", "2026-07-08")).status == 409', 'make_vessel("A01", "2026-07-05", "2026-07-08")).status == 201'),
           think="The test was written from the code, not from the rule: README says 'The guest of the night before is gone by noon, the next one comes from 14:00'. So the test is wrong and should be turned around, not deleted.")
    s.turn("Does the live data hold real double bookings that only the wrong rule kept out? I'll look at what the running instance has for July.", bash("curl -s 'localhost:8320/v1/bookings?month=2026-07'", "Bookings of July"))
    rows = table(random.Random(3), ["berth", "first", "second", "touch_on"], 34, lambda r, i: [f"{r.choice('ABCD')}{r.randint(1, 14):02}", 4100 + r.randint(0, 69), 4100 + r.randint(0, 69), f"2026-07-{r.randint(2, 30):02}"])
    s.turn("Too long to judge by eye. I'll let SQLite list the pairs that touch.", bash("sqlite3 -readonly -column -header var/harborlog.db < /tmp/touching.sql", "Pairs of bookings that touch",
           out=Failed("Exit code 1\nError: cannot open \"/tmp/touching.sql\"")))
    s.turn("The file was not written, of course. Inline then.", bash("sqlite3 -readonly -column -header var/harborlog.db \"select a.berth, a.id first, b.id second, a.leave touch_on from booking a join booking b on a.berth = b.berth and a.leave = b.arrive order by 1, 4\"",
           "Pairs of bookings that touch", out=rows))
    closing(s, "Stays that touch do not conflict", how="-v", docs=edit("docs/bookings.md", "Two bookings of one berth conflict when their days overlap. The answer is then", "Two bookings of one berth conflict when they share a night. Leaving and arriving on the same day is fine. The answer is then"))
    s.turn("Fixed and committed.\n\n- **Cause:** `BookingLedger.conflicts` compared days with `<=`, so a departure on the 14th blocked an arrival on the 14th. A stay is counted in nights; both comparisons are now strict.\n"
           "- **Second symptom, same cause:** `occupancy` counted the guest who left that morning. It is covered by the new test.\n- **Turned around:** `test_arriving_on_the_day_another_leaves_is_refused` held the wrong rule; it now says `…_is_fine`.\n"
           "- The July data has 34 pairs that touch (entered over the phone), none that shares a night.")
    s.system("turn_duration", durationMs=412_331)


def tell_tariff(s):
    s.user("Thanks. Next: the office says our invoices are sometimes one or two cents below the printed price list, mostly for odd lengths. The list is right by definition. Can you fix the rounding once and for all?")
    s.turn("The tariff module and its tests, plus everything that handles amounts.", read("harborlog/tariff.py"), read("tests/test_tariff.py"), grep(r"round\(|float|Decimal\(", path="harborlog/"),
           think="Floats for money. Quote.total rounds the sum of rounded parts; Python's round is half-even on the binary value. README: 'Money is rounded once, per line, half up.' So: Decimal throughout, one quantize per line with ROUND_HALF_UP.")
    s.turn(None, bash("python -m harborlog.cli quote --length 13.85 --arrive 2026-07-13 --leave 2026-07-15", "A quote for an odd length",
           out="2 nights, high season                95.56\ntourist tax                           4.40\ntotal incl. VAT                      118.95"))
    s.turn("The printed list says 118.96 for that stay. The tests only hold three round lengths of the list, so I'll add odd ones from docs/prices-2026.pdf, which the README names as the truth.",
           edit("tests/test_tariff.py", '    ("13.20", date(2026, 8, 1)', '    ("13.85", date(2026, 7, 13), date(2026, 7, 15), "118.96"),\n    ("6.35", date(2026, 7, 19), date(2026, 8, 2), "346.89"),\n    ("10.90", date(2026, 9, 20), date(2026, 9, 23), "99.31"),\n    ("13.20", date(2026, 8, 1)'))
    s.turn(None, bash("python -m pytest tests/test_tariff.py -v", "Run the tariff tests"))
    rng = random.Random(5)
    s.turn("All three odd lengths are low. How often does it happen over all lengths and stays?", bash("python tools/compare_rounding.py --lengths 6.00:15.00:0.05 --stays 2,3,7,14", "Compare float and decimal rounding",
           out=table(rng, ["length", "arrive", "nights", "float", "decimal"], 240, lambda r, i: [f"{r.randrange(600, 1500, 5) / 100:.2f}", f"2026-{r.randint(1, 10):02}-{r.randint(1, 28):02}", r.choice([2, 3, 7, 14]), f"{(c := r.randint(2600, 41000)) / 100:.2f}", f"{(c + r.choice([1, 1, 1, 2])) / 100:.2f}"]) +
           "\n\n412 of 4000 differ; float is lower in 407, higher in 5"))
    s.turn("A tenth of all quotes is off, nearly always downward. I'll move the module to `Decimal`, rounding once per line and half up, as the README asks.",
           edit("harborlog/tariff.py", "from decimal import Decimal\n", "from decimal import ROUND_HALF_UP, Decimal\n"),
           edit("harborlog/tariff.py", "PER_METRE = {Season.WINTER: 1.15, Season.SHOULDER: 2.35, Season.HIGH: 3.45}", "PER_METRE = {Season.WINTER: Decimal(\"1.15\"), Season.SHOULDER: Decimal(\"2.35\"), Season.HIGH: Decimal(\"3.45\")}"),
           edit("harborlog/tariff.py", "@dataclass(frozen=True)\nclass Line:\n    label: str\n    amount: float\n", "def cents(amount: Decimal) -> Decimal:\n    \"\"\"The one place where money is rounded.\"\"\"\n    return amount.quantize(Decimal(\"0.01\"), ROUND_HALF_UP)\n\n\n@dataclass(frozen=True)\nclass Line:\n    label: str\n    amount: Decimal\n"))
    s.turn(None, edit("harborlog/tariff.py", "    net: float\n    vat: float\n\n    @property\n    def total(self) -> float:\n        return round(self.net + self.vat, 2)", "    net: Decimal\n    vat: Decimal\n\n    @property\n    def total(self) -> Decimal:\n        return self.net + self.vat"))
    s.turn(None, read("harborlog/tariff.py", offset=55))
    s.turn(None, edit("harborlog/tariff.py", "        amount = float(vessel.length_m) * PER_METRE[season] * nights\n        weeks = nights // 7\n        if weeks:\n            amount -= amount * WEEKLY_DISCOUNT * (weeks * 7 / nights)\n        lines.append(Line(f\"{nights} nights, {season.value} season\", round(amount, 2)))",
           "        in_full_weeks = nights // 7 * 7\n        amount = vessel.length_m * PER_METRE[season] * (nights - in_full_weeks * WEEKLY_DISCOUNT)\n        lines.append(Line(f\"{nights} nights, {season.value} season\", cents(amount)))"))
    s.turn(None, bash("python -m pytest tests/test_tariff.py -x", "Run the tariff tests"))
    s.turn("The discount and the small prices are still floats. All constants then, in one go.",
           edit("harborlog/tariff.py", "WEEKLY_DISCOUNT = 0.15\nSHORE_POWER_PER_NIGHT = 4.2\nTOURIST_TAX = 1.1\nVAT = 0.19", "WEEKLY_DISCOUNT = Decimal(\"0.15\")\nSHORE_POWER_PER_NIGHT = Decimal(\"4.20\")\nTOURIST_TAX = Decimal(\"1.10\")\nVAT = Decimal(\"0.19\")"))
    s.turn(None, edit("harborlog/tariff.py", "        lines.append(Line(\"shore power\", round(SHORE_POWER_PER_NIGHT * stay.nights, 2)))\n    lines.append(Line(\"tourist tax\", round(TOURIST_TAX * persons * stay.nights, 2)))\n    net = sum(line.amount for line in lines)\n    return Quote(tuple(lines), net, round(net * VAT, 2))",
           "        lines.append(Line(\"shore power\", cents(SHORE_POWER_PER_NIGHT * stay.nights)))\n    lines.append(Line(\"tourist tax\", cents(TOURIST_TAX * persons * stay.nights)))\n    net = sum((line.amount for line in lines), Decimal(0))\n    return Quote(tuple(lines), net, cents(net * VAT))"))
    s.turn(None, bash("python -m pytest tests/test_tariff.py -v", "Run the tariff tests"))
    s.turn("All of the list's cases hold. And the quote from before:", bash("python -m harborlog.cli quote --length 13.85 --arrive 2026-07-13 --leave 2026-07-15", "The same quote again",
           out="2 nights, high season                95.57\ntourist tax                           4.40\ntotal incl. VAT                      118.96"))
    s.turn("`encode` in web.py must cope with `Decimal` amounts now, and the command line formats them.", read("harborlog/web.py"), read("harborlog/cli.py"), grep(r"\.amount|\.total|\.vat|\.net"))
    s.turn("`encode` gives strings for everything that is not a JSON scalar, so amounts become `\"118.96\"` where they were `118.95`. That changes the API: a client that does arithmetic on it will notice. Who reads it?", bash("grep -rn '\"total\"' var/harborlog.log", "Anyone reading totals", out=""),
           ("Read", {"file_path": ROOT + "docs/api.md"}))
    s.turn("There is no API page, and no trace of such a client. The seasons module has it as strings for lengths already, so this is consistent.", ("Glob", {"pattern": "**/*.md"}),
           think="Lengths and depths are strings in JSON already (Encode decimals as strings, an old commit). So strings for money match the house's convention. I should mention it in the changelog rather than convert back to float.")
    closing(s, "Money is Decimal and rounded once per line", docs=edit("CHANGELOG.md", "## Unreleased\n", "## Unreleased\n- Bookings that touch on one day no longer conflict.\n- Amounts are decimals, rounded once per line and half up, and appear as strings in JSON, as lengths always did.\n"))
    s.turn("Done: `tariff.py` has no float left, `cents()` is the only place that rounds, and all six rows of the printed list pass. One thing to know: amounts are **strings** in the JSON of `/v1/quotes` now, like lengths and depths.")
    s.system("turn_duration", durationMs=298_120)


def tell_gauges(s):
    s.tools.files["data/gauges.csv"] = harborlog.gauges_csv(random.Random(8))
    s.user("The gauge import refuses the office's export since they got a new PC. I put one of their files into data/gauges.csv. With the old files, the number of readings was always one short, by the way, I never had time to look.")
    s.turn("Two clues: a new PC that writes another encoding, and a count that is one short. The file first, then the reader.", bash("head -c 64 data/gauges.csv | xxd", "First bytes of the export",
           out="00000000: efbb bf73 7461 7469 6f6e 3b75 7463 3b6c  ...station;utc;l\n00000010: 6576 656c 5f6d 3b71 7561 6c69 7479 0a77  evel_m;quality.w\n00000020: 6573 7420 6d6f 6c65 3b32 3032 362d 3033  est mole;2026-03\n00000030: 2d32 3854 3030 3a30 303b 302c 3135 3b6f  -28T00:00;0,15;o"),
           read("harborlog/gauges.py"), read("tests/test_gauges.py"))
    s.turn("A byte order mark stands in front of `station`, and `split(\"\\n\")[:-1]` throws the last row away when the file does not end in a line feed. Let me see both ends of the file.", read("data/gauges.csv"),
           think="utf-8-sig reads both with and without the mark. For rows: splitlines() and skip blank ones; careful, splitlines also splits on U+0085, U+2028 and form feeds; the export is plain, but station names are free text. "
                 "text.split('\\n') with an rstrip('\\r') is more predictable. CRLF: read_text uses universal newlines, fine; parse_gauges given text from an upload does not, so strip '\\r' there.")
    s.turn("No test reads a real export. One that does, with the office's own file:", edit("tests/test_gauges.py", "def test_a_short_row_names_its_number():",
           "def test_the_sample_of_the_office_reads_completely():\n    readings = read_gauges(Path(\"data/gauges.csv\"))\n    assert {r.station for r in readings} == {\"west mole\", \"lock\", \"fairway 3\"}\n    assert len(readings) == 3 * 72\n\n\ndef test_a_short_row_names_its_number():"))
    s.turn(None, bash("python -m pytest tests/test_gauges.py -v", "Run the gauge tests"))
    s.turn("As expected. First the mark:", edit("harborlog/gauges.py", 'path.read_text(encoding="utf-8")', 'path.read_text(encoding="utf-8-sig")'))
    s.turn("Then a test for the last row, before the fix.", edit("tests/test_gauges.py", "def test_a_short_row_names_its_number():", "def test_the_last_row_counts_without_a_line_feed():\n    assert [r.level_m for r in parse_gauges(HEAD + \"west mole;2026-03-28T00:00;1,42;ok\")] == [Decimal(\"1.42\")]\n\n\ndef test_a_short_row_names_its_number():"))
    s.turn(None, bash("python -m pytest tests/test_gauges.py -v", "Run the gauge tests"))
    s.turn("215 of 216: that is the row that was always missing.", edit("harborlog/gauges.py", '    rows = text.split("\\n")[:-1]\n', '    rows = [row.rstrip("\\r") for row in text.split("\\n")]\n    while rows and not rows[-1]:\n        rows.pop()\n    if not rows:\n        raise BadRow(1, "the file is empty")\n'))
    s.turn(None, bash("python -m pytest tests/test_gauges.py -v", "Run the gauge tests"))
    s.turn("The upload handler decodes the body itself, so it has the same trouble with the mark.", grep(r"body\.decode|read_text|encoding="), read("harborlog/api.py", offset=95, limit=30))
    s.turn(None, edit("harborlog/api.py", "text = request.body.decode()", 'text = request.body.decode("utf-8-sig")'))
    s.turn(None, bash("python -m pytest tests/test_gauges.py tests/test_api.py -q", "Gauge and API tests"))
    s.turn("Now the office's file through the command line, as they would do it.", bash("python -m harborlog.cli import-gauges data/gauges.csv", "Import the office's export", out="216 readings, 3 stations"))
    s.turn("And the older exports in the archive: each must give one reading more than before, never fewer.", bash("for f in /srv/archive/gauges/2026-0[1-5]*.csv; do python -m harborlog.cli import-gauges $f; done", "Import the archive",
           out="\n".join(f"{random.Random(i).choice([720, 744, 672]) * 3} readings, 3 stations" for i in range(150))))
    s.turn("The archive holds too. Are there rows marked `est` that anyone treats differently?", grep(r"quality|\best\b", path="harborlog/"))
    closing(s, "Gauge import: byte order mark and last row", full="Green, and lint is happy.", docs=edit("CHANGELOG.md", "- Amounts are decimals", "- The gauge import reads files with a byte order mark and no longer drops the last row.\n- Amounts are decimals"))
    s.turn("Both were in `gauges.py`:\n\n1. The new PC writes a byte order mark. Files and uploads are decoded as `utf-8-sig` now, which reads either kind.\n2. The parser cut off whatever follows the last line feed. Exports that end without one lost their last row. It now drops empty rows at the end only.\n\nAn empty file gives a clear error instead of an `IndexError`.")
    s.system("turn_duration", durationMs=187_442)


def tell_tides(s):
    s.user("A skipper complained that on Sunday 29 March our tide table was an hour early, and he nearly sat on the bar. Before and after that Sunday it was right. Please have a look, this one worries me.")
    s.turn("29 March 2026 is the day the clocks change. Reading the tide module and its tests.", read("harborlog/tides.py"), read("tests/test_tides.py"), grep(r"ZoneInfo|utcoffset|timezone|tzinfo"),
           think="day_table takes the UTC offset at local midnight and adds it to all tides of that day. On the change day the offset at midnight is +1 but from 02:00 local it's +2, so all tides after 01:00 UTC are an hour early. In autumn they'd be an hour late. Fix: astimezone per tide. "
                 "Also range selection: local.date() == day with right conversion. Then a test for both change days.")
    s.turn("The offset is taken at midnight and used for the whole day. On a change day that is wrong for everything after two in the morning. A test first, for spring and autumn:",
           edit("tests/test_tides.py", "    (date(2026, 7, 1), [5, 11, 17, 23]),\n", "    (date(2026, 7, 1), [5, 11, 17, 23]),\n    (date(2026, 3, 29), [4, 10, 16, 22]),\n    (date(2026, 10, 25), [3, 9, 15, 21]),\n"))
    s.turn(None, bash("python -m pytest tests/test_tides.py -v", "Run the tide tests"))
    s.turn("Autumn fails, but spring passes, although that is the day the skipper complained about. I want to see the numbers for both days, hour by hour.", bash("python tools/offsets.py 2026-03-29 2026-10-25", "UTC offset by the hour",
           out="\n".join(f"2026-{m}-{d} {h:02}:00Z  {'+02:00' if (m == '03' and h >= 1) or (m == '10' and h < 1) else '+01:00'}  local {(h + (2 if (m == '03' and h >= 1) or (m == '10' and h < 1) else 1)) % 24:02}:00" for m, d in (("03", "29"), ("10", "25")) for h in range(24))),
           think="In autumn midnight local is 22:00Z of the day before with offset +2, and after 01:00Z +1. With the bug, tides are shown an hour late there: 5, 11, 17, 23, which is what the failing test got. The expected values I wrote: wave starts 12 h before local-naive midnight; let me not guess: the highs are at start+3, lows at start+9. "
                 "start is day 00:00 minus 12 h taken as UTC. Highs/lows at 03,09,15,21 UTC. At +1: 4,10,16,22. At +2: 5,11,17,23. So spring after the change must be 5, 11, 17, 23 and autumn 4, 10, 16, 22. My expectations were off by one hour, both. Good that I looked.")
    s.turn("My own expectations were wrong: with tides at 03, 09, 15, 21 UTC, the clock shows 5, 11, 17, 23 after the change in spring, and 4, 10, 16, 22 after the one in autumn. Correcting the test before the code.",
           edit("tests/test_tides.py", "    (date(2026, 3, 29), [4, 10, 16, 22]),\n    (date(2026, 10, 25), [3, 9, 15, 21]),\n", "    (date(2026, 3, 29), [5, 11, 17, 23]),\n    (date(2026, 10, 25), [4, 10, 16, 22]),\n"))
    s.turn(None, bash("python -m pytest tests/test_tides.py -x", "Run the tide tests"))
    s.turn("Now the code: each tide is converted on its own.", edit("harborlog/tides.py", "    midnight = datetime.combine(day, time(), tzinfo=HARBOUR)\n    offset = midnight.utcoffset() or timedelta()\n    table = []\n", "    table = []\n"),
           edit("harborlog/tides.py", "        local = tide.at.replace(tzinfo=timezone.utc) + offset\n", "        local = tide.at.replace(tzinfo=timezone.utc).astimezone(HARBOUR)\n"))
    s.turn(None, read("harborlog/tides.py"))
    s.turn("`time` and `timedelta` are unused now.", edit("harborlog/tides.py", "from datetime import date, datetime, time, timedelta, timezone\n", "from datetime import date, datetime, timezone\n"))
    s.turn(None, bash("python -m pytest tests/test_tides.py -v", "Run the tide tests"))
    s.turn(None, bash("python -m pytest tests/test_tides.py -k harbour_clock -v", "Only the harbour clock"))
    s.turn("Does the server itself know the change days, or has it an old zone table?", bash("zdump -v Europe/Berlin | grep 2026", "Change days known to the server",
           out="Europe/Berlin  Sun Mar 29 00:59:59 2026 UT = Sun Mar 29 01:59:59 2026 CET isdst=0\nEurope/Berlin  Sun Mar 29 01:00:00 2026 UT = Sun Mar 29 03:00:00 2026 CEST isdst=1\nEurope/Berlin  Sun Oct 25 00:59:59 2026 UT = Sun Oct 25 02:59:59 2026 CEST isdst=1\nEurope/Berlin  Sun Oct 25 01:00:00 2026 UT = Sun Oct 25 02:00:00 2026 CET isdst=0"))
    s.turn("It does. Right for all four days. Since a keel is at stake, I'll compare a whole year against a conversion done by another tool, day by day.", bash("TZ=Europe/Berlin ./tools/compare_tides.sh 2026 | tail -n 140", "Compare a year with the tables of coreutils date",
           out="\n".join(f"{datetime(2026, 1, 1) + timedelta(days=d):%Y-%m-%d}  tides 4  same 4  worst 0 min" for d in range(226, 365)) + "\nyear: 1460 tides, 1460 same, 0 differ"))
    s.turn("1460 of 1460. Is the wrong offset anywhere else, in the reminders for instance, which compare days?", grep(r"datetime\.now|utcnow|\.date\(\)"), read("harborlog/reminders.py"), read("harborlog/store.py"))
    s.turn("Reminders use the server's local time and compare dates only; a shift of one hour does not matter there. I leave them alone.", bash("git diff harborlog/tides.py", "The change so far"))
    s.turn("Is the `under_keel` warning built on the same table? It takes the lows of one day, so a low that slid over midnight by the wrong offset was missing from it.", grep(r"under_keel|day_table"), read("tests/test_tides.py", offset=20, limit=30))
    s.turn("It is. A test that shows it: a low shortly before midnight belongs to that day, whatever the offset was when the day began.", edit("tests/test_tides.py", "def test_low_water_counts_for_the_keel():",
           "def test_a_low_just_before_midnight_belongs_to_the_day():\n    start = datetime(2026, 3, 29, 12)\n    table = day_table(wave(start, 24), date(2026, 3, 29))\n    assert [(t.kind, t.at.hour) for t in table] == [(\"high\", 17), (\"low\", 23)]\n\n\ndef test_low_water_counts_for_the_keel():"))
    s.turn(None, bash("python -m pytest tests/test_tides.py -v", "Run the tide tests"))
    closing(s, "Tide table: convert every tide, not the day", how="-v", docs=edit("CHANGELOG.md", "## Unreleased\n", "## Unreleased\n- **Tide tables of the two days on which the clocks change were an hour off after 02:00.** They are right now.\n"))
    s.turn("Found and fixed. `day_table` took the UTC offset at midnight and used it all day, so on the two change days everything after 02:00 was off: an hour early in March, an hour late in October. Every tide is converted on its own now.\n\n"
           "I compared all 1460 tides of 2026 with an independent conversion: no difference. The warning for water under the keel uses the same table, so it was affected on those days as well, and has a test now.")
    s.system("turn_duration", durationMs=355_007)


def tell_reminders(s):
    s.user("Good work. Now the embarrassing one: some guests got the arrival reminder twice, sometimes three times. It seems to happen when the server is restarted. Log is in var/harborlog.log, yesterday's. README says nothing is sent twice, so that's the bar.")
    s.user(REMINDER.format("The task list has not been used in this session yet. For work of several steps it may help."), meta=True)
    s.turn("I'll keep a list for this one.", todo("> understand from the log when mails go out twice", "reproduce in a test", "fix", "whole suite, commit"))
    s.turn(None, bash("tail -n 280 var/harborlog.log", "Yesterday's log"), read("harborlog/reminders.py"), read("tests/test_reminders.py"),
           think="run() sends the whole batch and marks at the end. If the process is stopped between the first send and mark_reminded, all mails sent so far are unmarked; at start-up run() is called again, and they're sent once more. Exactly matches 'restart'. "
                 "At most once vs at least once: README says nothing is sent twice, so mark before sending: a crash between mark and send loses one reminder. Marking per booking right after sending narrows the window but doesn't close it. 'Nothing is sent twice' → claim first, then send; on OSError release the claim.")
    s.turn("Twice in that log a SIGTERM falls between `mail … queued` and `reminders: n due, n sent`, and after the restart the same run begins anew. The grep for the decisive lines only:", bash("grep -E 'SIGTERM|listening|reminders:' var/harborlog.log", "Restarts and reminder runs"))
    s.turn("So a run that is cut off forgets what it has sent: `mark_reminded` is called once, after the loop. The store side:", read("harborlog/store.py"), grep(r"mark_reminded|reminders_sent|reminders\.run"), interleaved=True)
    s.turn(None, todo("x understand from the log when mails go out twice", "> reproduce in a test", "fix", "whole suite, commit"))
    s.turn("The test stops the run in the middle, as a SIGTERM does, and runs again.", edit("tests/test_reminders.py", "def test_a_failing_address_does_not_stop_the_others():",
           "def test_a_stop_in_the_middle_loses_nothing_that_was_sent():\n    store, out = memory_store([booking(arrive=date(2026, 7, 3), email=\"a@x.example\"), booking(arrive=date(2026, 7, 3), email=\"b@x.example\")]), []\n\n    def send(to, text):\n        out.append(to)\n        if len(out) == 2:\n            raise SystemExit(143)\n\n"
           "    with pytest.raises(SystemExit):\n        reminders.run(store, send, NOW)\n    reminders.run(store, lambda to, text: out.append(to), NOW)\n    assert out == [\"a@x.example\", \"b@x.example\"]\n\n\ndef test_a_failing_address_does_not_stop_the_others():"))
    s.turn(None, bash("python -m pytest tests/test_reminders.py -v", "Run the reminder tests"))
    s.turn("Reproduced. I'll watch the tests while I work on it.", bash("python -m pytest tests/test_reminders.py --looponfail", "Keep the tests running"), answered=False)
    s.user("That one hangs, I closed the window and came back with a new one. Please don't start watchers. Go on with the fix.")
    s.user("<local-command-caveat>The lines below come from commands the user ran in the client; they are here for context only.</local-command-caveat>", meta=True)
    s.turn("Understood, no watchers. On with the fix: claim first, then send; a claim is given back only when the mail server refuses the mail.", todo("x understand from the log when mails go out twice", "x reproduce in a test", "> fix", "whole suite, commit"),
           think="The call before was cut off; nothing was changed by it. Continue: store.claim_reminder(id, now) -> bool inserts into reminder with a unique constraint; two processes racing also can't both send. store.release_reminder(id). Schema: unique index on reminder(booking). Existing data may hold duplicates (that's the bug!), so the index creation would fail on the live database: need to delete duplicates first, or make a new table.")
    s.turn(None, edit("harborlog/store.py", "    def mark_reminded(self, ids: list[int], at: datetime) -> None:\n        with self.transaction() as db:\n            db.executemany(\"insert into reminder values (?, ?)\", [(i, at.isoformat()) for i in ids])\n",
           "    def claim_reminder(self, booking: int, at: datetime) -> bool:\n        \"\"\"True for the one caller that may send; of two processes that race, the other gets False.\"\"\"\n        with self.transaction() as db:\n            done = db.execute(\"insert or ignore into reminder values (?, ?)\", (booking, at.isoformat()))\n            return done.rowcount == 1\n\n"
           "    def release_reminder(self, booking: int) -> None:\n        with self.transaction() as db:\n            db.execute(\"delete from reminder where booking = ?\", (booking,))\n"))
    s.turn(None, bash("git diff --stat", "Only the store so far"))
    s.turn(None, edit("harborlog/reminders.py", "    sent = []\n    for booking in batch:\n        try:\n            send(booking.vessel.owner_email, render(booking))\n        except OSError as error:\n            log.warning(\"reminder for booking %s failed: %s\", booking.id, error)\n            continue\n        sent.append(booking.id)\n    store.mark_reminded(sent, now)\n    log.info(\"reminders: %s due, %s sent\", len(batch), len(sent))\n    return len(sent)\n",
           "    sent = 0\n    for booking in batch:\n        if not store.claim_reminder(booking.id, now):\n            continue\n        try:\n            send(booking.vessel.owner_email, render(booking))\n        except OSError as error:\n            store.release_reminder(booking.id)\n            log.warning(\"reminder for booking %s failed: %s\", booking.id, error)\n            continue\n        sent += 1\n    log.info(\"reminders: %s due, %s sent\", len(batch), sent)\n    return sent\n"))
    s.turn("`insert or ignore` needs something to ignore: a unique index. Is the live table free of duplicates? It cannot be, that is the bug.", bash("sqlite3 -readonly -column -header var/harborlog.db \"select booking, count(*) n, min(sent_at) first, max(sent_at) last from reminder group by 1 having n > 1\"", "Guests who were written to twice",
           out=table(random.Random(9), ["booking", "n", "first", "last"], 88, lambda r, i: [4100 + i * 3 % 70, r.choice([2, 2, 2, 3]), f"2026-06-{(d := r.randint(3, 29)):02}T{(h := r.randint(6, 20)):02}:{r.randint(0, 29):02}:00", f"2026-06-{d:02}T{h:02}:{r.randint(30, 59)}:00"])))
    s.turn("88 bookings. The schema script runs at every start, so it can clean up before it makes the index; keeping the first mail's time.", edit("harborlog/store.py", "    booking integer not null references booking(id), sent_at text not null\n);\n",
           "    booking integer not null references booking(id), sent_at text not null\n);\ndelete from reminder where rowid not in (select min(rowid) from reminder group by booking);\ncreate unique index if not exists one_reminder on reminder(booking);\n"))
    s.turn(None, bash("python -m pytest tests/test_reminders.py -v", "Run the reminder tests"))
    s.turn("Does anything else still call the old verb, or read the column in another way?", grep(r"mark_reminded|from reminder|into reminder"), read("harborlog/store.py", offset=14, limit=26))
    s.turn("Against a copy of the live database, started twice and killed in between:", bash("cp var/harborlog.db /tmp/h.db && ./tools/kill_and_restart.sh /tmp/h.db 20", "Kill the server 20 times in the middle of a run",
           out="\n".join(f"run {i + 1:>2}: {random.Random(i).randint(0, 9)} mails before SIGTERM, {random.Random(i + 50).randint(0, 5)} after restart, twice: 0" for i in range(20)) + "\n20 runs, 0 guests written to twice, 1 reminder claimed and not sent (run 12)"))
    s.turn(None, todo("x understand from the log when mails go out twice", "x reproduce in a test", "x fix", "> whole suite, commit"))
    closing(s, "A reminder is claimed before it is sent", docs=edit("CHANGELOG.md", "- The gauge import reads", "- Reminders are claimed before they are sent: a restart no longer sends them twice.\n- The gauge import reads"))
    s.turn("The reminders are claimed one by one **before** they go out, under a unique index, so neither a restart nor a second process can send one twice. The price of that: if the process dies between claim and send, that one reminder is not sent (1 in 20 deliberate kills). "
           "Your README makes that choice; if you would rather have it the other way round, it is the order of two lines in `reminders.run`.\n\n88 bookings had duplicates in the live database; the start-up script keeps the first of each.")
    s.system("turn_duration", durationMs=433_918)


def tell_wrap_up(s):
    s.user("I'm fine with that choice. Last thing for today: go over everything you changed once more with fresh eyes, look for leftovers, make 0.7.0 out of it and write me a short summary for the office, without jargon.")
    s.turn("Starting from the commits of today and the current sources, not from memory.", bash("git log --oneline -15", "Commits of today"), bash("git status --short", "Anything uncommitted"), read("CHANGELOG.md"), read("pyproject.toml"))
    s.turn(None, read("harborlog/ledger.py"), read("harborlog/tariff.py"), read("harborlog/gauges.py"), read("harborlog/tides.py"))
    s.turn(None, read("harborlog/reminders.py"), read("harborlog/store.py"), interleaved=True)
    s.turn("Leftovers I can search for: floats, unused imports, names of things that are gone, TODOs.", grep(r"mark_reminded|float\(|TODO|FIXME|XXX"), bash("ruff check . --select F,ERA,T20", "Unused names, dead code, prints"))
    s.turn(None, bash("git diff --stat", "Nothing uncommitted"))
    s.turn(None, bash("wc -l harborlog/*", "Sizes"), ("Grep", {"pattern": "0\\.6\\.2", "output_mode": "content"}))
    s.turn("`season_of` hard-codes months, which is fine. One real leftover: `Quote.total` was rounded, and is a sum of rounded parts now, so its `@property` is right. `free_berths` and the berth list deserve a look at live data, since they use the new rule too.",
           bash("curl -s localhost:8320/v1/berths", "All berths"), bash("curl -s 'localhost:8320/v1/berths/free?length=9.4&arrive=2026-07-05&leave=2026-07-08' | head -c 600", "Free berths for a turnover day", out=harborlog.berths_json(random.Random(2))[:600]))
    s.turn("Free berths now offers the ones that become free on the day itself. Version and changelog:", edit("pyproject.toml", 'version = "0.6.2"', 'version = "0.7.0"'), edit("CHANGELOG.md", "## Unreleased\n", "## Unreleased\n\n## 0.7.0\n"))
    s.turn(None, ("Edit", {"file_path": ROOT + "harborlog/version.py", "old_string": "0.6.2", "new_string": "0.7.0"}))
    s.turn("There is no version module; `pyproject.toml` is the only place. Good.", bash("python -m pytest -v", "Run the whole test suite"))
    s.turn(None, bash("git diff", "Show the change"))
    s.turn(None, bash('git add -A && git commit -m "0.7.0"', "Commit the release"))
    s.turn("Everything is in 0.7.0. For the office:\n\n> **What is better from today on**\n> - A berth can be given to a new crew on the day the old one leaves. Just book it; no more phone notes.\n> - Invoices match the printed price list to the cent.\n"
           "> - The gauge files from the new PC can be imported again, and no hour is missing any more.\n> - The tide table is right on the days when the clocks change. It was wrong by an hour on 29 March; please tell the skipper we are sorry.\n> - Nobody gets the arrival mail twice.\n\n"
           "What I looked at again and left as it is: season borders by month, the server's own clock for reminders, and rows marked `est` in the gauge files, which are treated like measured ones.")
    s.system("turn_duration", durationMs=201_664)


def write(path):
    s = build()
    path.write_text("".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in s.lines), encoding="utf-8")
    return s
