"""Who calls what add_done_callback was given: one thread of the package, started by the first use.

The library tells of the end of a work in a thread of its own, which must not wait for the
interpreter; so it only leaves a note (src/python/ended.c), and this thread fetches it. Works that
were started before the first use, when nobody asked to be told, are looked at again and again,
after 1 to 16 ms, until they have ended.
"""
import os
import threading
import traceback
from typing import Any, Callable, List, Optional

from ._core import core as _tutti

_SOON, _LATE = 0.001, 0.016             # seconds between two looks
_lock = threading.Lock()
_polled: List[Any] = []                 # works whose end nobody tells
_thread: Optional[threading.Thread] = None


def add(work: Any, function: Callable[[Any], Any]) -> None:
    with _lock:
        waiting = getattr(work, "_callbacks", None)    # None: none so far; () they have been called
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
        traceback.print_exc()


def _finish(work: Any) -> None:
    """The end is told a moment before the library has let go of the operation: that is awaited
    first, so that the comm is free."""
    try:
        work.wait(-1)
    except Exception:
        pass                                                  # it is the program's, when that waits
    with _lock:
        waiting, work._callbacks = work._callbacks, ()
    for function in waiting:
        _call(function, work)


def _look() -> List[Any]:
    """The polled ones that have ended."""
    with _lock:
        over = [work for work in _polled if _is_over(work)]
        gone = {id(work) for work in over}
        _polled[:] = [work for work in _polled if id(work) not in gone]
    return over


def _is_over(work: Any) -> bool:
    try:
        return work.test()
    except ValueError:                                          # its comm is gone, and it with it
        return True


def _run() -> None:
    pause = _SOON
    while True:
        ended = _tutti.ended(pause if _polled else -1.0)
        over = _look()
        pause = _SOON if over or ended else min(2 * pause, _LATE)
        ended += over
        over.clear()
        while ended:                                            # holding none after its callbacks
            _finish(ended.pop(0))


def _start() -> None:
    global _thread
    if _thread is None:
        _tutti.ended_listen(True)
        _thread = threading.Thread(target=_run, name="tutti", daemon=True)
        _thread.start()


def _forked() -> None:
    """The child has no such thread; should it become a rank itself, it starts one."""
    global _thread, _lock
    if _thread is not None:
        _thread, _lock = None, threading.Lock()
        _polled.clear()
        _tutti.ended_listen(False)


os.register_at_fork(after_in_child=_forked)
