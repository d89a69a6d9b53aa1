# SPDX-License-Identifier: MIT
"""A call of the library: the caller's line, and a signal that arrives meanwhile.

Python runs a signal's handler whenever the main thread is back in Python, also in the function by
which the library asks whether to continue. The handler may raise there, but a function that C calls
cannot pass an exception on. So C calls a generator's __next__, which is C, too. Then the handler
runs where the generator has stopped, within its `try`. Each thread has its own function, and only
the main thread's does anything. For the same reason C code puts a call's result into a list before
a handler can run: the result is there even if an exception comes next.
"""
import _thread
import ctypes
import functools
import operator
import sys
import threading
from typing import Any, Callable, Dict, Generator, List, Optional, Tuple

_sites: Dict[Tuple[str, int], Any] = {}
_package = ""
_SITES_MAX, _TEXT_MAX = 65536, 100


def set_package(folder: str) -> None:
    global _package
    _package = folder


def site() -> Optional[int]:
    """The address of "folder/file:line" of the first frame outside the package. The text is never
    freed. None: "?"."""
    frame: Any = sys._getframe(1)
    while frame is not None and _package and frame.f_code.co_filename.startswith(_package):
        frame = frame.f_back
    if frame is None:
        return None
    key = (frame.f_code.co_filename, frame.f_lineno or 0)
    text = _sites.get(key)
    if text is None:
        if len(_sites) >= _SITES_MAX:
            return None
        name = "/".join(key[0].split("/")[-2:]).encode(errors="replace")[-_TEXT_MAX:].decode(
            errors="ignore")
        text = _sites[key] = ctypes.create_string_buffer(f"{name}:{key[1]}".encode())
    return ctypes.addressof(text)


class _Asked(threading.local):
    ask = int                           # for a thread that handles no signals: 0: continue


_asked = _Asked()
_ask = ctypes.CFUNCTYPE(ctypes.c_int)(functools.partial(operator.methodcaller("ask"), _asked))
#: tutti_options.interrupt
INTERRUPT = ctypes.cast(_ask, ctypes.c_void_p).value


def _asking(raised: List[BaseException]) -> Generator[int, None, None]:
    stop = 0
    while True:
        try:
            yield stop
        except GeneratorExit:
            return
        except BaseException as error:
            raised.append(error)
            stop = 1


def call(function: Any, *args: Any, undo: Optional[Callable[[int], Any]] = None) -> int:
    """The function's result. If a signal handler raises, its exception instead, after undo(result)
    if there is a result to undo."""
    box: List[int] = []
    raised: List[BaseException] = []
    before = None
    try:
        if threading.current_thread() is threading.main_thread():
            before = _asked.ask
            asking = _asking(raised)
            next(asking)
            _asked.ask = asking.__next__  # type: ignore[assignment]
        kept(box, function, *args)
    except BaseException:
        if box and undo is not None:
            undo(box[0])
        raise
    finally:
        if before is not None:
            _asked.ask = before
    if raised:
        if undo is not None:
            undo(box[0])
        raise raised[0]
    return box[0]


def shielded(function: Callable[[], Any], ends: List[Any]) -> Any:
    """A function for C, to be called once. It runs function, and leaves (value, None) or (None,
    exception) in ends. It returns 0 or -1."""
    def run() -> Generator[int, None, None]:
        try:
            yield 0
            ends.append((function(), None))
        except GeneratorExit:
            return
        except BaseException as error:
            ends.append((None, error))
            yield -1
        yield 0
    running = run()
    next(running)
    return ctypes.CFUNCTYPE(ctypes.c_int)(running.__next__)


def kept(box: List[Any], function: Any, *args: Any) -> None:
    """Puts the function's result into the box before a signal handler can run."""
    box.extend(map(function, *zip(args)))


def off_main(function: Callable[[], Any], give_up: Callable[[], Any],
             undo: Optional[Callable[[int], Any]] = None) -> Any:
    """Runs function() in another thread if this is the main thread: so no signal handler runs in
    what the library calls there. If a handler raises meanwhile, calls give_up() to end it, then
    undo(result)."""
    if threading.current_thread() is not threading.main_thread():
        return function()
    ends: List[Any] = []
    started: List[int] = []
    over = _thread.allocate_lock()
    over.acquire()

    def run() -> None:
        try:
            ends.append((function(), None))
        except BaseException as error:
            ends.append((None, error))
        over.release()
    try:
        kept(started, _thread.start_new_thread, run, ())
        while not ends:
            over.acquire()
    except BaseException:
        give_up()
        while started and not ends:
            over.acquire()
        if undo is not None and ends and ends[0][1] is None:
            undo(ends[0][0])
        raise
    value, error = ends[0]
    if error is not None:
        raise error
    return value
