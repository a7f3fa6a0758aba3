#!/usr/bin/env python3
"""Writes testdata/sessions/: sessions of our own making, the same bytes on every run (Python 3.11 or later, standard library only).

    python3 testdata/make_sessions.py            # writes
    python3 testdata/make_sessions.py --check    # exits 1 when the committed files differ from what would be written

The long coding session comes from make_sessions_coding.py; everything else is here. All text is ours.
"""
import base64
import json
import random
import struct
import sys
import tempfile
import zlib
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
import make_sessions_coding as coding  # noqa: E402

OUT = Path(__file__).parent / "sessions"


def png(rng, side=24):
    """A small picture: noise over a gradient, so that it does not compress to nothing."""
    rows = b"".join(b"\0" + bytes(min(255, x * 9 + y * 2 + rng.randrange(24)) for x in range(side) for _ in "rgb") for y in range(side))

    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")).decode()


def opaque(rng, n):
    return base64.b64encode(rng.randbytes(n)).decode()


class Num(str):
    """A number whose spelling must survive: 1.0e0, 0.70, -0."""


def odd(value, rng, depth=0):
    """JSON as odd serialisers write it: stray white space, escaped slashes, some characters as \\u escapes, in either case of the hex digits."""
    def gap():
        return rng.choice(["", "", "", " ", "  ", "\n" + "\t" * depth, "\r\n"]) if rng.random() < .3 else ""

    def text(s):
        if rng.random() < .5:
            return json.dumps(s, ensure_ascii=False).replace("/", rng.choice(["/", "\\/"]))
        spelled = (rng.choice([f"\\u{ord(c):04x}", f"\\u{ord(c):04X}"]) if c.isalpha() and ord(c) < 0xD800 and rng.random() < .04 else json.dumps(c)[1:-1] for c in s)
        return '"' + "".join(spelled) + '"'

    if isinstance(value, Num):
        return str(value)
    if isinstance(value, str):
        return text(value)
    if isinstance(value, dict):
        # The keys stay plain: a reader may look for them, the white space around them is free.
        return "{" + ",".join(f"{gap()}{json.dumps(k)}{gap()}:{gap()}{odd(v, rng, depth + 1)}{gap()}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(f"{gap()}{odd(v, rng, depth + 1)}{gap()}" for v in value) + "]"
    return json.dumps(value)


# ---- OpenAI Chat Completions: a support desk ----------------------------------------------------------------------------------------------

def function(name, about, **params):
    return {"type": "function", "function": {"name": name, "description": about, "parameters": {"type": "object", "properties": {k: {"type": t} for k, t in params.items()}, "required": list(params)}}}


