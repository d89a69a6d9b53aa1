# SPDX-License-Identifier: MIT
"""The world's methods as functions of the package: tutti.all_reduce(x) is the all_reduce of the
world that the last init() made."""
from __future__ import annotations

import functools
import types
from collections.abc import Callable

from . import _worlds
from ._hints import Any
from .comm import Comm

TYPE_CHECKING = False                   # as typing has it
if TYPE_CHECKING:
    from typing import Concatenate, ParamSpec, TypeVar

    _P = ParamSpec("_P")
    _R = TypeVar("_R")

__all__ = [
    "rank", "size", "failed", "stats", "finalize", "barrier", "broadcast", "reduce", "all_reduce",
    "all_reduce_many", "reduce_scatter", "all_gather", "gather", "scatter", "all_to_all", "scan",
    "exscan", "op", "same", "all_gather_v", "gather_v", "scatter_v", "reduce_scatter_v",
    "all_to_all_v", "send", "recv", "probe", "split", "create", "shrink", "agree", "abort",
    "set_timeout", "first", "once", "turn", "seed", "seed_everything", "get", "add", "compare_set",
    "delete", "share", "load", "save", "broadcast_object", "gather_objects",
]           # without set: `import *` must not hide Python's own


def rank() -> int:
    """This process's number in the world, 0 to size() - 1."""
    return _worlds.current().rank


def size() -> int:
    """The number of ranks."""
    return _worlds.current().size


def failed() -> tuple[int, ...]:
    """The ranks known to be dead or gone, ascending."""
    return _worlds.current().failed()


def stats() -> dict[str, int]:
    """This rank's figures, and how often and by how much it came last; see Comm.stats."""
    return _worlds.current().stats()


def finalize() -> None:
    """Leaves the world and frees all its comms. Waits for nobody. The world that was made before
    it, if any, becomes the current one."""
    _worlds.current().finalize()


def _of(method: Callable[Concatenate[Comm, _P], _R]) -> Callable[_P, _R]:
    """The method with the current world as self. Its name, doc string and signature stay."""
    @functools.wraps(method)
    def function(*args: _P.args, **words: _P.kwargs) -> _R:
        return method(_worlds.current(), *args, **words)
    shown: Any = function
    # a bound method: inspect leaves self out of what it shows, and is not needed here
    shown.__wrapped__ = types.MethodType(method, _worlds)
    shown.__qualname__, shown.__module__ = method.__name__, "tutti"
    return function


barrier = _of(Comm.barrier)
broadcast = _of(Comm.broadcast)
reduce = _of(Comm.reduce)
all_reduce = _of(Comm.all_reduce)
all_reduce_many = _of(Comm.all_reduce_many)
reduce_scatter = _of(Comm.reduce_scatter)
all_gather = _of(Comm.all_gather)
gather = _of(Comm.gather)
scatter = _of(Comm.scatter)
all_to_all = _of(Comm.all_to_all)
scan = _of(Comm.scan)
exscan = _of(Comm.exscan)
op = _of(Comm.op)
same = _of(Comm.same)
all_gather_v = _of(Comm.all_gather_v)
gather_v = _of(Comm.gather_v)
scatter_v = _of(Comm.scatter_v)
reduce_scatter_v = _of(Comm.reduce_scatter_v)
all_to_all_v = _of(Comm.all_to_all_v)

send = _of(Comm.send)
recv = _of(Comm.recv)
probe = _of(Comm.probe)

split = _of(Comm.split)
create = _of(Comm.create)
shrink = _of(Comm.shrink)
agree = _of(Comm.agree)
abort = _of(Comm.abort)
set_timeout = _of(Comm.set_timeout)

first = _of(Comm.first)
once = _of(Comm.once)
turn = _of(Comm.turn)
seed = _of(Comm.seed)
seed_everything = _of(Comm.seed_everything)

set = _of(Comm.set)
get = _of(Comm.get)
add = _of(Comm.add)
compare_set = _of(Comm.compare_set)
delete = _of(Comm.delete)

share = _of(Comm.share)
broadcast_object = _of(Comm.broadcast_object)
gather_objects = _of(Comm.gather_objects)
load = _of(Comm.load)
save = _of(Comm.save)
