# ctest: timeout=120 labels=faults
# Operations of a program's own: in rank order, for every type, blocking and under way;
# what they raise.
import os
import signal
import sys

from support import Case, check, main, np, pair, program, raises, tutti

world = tutti.init(timeout=60)
N, ME = world.size, world.rank


def largest(in_, inout):
    np.maximum(in_, inout, out=inout)


class Ops(Case):
    def test_types(self):
        most = world.op(largest)
        for dtype in ("i1", "u2", "i4", "u8", "f2", "f4", "f8", "?"):
            mine = np.full(5, ME + 1).astype(dtype)
            self.assertIs(world.all_reduce(mine, most), mine)
            np.testing.assert_array_equal(mine, np.full(5, N).astype(dtype))
        mine = np.full(3, ME + 1j * ME)
        product = tutti.op(lambda in_, inout: np.multiply(in_, inout, out=inout), commutative=True)
        world.all_reduce(mine, product)
        np.testing.assert_allclose(mine, np.prod([p + 1j * p for p in range(N)]))
        most.free()
        most.free()
        product.free()
        self.assertRaisesRegex(ValueError, "has been freed", world.all_reduce, mine, most)

    def test_rank_order(self):
        """No more than associative: a pair of numbers stands for x -> a x + b, and the fold is one
        after the other."""
        def after(in_, inout):
            first, second = in_.reshape(-1, 2), inout.reshape(-1, 2)
            second[:, 1] += second[:, 0] * first[:, 1]
            second[:, 0] *= first[:, 0]
        chain = world.op(after, commutative=False)
        one, b = 1, 0
        for p in range(N):
            one, b = one * (p + 2), b * (p + 2) + p
        for n in (1, 3000, 60_000):
            mine = np.tile([ME + 2.0, float(ME)], (n, 1))
            world.all_reduce(mine, chain)
            np.testing.assert_array_equal(mine, np.tile([float(one), float(b)], (n, 1)))
        chain.free()

    def test_every_reduction(self):
        most = world.op(largest)
        mine = np.full(4, ME + 1)
        self.assertEqual(world.all_reduce(mine.copy(), most, async_=True).wait()[0], N)
        got = world.reduce(mine, most, out=np.zeros(4, int) if ME == 0 else None)
        self.assertEqual(ME or got[0], ME or N)
        self.assertEqual(world.scan(mine.copy(), most)[0], ME + 1)
        self.assertEqual(world.exscan(mine.copy(), most)[0], ME or 1)
        self.assertEqual(world.reduce_scatter(np.full(2 * N, ME), most)[0], N - 1)
        many = [np.full(n, ME) for n in (1, 9)]
        world.all_reduce_many(many, most)
        self.assertEqual([x[0] for x in many], [N - 1] * 2)
        works = [world.all_reduce(np.full(n, ME + 1), most, async_=True)
                 for n in (1, 10_000, 100_000) for _ in range(3)]
        self.assertTrue(all((work.wait() == N).all() for work in works))
        most.free()

    def test_bits(self):
        """Of a type that NumPy lacks it sees the bits; of positive numbers they are in order."""
        most = world.op(largest)
        mine = (np.array([1.5 * (ME + 1)], "f4").view("u4") >> 16).astype("u2")
        world.all_reduce(mine, most, dtype="bf16")
        self.assertEqual((mine.astype("u4") << 16).view("f4")[0], 1.5 * N)
        most.free()

    def test_without_numpy(self):
        status, said = program("""
import array, sys, tutti
world = tutti.init(job='plain-%d', rank=0, size=1)
def body(world):
    def fold(in_, inout):
        assert 'numpy' not in sys.modules and in_.readonly and not inout.readonly, (in_, inout)
        for i in range(len(inout)):
            inout[i] += in_[i]
    mine = array.array('d', [world.rank, 1.0])
    world.all_reduce(mine, world.op(fold))
    assert mine.tolist() == [1.0, 2.0], mine
ends = tutti.spawn(body, 2)
sys.exit(0 if ends == [0, 0] else 1)
""" % os.getpid())
        self.assertEqual((status, said), (0, ""))

    def test_refused(self):
        most = world.op(largest)
        other = world.split(0)
        self.assertRaisesRegex(ValueError, "another comm", other.all_reduce, np.zeros(1), most)
        self.assertRaises(TypeError, world.op, 3)
        other.op(largest)                                               # goes with its comm
        other.free()
        most.free()
        some = [world.op(largest) for _ in range(3)]
        for op in some:
            op.free()


