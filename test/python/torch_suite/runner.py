# Runs cases one after another, keeps what each said and how long it took, and sums up. What a
# case and its ranks write goes to a file of its own, so that of a failure there is all, and of
# the rest nothing.
import collections
import json
import multiprocessing
import os
import re
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
        self.end, self.why, self.kept = PASSED, "", None

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


def one(results, case):
    """A case by itself, so that what its class prepares and leaves is its own."""
    results.end, results.why, results._previousTestClass = FAILED, "it was not begun", None
    unittest.TestSuite([case]).run(results)
    results.rows.setdefault(Results.name(case), {"end": results.end, "seconds": 0,
                                                 "why": results.why})


def apart(case, process, bound):
    """A case that makes no ranks, in a process of its own: its threads are not those of the process
    that ranks are forked from."""
    def body():
        results = Results()
        one(results, case)
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
    here.close()
    if not rows:
        seconds = time.monotonic() - began
        why = f"its process ended by {child.exitcode} after {seconds:.0f} s"
        rows[Results.name(case)] = {"end": FAILED, "seconds": seconds, "why": why}
    return rows


def run(cases, makes_ranks, process, bound, lines=None):
    """`lines`: a file to which each row is added when it is known, for one who may have to
    end this."""
    results = Results()
    for case in cases:
        if isinstance(case, makes_ranks):
            one(results, case)
        else:
            results.rows.update(apart(case, process, bound))
        if lines:
            name = Results.name(case)
            with open(lines, "a") as file:
                print(json.dumps({name: results.rows[name]}), file=file)
    return results.rows


def of(rows, *ends):
    return [name for name, row in rows.items() if row["end"] in ends]


NOISE = re.compile(r"\s*(INFO:torch.testing|frame #|\^|\[rank\d+\]:[A-Z]|$"
                   r"|To execute this test|python \S+\.py |This message can be suppressed)")


def tail(text, lines=25):
    """The last lines, without the frames of C++ and what the tests' own machinery says of itself,
    or says twice."""
    kept = [line for line in text.rstrip().splitlines() if not NOISE.match(line)]
    return "\n".join("    " + line for line in kept[-lines:])


def short(name):
    return name.partition(".")[2]


def summary(what, rows, slowest=8):
    """Prints what a run came to: counts, skips by their reason, what took longest."""
    seconds = sum(row["seconds"] for row in rows.values())
    passed, skipped, failed = (len(of(rows, end)) for end in (PASSED, SKIPPED, FAILED))
    print(f"{what}: {len(rows)} cases, {passed} passed, {skipped} skipped, {failed} failed, "
          f"{seconds:.0f} s")
    for why, count in collections.Counter(rows[name]["why"]
                                          for name in of(rows, SKIPPED)).most_common():
        print(f"  skipped {count:3}: {why}")
    long = sorted(rows, key=lambda name: -rows[name]["seconds"])[:slowest]
    print("  slowest: " + ", ".join(f"{short(name)} {rows[name]['seconds']:.1f} s"
                                    for name in long), flush=True)
