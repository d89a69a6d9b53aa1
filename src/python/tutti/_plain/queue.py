# SPDX-License-Identifier: MIT
"""A broadcast queue of bytes; the base class of tutti.Queue. As feed.c: the same methods, over
ctypes."""
import ctypes
import struct
import weakref
from typing import Any, List, Tuple

from .. import errors
from . import inside
from .binding import Call, QueueMessage

_STEP = 16                              # as in _queue.py


def _give(world: Any, handle: int, message: QueueMessage) -> None:
    world._regions -= 1
    if message.data and world._handle:
        world._library.queue_release(handle, ctypes.addressof(message))


class Queue:
    _handle = 0

    def _begin(self, world: Any, handle: int) -> Any:
        self._world, self._library, self._handle = world, world._library, handle
        self._told: Tuple[str, int] = ("", 0)
        return self

    def __del__(self) -> None:
        if self._handle and self._world._handle:
            self._library.queue_free(self._handle)

    def _open(self) -> int:
        if self._handle and self._world._handle:
            return self._handle
        raise ValueError("the world of this queue has been finalized")

    def _check(self, result: int) -> int:
        if result >= 0:
            return result
        comm = self._library.queue_comm(self._handle)
        report, older = self._library.text(self._library.explain(comm)), self._told
        if older[0] == report and older[1] and result != older[1]:
            report = ""
        else:
            self._told = (report, result)
        room = (ctypes.c_int * self.size)()
        count = self._library.failed(comm, ctypes.addressof(room), len(room))
        raise errors.of(-result, self._library.text(self._library.strerror(result)), report,
                        tuple(room[:max(0, count)]))

    def _put(self, parts: Tuple[Any, ...], timeout_ms: int, flags: int) -> None:
        call, handle = Call(timeout_ms, flags), self._open()
        count = len(parts)
        held: List[bytes] = [bytes(part) for part in parts]
        pointers = (ctypes.c_char_p * (count + 1))(*held)
        sizes = (ctypes.c_size_t * (count + 1))(*[len(one) for one in held])
        self._check(self._world._run("queue_put_v_at", inside.site(), handle,
                                     ctypes.addressof(pointers), ctypes.addressof(sizes), count,
                                     ctypes.addressof(call)))

    def _look(self, timeout_ms: int, flags: int) -> Any:
        call, message, handle = Call(timeout_ms, flags), QueueMessage(), self._open()

        def undo(result: int) -> None:
            self._library.queue_release(handle, ctypes.addressof(message))
        self._check(self._world._run("queue_look_at", inside.site(), handle,
                                     ctypes.addressof(message), ctypes.addressof(call), undo=undo))
        shown = (ctypes.c_char * message.bytes).from_address(message.data)
        shown.queue = self                  # lives as long as it
        self._world._regions += 1
        weakref.finalize(shown, _give, self._world, handle, message).atexit = False
        return memoryview(shown).toreadonly()

    def _send(self, pool: List[Any], make: Any, value: Any, timeout_ms: int, flags: int) -> None:
        packer = pool.pop() if pool else make()
        dump, forget, written, buffers = packer
        try:
            dump(value)
            length, raws = sum(map(len, written)), [buffer.raw() for buffer in buffers]
            head = struct.pack(f"={len(raws) + 2}Q", len(raws), length,
                               *[raw.nbytes for raw in raws])
            parts, at = [head, *written], len(head) + length
            for raw in raws:
                parts += [bytes(-at % _STEP), raw]
                at += -at % _STEP + raw.nbytes
            self._put(tuple(parts), timeout_ms, flags)
        finally:
            forget()
            written.clear()
            buffers.clear()
            pool.append(packer)

    def _take(self, loads: Any, unpack: Any, copy: bool, timeout_ms: int, flags: int) -> Any:
        return unpack(self._look(timeout_ms, flags), copy)

    def _close(self) -> None:
        if self._handle and self._world._handle:
            self._check(self._world._run("queue_close", self._handle))

    def _figures(self) -> Tuple[int, ...]:
        figures = (ctypes.c_uint64 * 14)()
        self._check(self._library.queue_stats(self._open(), ctypes.addressof(figures)))
        return tuple(figures[:9])

    @property
    def rank(self) -> int:
        """This rank's number among those of the queue."""
        return self._library.rank(self._library.queue_comm(self._open()))

    @property
    def size(self) -> int:
        """The number of ranks: one writer, and readers."""
        return self._library.size(self._library.queue_comm(self._open()))
