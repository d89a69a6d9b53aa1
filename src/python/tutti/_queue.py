# SPDX-License-Identifier: MIT
"""Queue: what one rank puts, all others of a comm get. Objects are pickled once, with protocol 5:
buffers (NumPy arrays, PickleBuffer, torch tensors of the CPU) go beside the pickle, without a copy
on the way in but the one into the queue."""
import asyncio
import errno
import os
import pickle
import queue as _std
import struct
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Iterator, NamedTuple

from . import _worlds
from ._core import core as _tutti
from ._number import INT, SIZE, milliseconds, whole
from .comm import Comm
from .errors import Aborted, Closed, Error, Invalid

_TRY, _REFUSE, _GO_ON = 2, 1, 2
_LOCAL = 8                                  # as an option: none of the environment's flags
_HANDLE = struct.Struct("=16sIIQ")          # what it is; readers, flags, room; then the name
_HANDLE_IS = b"tutti queue 1"
_READERS_MOST, _SPAN = 255, 1 << 20         # every default span has room for _SPAN
_STEP = 16                                  # alignment of the buffers in a message; of _send, too


class QueueFigures(NamedTuple):
    """Of this end of a queue; tutti_queue_figures in tutti.h says what each is."""

    messages: int
    bytes: int
    waits: int
    sleeps: int
    wakes: int
    behind: int
    room: int
    held: int
    lost: int


def _tensor(data: Any, dtype: str, shape: Any) -> Any:
    import torch
    return torch.frombuffer(data, dtype=getattr(torch, dtype)).reshape(shape)


class _Pickler(pickle.Pickler):
    """Where torch is loaded: its plain tensors of the CPU as buffers."""

    def reducer_override(self, value: Any) -> Any:
        torch: Any = sys.modules.get("torch")
        if (torch is None or type(value) is not torch.Tensor or value.device.type != "cpu"
                or value.layout is not torch.strided or value.requires_grad
                or not value.is_contiguous() or not value.numel() or value.is_quantized):
            return NotImplemented
        raw = value.reshape(-1).view(torch.uint8).numpy()
        return _tensor, (pickle.PickleBuffer(raw), str(value.dtype)[6:], tuple(value.shape))


class _Written(list[Any]):
    """What a pickler writes, as it is: long bytes come as the object itself, without a copy."""

    write = list.append


def _packer() -> Any:
    """What makes the pickle of an object: dump(object) leaves it in `written`, and the buffers
    beside it in `buffers`; then forget()."""
    buffers: list[Any] = []
    written = _Written()
    kind = _Pickler if "torch" in sys.modules else pickle.Pickler
    pickler = kind(written, 5, buffer_callback=buffers.append)
    return pickler.dump, pickler.clear_memo, written, buffers


#: packers that nobody uses just now: without torch, with it
_POOL: list[Any] = []
_POOL_TORCH: list[Any] = []


# A message: the number of buffers, the length of the pickle and of each buffer, 8 bytes each; the
# pickle; the buffers, each at a multiple of _STEP. _send of the extension makes it.

def _value(message: Any, copy: bool) -> Any:
    view = memoryview(message).cast("B")
    count, length = struct.unpack_from("=2Q", view)
    if count and copy:
        view = memoryview(bytearray(view))
    lengths = struct.unpack_from(f"={count}Q", view, 16)
    at = 16 + 8 * count
    data, at, buffers = view[at:at + length], at + length, []
    for length in lengths:
        at += -at % _STEP
        buffers.append(view[at:at + length])
        at += length
    return pickle.loads(data, buffers=buffers)


def _flags(refuse: bool, go_on: bool) -> int:
    return (_REFUSE if refuse else 0) | (_GO_ON if go_on else 0)


