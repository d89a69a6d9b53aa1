"""What an operation returns: Work, and the futures made of it.

torch's C++ code (DistributedDataParallel's reducer) may hold the C++ half of a Work alone. Its Python half is kept here until it has been asked
for its end: without that the C++ half would wait for ever. Of those that nobody ever asks the oldest that are over go.
"""
import collections
import sys
import threading
from typing import Any, Callable, Dict, List, Optional

import torch
import torch.distributed as dist

from ..errors import Error
from ._threads import Line, run

_create_work_from_future = torch._C._distributed_c10d._create_work_from_future
_KEPT_MOST = 10000
_kept: Dict[Any, None] = {}                                             # as an ordered set
_waited: Any = collections.deque(maxlen=32)
_queue_callback = torch.autograd.Variable._execution_engine.queue_callback
_autograd = torch.autograd.__path__[0]


def _let_go() -> None:
    for work in list(_kept)[:_KEPT_MOST // 2]:
        if work.is_completed():
            _kept.pop(work, None)


def _keep(work: Any) -> None:
    if len(_kept) >= _KEPT_MOST:
        _let_go()
    _kept[work] = None


def _wait_for(work: Any, caller: Any) -> None:
    if _kept.pop(work, work) is None and by_engine(caller):
        _waited.append(work)                                            # a reducer may ask for the future next


def _ended_future(value: Any) -> Any:
    future = torch.futures.Future()
    future.set_result(value)
    return future


class Done(dist.Work):
    """What is over, and went well."""

    def __init__(self, source: int = -1, value: Any = None, keep: bool = False):
        super().__init__()
        self._source, self._value = source, value
        if keep:
            _keep(self)

    def wait(self, timeout: Any = None) -> bool:
        _wait_for(self, sys._getframe().f_back)
        return True

    def is_completed(self) -> bool:
        return True

    is_success = is_completed

    def synchronize(self) -> None:
        pass

    def exception(self) -> None:
        return None

    def result(self) -> Any:
        return self._value

    def get_future(self) -> Any:
        _kept.pop(self, None)
        return _ended_future(self._value)

    def _source_rank(self) -> int:
        return self._source

    source_rank = _source_rank


class _Over(Done):
    """The one that those get who wait at once, and often."""

    def wait(self, timeout: Any = None) -> bool:
        return True


DONE = _Over()


class Flights:
    """Several Works as one: the first failure is that of all."""

    def __init__(self, works: List[Any]):
        self._works = works

    def wait(self, seconds: Optional[float] = None) -> None:
        for work in self._works:
            work._end(seconds)

    def test(self) -> bool:
        return all(work.is_completed() for work in self._works)


class Work(dist.Work):
    """An operation under way. wait() returns True, or raises what a blocking call raises."""

    def __init__(self, flight: Any, value: Any, finish: Optional[Callable[[Any], Any]] = None, line: Optional[Line] = None):
        """line: that of its group, for a collective; a message ends when it likes."""
        super().__init__()
        self._flight, self._value, self._finish, self._line = flight, value, finish, line
        self._lock = threading.Lock()
        self._over = False
        self._error: Optional[BaseException] = None
        self._future = None
        self._ended = None
        _keep(self)

    @classmethod
    def failed(cls, error: BaseException, value: Any) -> "Work":
        """What could not even begin: wait() says so, and not the call, which may stand in the middle of C++ code."""
        work = cls(None, value)
        work._over, work._error = True, error
        return work

    def _end(self, seconds: Optional[float] = None) -> None:
        """Waits for the end, and raises what it ended with. Any thread, several at once."""
        if not self._over:
            if not self._lock.acquire(True, -1 if seconds is None else seconds):
                raise TimeoutError("not done yet: the operation goes on, wait() again")
            try:
                if not self._over:
                    self._take(seconds)
            finally:
                self._lock.release()
        if self._error is not None:
            raise self._error

    def _take(self, seconds: Optional[float]) -> None:
        try:
            self._ended = self._flight.wait(seconds)
            if self._finish is not None:
                self._finish(self._ended)
        except TimeoutError as error:
            if not isinstance(error, Error):
                raise                                                   # the patience of this wait() alone
            self._error = error
        except Exception as error:
            self._error = error
        self._over = True
        self._flight = self._finish = None

    def wait(self, timeout: Any = None) -> bool:
        _wait_for(self, sys._getframe().f_back)
        self._end(timeout.total_seconds() if timeout else None)
        return True

    def synchronize(self) -> None:
        self.wait()

    def is_completed(self) -> bool:
        if self._over:
            return True
        if not self._lock.acquire(False):
            return False
        try:
            if not self._over and self._flight.test():
                self._take(None)
        finally:
            self._lock.release()
        return self._over

    def is_success(self) -> bool:
        return self.is_completed() and self._error is None

    def exception(self) -> Optional[BaseException]:
        return self._error

    def result(self) -> Any:
        self._end()
        return self._value

    def _source_rank(self) -> int:
        self._end()
        return self._ended[0] if isinstance(self._ended, tuple) else -1

    source_rank = _source_rank

    def get_future(self) -> Any:
        if self._future is None:
            self._future = _future_of(self, sys._getframe().f_back)
        _kept.pop(self, None)
        return self._future


def owned(work: Work) -> Any:
    """A Work in C++ alone, for callers of torch.ops.c10d: they hold it as long as they like, and may wait for it again and again."""
    return _create_work_from_future(work.get_future())


def _surely_outside() -> bool:
    """Whether no backward pass can be under way in this thread: nobody on its stack has begun one, and it is not the engine's."""
    frame = sys._getframe()
    while frame is not None:
        if frame.f_code.co_filename.startswith(_autograd):
            return False
        frame = frame.f_back
    return not isinstance(threading.current_thread(), threading._DummyThread)


def _in_backward(work: Work) -> bool:
    """Whether a backward pass is under way in this thread; then its end waits for the Work, and raises what that ended with."""
    if _surely_outside():                                               # torch's own answer comes with a trace of C++: a millisecond
        return False
    try:
        _queue_callback(work._end)
    except RuntimeError:
        return False
    return True


def _settle(work: Work) -> None:
    """Waits; what it ended with is for others to hear."""
    try:
        work._end()
    except Exception:
        pass


def by_engine(caller: Any) -> bool:
    """Whether it is C++ code that calls, within a backward pass: the nearest Python code is the call that began it, or none."""
    return caller is None or caller.f_code.co_filename.startswith(_autograd)


def _future_of(work: Work, caller: Any) -> Any:
    """A future of the Work.

    For the reducer, which is C++: completed by a thread, so that communication and the backward pass overlap. What goes wrong reaches C++
    code as a text only; so the end of the backward pass, at which the reducer waits for all its futures anyway, asks the Work first
    and raises the exception itself.

    For a hook written in Python that asks within a backward pass: completed before it is returned. What the hook hangs to it (then) may
    start more collectives, and these have to come in the same order on all ranks: run by a thread, they would not.
    """
    if work.is_completed() and work._error is None:
        return _ended_future(work._value)
    if by_engine(caller):
        _in_backward(work)
        ended = torch.futures.Future()
        made, value = ended.then(lambda _: work.result()), None
    else:
        if _in_backward(work):
            _settle(work)
        made = ended = torch.futures.Future()
        value = work._value
    if work.is_completed():
        _complete(work, ended, value)
    elif work._line is not None:
        work._line.add(lambda: _settle(work), lambda: _complete(work, ended, value))
    else:
        run(lambda: _complete(work, ended, value))
    return made


def _complete(work: Work, future: Any, value: Any) -> None:
    try:
        work._end()
    except BaseException as error:
        if value is not None:
            future.set_exception(error)
            return
    future.set_result(value)
