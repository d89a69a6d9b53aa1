# SPDX-License-Identifier: MIT
"""Op: a program's own operation for reductions."""
from __future__ import annotations

import atexit
import sys
from collections.abc import Callable

from ._core import core as _tutti
from ._hints import Any

# By tutti_type: the name of an element in NumPy and in a memoryview. They do not have bf16 and the
# 8-bit floats: for these the name shows the bits.
_ELEMENTS = [("i1", "b"), ("u1", "B"), ("i2", "h"), ("u2", "H"), ("i4", "i"), ("u4", "I"),
             ("i8", "q"), ("u8", "Q"), ("f2", "e"), ("u2", "H"), ("f4", "f"), ("f8", "d"),
             ("?", "?"), ("c8", "f"), ("c16", "d"), ("u1", "B"), ("u1", "B")]

_closes = False


def _shown(view: memoryview, kind: int) -> Any:
    name, letter = _ELEMENTS[kind]
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return view.cast(letter)  # type: ignore[call-overload]
    return numpy.frombuffer(view, name)


def _of_bytes(function: Callable[[Any, Any], Any]) -> Callable[[memoryview, memoryview, int], None]:
    """The function in the form that the library calls. It holds the function only: it must not keep
    the comm alive."""
    def run(in_: memoryview, inout: memoryview, kind: int) -> None:
        function(_shown(in_, kind), _shown(inout, kind))
    return run


class Op:
    """What comm.op() returns: an operation for reductions on that comm. It stays until free(), or
    until the comm ends."""

    __slots__ = ("_comm", "_number")

    def __init__(self, comm: Any, function: Callable[[Any, Any], Any]):
        global _closes
        if not callable(function):
            raise TypeError(f"op: {function!r} is no function")
        if not _closes:
            _closes = True
            atexit.register(_tutti.ops_close)
        self._comm = comm
        self._number = comm._op_create(_of_bytes(function))

    def number(self, comm: Any) -> int:
        if comm is not self._comm:
            raise ValueError(
                "this operation belongs to another comm: make one by op() of this comm")
        if self._number is None:
            raise ValueError("this operation has been freed")
        return self._number

    def free(self) -> None:
        """Releases the operation. Each rank calls it alone, with no work under way on the comm."""
        if self._number is not None:
            self._comm._op_free(self._number)
            self._number = None
