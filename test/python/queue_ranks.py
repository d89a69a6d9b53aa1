# ctest: timeout=120
# tutti.Queue, each rank its part: objects with buffers, in order; closes, deadlines, asyncio.
import asyncio
import collections
import pickle
import os
import queue
import signal
import threading
import time
import unittest
import weakref
from unittest import mock

from support import Case, main, np, tutti

world = tutti.init(timeout=60)
N, ME = world.size, world.rank
Point = collections.namedtuple("Point", "x y")


def sample(n):
    rows = np.arange(n * 7, dtype="f8").reshape(7, n)
    return [n, "text", b"bytes" * n, rows, {"half": rows[::2], "point": Point(n, None)},
            pickle.PickleBuffer(b"raw" * n), np.zeros(0, "i4"), bytearray(n)]


@unittest.skipIf(N == 1, "a queue of one rank has no reader")
class Queues(Case):
    def same(self, got, n):
        for a, b in zip(got, sample(n), strict=True):
            if isinstance(b, pickle.PickleBuffer):
                self.assertEqual(bytes(a), bytes(b))
            elif isinstance(b, dict):
                np.testing.assert_array_equal(a["half"], b["half"])
                self.assertEqual(a["point"], b["point"])
            elif isinstance(b, np.ndarray):
                np.testing.assert_array_equal(a, b)
            else:
                self.assertEqual(a, b)

    def test_objects(self):
        for writer in range(N):
            with tutti.Queue(writer=writer, room=1 << 16) as q:
                self.assertEqual((q.rank, q.size, q.writer), (ME, N, writer))
                for n in range(1, 200, 3):          # up to twice the ring
                    if ME == writer:
                        q.put(sample(n * 7))
                    else:
                        got = q.get()
                        self.same(got, n * 7)
                        got[3][0] = 5               # its own memory
                if ME == writer:
                    q.close()
                else:
                    self.assertEqual(list(q), [])
                    self.assertRaises(tutti.Closed, q.get)

    def test_keeps_nothing(self):
        """A put keeps nothing of its object, and one that fails leaves nothing to the next."""
        shared = Point([1], [2])
        with tutti.Queue(world) as q:
            if ME != 0:
                self.assertEqual([q.get() for _ in range(3)], [shared, shared, 3])
                return
            given = {shared.x[0]}
            gone = weakref.ref(given)
            q.put(shared)
            with self.assertRaises(TypeError):
                q.put([given, np.zeros(9), threading.Lock()])
            del given
            self.assertIsNone(gone())
            q.put(shared)                           # not a reference into an earlier pickle
            q.put(3)

    def test_in_place(self):
        with tutti.Queue(world) as q:
            if ME == 0:
                for n in range(20):
                    q.put((n, np.full(1000, n)))
            else:
                kept = [q.get(copy=False) for _ in range(20)]
                self.assertRaises(ValueError, kept[0][1].__setitem__, 0, 1)
                self.assertEqual(q.figures().held, 20)
                for n, (number, array) in enumerate(kept):
                    self.assertEqual(number, n)
                    self.assertTrue((array == n).all())
                del kept, array
                self.assertEqual(q.figures().held, 0)
            self.assertEqual(q.figures().messages, 20)
            world.barrier()

    def test_view_of_a_pickle(self):
        """What a loader keeps of a pickle stays as it is: it holds the message."""
        q = tutti.Queue(room=4096)
        if ME == 0:
            for n in range(3):
                q.put(bytes([n]) * 200)
            world.barrier()
            with self.assertRaises(queue.Full):
                while True:                         # over all that nobody holds
                    q.put(b"x" * 200, block=False)
            world.barrier()
            q.close()
        else:
            with mock.patch.object(pickle, "loads", lambda data, **_: memoryview(data)):
                kept = [q.get() for _ in range(3)]
            world.barrier()
            world.barrier()
            self.assertEqual(q.figures().held, 3)
            self.assertEqual([pickle.loads(one) for one in kept],
                             [bytes([n]) * 200 for n in range(3)])
            del kept
            self.assertEqual(q.figures().held, 0)
            self.assertEqual(set(q), {b"x" * 200})
        world.barrier()

    def test_full_and_empty(self):
        q = tutti.Queue(room=4096)
        if ME == 0:
            n = 0
            try:
                while True:
                    q.put(n, block=False)
                    n += 1
            except queue.Full:
                pass
            self.assertRaises(tutti.Timeout, q.put, n, timeout=0.02)
            world.set("full", str(n).encode())
            world.barrier()
        else:
            world.barrier()
            for n in range(int(world.get("full"))):
                self.assertEqual(q.get(), n)
            self.assertRaises(queue.Empty, q.get, block=False)
            self.assertRaises(tutti.Timeout, q.get, timeout=0.02)
        world.barrier()
        q.close()
        self.assertRaises(tutti.Closed, *((q.put, 1) if ME == 0 else (q.get,)))

    def test_close_by_a_thread(self):
        q = tutti.Queue()
        if ME != 0:
            def closes():
                while q.figures().sleeps == 0:
                    time.sleep(0.001)
                q.close()
            thread = threading.Thread(target=closes)
            thread.start()
            self.assertRaises(tutti.Closed, q.get)
            thread.join()
        world.barrier()

    def test_signal(self):
        q = tutti.Queue()
        if ME != 0:
            def handler(number, frame):
                raise KeyboardInterrupt
            before = signal.signal(signal.SIGUSR1, handler)

            def sends():
                while q.figures().sleeps == 0:
                    time.sleep(0.001)
                os.kill(os.getpid(), signal.SIGUSR1)
            thread = threading.Thread(target=sends)
            thread.start()
            self.assertRaises(KeyboardInterrupt, q.get)
            thread.join()
            signal.signal(signal.SIGUSR1, before)
        world.barrier()
        if ME == 0:                                  # the queue is whole
            q.put("after")
        else:
            self.assertEqual(q.get(), "after")
        world.barrier()

    def test_asyncio(self):
        q = tutti.Queue()
        if ME == 0:
            for p in range(1, N):                    # others run while it waits
                world.get(f"ticks of {p}")
            for n in range(20):
                q.put(n)
            q.close()
        else:
            async def reads():
                got = []

                async def ticking():
                    world.set(f"ticks of {ME}", b"1")
                    while True:
                        await asyncio.sleep(0)
                other = asyncio.ensure_future(ticking())
                try:
                    while True:
                        got.append(await q.aget())
                except tutti.Closed:
                    other.cancel()
                return got
            self.assertEqual(asyncio.run(reads()), list(range(20)))
        world.barrier()

    def test_misuse(self):
        self.assertRaises(tutti.Invalid, tutti.Queue, world, N)
        self.assertRaises(tutti.Invalid, tutti.Queue, world, 1 << 40)
        self.assertRaises(tutti.Mismatch, tutti.Queue, world, 0, room=4096 << ME)
        q = tutti.Queue()
        self.assertRaises(tutti.Invalid, *((q.get,) if ME == 0 else (q.put, 1)))
        world.barrier()



if __name__ == "__main__":
    main()
