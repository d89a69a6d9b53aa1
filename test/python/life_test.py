# ctest: timeout=120
# How a rank begins and ends: worlds one after the other, programs that never finalize, that fail,
# that fork; threads.
import os
import signal
import sys
import threading
import unittest

from support import Case, check, main, np, pair, program, raises, tutti


WAITS = """
try:
    world.barrier()
    world.barrier()
except tutti.RankDied as error:
    sys.exit(f"{error.ranks}: {error}")
"""


IMPORTED = """
import sys
before = set(sys.modules)
import tutti
print(*sorted(set(sys.modules) - before), file=sys.stderr)
"""


class Import(Case):
    def test_what_is_seldom_used_is_not_loaded(self):
        """Each of these takes as long as all of the package, and has its place where it is used."""
        seldom = {"inspect", "concurrent.futures", "logging", "pickle", "random", "traceback",
                  "asyncio", "numpy", "torch"}
        if os.environ.get("TUTTI_PYTHON_PLAIN") != "1":
            seldom.add("ctypes")
        loaded = set(program(IMPORTED)[1].split())
        self.assertIn("tutti.comm", loaded)
        self.assertEqual(seldom & loaded, set())


class Programs(Case):
    def test_no_finalize(self):
        """A program that simply ends has left: it is not taken for dead."""
        (one, said), (two, heard) = pair("world.barrier()", WAITS)
        self.assertEqual((one, said, two), (0, "", 1))
        self.assertIn("(0,)", heard)
        self.assertRegex(heard, r" left\n")

    def test_exception(self):
        (one, said), (two, heard) = pair("world.barrier()\nraise KeyError('mine')", WAITS)
        self.assertEqual((one, two), (1, 1))
        self.assertIn("KeyError: 'mine'", said)
        self.assertIn("(0,)", heard)
        self.assertIn(" left, exit status 1: as after an uncaught exception", heard)

    def test_killed(self):
        (one, _), (two, heard) = pair("world.barrier()\nos.kill(os.getpid(), 9)", WAITS)
        self.assertEqual((one, two), (-signal.SIGKILL, 1))
        self.assertIn("(0,)", heard)

    def test_end_with_work_under_way(self):
        (one, said), (two, _) = pair("x = bytearray(100_000)\n"
                                     "work = world.all_reduce(x, async_=True)", WAITS)
        self.assertEqual((one, said), (0, ""))
        self.assertEqual(two, 1)

    def test_alone(self):
        status, said = program("import tutti\nwith tutti.init() as world:\n"
                               "    assert (world.rank, world.size) == (0, 1)")
        self.assertEqual((status, said), (0, ""))

    def test_with_and_what_it_shows(self):
        """An array of the arena outlives the `with` block that it was made in; the program's end
        leaves the world."""
        status, said = program("import tutti\nwith tutti.init() as world:\n"
                               "    seen = world.share(b'abc')\nassert bytes(seen) == b'abc'")
        self.assertEqual((status, said), (0, ""))

    def test_bad_environment(self):
        status, said = program("import tutti\ntry: tutti.init()\n"
                               "except tutti.Invalid as error: raise SystemExit(str(error))",
                               TUTTI_TIMEOUT_MS="soon")
        self.assertEqual(status, 1)
        self.assertIn("TUTTI_TIMEOUT_MS", said)

    def test_one_that_never_comes(self):
        with self.assertRaisesRegex(tutti.Timeout, "rank 1") as caught:
            tutti.init(job=f"never-{os.getpid()}", rank=0, size=2, join_timeout=0.2)
        self.assertIsInstance(caught.exception, TimeoutError)


def two_worlds(world):
    check(world.all_reduce(np.ones(1))[0] == 2, "the first")
    job = world.get("job") if world.rank else b"second-%d" % os.getpid()
    if not world.rank:
        world.set("job", job)
    # nobody waits for it, and the world is left all the same
    world.all_reduce(np.ones(10_000), async_=True)
    world.finalize()
    raises(ValueError, world.barrier)
    check(repr(world) == "<tutti.Comm: freed>", repr(world))
    rank = 0 if job.endswith(str(os.getpid()).encode()) else 1
    with tutti.init(job=job.decode(), rank=rank, size=2) as second:
        half = second.split(0)
        check(second.all_reduce(np.ones(1))[0] == 2, "the second")
        second.finalize()
        raises(ValueError, half.barrier)
        half.free()


def forked(world):
    """A fork of a rank is not the rank: its calls are refused, its end harms nobody."""
    pid = os.fork()
    if pid == 0:
        error = raises(tutti.Error, world.barrier)
        os._exit(0 if "fork" in str(error) else 1)
    check(os.waitpid(pid, 0)[1] == 0, "the child")
    if os.fork() == 0:
        sys.exit(0)                                                # through all of Python's own end
    os.wait()
    check(world.all_reduce(np.ones(1))[0] == 2, "the rank")


def threads(world):
    """While one thread is blocked the others run; comms of their own are independent."""
    comms = [world.split(0) for _ in range(3)]
    sums = [None] * 3

    def loop(i):
        for _ in range(100):
            sums[i] = comms[i].all_reduce(np.ones(1))[0]
    running = [threading.Thread(target=loop, args=(i,)) for i in range(3)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    check(sums == [2, 2, 2], sums)


def dropped(world):
    """A comm that a rank holds no more is freed there: who waits in it is told."""
    comm = world.split(0)
    comm.barrier()
    if world.rank == 0:
        del comm
    else:
        error = raises(tutti.RankDied, comm.barrier)
        check(error.ranks == (0,) and "freed the comm" in error.report, error.report)
    world.barrier()


class Ranks(Case):
    def test_worlds(self):
        self.ranks(2, two_worlds)

    def test_fork(self):
        self.ranks(2, forked)

    def test_threads(self):
        self.ranks(2, threads)

    def test_a_comm_goes_with_its_last_user(self):
        self.ranks(2, dropped)


if __name__ == "__main__":
    main()
