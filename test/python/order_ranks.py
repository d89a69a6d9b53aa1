# ctest: timeout=120
# once, first, turn, seeds, the store, shared arrays, objects and files, each rank its part.
import os
import random
import tempfile
import time
import unittest

from support import Case, main, np, tutti

world = tutti.init(timeout=60)
other = world.split(0)                                        # for what runs inside a call on world
N, ME = world.size, world.rank


def count(key):
    """How many ranks have been here: a line of the job's store."""
    return other.add(key, 1)


class Order(Case):
    def test_first(self):
        for i in range(5):                                   # each turn of a loop has its own first
            with world.first("data") as mine:
                if mine:
                    self.assertEqual(count("prepared"), i + 1)
            self.assertEqual(world.add("prepared", 0), i + 1)
            world.barrier()

    def test_first_that_fails(self):
        try:
            with world.first("hard") as mine:
                if mine and count("tries") == 1:
                    raise OSError("the disk")
        except OSError:
            self.assertEqual(N == 1 or mine, True)
        world.barrier()
        self.assertEqual(world.add("tries", 0), 1 if N == 1 else 2)

    def test_once(self):
        @world.once("build")
        def build(what):
            """Builds."""
            return what, count("built")
        got = [build("it"), build("it")]
        self.assertEqual(build.__doc__, "Builds.")
        self.assertIsNone(got[1])
        ran = world.all_reduce(np.array([got[0] is not None], "i4"))
        self.assertEqual((ran[0], world.add("built", 0)), (1, 1))
        self.assertIn(got[0], (None, ("it", 1)))

    def test_once_that_raises(self):
        @world.once("fragile")
        def fragile():
            if count("attempts") == 1:
                raise KeyError("the first one")
        failed = 0
        try:
            fragile()
        except KeyError as error:
            self.assertEqual(error.args, ("the first one",))
            failed = 1
        self.assertEqual(world.all_reduce(np.array([failed]))[0], 1)

    def test_once_within_itself(self):
        @world.once("calls its own comm")
        def calls():
            with self.assertRaises(tutti.Deadlock) as caught:
                world.barrier()
            return str(caught.exception)
        with self.assertRaises(tutti.Error):
            world.load("no such file")
        text = calls()
        if text is not None:
            self.assertNotIn("no such file", text)                # not the text of an older failure
        world.barrier()

    def test_turn(self):
        with world.turn():
            self.assertEqual(count("turns"), ME + 1)
        world.barrier()
        with self.assertRaises(ZeroDivisionError):
            with world.turn():
                1 / 0
        world.barrier()

    def test_seeds(self):
        seeds = world.all_gather(np.array([world.seed(7)], "u8"))[:, 0]
        self.assertEqual(len(set(seeds.tolist())), N)
        self.assertEqual(int(seeds[ME]), world.seed(7))
        self.assertNotEqual(world.seed(7), world.seed(8))
        drawn = []
        for _ in range(2):
            self.assertEqual(world.seed_everything(7), world.seed(7))
            drawn.append((random.random(), np.random.rand()))
        self.assertEqual(drawn[0], drawn[1])
        every = world.all_gather(np.array(drawn[0]))
        self.assertEqual(len(set(every.ravel().tolist())), 2 * N)


class Store(Case):
    def test_store(self):
        if ME == 0:
            world.set("text", "grüße")
            world.set("large", b"x" * 100_000)
            world.set("empty", np.zeros(0, "u1"))
        self.assertEqual(world.get("text").decode(), "grüße")
        self.assertEqual(world.get("large"), b"x" * 100_000)
        self.assertEqual(world.get("empty"), b"")
        tickets = world.all_gather(np.array([world.add("ticket")]))
        self.assertEqual(sorted(tickets.ravel()), list(range(1, N + 1)))
        won = world.compare_set("chosen", b"", str(ME).encode())
        self.assertEqual(world.all_reduce(np.array([won], "i4"))[0], 1)
        self.assertEqual(won, world.get("chosen") == str(ME).encode())
        world.barrier()
        gone = world.delete("text")
        self.assertEqual(world.all_reduce(np.array([gone], "i4"))[0], 1)
        with self.assertRaises(tutti.Timeout if N > 1 else tutti.RankDied):
            world.get("text", timeout=0.05)
        with self.assertRaises(tutti.Error):
            world.set("k" * 300, b"")
        world.barrier()


