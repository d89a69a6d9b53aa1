# SPDX-License-Identifier: MIT
"""Objects between ranks. Each collective has a length first: so a rank whose object cannot be
pickled fails on all ranks, and none waits for it."""
import pickle
from typing import Any

_FAILED = 1 << 63                           # in a length: the bytes are why there is no object


def _pickled(value: Any) -> tuple[bytes, int, Exception | None]:
    """The bytes to be sent, their length with _FAILED, and the exception."""
    try:
        data = pickle.dumps(value, 5)
        return data, len(data), None
    except Exception as error:
        data = f"{type(error).__name__}: {error}".encode()
        return data, len(data) | _FAILED, error


def _fail(what: str, rank: int, text: Any, own: Exception | None) -> None:
    if own is not None:
        raise own
    raise TypeError(f"{what}: rank {rank} could not pickle its object: {bytes(text).decode()}")


def broadcast(comm: Any, value: Any, root: int, timeout: float | None) -> Any:
    data, length, own = _pickled(value) if comm.rank == root else (b"", 0, None)
    said = bytearray(length.to_bytes(8, "little"))
    comm.broadcast(said, root, timeout=timeout)
    length = int.from_bytes(said, "little")
    text: Any = bytearray(data) if comm.rank == root else bytearray(length & ~_FAILED)
    comm.broadcast(text, root, timeout=timeout)
    if length & _FAILED:
        _fail("broadcast_object", root, text, own)
    return value if comm.rank == root else pickle.loads(text)


def gather(comm: Any, value: Any, root: int, timeout: float | None) -> list[Any] | None:
    data, length, own = _pickled(value)
    said = bytearray(8 * comm.size)
    comm.all_gather(length.to_bytes(8, "little"), out=said, timeout=timeout)
    lengths = [int.from_bytes(said[at:at + 8], "little") for at in range(0, len(said), 8)]
    bad = next((rank for rank, one in enumerate(lengths) if one & _FAILED), None)
    if bad is not None:                     # all know it, and hear from that rank alone
        text = bytearray(data) if comm.rank == bad else bytearray(lengths[bad] & ~_FAILED)
        comm.broadcast(text, bad, timeout=timeout)
        _fail("gather_objects", bad, text, own if comm.rank == bad else None)
    got = [bytearray(one) for one in lengths] if comm.rank == root else None
    comm.gather_v(data, got, root, timeout=timeout)
    if got is None:
        return None
    return [value if rank == root else pickle.loads(one) for rank, one in enumerate(got)]