def support_chat():
    """60 messages. Call ids start at call_0 again in every turn, as several servers do; one picture; reasoning_content; unknown fields."""
    rng = random.Random(41)
    bikes = ["Lastenrad \"Muli\"", "Tandem", "Kinderrad 20″", "Pedelec Größe M", "Faltrad", "Gravel 56"]
    stations = ["Nordbrücke", "Marktplatz", "Café Ørsted", "Hafentor", "Universität/Süd"]

    def trip(i):
        return {"trip": 70_000 + i * 137, "bike": rng.choice(bikes), "from": rng.choice(stations), "to": rng.choice(stations), "minutes": rng.randint(4, 180),
                "price": f"{rng.uniform(1, 24):.2f} €", "locked": rng.random() < .8, "gps": [[round(54.32 + rng.random() / 50, 5), round(10.13 + rng.random() / 50, 5)] for _ in range(rng.randint(2, 14))]}

    def trips(n):
        return json.dumps({"trips": [trip(i) for i in range(n)], "next": None}, ensure_ascii=False)

    cases = [
        ("My last trip is still running although I locked the bike an hour ago.", [("list_trips", {"customer": 88123, "limit": 12}, trips(12))], [("end_trip", {"trip": 71096, "at": "2026-05-04T09:12:00+02:00"}, '{"ok":true,"charged":"3.20 €"}')],
         "The lock reported 09:12, so I ended the trip at that time. You pay 3.20 € instead of the running amount."),
        ("Where is the nearest cargo bike? I am at the Nordbrücke.", [("find_bikes", {"near": "Nordbrücke", "kind": "cargo"}, json.dumps([{"bike": f"M-{i}", "metres": 90 * i + 40, "charge": rng.randint(8, 100)} for i in range(1, 9)])), ("weather", {"at": "Kiel"}, "Regen, 9 °C, Böen bis 60 km/h")], [],
         "The nearest one with enough charge is M-2, 220 m away. It is raining with strong gusts, so please ride carefully."),
        ("I was charged a parking fee of 15 €. The photo shows where the bike stands.", [("get_fee", {"id": "F-2291"}, '{"fee":"15.00 €","reason":"outside zone","zone":"Hafentor"}'), ("zone_map", {"zone": "Hafentor"}, json.dumps({"polygon": [[round(54.31 + rng.random() / 90, 6), round(10.14 + rng.random() / 90, 6)] for _ in range(160)]}))],
         [("cancel_fee", {"id": "F-2291", "why": "photo shows rack inside zone"}, "")], "Your photo shows the rack by the gate, which is inside the zone; the position was off by a few metres. I cancelled the fee."),
        ("Can I get an invoice for the company, with VAT, for all of April?", [("list_trips", {"customer": 88123, "limit": 40, "month": "2026-04"}, trips(40))], [("make_invoice", {"month": "2026-04", "name": "Müller & Søn ApS"}, '{"url":"https:\\/\\/bikes.example\\/i\\/2026-04.pdf","pages":3}')],
         "Here it is, three pages: https://bikes.example/i/2026-04.pdf"),
        ("The app says error E-17 when I scan the code.", [("search_help", {"q": "E-17"}, "E-17: the clock of the phone is off by more than two minutes. Set it to automatic.\n\nSee also: E-16 (no camera), E-18 (code dirty)")], [], "That error means that the clock of your phone is off. Please set it to automatic and scan again."),
        ("It works, thank you! While I have you: how many kilometres did I ride this year?", [("list_trips", {"customer": 88123, "limit": 60, "year": 2026}, trips(60))], [("sum_distance", {"trips": "last"}, '{"km": 412.70}')], "412.7 km so far, which is about the way from Kiel to Cologne. 🚲"),
        ("A wheel of the tandem wobbles. Is it safe to ride back?", [("report_damage", {"bike": "Tandem 4", "part": "rear wheel"}, "ERROR 503: workshop service is not available, try again later"), ("bike_log", {"bike": "Tandem 4"}, "\n".join(f"2026-04-{d:02} inspection {rng.choice(['ok', 'ok', 'spoke replaced', 'brake adjusted'])}, mechanic {rng.randint(1, 9)}" for d in range(1, 29)))],
         [("report_damage", {"bike": "Tandem 4", "part": "rear wheel"}, '{"ticket":"W-5512"}')], "Please leave it where it stands; I opened ticket W-5512 and the trip ends free of charge."),
        ("还有一个问题：我可以用中文和你们联系吗？", [("languages", {}, '["de","en","da","zh","ar"]')], [], "可以。中文客服时间为周一至周五 9:00–17:00。"),
        ("Great. Please delete my old card, the one ending in 0004.", [("list_cards", {}, '[{"id":"c_1","last4":"0004"},{"id":"c_2","last4":"9926"}]')], [("delete_card", {"id": "c_1"}, "null")], "Done. The card ending in 9926 is the only one left."),
        ("And close the ticket W-5512 for me when the wheel is repaired, with a message.", [("watch_ticket", {"ticket": "W-5512"}, '{"watching":true}')], [], "You will get a message when it is repaired."),
        ("One more: two of us want to ride on Sunday, is the other tandem free?", [("find_bikes", {"near": "Marktplatz", "kind": "tandem"}, "[]"), ("find_bikes", {"near": "Hafentor", "kind": "tandem"}, '[{"bike":"Tandem 2","metres":35,"charge":null}]')], [], "Yes, Tandem 2 stands at the Hafentor and is free on Sunday."),
    ]
    messages = [{"role": "system", "content": "You answer for a city bike company. Be brief and friendly. Look things up before you say them; never guess an amount.\n\nZones: " + ", ".join(stations)}]
    for n, (ask, first, second, answer) in enumerate(cases):
        content = ask
        if "photo" in ask:
            content = [{"type": "text", "text": ask}, {"type": "image_url", "image_url": {"url": "data:image/png;base64," + png(rng, 40), "detail": "low"}}]
        messages.append({"role": "user", "content": content, **({"name": "Käthe"} if n % 4 == 1 else {})})
        for calls in filter(None, (first, second)):
            messages.append({"role": "assistant", "content": None if n % 3 else "", "tool_calls": [{"id": f"call_{i}", "type": "function", "function": {"name": name, "arguments": json.dumps(args, ensure_ascii=n % 2 == 0)}, **({"index": i} if n % 2 else {})} for i, (name, args, _) in enumerate(calls)],
                             **({"reasoning_content": f"The customer asks: {ask[:60]} I should look it up with {calls[0][0]} before answering."} if n % 2 == 0 else {}), **({"x_vendor": {"latency_ms": Num(f"{rng.randint(200, 900)}.50"), "cached": Num("1.0e0")}} if n % 5 == 0 else {})})
            results = [{"role": "tool", "tool_call_id": f"call_{i}", "content": out, **({"name": name} if n % 4 == 0 else {})} for i, (name, _, out) in enumerate(calls)]
            messages += results[::-1] if n == 6 else results
        messages.append({"role": "assistant", "content": answer, **({"refusal": None, "annotations": []} if n % 3 == 0 else {})})
    messages.append({"role": "user", "content": "Thank you, that is all for today. Could you repeat the ticket number once more?"})
    names = sorted({c[0] for _, a, b, _ in cases for c in a + b})
    body = {"model": "gpt-5-mini", "temperature": Num("0.70"), "tools": [function(n, n.replace("_", " ").capitalize() + ".", customer="integer") for n in names], "messages": messages, "x-request-tag": "support/41", "stream": False, "seed": Num("-0")}
    return odd(body, rng) + "\n"