class Queue(_tutti.Queue):
    """A broadcast queue of a comm's ranks: rank `writer` puts, every other rank gets each object,
    in order. Made by all ranks of the comm at the same time.

    comm: default the world. room: bytes of the ring (default 8 MiB). refuse: put() raises
    queue.Full instead of waiting. go_on: put() goes on without readers that die; else it raises
    RankDied.

    get() sleeps when nothing comes, and polls only while objects come within some 50 µs. It has no
    deadline unless one is given: a reader may idle for days. If the writer dies, readers get all
    that it had put, then RankDied.
    """

    def __new__(cls, comm: Comm | None = None, writer: int = 0, *, room: int = 0,
                refuse: bool = False, go_on: bool = False) -> "Queue":
        comm = _worlds.current() if comm is None else comm
        made = comm._queue(cls, whole("Queue: writer", writer, INT),
                           whole("Queue: room", room, SIZE),
                           _flags(refuse, go_on))
        made._writer = writer
        return made

    @staticmethod
    def handle(readers: int, *, room: int = 0, refuse: bool = False, go_on: bool = False,
               directory: str | None = None) -> bytes:
        """Names a queue for processes that are not ranks of one world: bytes, to be given to them
        in any way. One of them calls attach(handle), and is the writer. The others, attach(handle,
        reader) with reader from 0 to readers - 1, each once.

        room, refuse, go_on: as for Queue(). directory: where the socket is made at which they meet;
        for processes of several network namespaces (containers) that have a directory in common,
        such as /dev/shm. Default: a name that leaves no file.
        """
        readers, room = whole("handle: readers", readers, INT), whole("handle: room", room, SIZE)
        if not 1 <= readers <= _READERS_MOST:
            raise ValueError(f"handle: {readers} readers: a queue has 1 to {_READERS_MOST}")
        name, meet = f"queue-{os.getpid()}-{os.urandom(8).hex()}", os.environ.get("TUTTI_MEET")
        if directory is None and meet:
            directory = os.path.dirname(meet) if meet[0] == "/" else tempfile.gettempdir()
        if directory is not None:
            name = os.path.join(os.path.abspath(directory), "tutti-" + name)
        return _HANDLE.pack(_HANDLE_IS, readers, _flags(refuse, go_on), room) + name.encode()

    @classmethod
    def attach(cls, handle: bytes, reader: int | None = None, *,
               timeout: float | None = None) -> "Queue":
        """Joins a queue that handle() has named: as its writer, or as this reader. Blocks until all
        have joined. timeout: for that, in seconds; None: 60; negative: none.

        The queue has a world of its own, which ends with it, with the thread that joined, and with
        the process. Deaths: of a process that has joined, noticed at once, also in another pid
        namespace; where the kernel leaves no mark, after up to 0.25 s if the process is gone, and
        1 s if /proc shows it, else never. Of one that has not joined: by timeout. A stopped process
        is no death. Children of fork join for themselves. Raises Timeout (it names who is missing),
        RankDied, Error (that reader has joined already), Invalid.
        """
        try:
            what, readers, flags, room = _HANDLE.unpack_from(handle)
            name = bytes(handle[_HANDLE.size:]).decode()
        except (struct.error, ValueError):
            what = b""
        if what.rstrip(b"\0") != _HANDLE_IS:
            raise Invalid("attach: this is not what tutti.Queue.handle() gave", errno.EINVAL)
        rank = 0 if reader is None else whole("attach: reader", reader, INT) + 1
        if reader is not None and not 1 <= rank <= readers:
            raise ValueError(f"attach: reader {reader}: this queue has 0 to {readers - 1}")
        world = _tutti.init(Comm, name, rank, readers + 1, 0, milliseconds(timeout), 0,
                            0, _LOCAL, 2 * room + (32 << 20) if room > _SPAN else 0)
        return cls(world, room=room, refuse=bool(flags & _REFUSE), go_on=bool(flags & _GO_ON))

    _writer: int
    _closed = False
    _pool: ThreadPoolExecutor | None = None

    @property
    def writer(self) -> int:
        """The rank that puts."""
        return self._writer

    def _failed(self, error: Error) -> Exception:
        """What to raise for an error of the library."""
        if self._closed and isinstance(error, Aborted):
            return Closed("this queue is closed", errno.ESHUTDOWN)
        if error.errno == errno.EAGAIN:
            return _std.Full() if self.rank == self._writer else _std.Empty()
        return error

    def put(self, value: Any, timeout: float | None = None, *, block: bool = True) -> None:
        """Puts an object for all readers. Waits while the queue is full: for `timeout` seconds,
        None: without end. block=False: raises queue.Full instead."""
        try:
            self._send(_POOL_TORCH if "torch" in sys.modules else _POOL, _packer, value,
                       0 if timeout is None else milliseconds(timeout), 0 if block else _TRY)
        except Error as error:
            raise self._failed(error) from None

    def get(self, timeout: float | None = None, *, block: bool = True,
            copy: bool = True) -> Any:
        """The next object; None for `timeout`: waits without end. block=False: raises queue.Empty
        if there is none.

        copy=False: arrays in it can only be read, and show the queue's memory; the writer gets no
        further than the queue's room beyond the oldest that is still there.
        """
        try:
            return self._take(pickle.loads, _value, copy,
                              0 if timeout is None else milliseconds(timeout),
                              0 if block else _TRY)
        except Error as error:
            raise self._failed(error) from None

    def put_bytes(self, data: Any, timeout: float | None = None, *, block: bool = True) -> None:
        """As put(), of a buffer as it is: for get_bytes() of the readers."""
        try:
            self._put((data,), milliseconds(timeout), 0 if block else _TRY)
        except Error as error:
            raise self._failed(error) from None

    def get_bytes(self, timeout: float | None = None, *, block: bool = True) -> memoryview:
        """As get(copy=False), of what put_bytes() put."""
        try:
            return memoryview(self._look(milliseconds(timeout), 0 if block else _TRY))
        except Error as error:
            raise self._failed(error) from None

    async def aget(self, timeout: float | None = None, *, copy: bool = True) -> Any:
        """get() for asyncio: waits in a thread of the queue's own, which costs some 50 to 100 µs
        more than get(). A task that is cancelled leaves its object for nobody: use close()."""
        try:
            return self.get(block=False, copy=copy)
        except _std.Empty:
            pass
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1, "tutti-queue")
        return await asyncio.get_running_loop().run_in_executor(
            self._pool, lambda: self.get(timeout, copy=copy))

    def __iter__(self) -> Iterator[Any]:
        """All objects to come, until the queue is closed."""
        while True:
            try:
                value = self.get()
            except Closed:
                return
            yield value

    def close(self) -> None:
        """Ends this rank's part; any thread. A get() or put() under way here raises Closed. If this
        is the writer, the readers get what was put, then Closed. If it is a reader, the writer
        goes on without it."""
        self._closed = True
        self._close()
        pool, self._pool = self._pool, None
        if pool:
            pool.shutdown(wait=False)

    def figures(self) -> QueueFigures:
        """Messages, bytes, waits, sleeps … of this end."""
        return QueueFigures(*self._figures())

    def __enter__(self) -> "Queue":
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()
