# Runs cases one after another, keeps what each said and how long it took, and sums up. What a case and its ranks write goes to a file of
# its own, so that of a failure there is all, and of the rest nothing.
import collections
import multiprocessing
import os
import sys
import tempfile
import time
import traceback
import unittest

PASSED, SKIPPED, FAILED = "passed", "skipped", "failed"


class Results(unittest.TestResult):
    """rows: name -> {end, seconds, why}, in the order in which they ran."""

    def __init__(self):
        super().__init__()
        self.rows = {}

    @staticmethod
    def name(case):
        return f"{type(case).__name__}.{case._testMethodName}"

    def startTest(self, case):
        super().startTest(case)
        self.end, self.why = PASSED, ""
        self.said = tempfile.TemporaryFile()
        sys.stdout.flush(), sys.stderr.flush()
        self.kept = os.dup(1), os.dup(2)
        os.dup2(self.said.fileno(), 1), os.dup2(self.said.fileno(), 2)
        self.began = time.monotonic()

    def stopTest(self, case):
        seconds = time.monotonic() - self.began
        sys.stdout.flush(), sys.stderr.flush()
        for fd, kept in enumerate(self.kept, 1):
            os.dup2(kept, fd)
            os.close(kept)
        if self.end == FAILED:
            self.said.seek(0)
            self.why = self.said.read().decode(errors="replace") + self.why
        self.said.close()
        self.rows[self.name(case)] = {"end": self.end, "seconds": seconds, "why": self.why}
        super().stopTest(case)

    def addSkip(self, case, why):
        self.end, self.why = SKIPPED, why

    def addFailure(self, case, error):
        self.end = FAILED
        self.why += "".join(traceback.format_exception(*error))

    addError = addFailure

    def addSubTest(self, case, part, error):
        if error:
            self.addFailure(case, error)

    def addUnexpectedSuccess(self, case):
        self.end, self.why = FAILED, "it was expected to fail"


def apart(case, process, bound):
    """A case that makes no ranks, in a process of its own: its threads are not those of the process that ranks are forked from."""
    def body():
        results = Results()
        unittest.TestSuite([case]).run(results)
        there.send(results.rows)

    here, there = multiprocessing.Pipe(False)
    child = process(target=body)
    began = time.monotonic()
    child.start()
    there.close()
    rows = {}
    try:
        if here.poll(bound):
            rows = here.recv()
    except EOFError:
        pass
    child.join(1)
    child.kill()
    child.join()
    if not rows:
        seconds = time.monotonic() - began
        why = f"its process ended by {child.exitcode} after {seconds:.0f} s"
        rows[Results.name(case)] = {"end": FAILED, "seconds": seconds, "why": why}
    return rows


def run(cases, makes_ranks, process, bound):
    results = Results()
    for case in cases:
        if isinstance(case, makes_ranks):
            unittest.TestSuite([case]).run(results)
        else:
            results.rows.update(apart(case, process, bound))
    return results.rows


def of(rows, *ends):
    return [name for name, row in rows.items() if row["end"] in ends]


def tail(text, lines=40):
    """The last lines, without the frames of C++ and what the tests' own machinery says of itself."""
    noise = ("INFO:torch.testing", "frame #", "^")
    kept = [line for line in text.rstrip().splitlines() if not line.strip().startswith(noise) and line.strip()]
    return "\n".join("    " + line for line in kept[-lines:])


def short(name):
    return name.partition(".")[2]


def summary(what, rows, slowest=8):
    """Prints what a run came to: counts, skips by their reason, what took longest."""
    seconds = sum(row["seconds"] for row in rows.values())
    print(f"{what}: {len(rows)} cases, {len(of(rows, PASSED))} passed, {len(of(rows, SKIPPED))} skipped, {len(of(rows, FAILED))} failed, "
          f"{seconds:.0f} s")
    for why, count in collections.Counter(rows[name]["why"] for name in of(rows, SKIPPED)).most_common():
        print(f"  skipped {count:3}: {why}")
    long = sorted(rows, key=lambda name: -rows[name]["seconds"])[:slowest]
    print("  slowest: " + ", ".join(f"{short(name)} {rows[name]['seconds']:.1f} s" for name in long), flush=True)
