# SPDX-License-Identifier: MIT
"""Comm: a group of ranks, and all that its ranks do together."""
from __future__ import annotations

import collections
import errno
import functools
import math
import struct
import sys
from collections.abc import Callable, Iterable, Sequence

from . import _foreign, _order, _worlds
from ._core import core as _tutti
from ._hints import Any
from ._number import INT, LONG, SIZE, milliseconds, whole
from ._op import Op
from .errors import Invalid
from .work import Work

TYPE_CHECKING = False                   # as typing has it
if TYPE_CHECKING:
    from typing import NamedTuple

    class Message(NamedTuple):
        from_: int
        tag: int
        count: int  # type: ignore[assignment]
else:
    Message = collections.namedtuple("Message", "from_ tag count")
    Message.__doc__ = "A received message: its sender, its tag, its number of elements."

#: for send, recv, probe: any sender; any tag
ANY = -1

_KIND = _tutti.KINDS
_BY_BUFFER, _AS_BYTES = -1, -2
_OPS = {"sum": 0, "prod": 1, "min": 2, "max": 3, "avg": 4, "band": 5, "bor": 6, "bxor": 7,
        "land": 8, "lor": 9, "lxor": 10,
        "premul_sum": 11}
_TYPES = {"i8": 0, "u8": 1, "i16": 2, "u16": 3, "i32": 4, "u32": 5, "i64": 6, "u64": 7, "f16": 8,
          "bf16": 9, "f32": 10, "f64": 11, "bool": 12, "c64": 13, "c128": 14, "f8e4m3": 15,
          "f8e5m2": 16}


def _mode(async_: bool, keep: bool, timeout: float | None) -> int:
    """The mode argument of _collective."""
    if not keep:
        return 1 if async_ else 0
    if not async_ or timeout is None or timeout < 0:
        raise ValueError("keep=True: its deadline breaks nothing, the operation goes on as a Work: "
                         "give async_=True and timeout=")
    return 3


def _dtype(dtype: str | None) -> int:
    if dtype is None:
        return _BY_BUFFER
    try:
        return _TYPES[dtype]
    except (KeyError, TypeError):
        raise ValueError(f"dtype={dtype!r}: expected None (the array's own) or one of "
                         f"{', '.join(_TYPES)}") from None


def _factor(factor: Any, array: Any, dtype: str | None) -> Any:
    """A number as one element of the array's type."""
    if factor is None:
        return None
    if dtype is not None:
        if isinstance(factor, (int, float, complex)):
            raise TypeError("factor: beside dtype= give one element of that type, as an array of "
                            "its bytes")
        return factor
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(array, (numpy.ndarray, numpy.generic)):
        if not isinstance(factor, (int, float, complex, list, tuple, numpy.ndarray, numpy.generic)):
            return factor
        if _foreign.is_masked(factor):
            _foreign.look(factor, "factor", True)
        made = numpy.asarray(factor, array.dtype)
        if array.dtype.kind in "iu" and not numpy.array_equal(made, numpy.asarray(factor)):
            raise Invalid(f"factor is {factor}: expected an integer that fits into {array.dtype}, "
                          "as the array's elements are", errno.EINVAL)
        return made
    if not isinstance(factor, (int, float, complex)):
        return factor
    try:
        return struct.pack(memoryview(array).format, factor)
    except TypeError:
        return _foreign.element(array, factor)


def _value(value: Any, what: str) -> Any:
    """A value for the store: a str as UTF-8, anything else as its bytes."""
    if isinstance(value, str):
        return value.encode()
    if type(value) not in (bytes, bytearray, memoryview):
        _foreign.look(value, what, True)
    return value


def _shape(array: Any) -> tuple[int, ...]:
    shape = getattr(array, "shape", None)
    if shape is None:
        shape = memoryview(array).shape
    return tuple(shape or ())


