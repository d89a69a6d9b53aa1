"""`table` ends when it says it will: with the peers that there are, and with one that hangs.

    table_time_test.py PROGRAM

No figure is judged. The time is: the plan follows the clock, on a busy machine, too.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = sys.argv.pop()
LATE = 3  # times as long, beside other work. Without an end on the clock it is 10 times, and more


def run(seconds, folder, **environment):
    out = pathlib.Path(folder, "table.json")
    began = time.monotonic()
    said = subprocess.run([PROGRAM, "-n", "2", "--seconds", str(seconds), "--json", str(out)],
                          env=os.environ | environment, capture_output=True, text=True,
                          timeout=100, check=True)
    return time.monotonic() - began, said, json.loads(out.read_text(encoding="utf-8"))


class Time(unittest.TestCase):
    def test_it_ends_in_time_and_says_what_it_had_no_time_for(self):
        with tempfile.TemporaryDirectory() as folder:
            took, said, found = run(20, folder)
        self.assertLess(took, 20 * LATE)
        first, *progress = [line for line in said.stderr.splitlines() if "busy" not in line]
        self.assertRegex(first, r"^table: 2 ranks, 20 s each: until \d\d:\d\d:\d\d$")
        self.assertGreater(len([p for p in progress if re.match(r" *\d+ %  \S", p)]), 5)
        measured = [p for p in found["promises"] if p["value"] is not None]
        self.assertGreater(len(measured), 10)
        self.assertTrue(any(p.get("few") for p in measured))
        self.assertTrue(any("no time" in r["text"] for r in found["remarks"]))
        self.assertIn("?: of fewer rounds", said.stdout)

    def test_a_peer_that_hangs_does_not_hold_it_up(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("mpirun.openmpi", "mpiexec.hydra"):
                hangs = pathlib.Path(folder, name)
                hangs.write_text("#!/bin/sh\nexec sleep 1000\n", encoding="utf-8")
                hangs.chmod(0o755)
            took, _, found = run(12, folder, PATH=f"{folder}:{os.environ['PATH']}")
        self.assertLess(took, 12 * LATE)
        self.assertTrue(any(p["value"] is not None for p in found["promises"]))


if __name__ == "__main__":
    unittest.main()