# ---- OpenAI Responses: research ----------------------------------------------------------------------------------------------------------

def research_responses():
    rng = random.Random(42)
    lights = ["Varnholm", "Skarv Ness", "Otter Rock", "St. Brannoc", "Grauwacke", "Pointe aux Mouettes", "Tern Skerry", "Low Aldery"]
    makers = ["Barrel & Sons", "the Lund works", "Ateliers Morvan", "an unknown maker"]
    facts = ["was first lit in {y}", "carried a lens of the {o} order by {m}", "burned rape oil until {y}", "was raised by {n} feet after the storm of {y}", "lost its keeper's log for {y} in a fire",
             "showed {n} flashes a minute from {y} on", "was automated in {y}", "stood dark for {n} weeks in the winter of {y}"]

    def sentence(name):
        return f"{name} " + rng.choice(facts).format(y=rng.randint(1790, 1985), n=rng.randint(2, 31), o=rng.choice(["first", "second", "third", "fourth"]), m=rng.choice(makers)) + "."

    def page(name, n):
        return "\n\n".join(" ".join(sentence(rng.choice([name, "The station", "The tower"])) for _ in range(rng.randint(3, 7))) for _ in range(n))

    items = [{"role": "user", "content": "I am writing a chapter on the lights of the Aldery coast. Compare eight stations: first lit, lens, when automated. Name a source for everything."}]
    call = 0

    def reasoning(text=None):
        return {"type": "reasoning", "id": f"rs_{opaque(rng, 9)}", "summary": [{"type": "summary_text", "text": text}] if text else [], "encrypted_content": opaque(rng, rng.randint(200, 700))}

    def said(text, **more):
        return {"type": "message", "id": f"msg_{opaque(rng, 9)}", "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": text, "annotations": more.get("notes", []), "logprobs": []}], **({"phase": more["phase"]} if "phase" in more else {})}

    for n, name in enumerate(lights):
        items.append(reasoning(f"**Looking for {name}**\n\nThe pilot books and the board's reports should name the year; the lens may be in the museum's list." if n % 3 == 0 else None))
        if n % 2 == 0:
            items.append({"type": "web_search_call", "id": f"ws_{n}", "status": "completed", "action": {"type": "search", "query": f"{name} lighthouse first lit lens order", "sources": [{"type": "url", "url": f"https://lights.example/{n}/{k}"} for k in range(3)]}})
        batch = []
        for tool, args, out in [("open_page", {"url": f"https://lights.example/{n}/0"}, page(name, rng.randint(2, 14))), ("search_notes", {"query": name, "limit": 5}, json.dumps([{"note": k, "text": sentence(name)} for k in range(rng.randint(0, 5))], indent=1)),
                                ("read_scan", {"book": "Pilot of the North Coast", "page": 40 + n}, page("The light", 1))][: 1 + n % 3]:
            call += 1
            batch.append((f"call_{call:03}{opaque(rng, 6)}", tool, args, out))
        items += [{"type": "function_call", "id": f"fc_{opaque(rng, 9)}", "call_id": i, "name": tool, "arguments": json.dumps(args), "status": "completed"} for i, tool, args, _ in batch]
        rng.shuffle(batch)  # answered in another order than asked
        for k, (i, tool, _, out) in enumerate(batch):
            items.append({"type": "function_call_output", "call_id": i, "output": [{"type": "input_text", "text": out}, {"type": "input_image", "image_url": "data:image/png;base64," + png(rng), "detail": "auto"}] if tool == "read_scan" else out})
        if n == 3:
            items.append(said("Half of the stations are done; the dates for St. Brannoc contradict each other, I will look at the board's report.", phase="commentary"))
            items.append({"role": "user", "content": [{"type": "input_text", "text": "Good. If two sources disagree, give both.\nAnd please use the spelling “Skärv Ness” in the text."}]})
    items.append(reasoning("**Writing it up**"))
    items.append(said("| station | first lit | lens | automated |\n|---|---|---|---|\n" + "\n".join(f"| {name} | {rng.randint(1790, 1870)} | {rng.choice(['1st', '2nd', '3rd', '4th'])} order | {rng.randint(1950, 1985)} |" for name in lights),
                      notes=[{"type": "url_citation", "start_index": 3, "end_index": 9, "url": "https://lights.example/0/0", "title": "Varnholm"}]))
    items.append({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Now the same for the lens makers, please."}]})
    tools = [{"type": "web_search"}] + [{"type": "function", "name": name, "description": about, "strict": True, "parameters": {"type": "object", "properties": {p: {"type": "string"} for p in params}, "required": params, "additionalProperties": False}}
                                        for name, about, params in (("open_page", "Text of a web page", ["url"]), ("search_notes", "Search the author's notes", ["query", "limit"]), ("read_scan", "A page of a scanned book, as text and picture", ["book", "page"]))]
    body = {"model": "gpt-5.1", "instructions": "You help an author with research on lighthouses. Name a source for every statement. Say so when you found nothing.", "input": items, "tools": tools, "store": False,
            "include": ["reasoning.encrypted_content"], "reasoning": {"effort": "medium", "summary": "auto"}, "parallel_tool_calls": True, "prompt_cache_key": "chapter-4", "future_option": {"keep": [1, 2.50, None]}}
    return json.dumps(body, ensure_ascii=False, indent=2) + "\n"


# ---- Anthropic Messages: mixed scripts and every kind of block -----------------------------------------------------------------------

def mixed_messages():
    """The spelling of the surrogates matters, so this one is written with \\u escapes where a lone half stands."""
    rng = random.Random(43)
    zwj, half = "👩🏽\u200d🚀 👨\u200d👩\u200d👧\u200d👦 🏳️\u200d🌈 é (e\u0301)", "cut in the middle: \ud83d"

    def think(text):
        return {"type": "thinking", "thinking": text, "signature": opaque(rng, 120)}

    def use(i, name, **given):
        return {"type": "tool_use", "id": f"toolu_{i}", "name": name, "input": given}

    def result(i, content, **more):
        return {"type": "tool_result", "tool_use_id": f"toolu_{i}", "content": content, **more}

    def text(t, **more):
        return {"type": "text", "text": t, **more}

    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": png(rng, 32)}}
    mark = {"cache_control": {"type": "ephemeral"}}
    zh = "潮汐表显示，三月二十九日的高潮时间提前了一个小时。请检查夏令时的换算，并说明哪些港口受到影响。" * 3
    ar = "يُرجى ترجمة الإشعار إلى العربية قبل نهاية الأسبوع، مع الحفاظ على الأرقام كما هي: ١٢٣٫٤ و 5678. " * 3
    hi = "कृपया सूचना का अनुवाद करें; तारीख़ें और रकम वैसी ही रहनी चाहिए। घाट पर पानी का स्तर बढ़ रहा है। " * 3
    messages = [
        {"role": "user", "content": [text("Translate the harbour notice into Chinese, Arabic and Hindi. Source below.\r\n\r\nNOTICE\r\n1. The lock is closed.\r\n2. Channel 12.\r\n"), image]},
        {"role": "assistant", "content": [think("Three languages; the glossary first."), text("I'll read the glossary and the picture's caption."), use(1, "read_file", path="glossary.csv"), use(2, "ocr", image=1), use(3, "read_file", path="missing.txt")]},
        {"role": "user", "content": [result(2, [text("LOCK CLOSED / 閉鎖 / مغلق"), image]), result(1, "en;zh;ar;hi\r\n" + "".join(f"term {i};词{i};كلمة {i};शब्द {i}\r\n" for i in range(120))), result(3, "no such file: missing.txt", is_error=True), text("(The missing file was my mistake.)")]},
        {"role": "assistant", "content": [{"type": "redacted_thinking", "data": opaque(rng, 90)}, text(zh), use(4, "check", text=zh, lang="zh")]},
        {"role": "user", "content": [result(4, "")]},
        {"role": "assistant", "content": [use(5, "check", text=ar, lang="ar"), use(6, "check", text=hi, lang="hi")]},
        {"role": "user", "content": [result(5, [text("ok"), text("٣ أسطر")]), {"type": "tool_result", "tool_use_id": "toolu_6"}]},
        {"role": "assistant", "content": [text(ar), text(hi), text(zwj)]},
        {"role": "user", "content": "Someone pasted this into the guest book; what is it?\n\n" + half + "\n" + zwj + "\x00\u2028\u2029\ufeff"},
        {"role": "assistant", "content": [think("A lone surrogate. I should look at the bytes."), use(7, "hexdump", text="\ud83d", low="\ude00\ud83d")]},
        {"role": "user", "content": [result(7, "0000  3f        " + "\ud83d" + " high half without its low half\r\n0001  \udc00 and a low one alone", **mark)]},
        {"role": "assistant", "content": [text("Half of an emoji: the text was cut between the two 16-bit units. Likely 😀.")]},
        {"role": "user", "content": [text("Then scan all entries of last year, please."), {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "Guest book, 2025\n" + "\n".join(f"{i}. {rng.choice(['Schön war’s!', '很好', 'ممتاز', 'बहुत अच्छा', 'Fint!', '👍🏿'])}" for i in range(150))}, "title": "guestbook.txt"}]},
        {"role": "assistant", "content": [think("One scan a month, four at a time."), *[use(10 + i, "scan", month=i + 1, **{"from": 0, "deep": True}) for i in range(4)]]},
        {"role": "user", "content": [result(10 + i, "\n".join(f"entry {i * 400 + k}: {'half pair at ' + str(rng.randint(3, 80)) if rng.random() < .05 else 'clean'}" for k in range(rng.choice([20, 90, 220])))) for i in (2, 0, 3, 1)] + [text("Stop after April, that is enough.")]},
        {"role": "assistant", "content": [{"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "lone surrogate utf-16"}}, {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [{"type": "web_search_result", "url": "https://text.example/surrogates", "title": "Surrogates", "encrypted_content": opaque(rng, 200), "page_age": None}]}, text("The cut happens in the form's length limit, which counts 16-bit units.")]},
        {"role": "user", "content": [text("Thanks. Where would you fix it?", **mark)]},
    ]
    body = {"model": "claude-sonnet-4-5", "max_tokens": 4096, "system": [text("You translate notices for a harbour. Keep numbers as they are."), text("Glossary terms are binding.\r\nTone: plain.", **mark)], "thinking": {"type": "enabled", "budget_tokens": 2048},
            "tools": [{"name": n, "description": n, "input_schema": {"type": "object"}, **(mark if n == "scan" else {})} for n in ("read_file", "ocr", "check", "hexdump", "scan")], "messages": messages, "metadata": {"user_id": "guest-book"}}
    spelled = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    return "".join(f"\\u{ord(c):04x}" if 0xD800 <= ord(c) < 0xE000 else c for c in spelled)


# ---- small ones ---------------------------------------------------------------------------------------------------------------------------

def orphans():
    """A result without its call, a call that is never answered, and a result that comes one message too late."""
    return json.dumps({"model": "claude-sonnet-4-5", "max_tokens": 512, "messages": [
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_gone", "content": "The call of this result was trimmed away."}, {"type": "text", "text": "Go on with the list."}]},
        {"role": "assistant", "content": [{"type": "text", "text": "Looking at both shelves."}, {"type": "tool_use", "id": "toolu_a", "name": "shelf", "input": {"n": 1}}, {"type": "tool_use", "id": "toolu_b", "name": "shelf", "input": {"n": 2}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_a", "content": "shelf 1: 14 jars"}]},
        {"role": "assistant", "content": "Shelf 1 holds 14 jars; shelf 2 has not answered yet."},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_b", "content": "shelf 2: 9 jars (late)"}, {"type": "text", "text": "And the cellar?"}]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_c", "name": "cellar", "input": {}}]},
        {"role": "user", "content": "Never mind the cellar, I was there myself. How many jars in all?"}]}, indent=1) + "\n"


def huge_result():
    rng = random.Random(44)
    rows = "\n".join(f"{i:05} {rng.choice(['GET', 'GET', 'POST'])} /{rng.choice(['tiles', 'search', 'route'])}/{rng.getrandbits(32):08x} {rng.choice([200, 200, 200, 304, 404, 500])} {rng.randint(1, 900)} ms" for i in range(1480))
    return json.dumps({"model": "gpt-5-mini", "messages": [{"role": "user", "content": "How many requests failed?"}, {"role": "assistant", "content": None, "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "read_log", "arguments": '{"file":"access.log"}'}}]},
                       {"role": "tool", "tool_call_id": "call_1", "content": rows}, {"role": "assistant", "content": f"{rows.count(' 500 ')} with status 500."}, {"role": "user", "content": "And how many were slower than 800 ms?"}]}) + "\n"


STEPS = [  # what the agents of the four recorders below do: thought, shell command, output, exit code
    ("I'll look at the project first.", "ls -R", "bake.py\nrecipes/bread.toml\nrecipes/rolls.toml\ntests/test_bake.py", 0),
    ("The scaling is in bake.py.", "cat bake.py", "import tomllib\n\n\ndef scale(recipe, loaves):\n    factor = loaves / recipe['loaves']\n    return {k: round(v * factor) for k, v in recipe['grams'].items()}\n", 0),
    ("What do the tests say?", "python -m pytest -q", "F.\nE   assert 2 == 1.5\nFAILED tests/test_bake.py::test_salt_is_not_rounded_away\n1 failed, 1 passed in 0.03s", 1),
    ("Salt is weighed in half grams; rounding to whole grams is too coarse.", "grep -n round bake.py", "6:    return {k: round(v * factor) for k, v in recipe['grams'].items()}", 0),
    ("I'll round to half a gram.", "sed -i 's/round(v \\* factor)/round(v * factor * 2) \\/ 2/' bake.py", "", 0),
    (None, "python -m pytest -q", "..\n2 passed in 0.02s", 0),
    ("Does the roll recipe still add up?", "python -m bake recipes/rolls.toml 12", "\n".join(f"{name:<12}{grams:>8.1f} g" for name, grams in [("flour", 1020), ("water", 640.5), ("salt", 20.5), ("yeast", 7), ("butter", 60)]), 0),
]
TASK, DONE = "The salt in small batches is rounded to whole grams. Half grams would be right. Please fix it.", "Amounts are rounded to half grams now; both tests pass."


def codex():
    at, lines = iter(f"2026-05-11T10:{m:02}:{s:02}.000Z" for m in range(60) for s in (3, 17, 29, 48)), []
    rng = random.Random(45)

    def line(kind, **payload):
        lines.append({"timestamp": next(at), "type": kind, "payload": payload})

    def message(role, text):
        line("response_item", type="message", role=role, content=[{"type": "output_text" if role == "assistant" else "input_text", "text": text}])

    line("session_meta", id="019e1b52-0000-7000-8000-00000000b4ce", timestamp="2026-05-11T10:00:00.000Z", cwd="/home/jo/bakery", originator="codex_cli_rs", cli_version="0.150.0", instructions="Small steps. Run the tests.", git={"branch": "main"})
    line("turn_context", cwd="/home/jo/bakery", approval_policy="never", model="gpt-5-codex", summary="auto")
    message("user", "<environment_context>\n  <cwd>/home/jo/bakery</cwd>\n  <shell>bash</shell>\n</environment_context>")
    message("user", TASK)
    line("event_msg", type="user_message", message=TASK)
    used = 5200
    for n, (thought, command, output, code) in enumerate(STEPS):
        line("response_item", type="reasoning", summary=[{"type": "summary_text", "text": f"**{thought}**"}] if thought else [], content=None, encrypted_content=opaque(rng, 180))
        if thought and n % 2 == 0:
            message("assistant", thought)
            line("event_msg", type="agent_message", message=thought)
        if command.startswith("sed"):
            line("response_item", type="custom_tool_call", status="completed", call_id=f"call_{n}", name="apply_patch", input="*** Begin Patch\n*** Update File: bake.py\n@@\n-    return {k: round(v * factor) for k, v in recipe['grams'].items()}\n+    return {k: round(v * factor * 2) / 2 for k, v in recipe['grams'].items()}\n*** End Patch")
            line("response_item", type="custom_tool_call_output", call_id=f"call_{n}", output="Updated bake.py")
        else:
            line("response_item", type="function_call", name="shell", arguments=json.dumps({"command": ["bash", "-lc", command], "workdir": "/home/jo/bakery"}), call_id=f"call_{n}")
            line("response_item", type="function_call_output", call_id=f"call_{n}", output=json.dumps({"output": output, "metadata": {"exit_code": code, "duration_seconds": 0.1}}))
        used += 160 + len(command + output) // 4
        line("event_msg", type="token_count", info={"last_token_usage": {"input_tokens": used, "cached_input_tokens": used - 260, "output_tokens": 60}, "model_context_window": 272000})
    message("assistant", DONE)
    return "".join(json.dumps(item) + "\n" for item in lines)


def gemini():
    messages = [{"id": "m0", "timestamp": "2026-05-11T11:00:00.000Z", "type": "user", "content": TASK}]
    for n, (thought, command, output, code) in enumerate(STEPS):
        call = f"run_shell_command-{n}"
        response = {"output": output} if code == 0 else {"error": f"exit code {code}\n{output}"}
        messages.append({"id": f"m{2 * n + 1}", "timestamp": f"2026-05-11T11:0{n + 1}:00.000Z", "type": "gemini", "content": thought or "", "thoughts": [{"subject": "Next step", "description": f"I want to run {command.split()[0]} and look at the result.", "timestamp": f"2026-05-11T11:0{n + 1}:00.000Z"}],
                         "toolCalls": [{"id": call, "name": "run_shell_command", "args": {"command": command}, "result": [{"functionResponse": {"id": call, "name": "run_shell_command", "response": response}}], "status": "success" if code == 0 else "error", "timestamp": f"2026-05-11T11:0{n + 1}:02.000Z", "resultDisplay": output[:200], "displayName": "Shell"}],
                         "model": "gemini-2.5-pro", "tokens": {"input": 5000 + 300 * n, "output": 40, "cached": 4096 if n else 0, "thoughts": 60, "tool": 0, "total": 5100 + 300 * n}})
        if n == 3:
            messages.append({"id": "m-info", "timestamp": "2026-05-11T11:04:30.000Z", "type": "info", "content": "Switched to the workspace's settings."})
            messages.append({"id": "m-user", "timestamp": "2026-05-11T11:04:40.000Z", "type": "user", "content": "Yes, half a gram is what the scale shows."})
    picture = {"inlineData": {"mimeType": "image/png", "data": png(random.Random(46))}}
    messages.append({"id": "m20", "timestamp": "2026-05-11T11:08:00.000Z", "type": "gemini", "content": "", "toolCalls": [
        {"id": "read_file-20", "name": "read_file", "args": {"absolute_path": "/home/jo/bakery/scale.png"}, "result": [{"functionResponse": {"id": "read_file-20", "name": "read_file", "response": {"output": "Binary content of type image/png was read."}}}, picture], "status": "success", "timestamp": "2026-05-11T11:08:01.000Z"},
        {"id": "run_shell_command-21", "name": "run_shell_command", "args": {"command": "git push"}, "status": "cancelled", "timestamp": "2026-05-11T11:08:02.000Z"}], "model": "gemini-2.5-pro"})
    messages.append({"id": "m22", "timestamp": "2026-05-11T11:09:00.000Z", "type": "gemini", "content": DONE, "model": "gemini-2.5-pro"})
    return json.dumps({"sessionId": "5d0c7a10-0000-4000-8000-00000000b4ce", "projectHash": "b4ce" * 16, "startTime": "2026-05-11T11:00:00.000Z", "lastUpdated": "2026-05-11T11:09:00.000Z", "messages": messages}, indent=2, ensure_ascii=False)


def swe_agent():
    history = [{"role": "system", "content": "You work in a shell. One command at a time. Finish with `submit`.", "agent": "main", "message_type": "system_prompt"}, {"role": "user", "content": "ISSUE:\n" + TASK, "agent": "main", "message_type": "observation"}]
    trajectory = []
    for n, (thought, command, output, _) in enumerate(STEPS + [("All done.", "submit", DONE, 0)]):
        thought, output = thought or "Again the tests.", output + f"\n(Open file: n/a)\r\n(Current directory: /bakery)\r\nbash-$ "
        history.append({"role": "assistant", "content": thought, "thought": thought, "action": command, "agent": "main", "tool_calls": [{"function": {"arguments": json.dumps({"command": command}), "name": "bash"}, "id": f"call_{n % 3}", "type": "function"}], "message_type": "action"})
        history.append({"role": "tool", "content": output, "agent": "main", "message_type": "observation", "tool_call_ids": [f"call_{n % 3}"]})
        trajectory.append({"action": command, "observation": output, "response": thought, "thought": thought, "execution_time": 0.1 * n, "state": {"open_file": "n/a", "working_dir": "/bakery"}})
    info = {"submission": "--- a/bake.py\n+++ b/bake.py\n", "exit_status": "submitted", "model_stats": {"tokens_sent": 21000, "tokens_received": 700, "api_calls": 8}}
    return json.dumps({"trajectory": trajectory, "history": history, "info": info, "environment": "bakery"}, indent=2)


def openhands():
    events = [{"id": 0, "timestamp": "2026-05-11T12:00:00", "source": "user", "message": TASK, "action": "message", "args": {"content": TASK, "image_urls": None, "wait_for_response": False}},
              {"id": 1, "timestamp": "2026-05-11T12:00:00", "source": "environment", "message": "", "observation": "agent_state_changed", "content": "", "extras": {"agent_state": "running"}}]
    for n, (thought, command, output, code) in enumerate(STEPS):
        meta = {"function_name": "execute_bash", "tool_call_id": f"toolu_0{n + 1}", "total_calls_in_response": 1}
        call, at = len(events), f"2026-05-11T12:0{n + 1}:00"
        events.append({"id": call, "timestamp": at, "source": "agent", "message": f"Running command: {command}", "action": "run", "tool_call_metadata": meta, "args": {"command": command, "is_input": False, "thought": thought or "", "hidden": False}})
        events.append({"id": call + 1, "timestamp": at, "source": "agent", "message": f"Command `{command}` executed with exit code {code}.", "cause": call, "observation": "run", "tool_call_metadata": meta, "content": output, "extras": {"command": command, "metadata": {"exit_code": code, "working_dir": "/workspace"}}})
    events.append({"id": len(events), "timestamp": "2026-05-11T12:08:00", "source": "agent", "message": "", "observation": "error", "content": "The call could not be parsed: missing argument `command`.", "extras": {"error_id": ""}})
    call = len(events)
    events.append({"id": call, "timestamp": "2026-05-11T12:08:10", "source": "agent", "message": "Browsing", "action": "browse", "args": {"url": "http://localhost:8000/rolls", "thought": "How does the page look?"}})
    events.append({"id": call + 1, "timestamp": "2026-05-11T12:08:12", "source": "agent", "message": "Browsed", "cause": call, "observation": "browse", "content": "Rolls\nflour 1020.0 g\nsalt 20.5 g", "extras": {"url": "http://localhost:8000/rolls", "screenshot": "data:image/png;base64," + png(random.Random(47)), "error": False}})
    events.append({"id": call + 2, "timestamp": "2026-05-11T12:09:00", "source": "agent", "message": DONE, "action": "finish", "args": {"outputs": {"content": DONE}, "thought": ""}})
    return json.dumps(events, indent=1)


def main():
    check = "--check" in sys.argv[1:]
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "s.jsonl"
        session = coding.write(path)
        files = {"coding-agent.claude-code.jsonl": path.read_text(encoding="utf-8")}
    files |= {
        "support.openai-chat.json": support_chat(), "research.openai-responses.json": research_responses(), "mixed.anthropic-messages.json": mixed_messages(),
        "empty.openai-chat.json": "[]", "one.openai-chat.json": '[{"role":"user","content":"Hello?"}]', "orphans.anthropic-messages.json": orphans(), "huge-result.openai-chat.json": huge_result(),
        "codex.jsonl": codex(), "gemini-cli.json": gemini(), "swe-agent.traj": swe_agent(), "openhands.json": openhands(),
    }
    OUT.mkdir(exist_ok=True)
    stale = [name for name, text in files.items() if not (OUT / name).is_file() or (OUT / name).read_bytes() != text.encode()]
    if check:
        print("\n".join(f"stale: {name}" for name in stale) or "all files are as the script writes them")
        return 1 if stale else 0
    for name, text in files.items():
        (OUT / name).write_bytes(text.encode())
        print(f"{len(text.encode()):>9}  {name}")
    print(f"{sum(len(t.encode()) for t in files.values()):>9}  in all; {session.calls} model calls in the coding session")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
