# ctest: timeout=120 labels=nosan
# That torch_suite.py can fail: a test of PyTorch's on a backend that is right, answers wrongly, is stuck, loses a rank, has it skipped.
import contextlib
import io
import os
import sys
import time
import unittest

import runner
import torch_suite
import upstream

BOUND = 5
CASE = "test_get_future"  # one that looks at the result: test_all_reduce_* do not
EXPECTED = {  # fault: judgement, a part of what is printed
    "": (0, ""),
    "wrong": (1, "FAILED Suite." + CASE),
    "stuck": (1, "timed out"),
    "gone": (1, "exit code"),
    "skipped": (1, "BEHIND gloo, which passes it: " + CASE),
}


def create(store, rank, size, timeout):
    import torch.distributed as dist

    class Faulty(dist.ProcessGroup):
        def __init__(self):
            super().__init__(rank, size)
            self.inner = dist.ProcessGroupGloo(store, rank, size, timeout)

        def allreduce(self, tensors, options=None):
            fault = os.environ["FAULT"]
            if fault == "stuck":
                time.sleep(1000)
            if fault == "gone" and rank == 1:
                os._exit(3)
            if fault == "skipped":
                raise unittest.SkipTest("not today")
            work = self.inner.allreduce(tensors, *([options] if options else []))
            work.wait()
            tensors[0].add_(fault == "wrong" and rank == 1)
            return work

    return Faulty()


def main():
    torch_suite.register("gloo")
    common, process = upstream.prepare(BOUND)
    import torch.distributed as dist
    dist.Backend.register_backend("faulty", create)
    cases = [case for case in upstream.suite("faulty", 2, common) if case._testMethodName == CASE]
    gloo = {runner.Results.name(case): {"end": runner.PASSED, "seconds": 0, "why": ""} for case in cases}
    wrong = 0
    for fault, (judgement, part) in EXPECTED.items():
        os.environ["FAULT"] = fault
        rows = runner.run(cases, common.MultiProcessTestCase, process, BOUND)
        with contextlib.redirect_stdout(io.StringIO()) as said:
            got = torch_suite.judge(rows, gloo)
        right = len(rows) == 1 and got == judgement and part in said.getvalue()
        print(f"{'found' if right else 'NOT FOUND'}: {fault or 'nothing'}")
        if not right:
            print(said.getvalue())
            wrong += 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
