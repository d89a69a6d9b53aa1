# ctest: timeout=120
# The functions of the package: each is a method of the world, with its arguments and its text.
import inspect
import os
import threading

from support import Case, main, np, program, raises, tutti

world = tutti.init(timeout=60)
N, ME = world.size, world.rank


class Functions(Case):
    def test_every_method(self):
        """What a Comm can do, the package can: no method is forgotten, and none reads otherwise."""
        others = {"finalize", "fault", "free"}           # of a comm alone, or a function of its own
        for name, method in vars(tutti.Comm).items():
            if name.startswith("_") or name in others or not inspect.isfunction(method):
                continue
            with self.subTest(name=name):
                function = getattr(tutti, name)
                self.assertEqual(function.__doc__, method.__doc__)
                self.assertEqual(list(inspect.signature(function).parameters),
                                 list(inspect.signature(method).parameters)[1:])
                self.assertEqual(name in tutti.__all__, name != "set")

    def test_an_import_takes_no_more_than_it_needs(self):
        """Annotations need no typing, and what only some programs use waits for them."""
        spared = {"typing", "re", "enum", "signal", "asyncio", "pickle", "ctypes", "subprocess"}
        if os.environ.get("TUTTI_PYTHON_PLAIN", "0") not in ("", "0"):
            return                                   # its base needs some of them
        self.assertEqual(program("import sys\nbefore = set(sys.modules)\nimport tutti\n"
                                 f"more = {spared!r} & (set(sys.modules) - before)\n"
                                 "assert not more, more"), (0, ""))

    def test_they_act_on_the_world(self):
        self.assertEqual((tutti.rank(), tutti.size(), tutti.failed()), (ME, N, ()))
        x = np.full(2, ME + 1.0)
        self.assertIs(tutti.all_reduce(x, "sum"), x)
        self.assertEqual(x[0], N * (N + 1) / 2)
        self.assertEqual(tutti.all_gather(np.array([ME])).ravel().tolist(), list(range(N)))
        with tutti.first("data") as mine:
            if mine:
                tutti.add("prepared")
        self.assertEqual(tutti.add("prepared", 0), 1)

        @tutti.once("build")
        def build():
            return ME
        ran = tutti.all_reduce(np.array([build() is not None], "i4"))
        self.assertEqual(ran[0], 1)
        with tutti.turn():
            tutti.set(f"turn {ME}", b"here")
        self.assertEqual(tutti.get(f"turn {N - 1}"), b"here")
        self.assertEqual(tutti.seed(3), world.seed(3))
        self.assertEqual(tutti.seed_everything(3), world.seed(3))
        self.assertEqual(tutti.share(np.arange(3) if ME == 0 else None).tolist(), [0, 1, 2])
        tutti.barrier()

    def test_latest_world(self):
        """A second world stands before the first until it is finalized."""
        job = bytes(tutti.share(b"second-%d" % os.getpid() if ME == 0 else None)).decode()
        second = tutti.init(job=job, rank=N - 1 - ME, size=N)
        self.assertEqual(tutti.rank(), N - 1 - ME)
        tutti.barrier()
        tutti.finalize()
        self.assertEqual(tutti.rank(), ME)
        raises(ValueError, second.barrier)

    def test_threads(self):
        """A thread without a world has the process's; one that makes a world has that, and then who
        has none is told."""
        seen = {}

        def plain():
            seen["plain"] = tutti.rank()

        def other(number):
            with tutti.init(job=f"{job}-threads", rank=number, size=2):
                seen[number] = tutti.rank()
                tutti.barrier()
                if number == 0:
                    thread = threading.Thread(target=lonely)
                    thread.start()
                    thread.join()
                tutti.barrier()

        def lonely():
            seen["lonely"] = str(raises(tutti.Error, tutti.rank))
        job = f"default-{os.getpid()}"
        for targets in ((plain,), (lambda: other(0), lambda: other(1))):
            threads = [threading.Thread(target=target) for target in targets]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertIn("several threads", seen.pop("lonely"))
        self.assertEqual(seen, {"plain": ME, 0: 0, 1: 1})
        self.assertEqual(tutti.rank(), ME)


class Without(Case):
    def test_no_world(self):
        for before in ("", "tutti.init(job='alone-%d' % os.getpid(), rank=0, size=1); "
                           "tutti.finalize();"):
            status, said = program(f"import os, tutti; {before} tutti.barrier()")
            self.assertEqual(status, 1)
            self.assertIn("tutti.errors.Error: this process is no rank: call tutti.init() first",
                          said)


if __name__ == "__main__":
    main()
