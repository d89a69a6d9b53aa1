"""Threads that end futures. Each may be held up by what hangs on its future, even by another future: so there are as many as are busy."""
import collections
import atexit
import os
import queue
import threading
import traceback
from typing import Any, Callable, List

_idle: List[Any] = []
_busy: List[Any] = []
_closing: List[Callable[[], None]] = []
_lock = threading.Lock()


def _forked() -> None:
    """The threads are the parent's."""
    global _lock
    _lock = threading.Lock()
    _idle.clear()
    _busy.clear()


os.register_at_fork(after_in_child=_forked)


def _loop(jobs: Any) -> None:
    while True:
        job = jobs.get()
        try:
            job()
        except BaseException:
            traceback.print_exc()
        del job
        with _lock:
            _busy.remove(jobs)
            _idle.append(jobs)


def run(job: Callable[[], None]) -> None:
    """Runs it in a thread of its own, soon."""
    with _lock:
        jobs = _idle.pop() if _idle else None
        if jobs is None:
            jobs = queue.SimpleQueue()
            threading.Thread(target=_loop, args=(jobs,), name="tutti.torch", daemon=True).start()
        _busy.append(jobs)
    jobs.put(job)


class Line:
    """What ends in the order in which it began, as the collectives of a comm do: one thread waits, for the first, however many there are.
    While a thread is busy with what hangs on a future another one may lead. Cost: the interpreter's lock once for all that are over, where a
    thread for each would have to get it from a busy program thousands of times."""

    def __init__(self) -> None:
        self._jobs: Any = collections.deque()
        self._led = self._called = False                                # somebody waits; somebody is on the way. Under _lock

    def add(self, wait: Callable[[], None], then: Callable[[], None]) -> None:
        """then() soon after wait() has returned; wait() raises nothing."""
        with _lock:
            self._jobs.append((wait, then))
            call = not self._led and not self._called
            self._called |= call
        if call:
            run(self._serve)

    def _serve(self) -> None:
        with _lock:
            self._called = False
        while True:
            with _lock:
                if self._led or not self._jobs:
                    return
                self._led = True
                wait, then = self._jobs.popleft()
            wait()
            with _lock:
                self._led = False
                call = bool(self._jobs) and not self._called
                self._called |= call
            if call:
                run(self._serve)
            then()


def at_end(close: Callable[[], None]) -> None:
    """Called at the end of the program if a future is still under way: it ends what the threads wait for."""
    _closing.append(close)


@atexit.register
def _end() -> None:
    import time
    if not _busy:
        return
    for close in _closing:
        close()
    end = time.monotonic() + 5
    while _busy and time.monotonic() < end:
        time.sleep(0.001)