class Memory(Case):
    def test_share(self):
        for root in range(N):
            mine = np.arange(12, dtype="f4").reshape(3, 4) + root if ME == root else None
            seen = world.share(mine, root)
            np.testing.assert_array_equal(seen, np.arange(12, dtype="f4").reshape(3, 4) + root)
            self.assertEqual(seen.dtype, np.float32)
            with self.assertRaises(ValueError):
                seen[0, 0] = 1
        self.assertEqual(world.share(b"plain").tolist(), list(b"plain"))
        self.assertEqual(world.share(np.zeros((0, 3))).shape, (0, 3))
        self.assertEqual(world.share(np.arange(6).reshape(2, 3).T).tolist(),
                         [[0, 3], [1, 4], [2, 5]])
        table = np.array([(1, 2.5)], [("a", "i4"), ("b", "f8")])
        self.assertEqual(world.share(table)["b"], 2.5)

    def test_one_copy(self):
        """All ranks see the same pages: the figures of the mapping name one file and one
        place in it."""
        seen = world.share(np.arange(1000))
        with open("/proc/self/maps") as maps:
            lines = maps.readlines()
        for line in lines:
            span, mode, offset, device, inode = line.split()[:5]
            low, high = (int(edge, 16) for edge in span.split("-"))
            if low <= seen.ctypes.data < high:
                place = [int(inode), int(offset, 16) + seen.ctypes.data - low]
                self.assertEqual(mode, "r--s")
        self.assertTrue(world.same(np.array(place)))

    def test_share_that_cannot(self):
        with self.assertRaises(TypeError if ME == 0 else MemoryError):
            world.share(np.array([object()]) if ME == 0 else None)
        world.barrier()

    def test_files(self):
        folder = world.share(np.frombuffer(tempfile.mkdtemp().encode(), "u1") if ME == 0
                             else None).tobytes().decode()
        path = os.path.join(folder, "state")
        world.save(path, np.arange(5000))
        got = world.load(path)
        self.assertTrue(got.readonly)
        np.testing.assert_array_equal(np.frombuffer(got, int), np.arange(5000))
        with self.assertRaises(tutti.Error) as caught:
            world.load(path + ".missing")
        self.assertEqual(caught.exception.errno, 2)
        self.assertIn("state.missing", str(caught.exception))
        world.barrier()
        if ME == 0:
            os.unlink(path)
            os.rmdir(folder)

    def test_finalize_with_what_shows_the_world(self):
        seen = world.share(np.arange(3))
        with self.assertRaisesRegex(BufferError, "still there"):
            world.finalize()
        self.assertEqual(seen.tolist(), [0, 1, 2])


class NoPickle:
    def __reduce__(self):
        raise ValueError("holds a lock")


class Objects(Case):
    def test_objects(self):
        for root in range(N):
            said = {"root": root, "rows": np.arange(30000), "none": None}
            got = world.broadcast_object(said if ME == root else None, root)
            self.assertEqual(got is said, ME == root)
            np.testing.assert_array_equal(got.pop("rows"), np.arange(30000))
            self.assertEqual(got, {"root": root, "none": None})
            mine = ("x" * (ME * 1000), ME)
            all_of_them = world.gather_objects(mine, root)
            self.assertEqual(all_of_them, [("x" * (p * 1000), p) for p in range(N)]
                             if ME == root else None)

    def test_what_cannot_be_pickled(self):
        last = N - 1
        for call in (lambda: world.broadcast_object(NoPickle() if ME == last else 1, last),
                     lambda: world.gather_objects(NoPickle() if ME == last else 1)):
            with self.assertRaisesRegex(ValueError if ME == last else TypeError, "holds a lock"):
                call()
        self.assertEqual(world.broadcast_object(ME), 0)      # the comm is whole

    def test_no_deadline(self):
        """A rank that comes later than the comm's deadline is waited for."""
        slow = world.split(0)
        slow.set_timeout(0.05)
        for n, call in enumerate((slow.broadcast_object, slow.gather_objects,
                                  lambda _: slow.barrier(timeout=-1))):
            if ME == 0:                                      # until all wait, and well beyond
                for p in range(1, N):
                    other.get(f"waits {n} {p}")
                time.sleep(0.1)
            else:
                other.set(f"waits {n} {ME}", b"")
            call(ME)


if __name__ == "__main__":
    main()
