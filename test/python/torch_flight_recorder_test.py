# ctest: timeout=300 labels=nosan
"""What tutti trace --fr writes, PyTorch's own analyzer reads and judges: torchfrtrace."""
import os
import re
import subprocess
import sys
import tempfile
import traceback
import unittest

BUILD = os.environ["TUTTI_BUILD"]
TUTTI = os.path.join(BUILD, "tutti")
ACTOR = os.path.join(BUILD, "test", "cli", "actor")
HANG = os.path.join(BUILD, "test", "cli", "hang")


def analyzer():
    try:
        import torch.distributed.flight_recorder.fr_trace  # noqa: F401
    except ImportError as missing:
        return str(missing)
    return None


def analyzed(dumps):
    """What the command prints: run in a fork, since its import takes seconds."""
    from torch.distributed.flight_recorder.fr_trace import main
    with tempfile.TemporaryFile() as said:
        pid = os.fork()
        if pid == 0:
            os.dup2(said.fileno(), 1)
            os.dup2(said.fileno(), 2)
            try:
                main([dumps])
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(0)
        os.waitpid(pid, 0)
        said.seek(0)
        return said.read().decode()


@unittest.skipIf(analyzer(), f"torchfrtrace is missing: {analyzer()}")
class FlightRecorder(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def begun(self, name, command, ranks=3):
        """Such a job, which leaves a box under that name at the end of its time."""
        boxes = os.path.join(self.folder.name, name, "boxes")
        return boxes, subprocess.Popen(
            [TUTTI, "run", "--timeout", "2s", "--grace", "200ms", "-n", str(ranks), *command],
            env={**os.environ, "TUTTI_BOX": boxes, "TUTTI_SPAN_BYTES": "16M"},
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def judged(self, *how, ranks=3, calls=None):
        """What torchfrtrace says of the box that such a job leaves."""
        return self.judged_later(*self.begun("job", [ACTOR, *how], ranks), calls)

    def judged_later(self, boxes, job, calls=None):
        dumps = os.path.join(os.path.dirname(boxes), "dumps")
        self.assertNotEqual(job.wait(60), 0)
        box, = os.listdir(boxes)
        trace = subprocess.run([TUTTI, "trace", os.path.join(boxes, box), "--fr", dumps],
                               capture_output=True, text=True, timeout=60)
        self.assertEqual(trace.returncode, 0, trace.stderr)
        if calls:
            self.assertIn(f"of {calls} calls", trace.stdout)
        said = analyzed(dumps)
        self.assertNotIn("Traceback", said)
        return said

    def differs(self, said, rank, ranks=3):
        """One operation has errors. Culprits are all that differ from whom it looked at first."""
        faults = self.faults(said)
        self.assertEqual(faults.count("has errors"), 1)
        culprits = {int(f.split()[-1]) for f in faults if f.startswith("Culprit")}
        self.assertIn(culprits, ({rank}, set(range(ranks)) - {rank}))
        self.assertEqual(len(faults), 1 + len(culprits))

    def faults(self, said):
        return re.findall(r"Not all ranks joining|has errors|Culprit rank \d+|missing ranks: .*",
                          said)

    def test_mismatch(self):
        said = self.judged("differ", "1", "kind", calls=9)
        self.assertIn("Collective sequence number: 3 has errors", said)
        self.differs(said, 1)
        self.assertRegex(said, "COLLECTIVE_TYPE_MISMATCH, Expected collective type: "
                               "'(all_reduce|barrier)' does not match found collective type: "
                               "'(all_reduce|barrier)'")
        self.assertRegex(said, r"at .*/test/cli/actor\.c:\d+")

    def test_missing_rank(self):
        said = self.judged("differ", "1", "missing", calls=8)
        self.assertIn("Not all ranks joining collective, sequence number: 3", said)
        self.assertEqual(self.faults(said), ["Not all ranks joining", "missing ranks: {1}"])
        self.assertIn("collective: gloo:all_reduce", said)

    def test_silent_rank(self):
        said = self.judged("differ", "2", "silent")
        self.assertIn("Not all ranks joining collective, sequence number: 1", said)
        self.assertEqual(self.faults(said), ["Not all ranks joining", "missing ranks: {2}"])

    def test_dead_rank(self):
        said = self.judged("miss", "1", "kill", calls=5)
        self.assertEqual(self.faults(said), ["Not all ranks joining", "missing ranks: {1}"])

    def test_size(self):
        said = self.judged("differ", "1", "size", calls=9)
        self.differs(said, 1)
        self.assertRegex(said, r"SIZE_OR_SYNTAX_MISMATCH, Expected input sizes: '\[\[(32|64)\]\]' "
                               r"does not match found input sizes: '\[\[(32|64)\]\]'")

    def test_type(self):
        said = self.judged("differ", "2", "type", calls=9)
        self.differs(said, 2)
        self.assertIn("COLLECTIVE_DTYPE_MISMATCH", said)

    def test_ways_to_be_stuck(self):
        """Three of those that the manual shows: a rank computes, calls something else (which the
        analyzer does not know), has gone on in another comm."""
        ways = {"missing": (3, ["{2}"]), "call": (3, ["{2}"]), "comm": (4, ["{2, 3}", "{3}"])}
        jobs = {way: self.begun(way, [HANG, way], ranks) for way, (ranks, _) in ways.items()}
        for way, (_, missing) in ways.items():
            said = self.judged_later(*jobs[way])
            faults = self.faults(said)
            self.assertEqual(faults.count("Not all ranks joining"), len(missing), said)
            self.assertEqual(sorted(f for f in faults if f.startswith("missing")),
                             [f"missing ranks: {ranks}" for ranks in missing])
            self.assertNotIn("has errors", faults)

    def test_more_calls_than_a_journal_has(self):
        """The journals of the ranks begin at different operations."""
        said = self.judged("stall", "1", "late")
        self.assertEqual(self.faults(said), ["Not all ranks joining", "missing ranks: {1}"])


if __name__ == "__main__":
    unittest.main()
