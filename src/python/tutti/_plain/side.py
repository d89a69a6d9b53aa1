# SPDX-License-Identifier: MIT
"""The buffers of one side of a call: one object with the buffer protocol, DLPack or
__cuda_array_interface__, or a list of them. As buffer.c."""
import ctypes
import sys
from typing import Any, List, Optional

from .. import _foreign

BY_BUFFER, AS_BYTES = -1, -2
SIZES = [1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8, 1, 8, 16, 1, 1]           # by tutti_type

_WRITABLE, _FORMAT, _STRIDES = 1, 4, 0x18
_PLAIN = (bytes, bytearray, memoryview)         # arrays that are only their buffer


class _View(ctypes.Structure):
    """Py_buffer"""

    _fields_ = [("buf", ctypes.c_void_p), ("obj", ctypes.c_void_p), ("len", ctypes.c_ssize_t),
                ("itemsize", ctypes.c_ssize_t), ("readonly", ctypes.c_int), ("ndim", ctypes.c_int),
                ("format", ctypes.c_char_p), ("shape", ctypes.c_void_p),
                ("strides", ctypes.c_void_p), ("suboffsets", ctypes.c_void_p),
                ("internal", ctypes.c_void_p)]


_pointer = ctypes.POINTER(_View)
_take = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, _pointer,
                          ctypes.c_int)(("PyObject_GetBuffer", ctypes.pythonapi))
_release = ctypes.PYFUNCTYPE(None, _pointer)(("PyBuffer_Release", ctypes.pythonapi))
_has = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object)(("PyObject_CheckBuffer", ctypes.pythonapi))
_whole = ctypes.PYFUNCTYPE(ctypes.c_int, _pointer,
                           ctypes.c_char)(("PyBuffer_IsContiguous", ctypes.pythonapi))


class Held:
    """A view of the buffer protocol. drop() must release it. It has no __del__, because a signal
    handler's exception would be lost in it."""

    __slots__ = ("view",)

    def __init__(self, array: Any, flags: int):
        self.view = _View()
        _take(array, self.view, flags)

    def drop(self) -> None:
        if self.view.obj:
            _release(self.view)


def _type(text: str, size: int) -> int:
    if text[:1] in ("!", ">" if sys.byteorder == "little" else "<") and size > 1:
        return -1
    text = text.lstrip("@=<>!|")
    if text in ("Zf", "Zd"):
        return 13 if text == "Zf" else 14
    sizes = {1: 0, 2: 2, 4: 4, 8: 6}
    if len(text) != 1:
        return -1
    if text in "bhilqn":
        return sizes.get(size, -1)
    if text in "BHILQNc":
        return sizes.get(size, -2) + 1
    if text in "efd":
        return {2: 8, 4: 10, 8: 11}.get(size, -1)
    return 12 if text == "?" and size == 1 else -1


class Side:
    """n buffers with their addresses and counts, in elements of type. BY_BUFFER: none has given the
    type."""

    def __init__(self, what: str, said: Optional[int] = None):
        self.what, self.said = what, said
        self.n, self.type, self.stream, self.device = 0, BY_BUFFER, 0, False
        self.addresses: List[Optional[int]] = []
        self.counts: List[int] = []
        self._held: List[Any] = []

    @property
    def address(self) -> Optional[int]:
        return self.addresses[0] if self.n else None

    @property
    def count(self) -> int:
        return self.counts[0] if self.n else 0

    def take(self, array: Any, asked: int, writable: bool) -> "Side":
        self.type = 1 if asked == AS_BYTES else asked
        if array is not None:
            self._add(array, asked, writable)
        return self

    def take_list(self, arrays: Any, asked: int, writable: bool) -> "Side":
        """The first array that is not None gives the type for all."""
        self.type = asked
        for i, array in enumerate(() if arrays is None
                                  else [arrays[i] for i in range(len(arrays))]):
            if array is None:
                self._append(None, 0)
                continue
            before = self.type
            self._add(array, asked, writable)
            if before not in (BY_BUFFER, self.type):
                raise TypeError(f"{self.what}: array {i} has another type than those before it: "
                                "give one type to all")
        return self

    def lend(self, other: "Side") -> "Side":
        """Takes the buffers of the other side, which has the same object."""
        self.n, self.type, self.stream, self.device = (other.n, other.type, other.stream,
                                                       other.device)
        self.addresses, self.counts = other.addresses, other.counts
        return self

    def drop(self) -> None:
        for held in self._held:
            if isinstance(held, Held):
                held.drop()
        self._held.clear()

    def _append(self, address: Optional[int], count: int) -> None:
        self.addresses.append(address)
        self.counts.append(count)
        self.n += 1

    def _add(self, array: Any, asked: int, writable: bool) -> None:
        if _has(array):
            self._buffer(array, asked, writable)
            return
        address, length, size, kind, stream, device, holder = _foreign.take(array, writable,
                                                                            self.what, self.said,
                                                                            asked != BY_BUFFER)
        if stream and self.stream and stream != self.stream and self.said is None:
            raise ValueError(f"{self.what}: the arrays are in use on two streams: say stream=, and "
                             "order the other before it")
        self._held.append(holder)
        self.stream, self.device = stream or self.stream, self.device or device
        self.type = kind if asked == BY_BUFFER else self._asked(asked, size, length)
        self._append(address, length // SIZES[self.type])

    def _get(self, array: Any, asked: int, writable: bool) -> Held:
        """Gets a view with a format. Some arrays have a buffer, but no format for it."""
        flags = _STRIDES | (_WRITABLE if writable else 0)
        try:
            return Held(array, flags | _FORMAT)
        except (BufferError, ValueError):
            pass
        if asked != BY_BUFFER:
            try:
                return Held(array, flags)
            except (BufferError, ValueError):
                pass
        _foreign.refuse(array, self.what)
        raise ValueError(f"{self.what}: the array gives no buffer")

    def _buffer(self, array: Any, asked: int, writable: bool) -> None:
        held = self._get(array, asked, writable)
        view = held.view
        self._held.append(held)         # drop() releases it, also if this raises
        if type(array) not in _PLAIN or view.format is None or _type(view.format.decode(),
                                                                     view.itemsize) < 0:
            _foreign.look(array, self.what, asked == AS_BYTES)
        if not _whole(view, b"C"):
            raise ValueError(f"{self.what}: the array does not lie in one piece in C order: give "
                             "numpy.ascontiguousarray() of it")
        text = (view.format or b"B").decode()
        if asked != BY_BUFFER:
            self.type = self._asked(asked, view.itemsize, view.len)
        else:
            self.type = _type(text, view.itemsize)
            if self.type < 0:
                raise TypeError(f"{self.what}: elements of format '{text}' ({view.itemsize} bytes) "
                                "are no type of tutti: use integers, bool, floats "
                                "of 2 to 8 bytes or complex, in this machine's byte order; or say "
                                "dtype=")
        self._append(view.buf, view.len // SIZES[self.type])

    def _asked(self, asked: int, itemsize: int, length: int) -> int:
        if asked == AS_BYTES:
            return 1
        size = SIZES[asked]
        if itemsize not in (size, 1) or length % size:
            raise TypeError(f"{self.what}: dtype has {size} bytes an element, the array "
                            f"{itemsize}: view it as elements of that size")
        return asked
