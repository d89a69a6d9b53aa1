# SPDX-License-Identifier: MIT
"""MessageQueue and Handle with the names and the behaviour of vLLM 0.33's, over tutti.Queue:
readers sleep between messages, and a process that dies is named.

TUTTI_VLLM=1 in the environment puts them in vLLM's place in each process that imports torch,
spawned workers too (tutti registers by the entry point torch.backends).

What differs from vLLM's class:
    - wait_until_ready() is the meeting of the writer and its local readers; the first message does
      it if nobody has. The thread that is in it must live as long as the queue is used.
    - A message is of any length, and is not bound to max_chunk_bytes. The ring has max_chunks times
      max_chunk_bytes, ROOM at most.
    - After shutdown() a reader gets nothing more, and the writer goes on without it.
    - A reader whose writer is dead gets all it had put, then RankDied, which is a RuntimeError; so
      does the writer for a dead reader.
    - enable_shm_tensor_arena changes nothing: tensors are copied once on each side.
Remote readers are served by vLLM's own class, which must be there.
"""
import contextlib
import importlib.abc
import importlib.util
import queue as _std
import sys
from dataclasses import dataclass, field
from typing import Any, Iterator

from ._queue import Queue
from .errors import Closed, Timeout

#: bytes of a ring at most
ROOM = 16 << 20
_NAME = "vllm.distributed.device_communicators.shm_broadcast"
_theirs: Any = None                     # vLLM's class, when ours is in its place


@dataclass
class Handle:
    """What a reader needs to join; may be pickled. buffer_handle: as vLLM's, with the queue's
    handle in hexadecimal digits in place of a name of shared memory."""

    local_reader_ranks: list[int] = field(default_factory=list)
    buffer_handle: tuple[int, int, int, str] | None = None
    local_subscribe_addr: str | None = None
    local_notify_addr: str | None = None
    remote_subscribe_addr: str | None = None
    remote_addr_ipv6: bool = False
    tensor_arena_handle: tuple[int, int, int, str] | None = None


def _remote() -> Any:
    """vLLM's own class."""
    if _theirs is not None:
        return _theirs
    try:
        import importlib
        return importlib.import_module(_NAME).MessageQueue
    except ImportError as error:
        raise ImportError("MessageQueue: readers on other hosts are served by vLLM's own class, "
                          f"which is not here: {error}") from error


