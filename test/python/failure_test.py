# ctest: timeout=120 labels=faults
# Every failure is the exception of its kind, on every rank that is left, with the ranks and the
# report; Ctrl-C ends a blocked call.
import errno
import os
import pickle
import signal
import threading
import unittest

from support import Case, check, line_of_caller, main, np, raises, tutti

DEATH = -signal.SIGKILL


def dies(world, victim, call):
    if world.rank == victim:
        os.kill(os.getpid(), signal.SIGKILL)
    error = raises(tutti.RankDied, call, world)
    check(error.ranks == (victim,), error.ranks)
    check(error.errno == errno.EOWNERDEAD, error.errno)
    check(f"rank {victim}" in error.report and str(error) == error.report, error.report)
    check(world.failed() == (victim,), world.failed())
    check("failure_test.py:" in error.report, error.report)
    again = raises(tutti.Aborted, world.barrier)
    check(again.ranks == (victim,), again.ranks)
    rest = world.shrink()
    check(rest.size == world.size - 1, rest.size)
    check(rest.all_reduce(np.ones(3)).tolist() == [rest.size] * 3, "the survivors' sum")


def all_reduce_small(world):
    world.all_reduce(np.ones(1))


def all_reduce_large(world):
    world.all_reduce(np.ones(100_000))


WORKS = []


def waits_for_work(world):
    WORKS.append(world.all_reduce(np.ones(1000), async_=True))
    WORKS[-1].wait()


def waits_twice_for_work(world):
    work = world.barrier(async_=True)
    first = raises(tutti.RankDied, work.wait)
    check(work.test(), "over")
    check(raises(tutti.RankDied, work.wait) is first, "the same end again")
    work.wait()


def receives(world):
    world.recv(np.ones(1), from_=1)


def differ(world):
    """The report has the lines of the callers, also through the package's own frames."""
    if world.rank == 0:
        site = line_of_caller()
        error = raises(tutti.Mismatch, lambda: world.barrier())
    else:
        site = line_of_caller()
        error = raises(tutti.Mismatch, lambda: world.all_reduce(np.ones(4)))
    check(site in error.report, (site, error.report))
    check(error.errno == errno.EPROTO and "barrier" in error.report
          and "all_reduce f64 sum 4" in error.report, error.report)


def code_that_goes(world):
    """A site is that of the code that called, though code before it, which is gone, lay at the
    same place."""
    row = np.ones(1)
    for line in range(1, 600):
        code = compile("\n" * line + "world.recv(row, from_=0)\n" + "world.recv(row, from_=0)",
                       "folder/made.py", "exec")
        error = raises(tutti.Deadlock, exec, code, {"world": world, "row": row})
        check(f"folder/made.py:{line + 1}:" in error.report, (line, error.report))
        del code, error


def too_late(world):
    if world.rank == 0:
        error = raises(tutti.Timeout, world.barrier, timeout=0.2)
        check(isinstance(error, TimeoutError) and isinstance(error, tutti.Error), type(error))
        check(error.errno == errno.ETIMEDOUT and "rank 1" in error.report, error.report)
    else:
        raises(tutti.Timeout, world.get, "never")


def aborted(world):
    if world.rank == 0:
        world.abort("enough of this")
    error = raises(tutti.Aborted, world.barrier)
    check(world.rank == 0 or "enough of this" in error.report, error.report)


def patience(world):
    """The patience of one wait() is no deadline: the operation goes on, and its buffer is held
    until the end."""
    mine = bytearray([3])
    if world.rank == 0:
        work = world.all_reduce(mine, async_=True)
        raises(BufferError, mine.append, 1)
        error = raises(TimeoutError, work.wait, timeout=0.01)
        check(not isinstance(error, tutti.Error), type(error))
        check(not work.test(), "under way")
        world.set("go", b"1")
        check(work.wait() is mine and mine[0] == 6, mine)
        mine.append(1)
    else:
        world.get("go")
        world.all_reduce(mine)


def asleep(pid):
    """Whether the main thread of the process sleeps in the kernel, as one that is blocked in a
    call does."""
    with open(f"/proc/{pid}/stat") as stat:
        return stat.read().rpartition(")")[2].split()[0] == "S"


