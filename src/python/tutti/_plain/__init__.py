# SPDX-License-Identifier: MIT
"""The extension _tutti again, in Python over ctypes, with the same names, for a Python that cannot
import it. Read binding.py (the library and its functions), side.py (buffers), inside.py (a call and
a signal), calls.py (the table of calls), comm.py, methods.py, work.py.

It is slower by 20 to 40 µs a call. The library's own thread never waits for the interpreter, except
in a program's own operation. So nobody reports a work's end, and callbacks come up to 16 ms late.
"""
import threading
from typing import Any, List, Optional

from . import comm as _comm
from .calls import KINDS, declare
from .comm import Comm
from .inside import set_package
from .binding import Library
from .methods import ops_close
from .queue import Queue
from .work import Work

__all__ = ["KINDS", "Comm", "Queue", "Work", "ended", "ended_listen", "ended_wake", "init",
           "open_library", "ops_close", "set_package", "set_work",
           "version"]

_library: Optional[Library] = None
_bell = threading.Event()


def open_library() -> Library:
    """Opens the library once. OSError: it was not found."""
    global _library
    if _library is None:
        _library = Library()
        declare(_library)
    return _library


def version() -> str:
    library = open_library()
    return library.text(library.version())


def init(made: Any, *args: Any) -> Comm:
    return _comm.init(open_library(), made, *args)


def set_work(work: Any) -> None:
    _comm.work_class = work


def ended(seconds: float) -> List[Any]:
    _bell.wait(None if seconds < 0 else seconds)
    _bell.clear()
    return []


def ended_wake() -> None:
    _bell.set()


def ended_listen(yes: bool) -> None:
    global _bell
    _bell = threading.Event()
