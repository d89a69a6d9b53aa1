# SPDX-License-Identifier: MIT
"""Arrays of other libraries, with __dlpack__ or __cuda_array_interface__, in the memory of the host
or of a device.

take() says where the elements are and what type they have. Nothing is copied: the memory is lent,
and DLPack's capsule, or the array, is held while it is in use. Cost: some 10 µs an array. The
buffer protocol is tried first, and has none of this cost.

look() checks an array that has the buffer protocol, but whose bytes may not be its value. refuse()
explains why an array that has it gives no buffer.
"""
from __future__ import annotations

import errno
import math
import struct
import sys

from ._hints import Any
from .errors import Invalid

# (address, bytes, bytes of an element, tutti_type or -1, stream or 0, True if only the device
# reaches it, the object to hold)
Taken = tuple[int, int, int, int, int, bool, Any]

_CPU, _CUDA, _CUDA_HOST, _CUDA_MANAGED = 1, 2, 3, 13        # DLDeviceType
_READ_ONLY, _COPIED = 1, 2                                  # in the flags of version 1.0
_LEGACY_STREAM = 1                                    # CU_STREAM_LEGACY, in both protocols

# (DLDataTypeCode, bits) -> tutti_type
_TYPES = {(0, 8): 0, (1, 8): 1, (0, 16): 2, (1, 16): 3, (0, 32): 4, (1, 32): 5, (0, 64): 6,
          (1, 64): 7, (2, 16): 8, (4, 16): 9, (2, 32): 10, (2, 64): 11, (6, 8): 12, (5, 64): 13,
          (5, 128): 14, (10, 8): 15, (12, 8): 16}
_PACKED = {0: "b", 1: "B", 2: "h", 3: "H", 4: "i", 5: "I", 6: "q", 7: "Q", 8: "e", 10: "f", 11: "d",
           12: "?", 13: "2f", 14: "2d"}
_LETTERS = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}         # of a typestr -> DLDataTypeCode


