"""Runs every policy at every window, bills the traces in one way, and prints the table and the goals."""

import argparse
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
ROWS = {"anthropic-5m": "Anthropic", "openai-5.5": "OpenAI before 5.6", "openai-5.6": "OpenAI 5.6+", "deepseek": "DeepSeek"}
# Prices of each row, in units of the plain input price: write, read, output. `economy` decides by them.
PRICES = {"anthropic-5m": "1.25,0.1,5", "openai-5.5": "1,0.1,6", "openai-5.6": "1.25,0.1,6", "deepseek": "1,0.02,2"}
# Policies of this project, with what is passed to the driver. Those that the program does not have are left out. Where
# `{price}` is among it, the policy is driven for every price row, and each bill is that of its own row.
OURS = {
    "default": [],
    "steady": ["--preset", "steady"],
    "economy": ["--preset", "economy", "--cache-price", "{price}"],
}
OTHERS = ["lovia", "harness-tiered", "harness-summarizing", "drop-oldest", "keep-newest-3", "nothing"]


def driver_of(options, name, window, row):
    if name not in OURS:
        return [sys.executable, os.path.join(HERE, "drive.py"), name, str(window), options.workload]
    given = [argument.replace("{price}", PRICES[row]) for argument in OURS[name]]
    return [options.program, "play", options.workload, "--name", name, "--window", str(window), *given]


def run(options, name, window):
    """Figures of one policy at one window: its driver's trace, billed."""
    by_row = any("{price}" in argument for argument in OURS.get(name, []))
    found = [billed(options, name, window, row) for row in (ROWS if by_row else list(ROWS)[:1])]
    if by_row:
        bills = [next(bill for bill in one["bills"] if bill["row"] == row) for one, row in zip(found, ROWS)]
        found[0]["bills"] = bills
    return found[0]


def billed(options, name, window, row):
    with subprocess.Popen(driver_of(options, name, window, row), stdout=subprocess.PIPE) as trace:
        bill = subprocess.run(
            [options.program, "bill", options.workload], stdin=trace.stdout, stdout=subprocess.PIPE, check=False
        )
        trace.stdout.close()
    if trace.returncode != 0 or bill.returncode != 0:
        sys.exit(f"{name} at {window}: the driver ended with {trace.returncode}, the bill with {bill.returncode}")
    return json.loads(bill.stdout)


