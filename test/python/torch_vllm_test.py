# ctest: timeout=120
# tutti.vllm: what the class of vLLM 0.33 does, as its users see it; and that it is in vLLM's place
# in every process, over a small package that stands in for vLLM.
import multiprocessing
import os
import pickle
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import unittest

from support import Case, main, np, raises, skip, tutti
from tutti.vllm import Handle, MessageQueue

try:
    import torch
except ImportError:
    skip("torch is missing")


NAME = "vllm.distributed.device_communicators.shm_broadcast"


def body(function, handle, rank, pipe):
    try:
        q = MessageQueue.create_from_handle(handle, rank)
        q.wait_until_ready()
        pipe.send(function(q))
    except BaseException as error:
        pipe.send(error)


def reads_all(q):
    got = []
    while True:
        value = q.dequeue(timeout=60)
        if value is None:
            return got
        got.append(value)


def reads_and_dies(q):
    q.dequeue(indefinite=True)
    os.kill(os.getpid(), 9)


def reads_late(q):
    """The writer meets a full ring first."""
    time.sleep(0.2)
    return len(reads_all(q))


def writes_in(q):
    """Tensors are its own, and can be written."""
    a, b, c = q.dequeue(), q.dequeue(), q.dequeue()
    a[0], b["x"][0] = 5, 7
    return a.sum().item(), int(b["x"].sum()), c.tolist()


