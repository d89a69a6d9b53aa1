# SPDX-License-Identifier: MIT
"""The world on which the functions of the package act.

A thread that has made a world acts on that one, any other thread on the world of the process. If
several threads of a process are ranks, a thread that is no rank has no world. When a world is
finalized, it is removed, and the one before it is current again.
"""
from __future__ import annotations

import threading

from .errors import Error

TYPE_CHECKING = False                   # as typing has it
if TYPE_CHECKING:
    from .comm import Comm
else:
    Comm = object                       # for typing.get_type_hints; comm.py imports this file

# in the order of init: (its thread, the world); replaced, never changed
_made: list[tuple[object, Comm]] = []
_lock = threading.Lock()
_thread = threading.local()


def _me() -> object:
    """A name for this thread, which no later thread gets."""
    if not hasattr(_thread, "name"):
        _thread.name = object()
    return _thread.name


def made(world: Comm) -> None:
    global _made
    with _lock:
        _made = _made + [(_me(), world)]


def gone(world: Comm) -> None:
    """Removes a world that has been finalized."""
    global _made
    with _lock:
        _made = [one for one in _made if one[1] is not world]


def current() -> Comm:
    there, me = _made, _me()
    for thread, world in reversed(there):
        if thread is me:
            return world
    if not there:
        raise Error("this process is no rank: call tutti.init() first")
    if len({id(thread) for thread, _ in there}) > 1:
        raise Error("several threads of this process are ranks, and this one is none: call "
                    "tutti.init() in it, or use what init() gave there")
    return there[-1][1]