def _like(array: Any, shape: tuple[int, ...]) -> Any:
    """A new array of that shape: a NumPy array for a NumPy array, else a memoryview with elements
    of the same format."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(array, (numpy.ndarray, numpy.generic)):
        return numpy.empty(shape, array.dtype)
    try:
        view = memoryview(array)
    except TypeError:
        raise TypeError(f"no array like {type(array)} can be made here: give one by out=") from None
    try:
        return memoryview(bytearray(math.prod(shape) * view.itemsize)).cast(
            view.format, shape)  # type: ignore[call-overload]
    except (ValueError, TypeError):
        raise TypeError(f"no array of format {view.format!r} and shape {shape} can be made here: "
                        "give one by out=") from None


class Comm(_tutti.Comm):
    """One rank's hold on a group of ranks. tutti.init() gives the world; split, create and shrink
    give others.

    Arrays are NumPy arrays, or anything with the buffer protocol, DLPack or
    __cuda_array_interface__, in one piece in C order, in host memory or a GPU's. Their elements
    give the type. dtype= ("bf16", "f8e4m3" …) gives another one of the same size, as "i64" for
    dates. Masked arrays, objects and another byte order are refused: there the bytes are not the
    elements. Every rank calls the collectives in the same order, with the same sizes. Each takes

        timeout   seconds; None: the comm's own (set_timeout); negative: none
        async_    True: only start, and return a Work; its wait() returns the result of the call.
                  The arrays are in use until then, and are kept alive.
        keep      True, together with async_ and timeout: the deadline breaks nothing, and only
                  this rank sees it. When it has passed, wait() raises Timeout, and the operation
                  continues
        stream    for device arrays: the call waits for the work in this stream, a CUstream as an
                  integer. None: the stream that the array names, or the legacy default stream.
                  When the call returns, the result is in place

    Failures are exceptions: RankDied, Mismatch, Timeout, Aborted, Deadlock, Invalid, all of them
    tutti.Error. Ctrl-C ends a blocked call by KeyboardInterrupt, and breaks the comm. One thread at
    a time uses a comm.
    """

    def __repr__(self) -> str:
        try:
            return f"<tutti.Comm: rank {self.rank} of {self.size}>"
        except ValueError:
            return "<tutti.Comm: freed>"

    def __enter__(self) -> Comm:
        return self

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        """`with tutti.init() as world:` leaves the world at the end of the block; or at the end of
        the program, if arrays of share() or load() still exist. Another comm is freed."""
        if not self.is_world:
            self.free()
            return
        try:
            self.finalize()
        except BufferError:
            pass

    def finalize(self) -> None:
        """Leaves the world and frees all its comms. Waits for nobody."""
        super().finalize()
        _worlds.gone(self)

    def _fold(self, op: str | Op) -> int:
        """The number of an operation for _collective."""
        try:
            return _OPS[op]  # type: ignore[index]
        except (KeyError, TypeError):
            if isinstance(op, Op):
                return op.number(self)
            raise ValueError(f"op={op!r}: expected one of {', '.join(_OPS)}, or what op() of this "
                             "comm has made") from None

    # ---- collectives ----

    def barrier(self, *, timeout: float | None = None, async_: bool = False,
                keep: bool = False) -> Work | None:
        """Returns when all ranks have called it."""
        return self._collective(_KIND["barrier"], None, None, _BY_BUFFER, 0, 0,
                                milliseconds(timeout), _mode(async_, keep, timeout),
                                None, None, None)

    def broadcast(self, array: Any, root: int = 0, *, dtype: str | None = None,
                  stream: int | None = None, timeout: float | None = None,
                  async_: bool = False, keep: bool = False) -> Any:
        """Copies root's array into the arrays of all ranks, which have as many elements. Returns
        the array."""
        return self._collective(_KIND["broadcast"], None, array, _dtype(dtype), 0, root,
                                milliseconds(timeout), _mode(async_, keep, timeout), array,
                                None, stream)

    def all_reduce(self, array: Any, op: str | Op = "sum", *, factor: Any = None,
                   out: Any = None, dtype: str | None = None, stream: int | None = None,
                   timeout: float | None = None, async_: bool = False,
                   keep: bool = False) -> Any:
        """Folds the arrays of all ranks, element by element and in rank order. All ranks get the
        same bits.

        op: "sum", "prod", "min", "max", "avg", "band", "bor", "bxor", "land", "lor", "lxor";
            "premul_sum": the sum of each rank's array times its own factor, which is one number
            or, with dtype=, one element as an array. Or the program's own operation, from op().
        out: an array of as many elements and the same type. None: in place. Returns the array that
        has the result.
        """
        out = array if out is None else out
        return self._collective(_KIND["all_reduce"], array, out, _BY_BUFFER if dtype is None
                                else _dtype(dtype), self._fold(op), 0, 0 if timeout is None
                                else milliseconds(timeout), _mode(async_, keep, timeout), out,
                                _factor(factor, array, dtype), stream)

    def reduce(self, array: Any, op: str | Op = "sum", root: int = 0, *, factor: Any = None,
               out: Any = None, dtype: str | None = None, stream: int | None = None,
               timeout: float | None = None, async_: bool = False, keep: bool = False) -> Any:
        """Folds the arrays of all ranks, on root only: into out, or in place. Returns the array
        that has the result; None on the other ranks."""
        out = (array if out is None else out) if self.rank == root else None
        return self._collective(_KIND["reduce"], array, out, _dtype(dtype), self._fold(op), root,
                                milliseconds(timeout), _mode(async_, keep, timeout), out,
                                _factor(factor, array, dtype), stream)

    def reduce_scatter(self, array: Any, op: str | Op = "sum", *, factor: Any = None,
                       out: Any = None, dtype: str | None = None, stream: int | None = None,
                       timeout: float | None = None, async_: bool = False,
                       keep: bool = False) -> Any:
        """Rank p gets the fold of block p of all arrays. array is size blocks along its first axis.

        array (size * n, …) gives out (n, …), a new array if out is None.
        """
        if out is None:
            shape = _shape(array)
            if not shape or shape[0] % self.size:
                raise ValueError(f"reduce_scatter: shape {shape} cannot be divided among "
                                 f"{self.size} ranks along its first axis")
            out = _like(array, (shape[0] // self.size,) + shape[1:])
        return self._collective(_KIND["reduce_scatter"], array, out, _dtype(dtype), self._fold(op),
                                0, milliseconds(timeout), _mode(async_, keep, timeout), out,
                                _factor(factor, array, dtype), stream)

    def all_gather(self, array: Any, *, out: Any = None, dtype: str | None = None,
                   stream: int | None = None, timeout: float | None = None,
                   async_: bool = False, keep: bool = False) -> Any:
        """All ranks get the arrays of all ranks, in rank order: out[p] is the array of rank p.

        array (…) gives out (size, …), a new array if out is None.
        """
        if out is None:
            out = _like(array, (self.size,) + _shape(array))
        return self._collective(_KIND["all_gather"], array, out, _dtype(dtype), 0, 0,
                                milliseconds(timeout), _mode(async_, keep, timeout), out,
                                None, stream)

    def gather(self, array: Any, root: int = 0, *, out: Any = None, dtype: str | None = None,
               stream: int | None = None, timeout: float | None = None, async_: bool = False,
               keep: bool = False) -> Any:
        """Root gets the arrays of all ranks, in rank order: array (…) gives out (size, …) on root,
        None on the other ranks."""
        if self.rank != root:
            out = None
        elif out is None:
            out = _like(array, (self.size,) + _shape(array))
        return self._collective(_KIND["gather"], array, out, _dtype(dtype), 0, root,
                                milliseconds(timeout), _mode(async_, keep, timeout), out,
                                None, stream)

    def scatter(self, array: Any, out: Any, root: int = 0, *, dtype: str | None = None,
                stream: int | None = None, timeout: float | None = None, async_: bool = False,
                keep: bool = False) -> Any:
        """Rank p's out (…) becomes block p of root's array (size, …); array is None on the other
        ranks. Returns out."""
        if self.rank != root:
            array = None
        return self._collective(_KIND["scatter"], array, out, _dtype(dtype), 0, root,
                                milliseconds(timeout), _mode(async_, keep, timeout), out,
                                None, stream)

    def all_to_all(self, array: Any, *, out: Any = None, dtype: str | None = None,
                   stream: int | None = None, timeout: float | None = None,
                   async_: bool = False, keep: bool = False) -> Any:
        """Block p of out becomes this rank's block of rank p's array. Both are size equal blocks.
        out None: in place."""
        out = array if out is None else out
        return self._collective(_KIND["all_to_all"], array, out, _dtype(dtype), 0, 0,
                                milliseconds(timeout), _mode(async_, keep, timeout), out,
                                None, stream)

    def scan(self, array: Any, op: str | Op = "sum", *, factor: Any = None, out: Any = None,
             dtype: str | None = None, stream: int | None = None,
             timeout: float | None = None, async_: bool = False, keep: bool = False) -> Any:
        """The fold of the arrays of ranks 0 to this one. out None: in place."""
        out = array if out is None else out
        return self._collective(_KIND["scan"], array, out, _dtype(dtype), self._fold(op), 0,
                                milliseconds(timeout), _mode(async_, keep, timeout), out,
                                _factor(factor, array, dtype), stream)

    def exscan(self, array: Any, op: str | Op = "sum", *, factor: Any = None, out: Any = None,
               dtype: str | None = None, stream: int | None = None,
               timeout: float | None = None, async_: bool = False, keep: bool = False) -> Any:
        """The fold of the arrays of the ranks before this one. Rank 0's out stays unchanged. out
        None: in place."""
        out = array if out is None else out
        return self._collective(_KIND["exscan"], array, out, _dtype(dtype), self._fold(op), 0,
                                milliseconds(timeout), _mode(async_, keep, timeout), out,
                                _factor(factor, array, dtype), stream)

    def all_reduce_many(self, arrays: Sequence[Any], op: str | Op = "sum", *,
                        out: Sequence[Any] | None = None, dtype: str | None = None,
                        stream: int | None = None, timeout: float | None = None,
                        async_: bool = False, keep: bool = False) -> Any:
        """all_reduce of several arrays of one type, by one operation, with one wait for all."""
        out = arrays if out is None else out
        return self._collective(_KIND["all_reduce_many"], arrays, out, _dtype(dtype),
                                self._fold(op), 0, milliseconds(timeout),
                                _mode(async_, keep, timeout), out, None, stream)

    def op(self, function: Callable[[Any, Any], Any], commutative: bool = True) -> Op:
        """Makes a program's own operation for the reductions on this comm. All ranks make it, in
        the same order.

        function(in_, inout) folds two runs of elements: inout[:] = in_ ∘ inout, where in_ is from
        the lower ranks. It is applied in rank order, whether commutative or not. Both are NumPy
        arrays if NumPy is imported (for bf16 and 8-bit floats: of their bits), else memoryviews,
        valid only during the call. It must call nothing on this comm. If it raises, the comm
        breaks: on this rank the call raises the same, on the others Aborted with its text.

            largest = world.op(lambda in_, inout: np.maximum(in_, inout, out=inout))
            world.all_reduce(x, largest)

        Cost: it runs under the interpreter's lock, once for each 4 KiB of each rank's elements,
        some microseconds each; for calls with async_=True also in a thread of the library, which
        then waits for the lock. The operations "sum" … have no such cost.
        """
        return Op(self, function)

    def same(self, array: Any, *, stream: int | None = None, timeout: float | None = None,
             async_: bool = False, keep: bool = False) -> Any:
        """True if all ranks hold the same bytes, by digests of 128 bits. The array has the same
        length on all ranks, and any elements but objects."""
        return self._collective(_KIND["same"], array, None, _AS_BYTES, 0, 0, milliseconds(timeout),
                                _mode(async_, keep, timeout), None, None, stream)

    # ---- the general forms: a list of one array for each rank, of any sizes; None in a list is an
    # empty array ----

    def all_gather_v(self, array: Any, out: Sequence[Any], *, dtype: str | None = None,
                     stream: int | None = None, timeout: float | None = None,
                     async_: bool = False, keep: bool = False) -> Any:
        """out[p] becomes the array of rank p. The sizes in out are the same on all ranks."""
        return self._collective(_KIND["all_gather_v"], array, out, _dtype(dtype), 0, 0,
                                milliseconds(timeout), _mode(async_, keep, timeout), out,
                                None, stream)

    def gather_v(self, array: Any, out: Sequence[Any] | None = None, root: int = 0, *,
                 dtype: str | None = None, stream: int | None = None,
                 timeout: float | None = None, async_: bool = False, keep: bool = False) -> Any:
        """out[p] on root becomes the array of rank p. out is None on the other ranks."""
        return self._collective(_KIND["gather_v"], array, out, _dtype(dtype), 0, root,
                                milliseconds(timeout), _mode(async_, keep, timeout), out,
                                None, stream)

    def scatter_v(self, arrays: Sequence[Any] | None, out: Any, root: int = 0, *,
                  dtype: str | None = None, stream: int | None = None,
                  timeout: float | None = None, async_: bool = False, keep: bool = False) -> Any:
        """Rank p's out becomes root's arrays[p]. arrays is None on the other ranks."""
        return self._collective(_KIND["scatter_v"], arrays, out, _dtype(dtype), 0, root,
                                milliseconds(timeout), _mode(async_, keep, timeout), out,
                                None, stream)

    def reduce_scatter_v(self, arrays: Sequence[Any], out: Any, op: str | Op = "sum", *,
                         dtype: str | None = None, stream: int | None = None,
                         timeout: float | None = None, async_: bool = False,
                         keep: bool = False) -> Any:
        """Rank p's out becomes the fold of all ranks' arrays[p]. The sizes in arrays are the same
        on all ranks."""
        return self._collective(_KIND["reduce_scatter_v"], arrays, out, _dtype(dtype),
                                self._fold(op), 0, milliseconds(timeout),
                                _mode(async_, keep, timeout), out, None, stream)

    def all_to_all_v(self, arrays: Sequence[Any], out: Sequence[Any], *,
                     dtype: str | None = None, stream: int | None = None,
                     timeout: float | None = None, async_: bool = False,
                     keep: bool = False) -> Any:
        """out[p] becomes rank p's block for this rank: its arrays[rank]."""
        return self._collective(_KIND["all_to_all_v"], arrays, out, _dtype(dtype), 0, 0,
                                milliseconds(timeout), _mode(async_, keep, timeout), out,
                                None, stream)

    # ---- point to point ----

    def send(self, array: Any, to: int, tag: int = 0, *, dtype: str | None = None,
             timeout: float | None = None, async_: bool = False,
             keep: bool = False) -> Work | None:
        """Sends the array to rank `to`. Up to 64 KiB are sent without waiting for the receiver."""
        return self._collective(_KIND["send"], array, None, _dtype(dtype), tag, to,
                                milliseconds(timeout), _mode(async_, keep, timeout),
                                None, None, None)

    def recv(self, array: Any, from_: int = ANY, tag: int = ANY, *, dtype: str | None = None,
             timeout: float | None = None, async_: bool = False, keep: bool = False) -> Any:
        """Receives a message into the array, which has its type and enough room. Returns a Message
        (from_, tag, count)."""
        return self._collective(_KIND["recv"], None, array, _dtype(dtype), tag, from_,
                                milliseconds(timeout), _mode(async_, keep, timeout), Message, None,
                                None)

    def probe(self, from_: int = ANY, tag: int = ANY, *,
              timeout: float | None = None) -> Message:
        """Waits until such a message has arrived, and does not receive it. count is in
        elements of its sender's type."""
        return Message(*self._probe(whole("probe: from_", from_), whole("probe: tag", tag),
                                    milliseconds(timeout)))

    # ---- comms ----

    def split(self, color: int | None, key: int = 0) -> Comm | None:
        """Ranks with the same color form a comm, ordered by (key, rank). color None or negative:
        the rank takes part and gets None."""
        return self._split(-1 if color is None else whole("split: color", color),
                           whole("split: key", key))

    def create(self, ranks: Iterable[int]) -> Comm:
        """A comm of these ranks, in this order. Only they call it, with the same list."""
        return self._create([whole("create: a rank", rank) for rank in ranks])

    def shrink(self) -> Comm:
        """A new comm of the ranks that are left of this one, in their old order. All of them call
        it."""
        return self._shrink()

    def agree(self, flag: int = 1) -> int:
        """Bitwise AND of flag over all living ranks. All get the same, on a broken comm, too."""
        number = int(flag)
        if number != flag:
            raise Invalid(f"agree: flag is {flag}: expected an integer from {INT[0]} to {INT[1]}",
                          errno.EINVAL)
        return self._agree(whole("agree: flag", number))

    def abort(self, why: str = "aborted") -> None:
        """Breaks the comm on purpose: all ranks get Aborted, with this text. Any thread may call
        it."""
        self._abort(why)

    def set_timeout(self, timeout: float | None) -> None:
        """The deadline of this rank's later operations, in seconds; None: the world's own default;
        negative: none."""
        self._set_timeout(milliseconds(timeout))

    def fault(self, what: str) -> None:
        """For tests: "RANK:OPERATION#N:kill|stop|delay=MS|abort", as tutti_fault() in tutti.h."""
        self._fault(what)

    # ---- objects, for control planes ----

    def broadcast_object(self, value: Any = None, root: int = 0, *,
                         timeout: float | None = -1) -> Any:
        """root's object, on all ranks, by pickle. value counts on root alone, which gets itself.

        Has no deadline unless one is given: it ends when all have come, or one has died. An object
        that cannot be pickled is an exception on all ranks; the comm stays whole.
        """
        from . import _objects
        return _objects.broadcast(self, value, root, timeout)

    def gather_objects(self, value: Any, root: int = 0, *,
                       timeout: float | None = -1) -> list[Any] | None:
        """The objects of all ranks, on root, in rank order; None on the other ranks. Otherwise as
        broadcast_object()."""
        from . import _objects
        return _objects.gather(self, value, root, timeout)

    # ---- order ----

    def first(self, key: str, *, timeout: float | None = None) -> "_order.First":
        """"One prepares, the others use it": `with comm.first("data") as mine:` is True on the rank
        that comes first. The others wait until it has left the block, and get False. If the block
        raises there, the next rank is first. No barrier."""
        return _order.First(self, key, milliseconds(timeout))

    def once(self, key: str, *, timeout: float | None = None) -> Callable[[Callable[..., Any]],
                                                                             Callable[..., Any]]:
        """`@comm.once("key")`: a call of the function runs it on the first rank that calls. The
        other ranks wait for its end and get None. So does every later call, for the life of the
        comm. If it raises there, the next rank runs it. The function must call nothing on this comm
        (Deadlock); another comm is allowed."""
        return functools.partial(_order.once, self, key, milliseconds(timeout))

    def turn(self, *, timeout: float | None = None) -> "_order.Turn":
        """`with comm.turn():` runs the block on rank 0, then on 1, 2 …. All ranks call it."""
        return _order.Turn(self, milliseconds(timeout))

    def seed(self, base: int) -> int:
        """A seed of 64 bits for each rank: independent streams that depend on (base, rank) only. A
        negative base is its two's complement."""
        return self._seed(whole("seed: base", base, (LONG[0], SIZE[1])) & SIZE[1])

    def seed_everything(self, base: int) -> int:
        """Seeds random, NumPy if it is installed, and torch if it is imported, with this rank's
        seed(base). Returns the seed."""
        return _order.seed_everything(self.seed(base))

    # ---- the job's store: one table for all ranks of the job, for every comm ----

    def set(self, key: str, value: str | bytes | bytearray | memoryview) -> None:
        """Sets key to value: bytes, up to 1 MiB; a str as UTF-8."""
        self._set(key, _value(value, "set"))

    def get(self, key: str, *, timeout: float | None = None) -> bytes:
        """Waits until key exists, and returns its value. Timeout fails only this call."""
        return self._get(key, milliseconds(timeout))

    def add(self, key: str, delta: int = 1) -> int:
        """Adds delta to a number that starts at 0, and returns the sum. No two callers get the same
        sum."""
        return self._add(key, whole("add: delta", delta, LONG))

    def compare_set(self, key: str, expected: bytes, desired: bytes) -> bool:
        """If key has the value expected (b"": key does not exist), sets it to desired. True: it was
        so."""
        return self._compare_set(key, _value(expected, "compare_set"),
                                 _value(desired, "compare_set"))

    def delete(self, key: str) -> bool:
        """Deletes key. False: there was no such key."""
        return self._delete(key)

    # ---- memory and files ----

    def share(self, array: Any, root: int = 0) -> Any:
        """Puts one copy of root's array into the arena. All ranks get it as a read-only array.
        array is None on the other ranks.

        A NumPy array, of any elements but objects, gives a NumPy array, else a memoryview. The copy
        stays until root leaves the world. A forked child does not have the memory: a worker process
        (of a DataLoader) crashes if it reads it. Give it a copy.
        """
        return _order.share(self, array, root)

    def load(self, path: Any, *, timeout: float | None = None, async_: bool = False,
             keep: bool = False) -> Any:
        """Reads a file once per host: all ranks get the bytes in the same read-only memory. All
        ranks call it.

        Returns a memoryview: numpy.frombuffer(world.load("weights"), "f4") copies nothing. The
        memory is freed after its last user. A forked child does not have the memory: a worker
        process (of a DataLoader) crashes if it reads it. Give it a copy.
        """
        return self._load(path, milliseconds(timeout), _mode(async_, keep, timeout))

    def save(self, path: Any, data: Any, *, timeout: float | None = None, async_: bool = False,
             keep: bool = False) -> Work | None:
        """Writes the same bytes of all ranks to a file; each rank writes a part. There is the old
        file or the new one, whichever rank dies at whatever time."""
        return self._save(path, data, milliseconds(timeout), _mode(async_, keep, timeout))
