#!/usr/bin/env python3
"""What `versus --json FILE` found, as a picture and as the table of perf/NOTES.md.

    versus.py FILE.json --svg perf/versus.svg --into perf/NOTES.md

Without options the table goes to stdout. Nothing is judged here: medians, intervals and verdicts
are those of the file. The picture: one row an operation, one column for each number of ranks, near
and far; above the time, below a peer's time over tutti's, each with its 95 % interval. Sizes stand
side by side, not to scale. It needs Python's own library only.
"""

import argparse
import json
import math
import re
import textwrap
from xml.sax.saxutils import escape

import marked

TUTTI = "tutti"
PEERS = ["Open MPI", "MPICH", "Open MPI 5", "MPICH 5", "Intel MPI"]
HUES = {TUTTI: "#0b63ce", "Open MPI": "#e08a00", "MPICH": "#0f9d6e", "Open MPI 5": "#8a4fd0",
        "MPICH 5": "#2aa5d8", "Intel MPI": "#cf4420"}


def size_name(n):
    for unit, name in ((1 << 20, "M"), (1 << 10, "K")):
        if n >= unit:
            return f"{n / unit:g}{name}"
    return str(n)


def size_words(n):
    return f"{size_name(n)}iB" if n >= 1 << 10 else f"{n} B"


def time_name(ns):
    for unit, name in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        if ns >= unit:
            return f"{ns / unit:.3g} {name}"
    return f"{ns:.3g} ns"


class Result:
    """points[operation, ranks, state][bytes][contender] is a figure of the file."""

    def __init__(self, data):
        self.data, self.points, self.lines, self.counts = data, {}, {}, {}
        for f in data["figures"]:
            name, _, state = f["what"].rpartition(" ")
            if name == "line":
                self.lines[state] = f
            elif state in ("near", "far"):
                at = self.points.setdefault((name, f["ranks"], state), {})
                at.setdefault(f["bytes"], {})[f["contender"]] = f
            else:
                self.counts[f["what"]] = f["value"]
        self.operations = list(dict.fromkeys(key[0] for key in self.points))
        self.columns = sorted({key[1:] for key in self.points},
                              key=lambda c: (c[0], c[1] != "near"))

    def texts(self, begin):
        return [r["text"] for r in self.data["remarks"] if r["text"].startswith(begin)]

    def block(self):
        """Where its table stands on a page: figures of different processors stand side by side."""
        cpu = re.search(r"\(family (\d+), model (\d+)", self.data["machine"]["cpu"])
        return f"versus family {cpu[1]} model {cpu[2]}" if cpu else "versus"

    def verdicts(self):
        """What the run itself says of each state and number of ranks, medians and floors in it."""
        return [t for begin in ("near, ", "far, ") for t in self.texts(begin)]

    def versions(self):
        return ", ".join(t.removeprefix("version: ") for t in self.texts("version: "))

    def setting(self):
        machine = self.data["machine"]
        lines = ", ".join(f"{state} {f['value']:.0f} ns" for state, f in self.lines.items())
        return [f"{machine['cpu']}, {machine['cpus']} CPUs used, {machine['system']}, "
                f"{self.data['date']}",
                self.versions(),
                f"A cache line one way: {lines}. Load of the machine, median: "
                f"{self.counts.get('load', 0):.1f}. {self.counts.get('rounds', 0):.0f} rounds, "
                f"{self.counts.get('rounds dropped', 0):.0f} of them dropped because that "
                "changed meanwhile."]

    def judged(self, operation, ranks, state):
        """(bytes, figure) of all comparisons that have an interval."""
        return [(size, f) for size, by in self.points.get((operation, ranks, state), {}).items()
                for f in by.values() if f.get("verdict", "unknown") != "unknown"]


def cell(result, operation, column):
    judged = result.judged(operation, *column)
    if not judged:
        return ""
    behind = sorted((f["ratio"], size, f) for size, f in judged if f["verdict"] == "behind")
    if not behind:
        return f"0 of {len(judged)}"
    ratio, size, f = behind[0]
    return (f"**{len(behind)}** of {len(judged)}; {f['contender']} at {size_words(size)}: "
            f"{ratio:.2f} ({f['ratio_low']:.2f}–{f['ratio_high']:.2f})")


