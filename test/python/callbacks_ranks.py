# ctest: timeout=120
# What follows a Work: callbacks, futures, `await`, deadlines that break nothing, files under way.
import asyncio
import concurrent.futures
import contextlib
import gc
import io
import os
import sys
import tempfile
import threading
import weakref

from support import Case, check, main, np, raises, tutti

world = tutti.init(timeout=60)
N, ME = world.size, world.rank
TOTAL = N * (N + 1) / 2


class Callbacks(Case):
    def test_called_once_with_the_work(self):
        for _ in range(20):                          # the first ones are polled, later ones told of
            calls, called = [], threading.Event()
            work = world.all_reduce(np.full(3, ME + 1.0), async_=True)
            work.add_done_callback(lambda done: calls.append((done, done.test(), done.wait()[0],
                                                              threading.current_thread())))
            work.add_done_callback(lambda done: called.set())
            self.assertTrue(called.wait(60))
            (done, over, value, thread), = calls
            self.assertIs(done, work)
            self.assertEqual((over, value, work.wait()[0]), (True, TOTAL, TOTAL))

    def test_after_the_end(self):
        """One that is added to what has ended is called at once, by who adds it."""
        work = world.barrier(async_=True)
        work.wait()
        threads = []
        work.add_done_callback(lambda done: threads.append(threading.current_thread()))
        self.assertEqual(threads, [threading.current_thread()])

    def test_in_the_thread_of_the_package(self):
        others = world.split(0)
        if ME == 0:
            work = others.barrier(async_=True)
            thread = []
            called = threading.Event()
            work.add_done_callback(lambda done: (thread.append(threading.current_thread().name),
                                                 called.set()))
            world.barrier()
            self.assertTrue(called.wait(60))
            self.assertEqual(thread, ["tutti"] if N > 1 else thread)
        else:
            world.barrier()
            others.barrier()
        others.free()

    def test_many_at_once(self):
        works = [world.all_reduce(np.full(n, ME + 1.0), async_=True)
                 for n in [1, 1000, 50_000] * 30]
        seen, left = [], threading.Semaphore(0)
        for work in works:
            work.add_done_callback(lambda done: (seen.append(done.wait()[0]), left.release()))
        # beside the callbacks' own wait()
        self.assertTrue(all(work.wait()[0] == TOTAL for work in works))
        for _ in works:
            self.assertTrue(left.acquire(timeout=60))
        self.assertEqual(seen, [TOTAL] * len(works))

    def test_nobody_else_holds_them(self):
        """The thread of the package lets go of each while this one starts the next."""
        alone, left = world.split(ME), threading.Semaphore(0)
        for i in range(2000):
            (alone if i % 20
             else world).barrier(async_=True).add_done_callback(lambda done: left.release())
        for _ in range(2000):
            self.assertTrue(left.acquire(timeout=60))

    def test_not_kept(self):
        """Neither the work nor its array is held once the callbacks are through."""
        called = threading.Event()
        work = world.all_reduce(np.ones(10), async_=True)
        array = weakref.ref(work.wait())
        world.all_reduce(np.ones(10), async_=True).add_done_callback(lambda done: called.set())
        self.assertTrue(called.wait(60))
        del work
        gc.collect()
        self.assertIsNone(array())

    def test_one_that_raises(self):
        called = threading.Event()
        work = world.barrier(async_=True)
        work.wait()
        with contextlib.redirect_stderr(io.StringIO()) as said:
            work.add_done_callback(lambda done: 1 / 0)
        self.assertIn("ZeroDivisionError", said.getvalue())
        work.add_done_callback(lambda done: called.set())
        self.assertTrue(called.is_set())

    def test_threads_that_wait_for_one(self):
        other = world.split(0)
        if ME == 0:
            work = other.all_reduce(np.full(2, 1.0), async_=True)
            got = []
            threads = [threading.Thread(target=lambda: got.append(work.wait(timeout=-1)[0]))
                       for _ in range(4)]
            for thread in threads:
                thread.start()
            if N > 1:
                raises(TimeoutError, work.wait, timeout=0.01)
            world.barrier()
            for thread in threads:
                thread.join()
            self.assertEqual(got, [N] * 4)
        else:
            world.barrier()
            other.all_reduce(np.full(2, 1.0))
        other.free()


    def test_threads_that_wait_for_a_letter(self):
        """Its value is made by Python code, in which threads change: none of them sees it
        half made."""
        before = sys.getswitchinterval()
        sys.setswitchinterval(1e-6)
        try:
            for i in range(60):
                room, got = np.zeros(1, "i4"), []
                work = world.recv(room, ME, i, async_=True)
                work.add_done_callback(lambda done, got=got: got.append(done.wait()))
                threads = [
                    threading.Thread(target=lambda got=got, work=work: got.append(work.wait()))
                    for _ in range(3)]
                for thread in threads:
                    thread.start()
                world.send(np.array([i], "i4"), ME, i)
                got.append(work.wait())
                for thread in threads:
                    thread.join()
                self.assertEqual(set(got), {(ME, i, 1)})
        finally:
            sys.setswitchinterval(before)


