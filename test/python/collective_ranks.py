# ctest: timeout=120
# Every collective against what NumPy says of the ranks' arrays: each rank knows what all
# of them hold.
import array
import unittest

from support import Case, main, np, tutti

world = tutti.init(timeout=60)
N, ME = world.size, world.rank
TYPES = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "?", "c8", "c16"]
FOLDS = {"sum": np.add, "prod": np.multiply, "min": np.minimum, "max": np.maximum}


def held(rank, shape=(5,), dtype="f8"):
    return (np.arange(np.prod(shape)).reshape(shape) % 3 + rank + 1).astype(dtype)


def folded(op, arrays):
    total = arrays[0].copy()
    for one in arrays[1:]:
        total = FOLDS[op](total, one, dtype=total.dtype)
    return total


class Collectives(Case):
    def same(self, got, expected):
        self.assertEqual(got.dtype, expected.dtype)
        np.testing.assert_array_equal(got, expected)

    def test_all_reduce_every_type(self):
        for dtype in TYPES:
            for op in FOLDS:
                if dtype[0] == "c" and op in ("min", "max"):
                    continue
                with self.subTest(dtype=dtype, op=op):
                    mine = held(ME, dtype=dtype)
                    expected = folded(op, [held(r, dtype=dtype) for r in range(N)])
                    out = np.zeros_like(mine)
                    self.assertIs(world.all_reduce(mine, op, out=out), out)
                    self.same(out, expected)
                    self.same(mine, held(ME, dtype=dtype))
                    self.assertIs(world.all_reduce(mine, op), mine)
                    self.same(mine, expected)

    def test_sizes(self):
        for n in (0, 1, 1000, 300_000):
            mine = np.full(n, ME + 1, "f4")
            self.same(world.all_reduce(mine), np.full(n, N * (N + 1) / 2, "f4"))

    def test_average_and_bits(self):
        self.same(world.all_reduce(np.array([ME, 2.0 * ME]), "avg"),
                  np.array([(N - 1) / 2, N - 1.0]))
        self.same(world.all_reduce(np.array([1 << ME], "u4"), "bor"),
                  np.array([(1 << N) - 1], "u4"))
        self.same(world.all_reduce(np.array([ME == 0]), "land"), np.array([N == 1]))

    def test_factor(self):
        for mine in (np.ones(3), np.ones(3, "c16"), np.ones(3, "f2")):
            self.same(world.all_reduce(mine, "premul_sum", factor=ME + 2),
                      np.full(3, N * (N + 3) / 2, mine.dtype))
        got = world.reduce_scatter(array.array("d", [1.0] * N), "premul_sum", factor=0.5,
                                   async_=True).wait()
        self.assertEqual(got.tolist(), [N / 2])
        bits = np.array([0x3f80, 0x4000], "u2")                         # 1 and 2 in bf16
        self.same(world.all_reduce(bits[:1].copy(), "premul_sum", dtype="bf16", factor=bits[1:]),
                  world.all_reduce(bits[1:].copy(), dtype="bf16"))
        with self.assertRaisesRegex(TypeError, "beside dtype="):
            world.all_reduce(bits, "premul_sum", dtype="bf16", factor=2)
        with self.assertRaisesRegex(ValueError, "2 elements; expected one"):
            world.all_reduce(np.ones(3), "premul_sum", factor=[1, 2])

    def test_type_by_name(self):
        halves = np.array([1.5 * (ME + 1)], "f4").view("u4") >> 16
        mine = halves.astype("u2")                                      # the bits of bf16
        world.all_reduce(mine, dtype="bf16")
        self.same((mine.astype("u4") << 16).view("f4"), np.array([1.5 * N * (N + 1) / 2], "f4"))

    def test_broadcast(self):
        for root in range(N):
            mine = held(ME, (2, 3))
            self.assertIs(world.broadcast(mine, root), mine)
            self.same(mine, held(root, (2, 3)))

    def test_broadcast_of_what_cannot_be_written(self):
        got = b"stone" if ME == 0 else bytearray(5)
        world.broadcast(got)
        self.assertEqual(bytes(got), b"stone")

    def test_reduce(self):
        for root in range(N):
            mine, out = held(ME), np.zeros(5)
            got = world.reduce(mine, "sum", root, out=out)
            self.same(mine, held(ME))
            self.same(out, folded("sum", [held(r) for r in range(N)]) if ME == root
                      else np.zeros(5))
            self.assertIs(got, out if ME == root else None)

    def test_reduce_scatter(self):
        mine = held(ME, (2 * N, 3))
        total = folded("sum", [held(r, (2 * N, 3)) for r in range(N)])
        self.same(world.reduce_scatter(mine), total[2 * ME:2 * ME + 2])
        world.reduce_scatter(mine, out=mine[2 * ME:2 * ME + 2])
        self.same(mine[2 * ME:2 * ME + 2], total[2 * ME:2 * ME + 2])

    def test_gathers(self):
        everything = np.stack([held(r, (2, 2), "i4") for r in range(N)])
        self.same(world.all_gather(held(ME, (2, 2), "i4")), everything)
        self.same(world.all_gather(np.int64(ME).reshape(())), np.arange(N))
        for root in range(N):
            got = world.gather(held(ME, (2, 2), "i4"), root)
            if ME == root:
                self.same(got, everything)
            else:
                self.assertIsNone(got)

    def test_scatter(self):
        for root in range(N):
            out = np.zeros((2, 2))
            blocks = np.stack([held(r, (2, 2)) for r in range(N)]) if ME == root else None
            self.assertIs(world.scatter(blocks, out, root), out)
            self.same(out, held(ME, (2, 2)))

    def test_all_to_all(self):
        mine = np.array([[10 * ME + p] * 2 for p in range(N)])
        self.same(world.all_to_all(mine, out=np.zeros_like(mine)),
                  np.array([[10 * p + ME] * 2 for p in range(N)]))
        self.same(world.all_to_all(mine), np.array([[10 * p + ME] * 2 for p in range(N)]))

    def test_scans(self):
        self.same(world.scan(held(ME)), folded("sum", [held(r) for r in range(ME + 1)]))
        before = folded("sum", [held(r) for r in range(ME)]) if ME else held(ME)
        self.same(world.exscan(held(ME)), before)

    def test_many(self):
        mine = [held(ME, (n,)) for n in (1, 4, 700)]
        world.all_reduce_many(mine)
        for i, n in enumerate((1, 4, 700)):
            self.same(mine[i], folded("sum", [held(r, (n,)) for r in range(N)]))

    def test_same(self):
        self.assertIs(world.same(np.arange(100)), True)
        self.assertIs(world.same(np.full(3, ME)), N == 1)
        self.assertIs(world.same(b"abc", async_=True).wait(), True)

    def test_uneven(self):
        out = [np.zeros(r + 1) for r in range(N)]
        world.all_gather_v(np.full(ME + 1, float(ME)), out)
        for r in range(N):
            self.same(out[r], np.full(r + 1, float(r)))
        out = [np.zeros(r + 1) for r in range(N)] if ME == 0 else None
        world.gather_v(np.full(ME + 1, float(ME)), out)
        for r in range(N if ME == 0 else 0):
            self.same(out[r], np.full(r + 1, float(r)))
        got = np.zeros(ME + 1)
        world.scatter_v([np.full(r + 1, 7.0 * r) for r in range(N)] if ME == 0 else None, got)
        self.same(got, np.full(ME + 1, 7.0 * ME))
        world.reduce_scatter_v([np.full(r + 1, 1.0) for r in range(N)], got)
        self.same(got, np.full(ME + 1, float(N)))
        out = [np.zeros(ME + p, "i4") for p in range(N)]
        world.all_to_all_v([np.full(ME + p, 10 * ME + p, "i4") for p in range(N)], out)
        for p in range(N):
            self.same(out[p], np.full(ME + p, 10 * p + ME, "i4"))
        out = [None if r == 0 else np.zeros(2) for r in range(N)]       # nothing of rank 0
        world.all_gather_v(np.zeros(0) if ME == 0 else np.full(2, 1.0 * ME), out)
        for r in range(1, N):
            self.same(out[r], np.full(2, 1.0 * r))

    def test_without_numpy_arrays(self):
        mine = array.array("d", [ME, 1])
        world.all_reduce(mine)
        self.assertEqual(list(mine), [N * (N - 1) / 2, N])
        every = world.all_gather(array.array("i", [ME, 5]))
        self.assertIsInstance(every, memoryview)
        self.assertEqual(every.tolist(), [[r, 5] for r in range(N)])

    def test_work(self):
        mine = [np.full(n, ME + 1.0) for n in (1, 3000, 80_000)]
        all_work = [world.all_reduce(x, async_=True) for x in mine]
        gate = world.barrier(async_=True)
        self.assertIsNone(gate.wait())
        for work, x in zip(all_work, mine):
            self.assertTrue(work.test())
            self.assertIs(work.wait(timeout=30), x)
            self.assertIs(work.wait(), x)                               # again the same
            self.same(x, np.full(len(x), N * (N + 1) / 2))

    def test_work_that_nobody_holds(self):
        for _ in range(50):
            world.all_reduce(np.ones(20_000), async_=True)
        self.same(world.all_reduce(np.ones(1)), np.full(1, float(N)))

    def test_letters(self):
        to, from_ = (ME + 1) % N, (ME - 1) % N
        world.send(np.array([ME, ME + 1], "i4"), to, tag=3)
        self.assertEqual(world.probe(from_, 3), (from_, 3, 2))
        got = np.zeros(10, "i4")
        self.assertEqual(world.recv(got, from_, 3), tutti.Message(from_, 3, 2))
        self.assertEqual(got[:2].tolist(), [from_, from_ + 1])
        work = world.recv(got, async_=True)
        world.send(np.array([9], "i4"), to)
        self.assertEqual(work.wait(), (from_, 0, 1))

    def test_comms(self):
        half = world.split(ME % 2, key=-ME)
        mates = [r for r in reversed(range(N)) if r % 2 == ME % 2]
        self.assertEqual((half.rank, half.size), (mates.index(ME), len(mates)))
        self.same(half.all_gather(np.array([ME])), np.array([[r] for r in mates]))
        half.free()
        half.free()
        with self.assertRaises(ValueError):
            half.barrier()
        others = world.split(None if ME == 0 else 1)
        self.assertEqual(others and others.size, None if ME == 0 else N - 1)
        if ME == 0:
            with world.create([0]) as alone:
                self.assertEqual(alone.size, 1)
        self.assertEqual(world.agree(3 if ME else 1), 1)


