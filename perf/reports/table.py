#!/usr/bin/env python3
"""What `table --json FILE` found, as the table of perf/README.md.

    table.py FILE.json... --into perf/README.md

A column for each file; promises of one kind share a row. --together: the files are runs of one
build on one machine, as with other numbers of ranks, and share a column: of each promise the
median of its values, held against its limit. Without options the table goes to stdout. Else nothing
is judged here: values and verdicts are those of the files. It needs Python's own library only.
"""

import argparse
import json
import re
import statistics

import marked

WAIT = "CPU burnt in a wait of 100 ms"
LINE = "a cache line"                      # how the remark on its time begins
# How a row begins, and the promises in it, in the order of its cells. All others have their own.
ROWS = [
    ("barrier / bare exchange of two flags; that waits alike",
     "barrier, 2 ranks / bare exchange|barrier, 2 / exchange with waits"),
    ("Open MPI's; MPICH's barrier / it", "barrier, 2: (Open MPI|MPICH) / it"),
    ("OpenMP's barrier / it, GNU; LLVM", "barrier, 2: (GNU|LLVM) OpenMP / it"),
    ("pthread_barrier; Gloo's / it", "barrier, 2: (pthread_barrier|Gloo) / it"),
    ("barrier / bare central barrier, 4; 8 ranks", "barrier, . ranks / bare central"),
    ("8 ranks: Open MPI's; LLVM OpenMP's; pthread_barrier / it", "barrier, 8: .* / it"),
    (f"{WAIT}, 2; 4; 8 ranks", f"{WAIT}, 2 ranks|[48] ranks: {WAIT}"),
    ("in other calls, 2 ranks", f"2 ranks: {WAIT}, .*"),
    ("4 ranks", f"4 ranks: {WAIT}, .*"),
    ("8 ranks", f"8 ranks: {WAIT}, .*"),
    ("all_reduce of 4 B / barrier", "all_reduce 4 B / barrier, 2 ranks"),
    ("all_reduce of 4 B: Open MPI / it", "all_reduce 4 B: Open MPI / it"),
    ("1 KiB: MPI / it, private; arena", "all_reduce 1 KiB.*: MPI / it"),
    ("64 KiB", "all_reduce 64 KiB.*: MPI / it"),
    ("1 MiB", "all_reduce 1 MiB.*: MPI / it"),
    ("16 MiB", "all_reduce 16 MiB.*: MPI / it"),
    ("256 MiB", "all_reduce 256 MiB.*: MPI / it"),
    ("floor / it: 16 MiB; 256 MiB, private; arena", "all_reduce .* of the floor"),
    ("to 1 MiB: Gloo / all_reduce, worst size", "all_reduce to 1 MiB: Gloo / it, worst"),
    ("MPI / other collectives, worst; median of sizes", "others, 2, .*"),
    ("4 ranks: the same", "others, 4, .*"),
    ("Open MPI / all collectives, worst size, 4; 8 ranks", "all, [48], worst: .*"),
    ("start: tutti run / bare program, 2; 8; 64 ranks", "start, .*: tutti run / bare program"),
    ("start: MPICH's mpirun / it, 2; 8; 64 ranks", "start, .*: MPICH's mpirun / it"),
]


def number(x):
    if x >= 9999.5:
        return f"{x / 1000:.3g}k"
    return f"{x:.0f}" if x >= 99.95 else f"{x:.3g}" if x >= 9.995 else f"{x:.2f}"


def amount(x, unit):
    """The number alone, and what stands behind it."""
    return {"ns": (number(x / 1000), " µs"), "percent": (number(x), " %")}.get(
        unit, (number(x), ""))


def limit(x, unit):
    scaled = x / 1000 if unit == "ns" else x
    return f"{scaled:g}"


def one_of(cells):
    """One, where all are alike."""
    return cells[0] if len(set(cells)) == 1 else "; ".join(cells)


def shown(promise):
    if promise["value"] is None:
        return "–"
    text = amount(promise["value"], promise["unit"])[0]
    text = text if promise["kept"] else f"**{text}**"
    return f"{text} ?" if promise.get("few") else text


def kind(what):
    """The name without the operation that happened to be the worst."""
    return re.sub(r"(others|all), (\d), (worst|median): (.*) / .*", r"\1, \2, \3: \4", what)