class Futures(Case):
    def test_future(self):
        works = [world.all_reduce(np.full(3, ME + 1.0), async_=True) for _ in range(5)]
        done, left = concurrent.futures.wait([work.future() for work in works], timeout=60)
        self.assertEqual((len(done), len(left)), (5, 0))
        self.assertEqual({future.result()[0] for future in done}, {TOTAL})

    def test_await(self):
        async def program():
            first = world.all_reduce(np.full(3, ME + 1.0), async_=True)
            second = world.all_gather(np.array([ME]), async_=True)
            both = await asyncio.gather(first, second)
            self.assertEqual((both[0][0], both[1].ravel().tolist()), (TOTAL, list(range(N))))
            return await world.same(b"abc", async_=True)
        self.assertIs(asyncio.run(program()), True)

    def test_await_what_fails(self):
        def body(world):
            async def program():
                if world.rank == 0:
                    await world.barrier(async_=True)
                else:
                    world.abort("no more")
            if world.rank == 0:
                check("no more" in str(raises(tutti.Aborted, asyncio.run, program())), "the text")
            else:
                asyncio.run(program())
        if ME == 0:
            self.ranks(2, body)
        world.barrier()

    def test_loop_goes_on_meanwhile(self):
        other = world.split(0)

        async def program():
            work = other.all_reduce(np.ones(2), async_=True)
            waiting = asyncio.ensure_future(work.future() and asyncio.wrap_future(work.future()))
            await asyncio.sleep(0)
            # what the other ranks wait for, before they come
            world.send(np.array([1]), (ME + 1) % N)
            return (await waiting)[0]
        if ME == 0:
            self.assertEqual(asyncio.run(program()), N)
            world.recv(np.zeros(1, int), N - 1)
        else:
            world.recv(np.zeros(1, int), ME - 1)
            world.send(np.array([1]), (ME + 1) % N)
            other.all_reduce(np.ones(2))
        other.free()


class Keep(Case):
    def test_deadline_that_breaks_nothing(self):
        mine = np.full(2, ME + 1.0)
        if ME == 0:
            work = world.all_reduce(mine, async_=True, keep=True, timeout=0.01)
            if N > 1:
                for _ in range(2):
                    error = raises(tutti.Timeout, work.wait)
                    self.assertIn("goes on", str(error))
                    self.assertFalse(work.test())
                raises(TimeoutError, work.wait, timeout=0.001)
            world.set("late", b"1")
            self.assertIs(work.wait(timeout=-1), mine)
            self.assertTrue(work.test())
            self.assertIs(work.wait(), mine)
        else:
            world.get("late")
            world.all_reduce(mine)
        self.assertEqual(mine[0], TOTAL)
        self.assertEqual(world.all_reduce(np.ones(1))[0], N)            # the comm is whole
        world.barrier()
        if ME == 0:
            world.delete("late")

    def test_callbacks(self):
        called = threading.Event()
        work = world.barrier(async_=True, keep=True, timeout=30)
        work.add_done_callback(lambda done: called.set())
        self.assertTrue(called.wait(60))
        self.assertIsNone(work.wait())

    def test_letters(self):
        got = np.zeros(1, "i4")
        work = world.recv(got, (ME - 1) % N, 9, async_=True, keep=True, timeout=0.01)
        self.assertIn("goes on", str(raises(tutti.Timeout, work.wait)))
        self.assertFalse(work.test())
        world.barrier()
        world.send(np.array([ME], "i4"), (ME + 1) % N, 9)
        self.assertEqual(work.wait(timeout=-1), ((ME - 1) % N, 9, 1))
        self.assertEqual(got[0], (ME - 1) % N)

    def test_dropped(self):
        for _ in range(20):
            world.all_reduce(np.ones(10_000), async_=True, keep=True, timeout=0.001)
        world.barrier()

    def test_refused(self):
        for words in ({"keep": True}, {"keep": True, "async_": True}, {"keep": True, "timeout": 1},
                      {"keep": True, "async_": True, "timeout": -1}):
            with self.assertRaisesRegex(ValueError, "async_=True and timeout="):
                world.barrier(**words)

    def test_failure(self):
        def body(world):
            if world.rank == 0:
                work = world.barrier(async_=True, keep=True, timeout=30)
                raises(tutti.RankDied, work.wait)
                raises(tutti.RankDied, work.wait)
        if ME == 0:
            self.ranks(2, body)
        world.barrier()


class Files(Case):
    def test_under_way(self):
        folder = bytes(world.share(tempfile.mkdtemp().encode() if ME == 0 else None)).decode()
        path = os.path.join(folder, "state")
        state = np.arange(50_000)
        self.assertIsNone(world.save(path, state, async_=True).wait())
        work = world.load(path, async_=True)
        np.testing.assert_array_equal(np.frombuffer(work.wait(), int), state)
        self.assertIs(work.wait(), work.wait())
        error = raises(tutti.Error, world.load(path + ".missing", async_=True).wait)
        self.assertEqual(error.errno, 2)

        def nobody_takes_it(world):
            """What is loaded and not taken is given back: there is room for some of it only."""
            for _ in range(100):
                world.load(path, async_=True)
                world.barrier()                                         # it has ended then
            check(len(world.load(path)) == state.nbytes, "loaded")
        if ME == 0:
            self.ranks(2, nobody_takes_it, span_bytes=8 << 20)

        async def program():
            return await world.load(path, async_=True)
        self.assertEqual(bytes(asyncio.run(program())), state.tobytes())
        world.barrier()
        if ME == 0:
            os.unlink(path)
            os.rmdir(folder)


if __name__ == "__main__":
    main()