def is_numpy(array: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(array, (numpy.ndarray, numpy.generic))


def is_masked(array: Any) -> bool:
    masked = sys.modules.get("numpy.ma")
    return masked is not None and isinstance(array, masked.MaskedArray)


def _format(array: Any) -> str:
    """The letters of its format, without the names of fields."""
    try:
        import re
        return re.sub(":[^:]*:", "", memoryview(array).format)
    except (TypeError, ValueError, BufferError):
        return ""


def look(array: Any, what: str, as_bytes: bool) -> None:
    """Refuses an array whose bytes are not its elements, with the reason. as_bytes: the call uses
    only the bytes, in the order in which they are in memory."""
    if is_masked(array):
        raise Invalid(f"{what}: the array is masked, and its mask would stay behind: give filled() "
                      "of it, or data and mask, each by "
                      "itself", errno.EINVAL)
    if is_numpy(array):
        objects, native = array.dtype.hasobject, array.dtype.isnative
    else:
        text = _format(array)
        objects, native = ("O" in text,
                           not set("!>" if sys.byteorder == "little" else "<").intersection(text))
    if objects:
        raise TypeError(f"{what}: an array of Python objects has addresses for elements, which "
                        "mean nothing to another process: give "
                        "one of numbers, or pickle it")
    if not native and not as_bytes:
        raise TypeError(f"{what}: the elements are in another byte order than this machine's: give "
                        "x.astype(x.dtype.newbyteorder('=')) "
                        "for x")


def refuse(array: Any, what: str) -> None:
    """Raises the reason why the array gives no buffer for this use."""
    look(array, what, False)
    if is_numpy(array) and array.dtype.kind in "mM":
        if array.flags.writeable:
            raise TypeError(f"{what}: elements of {array.dtype} are no type of tutti: say "
                            "dtype='i64', and they go as the 64 bits that "
                            "they are")
        read_only = True
    else:
        try:
            read_only = memoryview(array).readonly
        except (TypeError, ValueError, BufferError) as error:
            raise ValueError(f"{what}: {type(array)} gives no buffer: {error}") from None
    if read_only:
        raise ValueError(f"{what}: the array is read-only, and the result is to be written there")
    raise ValueError(f"{what}: the array does not lie in one piece in C order: give a contiguous "
                     "copy of it")


def take(array: Any, writable: bool, what: str, stream: int | None, typed: bool) -> Taken:
    """stream: the program's stream argument, or None. typed: the program gave dtype=, so any
    element of that size is accepted."""
    if hasattr(array, "__dlpack__"):
        return _dlpack(array, writable, what, stream, typed)
    interface = getattr(array, "__cuda_array_interface__", None)
    if interface is not None:
        return _cuda(array, interface, writable, what, typed)
    if hasattr(array, "__array__") or hasattr(array, "__array_interface__"):
        raise TypeError(f"{what}: {type(array)} makes an array when it is asked for one, perhaps a "
                        "copy, in which a result would be lost: "
                        "give numpy.asarray() of it, and read the result there")
    raise TypeError(f"{what}: {type(array)} is no array: give something with the buffer protocol "
                    "(NumPy array, array.array, bytearray), "
                    "DLPack or __cuda_array_interface__")


def element(array: Any, number: Any) -> bytes:
    """A number as one element of the array's type."""
    kind = take(array, False, "factor", None, False)[3]
    if kind not in _PACKED:
        raise TypeError("factor: there is no Python number of the array's type: give one element "
                        "of it, as an array")
    return struct.pack(_PACKED[kind], *((number.real, number.imag) if _PACKED[kind][0] == "2"
                                        else (number,)))


def _capsule(array: Any, words: Any) -> Any:
    try:
        return array.__dlpack__(max_version=(1, 1), **words)
    except TypeError:                                     # before 1.0: it has no such argument
        return array.__dlpack__(**words)


def _lazy(array: Any, what: str) -> None:
    """Refuses PyTorch's lazy arrays. PyTorch itself refuses one kind; the others come as wrong
    bytes."""
    for asked, name, made in (("is_conj", "conjugate", "resolve_conj"),
                              ("is_neg", "negative", "resolve_neg"),
                              ("_is_zerotensor", "zero", "clone")):
        question = getattr(array, asked, None)
        if callable(question) and question() is True:
            raise Invalid(f"{what}: the array is a lazy {name}, and its bytes say something else: "
                          f"give {made}() of it", errno.EINVAL)


def _dlpack(array: Any, writable: bool, what: str, stream: int | None, typed: bool) -> Taken:
    """The capsule is not consumed: when its last holder drops it, its destructor releases the
    memory. The producer orders its work before the stream for which the library then waits."""
    from . import _dlpack_layout as layout
    _lazy(array, what)
    device, _ = array.__dlpack_device__()
    if device not in (_CPU, _CUDA, _CUDA_HOST, _CUDA_MANAGED):
        raise Invalid(f"{what}: the array lies on a device that tutti does not reach (type "
                      f"{int(device)} of DLPack): "
                      "host memory and CUDA's are fine")
    capsule = _capsule(array, {"stream": stream or _LEGACY_STREAM}
                       if device in (_CUDA, _CUDA_MANAGED) else {})
    read_only = False
    if layout.is_valid(capsule, b"dltensor_versioned"):
        versioned = layout.Versioned.from_address(layout.pointer(capsule, b"dltensor_versioned"))
        if versioned.major != 1:
            raise Invalid(f"{what}: DLPack {versioned.major}.{versioned.minor}; expected 1")
        tensor, read_only = versioned.tensor, bool(versioned.flags & _READ_ONLY)
        if versioned.flags & _COPIED and writable:
            raise Invalid(f"{what}: {type(array)} lends a copy, in which the result would be lost: "
                          "give the array that is to have it", errno.EINVAL)
    elif layout.is_valid(capsule, b"dltensor"):
        tensor = layout.Tensor.from_address(layout.pointer(capsule, b"dltensor"))
    else:
        raise TypeError(f"{what}: __dlpack__ of {type(array)} gave {capsule!r}; expected a capsule "
                        "named dltensor")
    shape = [tensor.shape[i] for i in range(tensor.ndim)]
    strides = [tensor.strides[i] for i in range(tensor.ndim)] if tensor.strides else None
    kind = _type(_TYPES.get((tensor.code, tensor.bits), -1) if tensor.lanes == 1 else -1,
                 typed, what, f"DLPack's code {tensor.code}, {tensor.bits} bits, {tensor.lanes} "
                              "lanes")
    if tensor.bits * tensor.lanes % 8:
        raise TypeError(f"{what}: elements of {tensor.bits} bits lie several in a byte: give them "
                        "as bytes")
    size = tensor.bits * tensor.lanes // 8
    if not tensor.data and 0 not in shape:
        raise Invalid(f"{what}: the array has no memory", errno.EINVAL)
    _check(shape, strides, 1, read_only and writable, what)
    return ((tensor.data or 0) + tensor.byte_offset, math.prod(shape) * size, size, kind, 0,
            device == _CUDA, capsule)


def _cuda(array: Any, interface: Any, writable: bool, what: str, typed: bool) -> Taken:
    address, read_only = interface["data"]
    letters = interface["typestr"]
    import re
    size = int(re.split(r"\D", letters[2:])[0])              # a date has its unit behind it
    if letters[0] not in "<|=" and size > 1:                # CUDA's machines are little-endian
        raise TypeError(f"{what}: typestr {letters!r}: the elements are in another byte order than "
                        "this machine's")
    kind = _type(_TYPES.get((_LETTERS.get(letters[1], -1), 8 * size), -1), typed, what,
                 f"typestr {letters!r}")
    _check(interface["shape"], interface.get("strides"), size, read_only and writable, what)
    if interface.get("mask") is not None:
        raise Invalid(f"{what}: the array is masked, and its mask would stay behind: give data and "
                      "mask each by itself", errno.EINVAL)
    return (address or 0, math.prod(interface["shape"]) * size, size, kind, interface.get("stream")
            or 0, True, array)


def _type(kind: int, typed: bool, what: str, text: str) -> int:
    if kind < 0 and not typed:
        raise TypeError(f"{what}: elements of {text} are no type of tutti: use integers, bool, "
                        "floats or complex; or say dtype=")
    return kind


def _check(shape: Any, strides: Any, step: int, refused: bool, what: str) -> None:
    """strides: in units; an element has `step` of them."""
    if refused:
        raise Invalid(f"{what}: the array is read-only, and the result is to be written there")
    if strides is None or 0 in shape:
        return
    for edge, stride in zip(reversed(shape), reversed(strides)):
        if edge != 1 and stride != step:
            raise Invalid(f"{what}: the array does not lie in one piece in C order: give a "
                          "contiguous copy of it")
        step *= edge