class Refusals(unittest.TestCase):
    """Found before anything is touched: the other ranks do not even notice."""

    def refused(self, kind, text, call, *args, **words):
        with self.assertRaisesRegex(kind, text):
            call(*args, **words)

    def test_refusals(self):
        x = np.zeros(4)
        self.refused(TypeError, "no array", world.all_reduce, [1, 2])
        self.refused(TypeError, "no type of tutti", world.all_reduce, np.zeros(2, "g"))
        self.refused(TypeError, "byte order", world.all_reduce, np.zeros(2, ">i4"))
        self.refused(TypeError, "another type", world.all_reduce, x, out=np.zeros(4, "f4"))
        self.refused(ValueError, "out has 3 elements; expected 4", world.all_reduce, x,
                     out=np.zeros(3))
        self.refused(ValueError, "in one piece", world.all_reduce, np.zeros((4, 4))[:, 1])
        self.refused(ValueError, "read-only", world.all_reduce, b"abcd")
        self.refused(ValueError, "op='mean'.*sum", world.all_reduce, x, "mean")
        self.refused(ValueError, "dtype='half'", world.all_reduce, x, dtype="half")
        self.refused(ValueError, f"expected {4 * N}", world.all_gather, x, out=np.zeros(4 * N + 1))
        self.refused(ValueError, "timeout of 0", world.barrier, timeout=0)
        self.refused(tutti.Invalid, "root", world.broadcast, x, N)
        self.refused(ValueError, "root", world.broadcast, x, -1)
        self.refused(ValueError, f"a list of {N + 1} arrays; expected {N}", world.all_to_all_v,
                     [x] * (N + 1), [x] * N)
        if N > 1:
            self.refused(ValueError, "divided", world.reduce_scatter, np.zeros(N + 1))
            self.refused(ValueError, "divided", world.all_to_all, np.zeros(N + 1))
        world.barrier()


if __name__ == "__main__":
    main()