class Queue(Case):
    def readers(self, function, n=1, ranks=None, **words):
        """The writer's end, and pipes to its readers; all are ready."""
        context = multiprocessing.get_context("fork")
        ranks = list(range(n)) if ranks is None else ranks
        q = MessageQueue(n, n, ranks, **words)
        handle = pickle.loads(pickle.dumps(q.export_handle()))
        self.assertIsInstance(handle, Handle)
        self.children, pipes = [], []
        for rank in ranks:
            ours, theirs = context.Pipe()
            self.children.append(context.Process(target=body,
                                                 args=(function, handle, rank, theirs)))
            self.children[-1].start()
            pipes.append(ours)
        q.wait_until_ready()
        return q, pipes

    def got(self, pipes):
        values = [pipe.recv() for pipe in pipes]
        for child in self.children:
            child.join()
        return values

    def test_objects(self):
        values = [("execute_model", (n, None), {"x": b"y" * n}, 0) for n in range(0, 5000, 50)]
        q, pipes = self.readers(reads_all, 3, [0, 2, 5])
        for value in values:
            q.enqueue(value)
        self.assertIsNone(q.broadcast_object(None))
        self.assertEqual(self.got(pipes), [values] * 3)
        self.assertEqual((q.n_local_reader, q.n_remote_reader), (3, 0))

    def test_large(self):
        """Also larger than max_chunk_bytes."""
        q, pipes = self.readers(reads_all, max_chunk_bytes=4096, max_chunks=2)
        values = [bytes([n]) * n * 10000 for n in range(30)]
        for value in values:
            q.enqueue(value, timeout=60)
        q.enqueue(None)
        self.assertEqual(self.got(pipes), [values])

    def test_tensors(self):
        q, pipes = self.readers(writes_in)
        q.enqueue(torch.ones(100, dtype=torch.bfloat16))
        q.enqueue({"x": np.ones(1 << 18)})
        q.enqueue(torch.arange(6).reshape(2, 3).t())
        total, array, last = self.got(pipes)[0]
        self.assertEqual((total, array), (104, (1 << 18) + 6))
        self.assertEqual(last, [[0, 3], [1, 4], [2, 5]])

    def test_timeouts(self):
        q, pipes = self.readers(reads_late, max_chunk_bytes=1024, max_chunks=4)
        for timeout in 0, 0.02:
            raises(TimeoutError, lambda t=timeout: [q.enqueue(n, timeout=t) for n in range(200)])
        q.enqueue(None)
        self.assertGreater(self.got(pipes)[0], 50)
        writer = multiprocessing.get_context("fork").Process
        q = MessageQueue(1, 1)
        child = writer(target=lambda: (q.wait_until_ready(), q.enqueue(1), time.sleep(60)))
        child.start()
        reader = MessageQueue.create_from_handle(q.export_handle(), 0)
        self.assertEqual(reader.dequeue(), 1)            # ready by itself
        for timeout in 0, 0.02:
            raises(TimeoutError, lambda t=timeout: reader.dequeue(timeout=t))
        # shutdown from another thread
        thread = threading.Timer(0.1, reader.shutdown)
        thread.start()
        error = raises(RuntimeError, lambda: reader.dequeue(indefinite=True))
        self.assertEqual(str(error), "cancelled")
        thread.join()
        self.assertEqual(str(raises(RuntimeError, reader.dequeue)), "cancelled")
        child.kill()
        child.join()

    def test_acquire(self):
        def reads(q):
            with q.acquire_read(timeout=60) as chunk:
                first = bytes(chunk[:5]), len(chunk)
            with q.acquire_read() as chunk:
                return first, bytes(chunk[:4])
        q, pipes = self.readers(reads, max_chunk_bytes=1000)
        with q.acquire_write() as chunk:
            chunk[:5] = b"hello"
        with self.assertRaises(KeyError):
            with q.acquire_write() as chunk:             # not put
                raise KeyError
        with q.acquire_write(timeout=1) as chunk:
            chunk[:4] = b"last"
        self.assertEqual(self.got(pipes), [((b"hello", 1000), b"last")])

    def test_death(self):
        q, _ = self.readers(reads_and_dies, 2)
        q.enqueue(0)
        for child in self.children:
            child.join()
        error = raises(tutti.RankDied, lambda: q.enqueue(1))
        self.assertIn("the reader, rank ", str(error))

    def test_wrong_side(self):
        q = MessageQueue(1, 1)
        self.assertRaises(RuntimeError, q.dequeue)
        reader = MessageQueue.create_from_handle(q.export_handle(), 0)
        self.assertEqual(reader.local_reader_rank, 0)
        self.assertRaises(AssertionError, reader.enqueue, 1)
        self.assertRaises(AssertionError, MessageQueue, 1, 1, [0, 1])
        self.assertRaises(ImportError, MessageQueue, 2, 1)          # there is no vLLM

    def stands_in(self, folder):
        """A package vllm as far as the switch and the process groups need one."""
        for path, text in {
            "__init__.py": "import torch\n",
            "distributed/device_communicators/shm_broadcast.py": """
                class Handle: pass
                class MessageQueue:
                    other = True
                """,
            "distributed/parallel_state.py": """
                def in_the_same_node_as(pg, source_rank=0):
                    import torch.distributed as dist
                    return [True] * dist.get_world_size(pg)
                """,
            "platforms/__init__.py": """
                class current_platform:
                    def device_count(): return 8
                """,
            "platforms/interface.py": """
                def get_assigned_physical_gpu_ids(): return None
                """,
        }.items():
            path = os.path.join(folder, "vllm", path)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w") as file:
                file.write(textwrap.dedent(text))

    def test_in_its_place(self):
        """In the process itself and in those that it spawns; and by process groups."""
        with tempfile.TemporaryDirectory() as folder:
            self.stands_in(folder)
            program = os.path.join(folder, "program.py")
            with open(program, "w") as file:
                file.write(textwrap.dedent("""
                    import multiprocessing, os, sys
                    def names():
                        from vllm.distributed.device_communicators.shm_broadcast import (
                            Handle, MessageQueue)
                        return MessageQueue.__module__, Handle.__module__
                    def rank(me, store):
                        import torch.distributed as dist
                        from vllm.distributed.device_communicators.shm_broadcast import MessageQueue
                        dist.init_process_group("gloo", init_method="file://" + store, rank=me,
                                                world_size=2)
                        group = dist.group.WORLD
                        q = MessageQueue.create_from_process_group(group, 1 << 20, 6)
                        got = q.broadcast_object("all" if me == 0 else None)
                        answer, handles = MessageQueue.create_from_process_group_single_reader(
                            group, 1 << 20, 6, reader_rank=1)
                        ends = [MessageQueue.create_from_handle(handle, 0) for handle in handles]
                        if me == 0:
                            answer.enqueue("answer")
                        else:
                            assert ends[0].dequeue() == "answer"
                        dist.barrier()
                        assert got == "all"
                        if names() != ("tutti.vllm",) * 2:
                            raise AssertionError(names())
                    if __name__ == "__main__":
                        print(*names())
                        context = multiprocessing.get_context("spawn")
                        ranks = [context.Process(target=rank, args=(me, store)) for me in range(2)
                                 for store in sys.argv[1:]]
                        [one.start() for one in ranks]
                        [one.join() for one in ranks]
                        print([one.exitcode for one in ranks])
                    """))
            path = os.pathsep.join([folder, os.environ["PYTHONPATH"]])
            for switch, words, expected in (
                    ("1", (os.path.join(folder, "store"),), "tutti.vllm tutti.vllm\n[0, 0]"),
                    ("0", (), f"{NAME} {NAME}\n[]"))[:2 if "TUTTI_PROVE" in os.environ else 1]:
                done = subprocess.run(
                    [sys.executable, program, *words], capture_output=True, text=True, check=False,
                    env={**os.environ, "PYTHONPATH": path, "TUTTI_VLLM": switch})
                self.assertEqual((done.stdout.strip(), done.stderr), (expected, ""))


if __name__ == "__main__":
    main()
