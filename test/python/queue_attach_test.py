# ctest: timeout=120
# Queue.handle and attach: processes that have nothing in common but the bytes of a handle; whose
# death is noticed where.
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import unittest

from support import Case, main, raises, tutti

READER = """
import pickle, sys, tutti
handle = pickle.loads(bytes.fromhex(sys.argv[1]))
q = tutti.Queue.attach(handle, int(sys.argv[2]), timeout=60)
got = []
try:
    for value in q:
        got.append(value)
    end = "Closed"
except tutti.Error as error:
    end = type(error).__name__ + " " + str(error)
print(len(got), got == list(range(len(got))), end)
"""


def reads(handle, reader, pipe):
    """In a process of multiprocessing: sends what came."""
    with tutti.Queue.attach(handle, reader, timeout=60) as q:
        pipe.send((q.rank, q.size, list(q)))


def puts(handle, pipe):
    q = tutti.Queue.attach(handle, timeout=60)
    for n in range(5):
        q.put(n)
    pipe.send("put")
    signal.pause()


def looks(handle, pipe):
    with tutti.Queue.attach(handle, 0, timeout=60) as q:
        for _ in range(4):
            value = q.get_bytes()
            pipe.send((len(value), value[:1].tobytes(), value[-1:].tobytes(), q.figures().held))
            value.release()
            del value                       # the writer may need its room


def first_reads(world, handle):
    """A rank of another world, which goes on meanwhile."""
    q = tutti.Queue.attach(handle, world.rank, timeout=60)
    world.barrier()
    got = list(q)
    del q
    world.barrier()
    if tutti.rank() != world.rank or got != [b"x" * 100000, None]:
        raise AssertionError(got)


class Attach(Case):
    def process(self, handle, reader, *before):
        return subprocess.Popen(
            [*before, sys.executable, "-c", READER, pickle.dumps(handle).hex(), str(reader)],
            stdout=subprocess.PIPE, text=True)

    def said(self, process):
        said, _ = process.communicate(timeout=60)
        return said.split(" ", 2)

    def test_large(self):
        """Beside the ring, where they can be looked at, while there is memory; else in pieces."""
        handle = tutti.Queue.handle(1, room=2 << 20)         # 36 MiB in all
        here, there = multiprocessing.Pipe()
        child = multiprocessing.get_context("fork").Process(target=looks, args=(handle, there))
        child.start()
        there.close()
        q = tutti.Queue.attach(handle, timeout=60)
        for mib, held in (20, 1), (40, 0), (3, 1), (20, 1):
            q.put_bytes(bytes([mib]) * (mib << 20))
            self.assertEqual(here.recv(), (mib << 20, bytes([mib]), bytes([mib]), held))
        child.join(60)
        self.assertEqual(child.exitcode, 0)

    def test_children(self):
        for kind in "spawn", "fork":
            context = multiprocessing.get_context(kind)
            handle = tutti.Queue.handle(2, room=4096)
            pairs = [context.Pipe() for _ in range(2)]
            children = [context.Process(target=reads, args=(handle, k, pairs[k][1]))
                        for k in range(2)]
            for child in children:
                child.start()
            with tutti.Queue.attach(handle, timeout=60) as q:
                self.assertEqual((q.rank, q.size, q.writer), (0, 3, 0))
                for n in range(300):
                    q.put((n, bytes(n)))
            for k, child in enumerate(children):
                self.assertEqual(pairs[k][0].recv(),
                                 (k + 1, 3, [(n, bytes(n)) for n in range(300)]))
                child.join()

    def test_other_worlds(self):
        handle = tutti.Queue.handle(2)
        writer = os.fork()
        if writer == 0:
            status = 1
            try:
                with tutti.Queue.attach(handle, timeout=60) as q:
                    q.put(b"x" * 100000)
                    q.put(None)
                status = 0
            finally:
                os._exit(status)
        self.ranks(2, first_reads, handle)
        self.assertEqual(os.waitpid(writer, 0)[1], 0)

    def test_deaths(self):
        """The writer's, that of a reader, and one with readers in another pid namespace."""
        spaces = [[]]
        inner = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
        if subprocess.run([*inner, "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0:
            spaces.append(inner)
        context = multiprocessing.get_context("fork")
        for before in spaces:
            handle = tutti.Queue.handle(2)
            readers = [self.process(handle, k, *before) for k in range(2)]
            ours, theirs = context.Pipe()
            writer = context.Process(target=puts, args=(handle, theirs))
            writer.start()
            self.assertEqual(ours.recv(), "put")
            writer.kill()
            for reader in readers:
                count, whole, end = self.said(reader)
                self.assertEqual((count, whole), ("5", "True"))
                self.assertIn("RankDied", end)
                self.assertIn("the writer, rank 0: died", end)
            writer.join()
        for before in spaces:
            handle = tutti.Queue.handle(1)
            reader = self.process(handle, 0, *before)
            with tutti.Queue.attach(handle, timeout=60) as q:
                reader.kill()
                error = raises(tutti.RankDied, lambda: [q.put(bytes(1 << 20)) for _ in range(100)])
                self.assertIn("the reader, rank 1: died", str(error))
            reader.communicate()

    def test_stopped(self):
        """A reader that is stopped is no death."""
        handle = tutti.Queue.handle(1, room=4096)
        reader = self.process(handle, 0)
        with tutti.Queue.attach(handle, timeout=60) as q:
            reader.send_signal(signal.SIGSTOP)
            error = raises(tutti.Timeout, lambda: [q.put(n, timeout=0.3) for n in range(1000)])
            self.assertIn("rank 1", str(error))
            put = q.figures().messages
            reader.send_signal(signal.SIGCONT)
            for n in range(put, 1000):
                q.put(n)
        self.assertEqual(self.said(reader), ["1000", "True", "Closed\n"])

    def test_another_network(self):
        """Where a network namespace is another's, a directory in common will do."""
        inner = ["unshare", "--net"]
        if subprocess.run([*inner, "true"], stderr=subprocess.DEVNULL, check=False).returncode:
            self.skipTest("no network namespace can be had")
        with tempfile.TemporaryDirectory() as directory:
            handle = tutti.Queue.handle(1, directory=directory)
            reader = self.process(handle, 0, *inner)
            with tutti.Queue.attach(handle, timeout=60) as q:
                q.put(0)
            self.assertEqual(self.said(reader), ["1", "True", "Closed\n"])
            self.assertEqual(os.listdir(directory), [])

    def test_refused(self):
        attach, handle = tutti.Queue.attach, tutti.Queue.handle
        for wrong in b"", b"queue", bytes(100), handle(2)[1:]:
            self.assertRaisesRegex(tutti.Invalid, "Queue.handle", attach, wrong)
        for reader in -1, 2:
            self.assertRaisesRegex(ValueError, "0 to 1", attach, handle(2), reader)
        for readers in 0, 256:
            self.assertRaisesRegex(ValueError, "1 to 255", handle, readers)
        error = raises(tutti.Timeout, lambda: attach(handle(2), 1, timeout=0.05))
        self.assertIn("ranks 0, 1 did not come", str(error))
        one = handle(1)
        reader = self.process(one, 0)
        with attach(one, timeout=60) as q:
            q.put(0)
            error = raises(tutti.Error, lambda: attach(one, 0, timeout=0.05))
        self.assertEqual(self.said(reader)[0], "1")


if __name__ == "__main__":
    main()
