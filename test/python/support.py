# What the tests of the Python package share: what they need, or 77 with the reason; ranks that must
# all end well.
import os
import subprocess
import sys
import threading
import unittest


def skip(why):
    print(why)
    sys.exit(77)


try:
    import numpy as np
except ImportError:
    skip(f"NumPy is missing for {sys.executable}: ./bootstrap test makes a Python that has it, "
         "build/venv")
try:
    import tutti
except ImportError as error:
    skip(f"the package tutti is not in reach ({error}): set PYTHONPATH to <build>/python")


class Case(unittest.TestCase):
    def ranks(self, n, body, *args, ends=None, **options):
        """Runs body(world, *args) on n ranks; every one ends by 0, or as `ends` says:
        {rank: end}."""
        got = tutti.spawn(body, n, *args, timeout=100, **options)
        self.assertEqual(got, [(ends or {}).get(rank, 0) for rank in range(n)])


def main():
    unittest.main(module="__main__", verbosity=1, buffer=False)


def check(holds, what):
    """For the code of spawned ranks: an assertion whose failure is the rank's exit status."""
    if not holds:
        raise AssertionError(what)


def raises(kind, call, *args, **words):
    try:
        value = call(*args, **words)
    except kind as error:
        return error
    raise AssertionError(f"expected {getattr(kind, '__name__', kind)}, got {value!r}")


def line_of_caller():
    """file:line of the line after the call, as a report has it."""
    frame = sys._getframe(1)
    return "/".join(frame.f_code.co_filename.split(os.sep)[-2:]) + f":{frame.f_lineno + 1}"


def program(text, **environment):
    """Runs it as a program of its own; its exit status and what it said on stderr."""
    done = subprocess.run([sys.executable, "-c", text], env={**os.environ, **environment},
                          capture_output=True, text=True, timeout=100)
    return done.returncode, done.stderr


def pair(first, second):
    """Two programs, the ranks of one job: ((status, stderr), (status, stderr))."""
    job = f"life-{os.getpid()}-{threading.get_ident()}-{id(first)}"
    ranks = [subprocess.Popen([sys.executable, "-c",
                               "import tutti, sys, os\n"
                               f"world = tutti.init(job={job!r}, rank={rank}, size=2)\n{text}"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
             for rank, text in enumerate((first, second))]
    try:
        texts = [rank.communicate(timeout=100) for rank in ranks]
    finally:
        for rank in ranks:
            if rank.poll() is None:
                rank.kill()
                rank.wait()
    return [(rank.returncode, text[1]) for rank, text in zip(ranks, texts)]