def signalled(world, number):
    """Rank 1 sends the signal to rank 0 when that sleeps."""
    pid = int(world.get("pid"))
    while not asleep(pid):
        os.sched_yield()
    os.kill(pid, number)


def interrupted(world, call):
    key = world.split(0)
    if world.rank == 0:
        key.set("pid", str(os.getpid()))
        raises(KeyboardInterrupt, call, world)
        for work in WORKS:                                              # it has ended with its comm
            check(work.test(), "over")
            check(raises(tutti.Error, work.wait) is raises(tutti.Error, work.wait),
                  "the same end again")
        key.set("interrupted", b"1")
        world.abort("interrupted")
    else:
        signalled(key, signal.SIGINT)
        key.get("interrupted")
        raises(tutti.Aborted, world.barrier)


def handled(world):
    """A handler that does not raise runs while the call is blocked, and the call goes on."""
    key = world.split(0)
    if world.rank == 0:
        seen = []
        signal.signal(signal.SIGUSR1, lambda *_: (seen.append(1), key.set("handled", b"1")))
        key.set("pid", str(os.getpid()))
        world.barrier()
        check(seen == [1], seen)
    else:
        signalled(key, signal.SIGUSR1)
        key.get("handled")
        world.barrier()


def waits_for_key(world):
    world.get("never")


class Failures(Case):
    def test_a_killed_rank(self):
        for call in (all_reduce_small, all_reduce_large, waits_for_work, waits_twice_for_work,
                     receives):
            with self.subTest(call=call.__name__):
                self.ranks(3, dies, 1, call, ends={1: DEATH})

    def test_different_calls(self):
        self.ranks(2, differ)

    def test_code_that_goes(self):
        self.ranks(1, code_that_goes)

    def test_deadline(self):
        self.ranks(2, too_late)

    def test_abort(self):
        self.ranks(3, aborted)

    def test_patience(self):
        self.ranks(2, patience)

    def test_interrupt(self):
        for call in (all_reduce_small, all_reduce_large, waits_for_work, receives, waits_for_key):
            with self.subTest(call=call.__name__):
                self.ranks(2, interrupted, call)

    def test_handler(self):
        self.ranks(2, handled)

    def test_classes(self):
        for kind in (tutti.RankDied, tutti.Mismatch, tutti.Timeout, tutti.Aborted, tutti.Deadlock,
                     tutti.Invalid):
            error = pickle.loads(pickle.dumps(kind("why", 7, (1, 2))))
            self.assertIs(type(error), kind)
            self.assertEqual((str(error), error.report, error.errno, error.ranks),
                             ("why", "why", 7, (1, 2)))


class Spawn(Case):
    def test_ends(self):
        def ends(world):
            if world.rank == 1:
                raise SystemExit(9)
            return 4 if world.rank == 2 else None
        self.ranks(3, ends, ends={1: 9, 2: 4})

    def test_ends_of_a_program_that_ignores_them(self):
        """As those of one that does not; and an end that nobody could read is not a good one."""
        def ends(world):
            check(signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN, "the rank's own affair")
            return 4 if world.rank else 0
        before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        try:
            self.ranks(2, ends, ends={1: 4})
            self.assertIs(signal.getsignal(signal.SIGCHLD), signal.SIG_IGN)
            thread = threading.Thread(target=lambda: said.append(raises(ChildProcessError,
                                                                        tutti.spawn, ends, 2)))
            said = []
            thread.start()
            thread.join()
            self.assertRegex(str(said), "cannot be known")
        finally:
            signal.signal(signal.SIGCHLD, before)

    def test_timeout(self):
        with self.assertRaisesRegex(TimeoutError, "within 0.5 seconds, and killed: ranks 0, 1$"):
            tutti.spawn(lambda world: world.get("never", timeout=-1) if world.rank
                        else threading.Event().wait(), 2, timeout=0.5)

    def test_timeout_beside_an_end(self):
        """Who was late, and how those ended who were not: maybe what the late ones waited for."""
        with self.assertRaisesRegex(TimeoutError, "killed: rank 0; rank 1 had ended by 4$"):
            tutti.spawn(lambda world: world.rank and 4 or threading.Event().wait(), 2, timeout=3)


if __name__ == "__main__":
    main()
