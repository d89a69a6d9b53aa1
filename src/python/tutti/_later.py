# SPDX-License-Identifier: MIT
"""The thread that calls the functions of add_done_callback: one for the package, started at first
use.

The library reports the end of a work in a thread of its own, which must not wait for the
interpreter. So that thread only adds the work to a list (src/python/ended.c), and this thread
fetches it. For a work that was started before the first use, the library reports no end. This
thread tests it again and again, after 1 to 16 ms, until it has ended.
"""
from __future__ import annotations

import os
import threading
from collections.abc import Callable

from ._core import core as _tutti
from ._hints import Any

_SOON, _LATE = 0.001, 0.016             # seconds between two looks
_lock = threading.Lock()
_polled: list[Any] = []                 # works whose end the library does not report
_thread: threading.Thread | None = None


def add(work: Any, function: Callable[[Any], Any]) -> None:
    with _lock:
        waiting = getattr(work, "_callbacks", None)    # None: none yet; (): they have run
        if waiting:
            waiting.append(function)
            return
        _start()
        told = False if waiting is not None else work._watch()
        if told is not False:
            work._callbacks = [function]
            if told is None:
                _polled.append(work)
                _tutti.ended_wake()
            return
        work._callbacks = ()
    _call(function, work)


def _call(function: Callable[[Any], Any], work: Any) -> None:
    try:
        function(work)
    except Exception:
        import traceback
        traceback.print_exc()


def _finish(work: Any) -> None:
    """The end is reported a moment before the library has released the operation. So this waits for
    that first: then the comm is free."""
    try:
        work.wait(-1)
    except Exception:
        pass                                                  # the program's own wait raises it
    with _lock:
        waiting, work._callbacks = work._callbacks, ()
    for function in waiting:
        _call(function, work)


def _look() -> list[Any]:
    """Returns the polled works that have ended."""
    with _lock:
        over = [work for work in _polled if _is_over(work)]
        gone = {id(work) for work in over}
        _polled[:] = [work for work in _polled if id(work) not in gone]
    return over


def _is_over(work: Any) -> bool:
    try:
        return work.test()
    except ValueError:                                          # its comm was freed, so it ended
        return True


def _run() -> None:
    pause = _SOON
    while True:
        ended = _tutti.ended(pause if _polled else -1.0)
        over = _look()
        pause = _SOON if over or ended else min(2 * pause, _LATE)
        ended += over
        over.clear()
        while ended:                                            # holds no Work after its callbacks
            _finish(ended.pop(0))


def _start() -> None:
    global _thread
    if _thread is None:
        _tutti.ended_listen(True)
        _thread = threading.Thread(target=_run, name="tutti", daemon=True)
        _thread.start()


def _forked() -> None:
    """The child has no such thread. If it becomes a rank itself, it starts one."""
    global _thread, _lock
    if _thread is not None:
        _thread, _lock = None, threading.Lock()
        _polled.clear()
        _tutti.ended_listen(False)


os.register_at_fork(after_in_child=_forked)