def table(result):
    heads = [f"{ranks} ranks, {state}" for ranks, state in result.columns]
    lines = ["| behind | " + " | ".join(heads) + " |", "| --- |" + " --- |" * len(heads)]
    for operation in result.operations:
        cells = [cell(result, operation, c) for c in result.columns]
        lines.append(f"| {operation} | " + " | ".join(cells) + " |")
    return lines


def section(result):
    setting = result.setting()
    return "\n".join(
        [*textwrap.wrap(f"{setting[0]}: {setting[1]}. {setting[2]}", 132),
         "A cell: in how many comparisons with a peer at a size tutti is behind (the whole 95 % "
         "interval of the ratio lies below 1),",
         "and the worst of them, a peer's time over tutti's.",
         "", *table(result), "", *(f"- {words}" for words in result.verdicts())])


# ---- the picture ----

W, LEFT, GAP, TOP, HEAD, TIME_H, RATIO_H, FOOT = 330, 46, 18, 26, 124, 130, 84, 30
LEAST_W = 1180                             # of the texts at the top
LOWEST, HIGHEST = 0.4, 6.0                 # of the ratios that are shown; what lies beyond is cut


class Panel:
    def __init__(self, result, key, x, y):
        # what has no interval, of too few rounds, is not drawn
        self.by = {size: {name: f for name, f in by.items() if f.get("low")}
                   for size, by in result.points.get(key, {}).items()}
        self.sizes = sorted({s for k, by in result.points.items() if k[0] == key[0] for s in by})
        self.x, self.y, self.out = x, y, []
        shown = [v for by in self.by.values() for f in by.values()
                 for v in (f["low"], f["high"])]
        self.low, self.high = (min(shown) / 1.2, max(shown) * 1.2) if shown else (1, 10)

    def column(self, size, nudge=0.0):
        step = (W - LEFT - 8) / max(len(self.sizes), 1)
        return self.x + LEFT + step * (self.sizes.index(size) + 0.5) + nudge

    def time_y(self, ns):
        share = math.log(ns / self.low) / math.log(self.high / self.low)
        return self.y + TOP + TIME_H * (1 - share)

    def ratio_y(self, ratio):
        ratio = min(max(ratio, LOWEST), HIGHEST)
        share = math.log(ratio / LOWEST) / math.log(HIGHEST / LOWEST)
        return self.y + TOP + TIME_H + 12 + RATIO_H * (1 - share)

    def text(self, x, y, words, how=""):
        self.out.append(f'<text x="{x:.1f}" y="{y:.1f}" {how}>{escape(words)}</text>')

    def line(self, x, y, to_x, to_y, how):
        self.out.append(f'<path d="M{x:.1f} {y:.1f}L{to_x:.1f} {to_y:.1f}" {how}/>')

    def grid(self):
        right, grey = self.x + W - 8, 'stroke="#e2e7ed"'
        step = 1 if self.high / self.low < 1e4 else 2
        for ten in range(math.ceil(math.log10(self.low)), math.floor(math.log10(self.high)) + 1,
                         step):
            y = self.time_y(10.0 ** ten)
            self.line(self.x + LEFT, y, right, y, grey)
            self.text(self.x + LEFT - 5, y + 3, time_name(10.0 ** ten), 'text-anchor="end"')
        for ratio in (0.5, 1, 2, 4):
            y = self.ratio_y(ratio)
            self.line(self.x + LEFT, y, right, y, 'stroke="#16202c"' if ratio == 1 else grey)
            self.text(self.x + LEFT - 5, y + 3, f"× {ratio:g}", 'text-anchor="end"')
        for size in self.sizes:
            self.text(self.column(size), self.y + TOP + TIME_H + 12 + RATIO_H + 11, size_name(size),
                      'text-anchor="middle"')

    def curve(self, name, nudge):
        how = f'stroke="{HUES[name]}" fill="none"'
        width = 2.4 if name == TUTTI else 1.3
        points = [(size, self.by[size][name]) for size in self.sizes
                  if name in self.by.get(size, {})]
        for value, low, high, y in (("value", "low", "high", self.time_y),
                                    ("ratio", "ratio_low", "ratio_high", self.ratio_y)):
            path, bars = "", ""            # one path of each: a file of some 150 KB, not 700
            for size, f in points:
                if value not in f:
                    continue
                x = self.column(size, nudge)
                path += f"{'L' if path else 'M'}{x:.0f} {y(f[value]):.1f}"
                bars += f"M{x:.0f} {y(f[value]):.1f}h0"
                bars += f"M{x:.0f} {y(f[low]):.1f}V{y(f[high]):.1f}"
                if f.get("verdict") == "behind" and value == "ratio":
                    self.out.append(f'<circle cx="{x:.0f}" cy="{y(f[value]):.1f}" r="3.4" '
                                    f'fill="{HUES[name]}"/>')
            if path:
                self.out.append(f'<path d="{path}" {how} stroke-width="{width}"/>'
                                f'<path d="{bars}" {how} stroke-width="{width + 0.6:.1f}" '
                                'stroke-linecap="round"/>')

    def draw(self, title):
        self.text(self.x + LEFT, self.y + 16, title,
                  'font-size="12" font-weight="600" fill="#16202c"')
        if not any(self.by.values()):
            self.text(self.x + LEFT, self.y + 60, "not measured")
            return self.out
        self.grid()
        for i, name in enumerate(PEERS):
            self.curve(name, 2.0 * (i - 2))
        self.curve(TUTTI, 0)
        return self.out


