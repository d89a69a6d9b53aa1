# SPDX-License-Identifier: MIT
"""One rank's hold on a group of ranks; the base class of tutti.Comm. As comm.c: the same methods,
over ctypes."""
import ctypes
import errno
import os
import time
import weakref
from typing import Any, Callable, Dict, List, Optional, Set, Tuple, Type

from .. import errors
from .._number import SIZE, whole
from . import calls, inside
from .calls import ROWS, Flight
from .binding import Call, Library, Message, Options, QueueOptions
from .methods import Methods, text_of
from .side import AS_BYTES
from .work import Work

_USER = 1024                            # TUTTI_OP_USER
_MODE_WORK, _MODE_KEEP = 1, 2

work_class: Type[Work] = Work


class Comm(Methods):
    # an exception of the program's own operation: the next call that ends here raises it
    _raised: Optional[BaseException]

    def _begin(self, library: Library, handle: int, world: Optional["Comm"]) -> "Comm":
        self._library, self._handle, self._world = library, handle, world
        self._inside: List[None] = []  # calls in the library; in a world: of all its comms
        # operations that no wait() has ended; those that no Work holds are ended here
        self._flying: Set[Flight] = set()
        self._told: Tuple[str, int] = ("", 0)     # the report of the last exception, and its number
        self._raised = None
        self._ops: Dict[int, Any] = {}              # number -> its function, in the form for C
        self._regions = 0                 # in a world: regions of the arena that objects show
        return self

    def __del__(self) -> None:
        if getattr(self, "_handle", None) and self._world is not None and self._world._handle:
            self._reap(True)
            self._library.comm_free(self._handle)

    # ---- what every call does ----

    def _root(self) -> "Comm":
        return self if self._world is None else self._world

    def _open(self) -> int:
        if self._handle and self._root()._handle:
            return self._handle
        raise ValueError("this comm has been freed, or its world finalized: it can be used no more")

    def _run(self, name: str, *args: Any, undo: Optional[Callable[[int], Any]] = None) -> int:
        """Makes a call that may wait."""
        root = self._root()
        self._inside.append(None)
        if root is not self:
            root._inside.append(None)
        try:
            return inside.call(getattr(self._library, name), *args, undo=undo)
        finally:
            self._inside.pop()
            if root is not self:
                root._inside.pop()

    def _folds(self, flight: Flight, function: Callable[[], int],
               undo: Optional[Callable[[int], Any]] = None) -> int:
        """Runs it in a thread where a program's own operation may run."""
        if not flight.folds:
            return function()
        return inside.off_main(function, lambda: self._library.comm_abort_at(None, self._handle,
                                                                             b"interrupted"), undo)

    def _check(self, result: int) -> int:
        if self._raised is not None:
            error, self._raised = self._raised, None
            raise error
        if result >= 0:
            return result
        raise self._error(result)

    def _error(self, result: int) -> errors.Error:
        report, older = self._library.text(self._library.explain(self._handle)), self._told
        if older[0] == report and older[1] and result not in (older[1], -errno.ECANCELED):
            report = ""          # a failed comm keeps its report: this one was shown before
        else:
            self._told = (report, result)
        return errors.of(-result, self._library.text(self._library.strerror(result)), report,
                         self.failed())

    def _reap(self, wait: bool) -> None:
        """Ends operations that no Work holds and that are over; with wait, all that no Work
        holds."""
        for flight in list(self._flying):
            if flight.taken:
                continue
            try:
                self._flying.remove(flight)         # another thread may be here, too
            except KeyError:
                continue
            handle = flight.handle.value
            if handle and not wait and self._library.test(handle) == -errno.EAGAIN:
                self._flying.add(flight)
                continue
            if handle and self._folds(flight, lambda: self._run("wait_at", None, handle, -1)) < 0:
                flight.data.value = None
            flight.drop()

    # ---- calls on buffers, and on files ----

    def _collective(self, kind: int, send: Any, recv: Any, type: int, op: int, root: int,
                    timeout_ms: int, mode: int, value: Any, factor: Any,
                    stream: Optional[int]) -> Any:
        self._open()
        self._reap(False)
        name, letter = ROWS[kind][0], kind in (calls.SEND, calls.RECV)
        op = whole(f"{name}: {'tag' if letter else 'op'}", op)
        root = whole(f"{name}: {'to' if kind == calls.SEND else 'from_' if letter else 'root'}",
                     root)
        if stream is not None and not 0 <= stream <= SIZE[1]:
            raise ValueError(f"{name}: stream is {stream}: no CUstream is such a number")
        flight = Flight(self, kind, value, stream)
        flight.op, flight.root = op, root
        flight.folds = op >= _USER and not letter
        try:
            flight.take(send, recv, type, factor)
            flight.call.stream, flight.call.factor = flight.stream() or None, flight.factor.address
        except BaseException:
            flight.drop()
            raise
        return self._go(name + "_at", flight, mode, timeout_ms, flight.arguments())

    def _go(self, name: str, flight: Flight, mode: int, timeout_ms: int, args: List[Any]) -> Any:
        call, site = flight.call, inside.site()
        call.timeout_ms = timeout_ms
        if mode & _MODE_KEEP:
            call.timeout_ms, flight.late = -1, time.monotonic() + timeout_ms / 1000
        if mode & _MODE_WORK:
            call.work = ctypes.addressof(flight.handle)
            flight.taken = True
            self._flying.add(flight)     # its buffers are held from now on, also if this raises
        try:
            result = self._folds(flight, lambda: self._run(name, site, *args, self._open(),
                                                           ctypes.addressof(call)))
            if flight.handle.value:
                return work_class(self, flight)
        except BaseException:
            flight.taken = False
            raise
        self._flying.discard(flight)
        try:
            if result < 0:
                flight.data.value = None
            self._check(result)
            return flight.value(result)
        finally:
            flight.drop()

    def _load(self, path: Any, timeout_ms: int, mode: int) -> Any:
        flight = Flight(self, calls.LOAD, None)
        self._reap(False)
        name = ctypes.create_string_buffer(text_of(os.fsencode(path)))
        return self._go("load_at", flight, mode, timeout_ms,
                        [ctypes.addressof(name), ctypes.addressof(flight.data),
                         ctypes.addressof(flight.bytes)])

    def _save(self, path: Any, data: Any, timeout_ms: int, mode: int) -> Any:
        flight = Flight(self, calls.SAVE, None)
        self._reap(False)
        try:
            if data is None:
                raise TypeError("save: None is no array")
            flight.send.take(data, AS_BYTES, False)
            if flight.send.device:
                raise ValueError("save: an array in device memory; what is saved is in host "
                                 "memory: copy it")
        except BaseException:
            flight.drop()
            raise
        name = ctypes.create_string_buffer(text_of(os.fsencode(path)))
        return self._go("save_at", flight, mode, timeout_ms,
                        [ctypes.addressof(name), flight.send.address, flight.send.count])

    # ---- life ----

    def _child(self, name: str, *args: Any) -> Any:
        made = ctypes.c_void_p()

        def undo(result: int) -> None:
            if made.value:
                self._library.comm_free(made.value)
        self._check(self._run(name, inside.site(), self._open(), *args, ctypes.addressof(made),
                              undo=undo))
        return type(self)()._begin(self._library, made.value, self._root()) if made.value else None

    def _queue(self, made: Any, writer: int, room: int, flags: int) -> Any:
        handle, options = ctypes.c_void_p(), QueueOptions(room, flags)

        def undo(result: int) -> None:
            if handle.value:
                self._library.queue_free(handle.value)
        self._check(self._run("queue_create_at", inside.site(), self._open(), writer,
                              ctypes.addressof(options), ctypes.addressof(handle), undo=undo))
        queue: Any = object.__new__(made)
        return queue._begin(self._root(), handle.value)

    def _split(self, color: int, key: int) -> Any:
        return self._child("comm_split_at", color, key)

    def _create(self, ranks: List[int]) -> Any:
        return self._child("comm_create_at", (ctypes.c_int * max(1, len(ranks)))(*ranks),
                           len(ranks))

    def _shrink(self) -> Any:
        return self._child("comm_shrink_at")

    def _free_to_go(self, name: str) -> None:
        if self._inside:
            raise RuntimeError(f"{name}: another thread is inside this comm: wait for it first")
        self._reap(True)

    def finalize(self) -> None:
        """Leaves the world and frees all its comms. Waits for nobody."""
        if not self._handle:
            return
        if self._world is not None:
            raise ValueError("finalize: this is not a world; give a comm back by free()")
        if self._regions:
            raise BufferError(f"finalize: {self._regions} arrays of share() or load() are still "
                              "there: delete them first, "
                              "or leave the world to the end of the program")
        self._free_to_go("finalize")
        self._check(self._run("finalize_at", inside.site(), self._handle))
        self._handle = 0

    def free(self) -> None:
        """Frees this rank's hold on the comm; not for a world. Local."""
        if not self._handle or not self._root()._handle:
            return
        self._free_to_go("free")
        self._check(self._library.comm_free(self._handle))
        self._handle = 0

    # ---- memory of the arena ----

    def _show(self, address: int, size: int, loaded: bool) -> memoryview:
        """The memory as read-only. It prevents finalize() of its world."""
        root = self._root()
        root._regions += 1
        array = (ctypes.c_ubyte * size).from_address(address)
        weakref.finalize(array, _shown_no_more, root, address if loaded else 0).atexit = False
        return memoryview(array).cast("B").toreadonly()

    def _give_back(self, address: Optional[int]) -> None:
        if self._root()._handle:
            self._library.free(address, self._root()._handle)

    def _give(self, data: Any) -> int:
        handle = ctypes.c_uint64()
        flight = Flight(self, calls.SAVE, None)
        side = flight.send.take(data, AS_BYTES, False)
        copy = self._library.alloc(max(1, side.count), self._open())
        if not copy:
            flight.drop()
            raise MemoryError(f"share: {self.report}")
        ctypes.memmove(copy, side.address or 0, side.count)
        flight.drop()
        self._check(self._library.handle(copy, ctypes.addressof(handle), self._open()))
        return handle.value

    def _view(self, handle: int, size: int) -> memoryview:
        address = self._library.view_readonly(handle, self._open())
        if not address:
            raise MemoryError(f"share: {self.report}")
        return self._show(address, size, False)


def _shown_no_more(root: Comm, address: int) -> None:
    root._regions -= 1
    if address:
        root._give_back(address)


def init(library: Library, made: Type[Comm], job: Optional[str], rank: int, size: int,
         timeout_ms: int, join_timeout_ms: int, warn_ms: int, spin_us: int, flags: int,
         span_bytes: int) -> Comm:
    options = Options(text_of(job) if job is not None else None, rank, size, timeout_ms,
                      join_timeout_ms, warn_ms, spin_us, flags, span_bytes, inside.INTERRUPT)
    handle = ctypes.c_void_p()

    def undo(result: int) -> None:
        if handle.value:
            library.finalize_at(None, handle.value)
    result = inside.call(library.init, ctypes.addressof(handle), ctypes.addressof(options),
                         undo=undo)
    if result < 0:
        raise errors.of(-result, library.text(library.strerror(result)),
                        library.text(library.explain(None)), ())
    assert handle.value is not None
    return made()._begin(library, handle.value, None)
