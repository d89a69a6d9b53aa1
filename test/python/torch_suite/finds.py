# ctest: timeout=300 labels=nosan
# That torch_suite.py can fail. A test of PyTorch's suite on a backend that is right, answers
# wrongly, is stuck, loses a rank, loses one at its end, has it skipped; and a file of tests of
# which some do so only where the switch is on that puts the backend in gloo's place.
import contextlib
import io
import os
import sys
import tempfile

import runner
import suite
import torch_suite
import upstream
import wrapped

BOUND = 5
CASE = "test_get_future"  # one that looks at the result: test_all_reduce_* do not
EXPECTED = {  # fault: judgement, a part of what is printed
    "none": (0, ""),
    "wrong": (1, "FAILED Suite." + CASE),
    "stuck": (1, "timed out"),
    "gone": (1, "FAILED Suite." + CASE),  # the other rank may be the first to be heard
    "ends": (1, "the ranks ended by [0, 3]"),
    "skipped": (1, "BEHIND gloo, which passes it: " + CASE),
}
GLOO = {  # what gloo and gloo under a foreign name came to, and the judgement of a wrong answer
    (runner.PASSED, runner.PASSED): 1,
    (runner.PASSED, runner.FAILED): 0,
    (runner.FAILED, runner.FAILED): 0,
    (runner.SKIPPED, runner.SKIPPED): 1,
}
FILE = '''
import os, sys, time, unittest
on = os.environ.get("TUTTI_AS_GLOO")
class Some(unittest.TestCase):
    def test_right(self): pass
    def test_wrong(self): self.assertFalse(on)
    def test_stuck(self): time.sleep(1000 if on else 0)
    def test_gone(self): os._exit(3) if on else None
    def test_skipped(self): self.skipTest("not today") if on else None
    def test_wrong_either_way(self): self.fail("no")
'''
BEHIND = {"test_wrong", "test_stuck", "test_gone", "test_skipped"}


def row(end):
    return {"end": end, "seconds": 0, "why": ""}


def said(found, what, text):
    print(f"{'found' if found else 'NOT FOUND'}: {what}", flush=True)
    if not found:
        print(text)
    return not found


def suites():
    common, process = suite.prepare(BOUND)
    wrapped.register()
    cases = [case for case in suite.suite(wrapped.NAME, 2, common) if case._testMethodName == CASE]
    names = list(map(runner.Results.name, cases))
    passed = {name: row(runner.PASSED) for name in names}
    wrong = 0
    for fault, (judgement, part) in EXPECTED.items():
        os.environ["FAULT"] = fault
        rows = runner.run(cases, common.MultiProcessTestCase, process, BOUND)
        with contextlib.redirect_stdout(io.StringIO()) as text:
            got = torch_suite.judge(rows, passed, passed)
        wrong += said(len(rows) == 1 and got == judgement and part in text.getvalue(),
                      "fault " + fault, text.getvalue())
        if fault == "wrong":
            failed = rows
    for (gloo, renamed), judgement in GLOO.items():
        with contextlib.redirect_stdout(io.StringIO()) as text:
            got = torch_suite.judge(failed, {name: row(gloo) for name in names},
                                    {name: row(renamed) for name in names})
        wrong += said(got == judgement, f"wrong where gloo {gloo}, under a foreign name {renamed}",
                      text.getvalue())
    return wrong


def files():
    wrong = 0
    with tempfile.TemporaryDirectory() as root:
        folder = os.path.join(root, "test", "distributed")
        os.makedirs(folder)
        with open(os.path.join(folder, "test_some.py"), "w") as file:
            file.write(FILE)
        os.environ["TUTTI_TEST_PYTORCH"], os.environ["TUTTI_TEST_BOUND"] = root, str(BOUND)
        options = torch_suite.arguments(["upstream", "--files", "test_some.py", "--jobs", "2"])
        # there is no backend here: another name is enough
        kept, upstream.backend = upstream.backend, str
        with contextlib.redirect_stdout(io.StringIO()) as text:
            got = upstream.compare(root, options)
        lines = [line for line in text.getvalue().splitlines() if line.startswith("BEHIND")]
        names = {line.partition("Some.")[2].partition(":")[0] for line in lines}
        wrong += said(got == 1 and names == BEHIND, "a file's tests, " + ", ".join(sorted(BEHIND)),
                      text.getvalue())
        options.only = "test_right,test_wrong_either_way"
        with contextlib.redirect_stdout(io.StringIO()) as text:
            got = upstream.compare(root, options)
        wrong += said(got == 0, "nothing in a file", text.getvalue())
        upstream.backend = kept
        os.environ.pop("TUTTI_AS_GLOO", None)
        with contextlib.redirect_stdout(io.StringIO()) as text, unheard():
            got = upstream.compare(root, options)
        wrong += said(got == 1 and "changes nothing" in text.getvalue(),
                      "a switch that changes nothing", text.getvalue())
    return wrong


@contextlib.contextmanager
def unheard():
    """A switch of another name, which nothing hears."""
    kept, upstream.SWITCH = upstream.SWITCH, "TUTTI_TEST_NO_SWITCH"
    try:
        yield
    finally:
        upstream.SWITCH = kept


def main():
    torch_suite.register("gloo")
    return 1 if suites() + files() else 0


if __name__ == "__main__":
    sys.exit(main())
