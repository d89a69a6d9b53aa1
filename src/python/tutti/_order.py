"""What stands behind first, once, turn, share and seed_everything of a Comm."""
import errno
import functools
import pickle
import random
import sys
from typing import Any, Callable

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
    random.seed(seed)
    try:
        import numpy
    except ImportError:
        pass
    else:
        numpy.random.seed([seed & 0xFFFFFFFF, seed >> 32, 1])           # not the numbers of random, which is the same generator
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.manual_seed(seed)
    return seed


def _described(array: Any) -> Any:
    """What the others need to make the same of the bytes: how, element, shape."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(array, numpy.ndarray):
        if array.dtype.hasobject:
            raise TypeError("share: an array of Python objects has no bytes to share: give one of numbers")
        return "numpy", array.dtype.descr if array.dtype.names else array.dtype.str, array.shape
    view = memoryview(array)
    return "view", view.format, view.shape


def _shown(memory: Any, how: Any) -> Any:
    kind, element, shape = how
    if kind == "numpy":
        import numpy
        return numpy.frombuffer(memory, numpy.dtype(element), count=_product(shape)).reshape(shape)
    view = memoryview(memory)
    return view if element == "B" and len(shape) == 1 else view.cast(element, shape)


def _product(shape: Any) -> int:
    n = 1
    for edge in shape:
        n *= edge
    return n


def share(comm: Any, array: Any, root: int) -> Any:
    """Root copies and tells; what keeps it from that it tells, too, so that nobody waits for ever."""
    said = b""
    failure = None
    if comm.rank == root:
        try:
            how = _described(array)
            view = memoryview(array)
            flat = view if view.c_contiguous else memoryview(bytes(view))
            said = pickle.dumps((comm._give(flat), view.nbytes, how))
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
