# PyTorch's own tests of torch.distributed, made to run here: as they are, but for what stands in
# this file and in gates.py.
#   expecttest       need not be there; what is used of it is a base class and a flag.
#   ranks            are forked from this process, which has imported everything, instead of started
#                    anew: seconds less for each.
#   files            that tests leave in the folder for temporary ones go to one that is removed.
#   skips            for want of GPUs or ranks are known before there are any.
#   polls            of 0.1 s, in which parent and ranks look for each other's files and ends, are 5
#                    ms: most of the suite's time.
import atexit
import ctypes
import importlib
import os
import signal
import sys
import tempfile
import time
import types
import unittest
from unittest import mock

import gates

SUITE = "torch.testing._internal.distributed.distributed_test"
PR_SET_PDEATHSIG = 1
# Heard when torch and numpy are imported: a process with threads of theirs could not fork ranks, of
# which there are enough.
os.environ.update(OMP_NUM_THREADS="1", TORCHINDUCTOR_COMPILE_THREADS="1")


class Quick(types.ModuleType):
    """The module time, where a poll is shorter."""

    def __getattr__(self, name):
        return getattr(time, name)

    @staticmethod
    def sleep(seconds):
        time.sleep(0.005 if seconds == 0.1 else seconds)


class Instead(types.ModuleType):
    """A module as it is, but for some names."""

    def __init__(self, module, **names):
        super().__init__(module.__name__)
        self.__dict__.update(names, instead_of=module)

    def __getattr__(self, name):
        return getattr(self.__dict__["instead_of"], name)


def threads():
    return len(os.listdir("/proc/self/task"))


def prepare(bound, forks=True):
    """Imports what all tests have; `bound`: seconds until a test that hangs is ended; `forks`:
    ranks are not started anew."""
    os.environ["DISTRIBUTED_TESTS_DEFAULT_TIMEOUT"] = str(bound)
    os.environ.pop("MASTER_PORT", None)
    folder = tempfile.TemporaryDirectory(prefix="tutti-suite-")  # the tests leave their files
    atexit.register(folder.cleanup)
    tempfile.tempdir = folder.name
    sys.argv = sys.argv[:1]  # torch's common_utils reads it
    try:
        import expecttest  # noqa: F401
    except ImportError:
        sys.modules["expecttest"] = types.ModuleType("expecttest")
        sys.modules["expecttest"].TestCase, sys.modules[
            "expecttest"].ACCEPT = unittest.TestCase, False

    import torch
    from torch.testing._internal import common_distributed as common

    fork = torch.multiprocessing.get_context("fork").Process
    libc = ctypes.CDLL(None)

    class Rank(fork):
        """A rank that ends with the process that forked it, should that be killed."""

        def start(self):
            self.parent = os.getpid()
            super().start()

        def run(self):
            libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != self.parent:
                os._exit(1)
            super().run()

    def spawn(case):
        if threads() != 1:
            raise RuntimeError(
                f"{threads()} threads here: a rank that is forked from them may hang")
        case._start_processes(Rank)

    def end(case):
        processes, codes = case.processes, [process.exitcode for process in case.processes]
        ends(case)
        for process in processes:  # they were told to; who does not hear is killed
            process.join(2)
            if process.exitcode is None:
                process.kill()
                process.join()
        free = {test.__name__ for test in case.skip_return_code_checks}
        told = {None, case.TEST_ERROR_EXIT_CODE}  # of these torch has failed the test itself
        if len(set(codes)) > 1 and not told & set(codes) and case._testMethodName not in free:
            # torch looks at the first one's only
            raise AssertionError(f"the ranks ended by {codes}")

    ends = common.MultiProcessTestCase.tearDown
    common.MultiProcessTestCase.tearDown = end
    if forks:
        common.MultiProcessTestCase._spawn_processes = spawn
    common.TIMEOUT_OVERRIDE.clear()
    if not torch.cuda.is_available():
        common.skip_if_no_gpu = skipped(common, "no_cuda")
        common.skip_if_lt_x_gpu = (lambda least, allow_cpu=False: always if allow_cpu
                                   else skipped(common, f"multi-gpu-{least}"))
    common.time = Quick("time")
    return common, Rank


def always(test):
    return test


def skipped(common, why):
    """A decorator by which a test is skipped before there are ranks: they would be made, meet and
    say no more than this."""
    return common.skip_but_pass_in_sandcastle(common.TEST_SKIPS[why].message)


def suite(backend, world, common, monitored_barrier=None):
    """The cases of torch.testing._internal.distributed for a backend that torch knows by now."""
    import torch
    os.environ["WORLD_SIZE"], os.environ["BACKEND"] = str(world), backend
    common.skip_if_small_worldsize = skipped(common, "small_worldsize") if world <= 2 else always
    if world % 2:
        common.skip_if_odd_worldsize = skipped(common, "odd_worldsize")
    gate = gates.Gate(backend, "gloo", {"gloo", "mpi"} | ({"nccl"} if torch.cuda.is_available()
                                                          else set()))
    defined = {**os.environ, "INIT_METHOD": "file://"}
    if backend != "gloo":
        defined["BACKEND"] = gate
        common.DistTestCases.backend_feature["plugin"].add(backend)
    with mock.patch.object(os, "environ", defined):
        tests = importlib.import_module(SUITE)
    gate.close()
    tests.BACKEND = backend
    tests.time = Quick("time")
    if monitored_barrier:
        tests.dist = Instead(tests.dist, monitored_barrier=monitored_barrier)
    if backend != "gloo":
        base = tests.DistributedTest._DistTestBase
        for name in gates.AS_GLOO:
            setattr(base, name, named(tests, "gloo", getattr(base, name)))
    if backend in gates.PROFILED:
        for name in ("", "CUDA_", "SEND_RECV_"):
            getattr(tests, f"{name}PROFILING_SUPPORTED_BACKENDS").append(backend)

    class Suite(tests.TestDistBackend, tests.DistributedTest._DistTestBase):
        def setUp(self):
            super().setUp()
            tests.INIT_METHOD = os.environ["INIT_METHOD"]
            self._spawn_processes()

    return cases([Suite])


def named(tests, name, body):
    """`body` with another name in BACKEND: it is a rank that calls it, nobody else sees
    the change."""
    def call(*args, **words):
        with mock.patch.object(tests, "BACKEND", name):
            return body(*args, **words)
    return call


def cases(classes):
    return [kind(name) for kind in classes if issubclass(kind, unittest.TestCase)
            for name in unittest.defaultTestLoader.getTestCaseNames(kind)]