def raises_in_fold(world, n, async_, on):
    calls = []

    def fold(in_, inout):
        calls.append(1)
        if world.rank in on:
            raise KeyError(f"no way on {world.rank}")
        np.add(in_, inout, out=inout)
    op = world.op(fold)
    kind = KeyError if world.rank in on else tutti.Aborted

    def call():
        got = world.all_reduce(np.ones(n), op, async_=async_)
        return got.wait() if async_ else got
    error = raises((KeyError, tutti.Aborted),
                   call) if world.rank in on or len(on) > 1 else world_or_abort(world, call)
    if error is not None:
        check(isinstance(error, kind) or len(on) > 1, error)
        check("no way on" in str(error), error)
    check(isinstance(raises(tutti.Error, world.barrier), tutti.Aborted), "broken")
    check(world.rank not in on or len(calls) <= 1, "not asked again after it has raised")
    check(world.shrink().size == world.size, "a fresh one")


def world_or_abort(world, call):
    """A rank that needs no result of the one that failed may have its own, which is right."""
    try:
        got = call()
    except tutti.Aborted as error:
        return error
    check((got == world.size).all(), got)
    return None


def interrupted(world):
    """Ctrl-C in the middle of a function ends the call by KeyboardInterrupt."""
    def fold(in_, inout):
        if world.rank == 0:
            os.kill(os.getpid(), signal.SIGINT)
            for _ in range(10):
                pass
    op = world.op(fold)
    if world.rank == 0:
        raises(KeyboardInterrupt, world.all_reduce, np.ones(3), op)
        world.abort("interrupted")
    try:
        world.all_reduce(np.ones(3), op)
        world.barrier()
    except tutti.Aborted:
        pass


class Alarm(Exception):
    pass


def alarmed(world):
    """A signal's exception, wherever it strikes, is the call's; the result, where there is one, is
    right, and nothing is only printed."""
    lost, armed = [], []

    def ring(*_):
        if armed:
            armed.clear()
            raise Alarm
    sys.unraisablehook = lost.append
    if world.rank == 0:
        signal.signal(signal.SIGALRM, ring)
    ends = {"right": 0, "alarm": 0, "aborted": 0}
    for i in range(60):
        comm = world.split(0)
        op = comm.op(lambda in_, inout: np.add(in_, inout, out=inout))
        mine = np.ones(60_000)
        try:
            if world.rank == 0:
                armed.append(1)
                signal.setitimer(signal.ITIMER_REAL, 0.0002 * (i % 10 + 1))
            comm.all_reduce(mine, op)
            check((mine == world.size).all(), mine)
            armed.clear()
            ends["right"] += 1
        except Alarm:
            comm.abort("the alarm")
            ends["alarm"] += 1
        except tutti.Aborted:
            ends["aborted"] += 1
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    check(world.rank or ends["alarm"], ends)
    check(not lost, lost)


ENDS = """
import numpy as np
def fold(in_, inout):
    for i in range(3000):
        inout += in_
op = world.op(fold)
for _ in range(3):
    world.all_reduce(np.ones(100_000), op, async_=True)
"""


class Failures(Case):
    def test_exceptions(self):
        if ME == 0:
            for n in (1, 3000, 300_000):
                for async_ in (False, True):
                    for on in ((1,), (0, 1, 2)):
                        with self.subTest(n=n, async_=async_, on=on):
                            self.ranks(3, raises_in_fold, n, async_, on)
        world.barrier()

    def test_interrupt(self):
        if ME == 0:
            self.ranks(2, interrupted)
        world.barrier()

    def test_alarms(self):
        if ME == 0:
            self.ranks(2, alarmed)
        world.barrier()

    def test_end(self):
        """The program's end finds the operation under way: nobody hangs, and no thread is ended
        inside of the library."""
        if ME == 0:
            for status, said in pair(ENDS, ENDS):
                self.assertTrue(status == 0 and said == "" or status == 1
                                and "tutti.errors." in said, (status, said))
        world.barrier()


if __name__ == "__main__":
    main()