class MessageQueue:
    """One writer's messages for local_reader_ranks on this machine, and for others elsewhere."""

    _queue: Queue | None
    _handle: bytes | None
    _far: Any                           # vLLM's, for what is remote

    def __init__(self, n_reader: int, n_local_reader: int,
                 local_reader_ranks: list[int] | None = None,
                 max_chunk_bytes: int = 24 << 20, max_chunks: int = 10,
                 connect_ip: str | None = None, enable_shm_tensor_arena: bool = False) -> None:
        ranks = list(range(n_local_reader)) if local_reader_ranks is None else local_reader_ranks
        if len(ranks) != n_local_reader:
            raise AssertionError(f"{len(ranks)} local_reader_ranks for {n_local_reader} readers")
        self._begin(writer=True)
        self.n_local_reader, self.n_remote_reader = n_local_reader, n_reader - n_local_reader
        self.handle = Handle(local_reader_ranks=ranks)
        if n_local_reader:
            self._handle = Queue.handle(n_local_reader,
                                        room=min(ROOM, max_chunk_bytes * max_chunks))
            self._chunk = max_chunk_bytes
            self.handle.buffer_handle = (n_local_reader, max_chunk_bytes, max_chunks,
                                         self._handle.hex())
        if self.n_remote_reader:
            self._far = _remote()(self.n_remote_reader, 0, [], connect_ip=connect_ip)
            far = self._far.export_handle()
            self.handle.remote_subscribe_addr = far.remote_subscribe_addr
            self.handle.remote_addr_ipv6 = far.remote_addr_ipv6

    def _begin(self, writer: bool) -> None:
        self.shutting_down = False
        self.local_reader_rank = -1
        self._is_writer, self._is_local_reader, self._is_remote_reader = writer, False, False
        self._queue, self._handle, self._far = None, None, None
        self._chunk = 0

    @staticmethod
    def create_from_handle(handle: Handle, rank: int) -> "MessageQueue":
        """The end of the reader with this rank: a local one if local_reader_ranks has it."""
        self = MessageQueue.__new__(MessageQueue)
        self._begin(writer=False)
        self.handle = handle
        if rank in handle.local_reader_ranks:
            if handle.buffer_handle is None:
                raise AssertionError("this handle has no local readers")
            self._is_local_reader = True
            self.local_reader_rank = handle.local_reader_ranks.index(rank)
            self._chunk = handle.buffer_handle[1]
            self._handle = bytes.fromhex(handle.buffer_handle[3])
        else:
            self._is_remote_reader = True
            self._far = _remote().create_from_handle(handle, rank)
        return self

    def export_handle(self) -> Handle:
        return self.handle

    def wait_until_ready(self) -> None:
        """Waits until the writer and all readers are in it. Collective."""
        self._near()
        if self._far is not None:
            self._far.wait_until_ready()

    def _near(self) -> Any:
        if self._queue is None and self._handle is not None:
            reader = self.local_reader_rank if self._is_local_reader else None
            self._queue = Queue.attach(self._handle, reader, timeout=-1)
        return self._queue

    def shutdown(self) -> None:
        """Any thread: ends the read under way, and all later ones, with RuntimeError("cancelled").
        Changes nothing for a writer."""
        self.shutting_down = True
        if self._queue is not None and not self._is_writer:
            self._queue.close()
        if self._far is not None:
            self._far.shutdown()

    @contextlib.contextmanager
    def _cancelled(self) -> Iterator[None]:
        """The exceptions of vLLM's class."""
        try:
            yield
        except _ENDS as error:
            raise _said(error) from error

    def enqueue(self, obj: Any, timeout: float | None = None) -> None:
        """Puts an object for all readers. TimeoutError: after `timeout` seconds there is no
        room."""
        if not self._is_writer:
            raise AssertionError("only the writer can enqueue")
        if self.n_local_reader:
            try:
                queue = self._queue or self._near()
                if timeout is None:
                    queue.put(obj)
                else:
                    queue.put(obj, **_patience(timeout))
            except _ENDS as error:
                raise _said(error) from error
        if self.n_remote_reader:
            self._far.enqueue(obj, timeout)

    def dequeue(self, timeout: float | None = None, indefinite: bool = False) -> Any:
        """The next object, in memory of its own. TimeoutError: none came within `timeout` seconds.
        indefinite: changes nothing; a wait is never logged."""
        if self._is_remote_reader:
            return self._far.dequeue(timeout, indefinite)
        if not self._is_local_reader:
            raise RuntimeError("only a reader can dequeue")
        if self.shutting_down:
            raise _said(Closed())
        try:
            queue = self._queue or self._near()
            return queue.get() if timeout is None else queue.get(**_patience(timeout))
        except _ENDS as error:
            raise _said(error) from error

    @contextlib.contextmanager
    def acquire_write(self, timeout: float | None = None) -> Iterator[memoryview]:
        """max_chunk_bytes to be filled in; they are put when the block ends without an exception.
        For acquire_read() of the readers; enqueue() does not need it, and is faster."""
        if not self._is_writer:
            raise AssertionError("only the writer can acquire_write")
        chunk = bytearray(self._chunk)
        with memoryview(chunk) as view:
            yield view
        with self._cancelled():
            self._near().put_bytes(chunk, **_patience(timeout))

    @contextlib.contextmanager
    def acquire_read(self, timeout: float | None = None,
                     indefinite: bool = False) -> Iterator[memoryview]:
        """The bytes of the next acquire_write(), where they lie, to be read only."""
        if not self._is_local_reader:
            raise AssertionError("only a reader can acquire_read")
        with self._cancelled():
            if self.shutting_down:
                raise Closed
            message = self._near().get_bytes(**_patience(timeout))
        with message:
            yield message

    def broadcast_object(self, obj: Any = None) -> Any:
        """The writer's object, on all."""
        if not self._is_writer:
            return self.dequeue()
        self.enqueue(obj)
        return obj

    @staticmethod
    def create_from_process_group(pg: Any, max_chunk_bytes: int, max_chunks: int,
                                  writer_rank: int = 0,
                                  external_writer_handle: Handle | None = None,
                                  blocking: bool = True) -> "MessageQueue":
        """Of a process group, or vLLM's StatelessProcessGroup: its rank writer_rank writes, all
        others read. external_writer_handle: of a queue that somebody else writes; then rank
        writer_rank is a reader, too, and the others get the handle from it."""
        import torch.distributed as dist
        from vllm.distributed.parallel_state import in_the_same_node_as
        plain = isinstance(pg, dist.ProcessGroup)
        me, size = (dist.get_rank(pg), dist.get_world_size(pg)) if plain else (pg.rank,
                                                                              pg.world_size)
        near = [rank for rank, same in enumerate(in_the_same_node_as(pg, source_rank=writer_rank))
                if same and rank != writer_rank]
        made: MessageQueue | None = None
        if me == writer_rank:
            made = (MessageQueue.create_from_handle(external_writer_handle, me)
                    if external_writer_handle is not None else
                    MessageQueue(size - 1, len(near), near, max_chunk_bytes, max_chunks))
        handle = made.export_handle() if made else None
        if plain:
            box = [handle]
            dist.broadcast_object_list(box, src=dist.get_process_group_ranks(pg)[writer_rank],
                                       group=pg)
            handle = box[0]
        else:
            handle = pg.broadcast_obj(handle, writer_rank)
        if made is None:
            made = MessageQueue.create_from_handle(handle, me)  # type: ignore[arg-type]
        if blocking:
            made.wait_until_ready()
        return made

    @staticmethod
    def create_from_process_group_single_reader(
            pg: Any, max_chunk_bytes: int, max_chunks: int, reader_rank: int = 0,
            blocking: bool = False) -> tuple["MessageQueue", list[Handle]]:
        """Each process writes a queue of its own, and rank reader_rank reads all: this process's
        queue; and, on reader_rank, the handles of all, by which it makes its ends."""
        import torch.distributed as dist
        from vllm.platforms import current_platform
        from vllm.platforms.interface import get_assigned_physical_gpu_ids
        assigned = get_assigned_physical_gpu_ids()
        on_a_host = current_platform.device_count() if assigned is None else len(assigned)
        me = dist.get_rank()
        made = MessageQueue(1, int(me // on_a_host == reader_rank // on_a_host),
                            max_chunk_bytes=max_chunk_bytes, max_chunks=max_chunks)
        all_of_them: Any = [None] * dist.get_world_size(pg) if me == reader_rank else None
        dist.gather_object(made.export_handle(), all_of_them, dst=reader_rank, group=pg)
        if blocking:
            made.wait_until_ready()
        return made, all_of_them or []


_ENDS = _std.Empty, _std.Full, Timeout, Closed


def _said(error: Exception) -> Exception:
    """How vLLM's class says it."""
    return RuntimeError("cancelled") if isinstance(error, Closed) else TimeoutError()


def _patience(timeout: float | None) -> dict[str, Any]:
    """For Queue.put and get. A deadline that has passed allows one look."""
    return {"timeout": timeout} if timeout is None or timeout > 0 else {"block": False}


# ---- in vLLM's place ----

def _take(module: Any) -> None:
    global _theirs
    if module.MessageQueue is not MessageQueue:
        _theirs = module.MessageQueue
        module.MessageQueue, module.Handle = MessageQueue, Handle


class _Loader(importlib.abc.Loader):
    def __init__(self, loader: Any) -> None:
        self.loader = loader

    def create_module(self, spec: Any) -> Any:
        return self.loader.create_module(spec)

    def exec_module(self, module: Any) -> None:
        self.loader.exec_module(module)
        _take(module)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds vLLM's module by those behind it, and loads it with ours in its place."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name != _NAME:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)
        return spec


def switch() -> None:
    """From now on vLLM's names in this process are these classes. To be called before vLLM is
    imported; TUTTI_VLLM=1 does it in every process."""
    if _NAME in sys.modules:
        _take(sys.modules[_NAME])
    elif not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