def median_of(promises):
    """One promise, as several runs found it; of few rounds only if each of them was."""
    found = [p for p in promises if p["value"] is not None]
    if not found:
        return promises[0]
    one, value = found[0], statistics.median(p["value"] for p in found)
    kept = value <= one["limit"] if one["must"] == "at most" else value >= one["limit"]
    return one | {"value": value, "kept": kept, "few": all(p.get("few") for p in found)}


def together(files):
    """Runs of one build on one machine, as one."""
    if len({(f["machine"]["cpu"], f["version"]) for f in files}) > 1:
        raise SystemExit("table.py: these files are of several machines or builds")
    by = {}
    for promise in (p for f in files for p in f["promises"]):
        by.setdefault(kind(promise["what"]), []).append(promise)
    texts = list(dict.fromkeys(r["text"] for f in files for r in f["remarks"]))
    lines = [re.findall(r"\d+", t) for t in texts if t.startswith(LINE)]
    if len(lines) > 1 and all(len(n) == 6 for n in lines):
        columns = [[int(n) for n in column] for column in zip(*lines)]
        texts = [t for t in texts if not t.startswith(LINE)] + [
            f"{LINE} took {statistics.median(columns[0]):.0f} ns one way, {min(columns[1])} to "
            f"{max(columns[2])} in {sum(columns[3])} looks: near in {sum(columns[4])}, "
            f"far in {sum(columns[5])}"]
    return files[0] | {"promises": [median_of(same) for same in by.values()],
                       "remarks": [{"text": t, "bad": False} for t in texts]}


def ranks(what):
    said = re.search(r"\b(\d+)( ranks|,|:| /)", what)
    return int(said[1]) if said else 0


class Table:
    def __init__(self, files):
        self.files = files
        self.found = [{kind(p["what"]): p for p in f["promises"]} for f in files]
        self.names = list(dict.fromkeys(name for found in self.found for name in found))

    def rows(self):
        left = list(self.names)
        for label, pattern in ROWS:
            names = [n for n in left if re.fullmatch(pattern, n)]
            left = [n for n in left if n not in names]
            if names:
                yield label, sorted(names, key=ranks)
        for name in left:
            yield name, [name]

    def line(self, label, names):
        some = [next(f[n] for f in self.found if n in f) for n in names]
        unit = amount(1, some[0]["unit"])[1]
        sign = "≤" if some[0]["must"] == "at most" else "≥"
        must = one_of([limit(p["limit"], p["unit"]) for p in some])
        cells = ["; ".join(shown(f[n]) if n in f else "–" for n in names) for f in self.found]
        return f"| {label} | {sign} {must}{unit} | " + " | ".join(cells) + " |"

    def setting(self, file):
        machine, kept = file["machine"], [p["kept"] for p in file["promises"]
                                          if p["kept"] is not None]
        texts = [r["text"] for r in file["remarks"]]
        lines = [t for t in texts if t.startswith(LINE)]
        mpis = [t.split(":")[0] for t in texts if re.match(r"(Open MPI|MPICH) [\d.]+:", t)]
        return (f"{machine['cpu']}, {machine['cpus']} CPUs, {machine['system'].split('-')[0]}, "
                f"{', '.join(dict.fromkeys(mpis))}, {file['date'][:10]}"
                f"{'; ' if lines else ''}{'; '.join(lines)}. {sum(kept)} of {len(kept)} are kept.")

    def section(self):
        many = len(self.files) > 1
        heads = [f"{k + 1}" for k in range(len(self.files))] if many else ["measured"]
        out = [(f"{k + 1}: " if many else "") + self.setting(f) for k, f in enumerate(self.files)]
        out += ["", f"| 2 ranks where none is said | must | {' | '.join(heads)} |",
                "| --- |" + " --- |" * (len(heads) + 1)]
        out += [self.line(*row) for row in self.rows()]
        if any(p.get("few") for found in self.found for p in found.values()):
            out += ["", "?: of fewer rounds than such a figure takes."]
        return "\n".join(out)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("json", nargs="+", help="what table --json has written")
    parser.add_argument("--together", action="store_true",
                        help="the files are runs of one build on one machine: one column")
    parser.add_argument("--into", help="the table, into this file where it says <!-- table -->")
    options = parser.parse_args()
    files = []
    for name in options.json:
        with open(name, encoding="utf-8") as file:
            files.append(json.load(file))
    words = Table([together(files)] if options.together else files).section()
    if options.into:
        marked.put_into_file(options.into, "table", words)
    else:
        print(words)


if __name__ == "__main__":
    main()