def has(options, name):
    """Whether the program knows the preset."""
    with subprocess.Popen(driver_of(options, name, 64_000, "deepseek"), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as tried:
        first = tried.stdout.readline()
        tried.terminate()
    return first.startswith(b"{")


def bill(figures, row):
    return next(bill["microdollars"] for bill in figures["bills"] if bill["row"] == row) / 1e6


def own_calls(figures, row):
    return next(bill["summaries_microdollars"] for bill in figures["bills"] if bill["row"] == row) / 1e6


def uncovered(figures):
    return figures["uncovered_bytes"] / figures["new_bytes"]


def mean_view(figures):
    return figures["sent_bytes"] / figures["turns"]


def over(ratio):
    return f"{ratio:.2f}×"


def window_name(window):
    return f"{window // 1000}k" if window < 1_000_000 else f"{window // 1_000_000}M"


def table(results, names, windows):
    head = ["policy", "sent again ÷ new", "mean view", "passes", "breaks", *ROWS.values(), "own calls", "verbatim", "at the end"]
    out = []
    for window in windows:
        peer = results.get(("lovia", window))
        out.append(f"\n**{window_name(window)} window**\n")
        out.append("| " + " | ".join(head) + " |")
        out.append("|---|" + "--:|" * (len(head) - 1))
        for name in names:
            one = results[name, window]
            label = f"**{name}**" if name in OURS else name
            if one["over_window"]:
                label += f" ({one['over_window']} above the window)"
            money = []
            for row in ROWS:
                ratio = f" ({over(bill(one, row) / bill(peer, row))})" if peer and name != "lovia" else ""
                money.append(f"${bill(one, row):.2f}{ratio}")
            cells = [
                label,
                over(uncovered(one)),
                f"{mean_view(one) / 1000:,.0f} kB",
                str(one["passes"]),
                str(one["breaks"]),
                *money,
                f"{one['summaries']}, ${own_calls(one, 'anthropic-5m'):.2f}",
                f"{one['verbatim_share']:.1%}",
                f"{one['verbatim_at_end']:.1%}",
            ]
            out.append("| " + " | ".join(cells) + " |")
    return "\n".join(out)


def goals(results, windows):
    """Each goal at each window: what was measured, and whether it is met."""
    rows = []

    def goal(name, preset, measure, holds):
        for window in windows:
            one = results.get((preset, window))
            if one is None:
                rows.append((name, window_name(window), "there is no such preset", "not met"))
                continue
            value = measure(one, window)
            rows.append((name, window_name(window), value[1], "met" if holds(value[0]) else "not met"))

    lovia = lambda window: results["lovia", window]
    against = lambda one, window, of: max(bill(one, row) / bill(of, row) for row in ROWS)
    worst = lambda one, window: (lambda r: (r, f"{r:.2f}× lovia's, worst row"))(against(one, window, lovia(window)))

    def sent(one, window):
        ratio = uncovered(one) / uncovered(lovia(window))
        return ratio, f"{uncovered(one):.2f}×, lovia {uncovered(lovia(window)):.2f}×"

    def view(one, window):
        ratio = mean_view(one) / mean_view(lovia(window))
        return ratio, f"{mean_view(one) / 1000:,.0f} kB, lovia {mean_view(lovia(window)) / 1000:,.0f} kB"

    def harness(one, window):
        peers = [results[name, window] for name in ("harness-tiered", "harness-summarizing")]
        ratio = max(bill(one, row) / min(bill(peer, row) for peer in peers) for row in ROWS)
        return ratio, f"{ratio:.2f}× the cheaper of its two, worst row"

    def oldest(one, window):
        dropped = results["drop-oldest", window]
        least = min(bill(dropped, row) / bill(one, row) for row in ROWS if row != "deepseek")
        deep = bill(dropped, "deepseek") / bill(one, "deepseek")
        return min(least / 4, deep / 8), f"{least:.1f}× less, {deep:.1f}× on DeepSeek"

    goal("default: bill ≤ lovia's under every row", "default", worst, lambda r: r <= 1)
    goal("default: bytes sent again ≤ lovia's", "default", sent, lambda r: r <= 1)
    goal("default: mean view ≤ lovia's", "default", view, lambda r: r <= 1)
    goal("steady: sent again ≤ 1.4× the new", "steady", lambda one, w: (uncovered(one), over(uncovered(one))), lambda r: r <= 1.4)
    goal(
        "steady: at most half of lovia's passes",
        "steady",
        lambda one, w: (one["passes"] * 2 - lovia(w)["passes"], f"{one['passes']}, lovia {lovia(w)['passes']}"),
        lambda r: r <= 0,
    )
    goal("economy: bill ≤ 0.7× lovia's under every row", "economy", worst, lambda r: r <= 0.7)
    goal("economy: bill below pydantic-ai-harness's", "economy", harness, lambda r: r < 1)
    goal("economy: ≥ 4× (DeepSeek 8×) below drop-oldest", "economy", oldest, lambda r: r >= 1)
    out = ["\n| goal | window | measured | |", "|---|--:|---|---|"]
    return "\n".join(out + [f"| {' | '.join(row)} |" for row in rows])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--workload", required=True)
    parser.add_argument("--windows", default="64000,200000,1000000")
    parser.add_argument("--only", help="names of policies, with commas between")
    parser.add_argument("--json", help="file for all figures")
    options = parser.parse_args()
    windows = [int(window) for window in options.windows.split(",")]
    names = [name for name in OURS if has(options, name)] + OTHERS
    if options.only:
        wanted = options.only.split(",")
        if unknown := set(wanted) - set(names):
            sys.exit(f"no policy {', '.join(sorted(unknown))}; there are: {', '.join(names)}")
        names = [name for name in names if name in wanted]
    pairs = [(name, window) for window in windows for name in names]
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        done = pool.map(lambda pair: run(options, *pair), pairs)
        try:
            results = dict(zip(pairs, done))
        except SystemExit:
            pool.shutdown(cancel_futures=True)
            raise
    if options.json:
        with open(options.json, "w", encoding="utf-8") as out:
            json.dump([results[pair] for pair in pairs], out, indent=1)
            out.write("\n")
    print(table(results, names, windows))
    if not options.only:
        print(goals(results, windows))


if __name__ == "__main__":
    main()