def picture(result):
    high = TOP + TIME_H + 12 + RATIO_H + FOOT
    width = max((W + GAP) * len(result.columns) + GAP, LEAST_W)
    height = HEAD + high * len(result.operations)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
           f'width="{width}" height="{height}" font-family="system-ui,DejaVu Sans,sans-serif" '
           'font-size="9" fill="#5b6877">',
           f'<rect width="{width}" height="{height}" fill="#fff"/>',
           f'<text x="{GAP}" y="30" font-size="19" font-weight="700" fill="#16202c">tutti beside '
           'five MPIs</text>']
    for i, words in enumerate(result.setting()):
        out.append(f'<text x="{GAP}" y="{50 + 15 * i}" font-size="11">{escape(words)}</text>')
    x = GAP
    for name in [TUTTI] + PEERS:
        out.append(f'<path d="M{x} 104h18" stroke="{HUES[name]}" stroke-width="3"/>'
                   f'<text x="{x + 23}" y="108" font-size="12" fill="#16202c">{name}</text>')
        x += 34 + 8 * len(name)
    out.append(f'<text x="{x}" y="108" font-size="11">above: time; below: time of a peer / tutti, '
               'cut at × 0.4 and × 6; bars: 95 % intervals; a large dot: tutti is behind</text>')
    for row, operation in enumerate(result.operations):
        for k, (ranks, state) in enumerate(result.columns):
            panel = Panel(result, (operation, ranks, state), GAP + (W + GAP) * k,
                          HEAD + high * row)
            out += panel.draw(f"{operation}, {ranks} ranks, {state}")
    return "\n".join(out + ["</svg>", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("json", help="what versus --json has written")
    parser.add_argument("--svg", help="the picture, into this file")
    parser.add_argument("--into", help="the table, into this file where it says <!-- versus "
                        "family N model M --> of this processor")
    options = parser.parse_args()
    with open(options.json, encoding="utf-8") as file:
        result = Result(json.load(file))
    if options.svg:
        with open(options.svg, "w", encoding="utf-8") as file:
            file.write(picture(result))
    if options.into:
        marked.put_into_file(options.into, result.block(), section(result))
    if not options.svg and not options.into:
        print(section(result))


if __name__ == "__main__":
    main()
