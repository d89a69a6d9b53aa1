# SPDX-License-Identifier: MIT
"""The implementation of first, once, turn, share and seed_everything of a Comm."""
from __future__ import annotations

import errno
import functools
import math
import sys
from collections.abc import Callable

from . import _foreign
from ._hints import Any

_ECANCELED = -errno.ECANCELED


class First:
    """A block that one rank runs first; see Comm.first."""

    def __init__(self, comm: Any, key: str, timeout_ms: int):
        self._comm, self._key, self._timeout_ms, self._mine = comm, key, timeout_ms, False

    def __enter__(self) -> bool:
        self._mine = self._comm._first_begin(self._key, self._timeout_ms)
        return self._mine

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        if self._mine:
            self._mine = False
            self._comm._first_end(self._key, 0 if kind is None else _ECANCELED)


class Turn:
    """A block that the ranks run one after the other; see Comm.turn."""

    def __init__(self, comm: Any, timeout_ms: int):
        self._comm, self._timeout_ms = comm, timeout_ms

    def __enter__(self) -> None:
        self._comm._turn_begin(self._timeout_ms)

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        self._comm._turn_end()


def once(comm: Any, key: str, timeout_ms: int, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def run(*args: Any, **words: Any) -> Any:
        return comm._once(key, functools.partial(function, *args, **words), timeout_ms)[1]
    return run


def seed_everything(seed: int) -> int:
    import random
    random.seed(seed)
    try:
        import numpy
    except ImportError:
        pass
    else:
        # another seed than for random: it is the same generator
        numpy.random.seed([seed & 0xFFFFFFFF, seed >> 32, 1])
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.manual_seed(seed)
    return seed


def _described(array: Any) -> tuple[Any, Any]:
    """What the other ranks need to rebuild the array: (how, element, shape); and the bytes."""
    _foreign.look(array, "share", True)
    if _foreign.is_numpy(array):
        import numpy
        array = numpy.asarray(array)
        flat = numpy.ascontiguousarray(array).reshape(-1).view("u1") if array.nbytes else b""
        return ("numpy", array.dtype, array.shape), flat
    view = memoryview(array)
    letter = view.format.lstrip("@=<" if sys.byteorder == "little" else "@=>")
    try:
        fits = memoryview(bytes(view.itemsize)).cast(
            letter).itemsize == view.itemsize      # type: ignore[call-overload]
    except (ValueError, TypeError):
        fits = False
    if not fits:
        raise TypeError(f"share: no memoryview shows elements of format {view.format!r}: give a "
                        "NumPy array of them")
    return ("view", letter, view.shape), view if view.c_contiguous else bytes(view)


def _shown(memory: Any, how: Any) -> Any:
    kind, element, shape = how
    if kind == "numpy":
        import numpy
        full = math.prod(shape) * element.itemsize
        array = numpy.frombuffer(memory, element).reshape(shape) if full else numpy.ndarray(shape,
                                                                                            element,
                                                                                            b"")
        array.flags.writeable = False
        return array
    view = memoryview(memory)
    return view if element == "B" and len(shape) == 1 else view.cast(element, shape)


def share(comm: Any, array: Any, root: int) -> Any:
    """Root copies the array and broadcasts the handle. If it cannot, it broadcasts the reason, so
    that no rank waits for ever."""
    import pickle
    said = b""
    failure = None
    if comm.rank == root:
        try:
            how, flat = _described(array)
            said = pickle.dumps((comm._give(flat), memoryview(flat).nbytes, how))
        except Exception as error:
            failure = error
            said = pickle.dumps(f"share: rank {root} could not: {error}")
    length = bytearray(len(said).to_bytes(8, "little"))
    comm.broadcast(length, root)
    text = bytearray(said) if said else bytearray(int.from_bytes(length, "little"))
    comm.broadcast(text, root)
    told = pickle.loads(bytes(text))
    if failure is not None:
        raise failure
    if isinstance(told, str):
        raise MemoryError(told)
    handle, nbytes, how = told
    return _shown(comm._view(handle, nbytes), how)
