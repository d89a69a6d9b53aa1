# SPDX-License-Identifier: MIT
"""A program's hold on a call under way. As work.c."""
import errno
import threading
import time
from typing import Any, List, Optional

from .. import errors
from .._number import patience
from . import inside


class Work:
    """See tutti.Work. One thread waits in the library, which frees the handle when it reports the
    end; other threads wait at a lock. This module itself measures the deadline of keep: in the
    library the operation has none."""

    __slots__ = ("_flight", "_comm", "_value", "_failure", "_waits", "__weakref__")

    def __init__(self, comm: Any, flight: Any):
        self._comm, self._flight = comm, flight
        self._value: Any = None
        self._failure: Optional[BaseException] = None
        self._waits = threading.Lock()
        flight.taken = True

    def __del__(self) -> None:
        flight = getattr(self, "_flight", None)
        if flight is not None:
            flight.taken = False        # it stays in the comm's set, and the comm ends it
            self._comm._reap(False)

    def wait(self, timeout: Optional[float] = None) -> Any:
        """Waits for the operation and returns what the blocking call returns, or raises what it
        raises.

        timeout: seconds that this call waits at most; then TimeoutError, and the operation
        continues. None: until the operation's own deadline; negative: until it ends. With keep=True
        a deadline that has passed raises Timeout, once or more; the operation continues. Any number
        of threads may wait.
        """
        ms = patience(timeout)
        if self._flight is not None:
            got: List[bool] = []
            try:
                inside.kept(got, self._waits.acquire, True, ms / 1000 if ms > 0 else -1)
                if not got[0]:
                    raise TimeoutError("not done yet: the operation goes on, wait() again")
                if self._flight is not None:
                    self._await(ms)
            finally:
                if got and got[0]:
                    self._waits.release()
        if self._failure is not None:
            raise self._failure
        return self._value

    def _await(self, ms: int) -> None:
        flight, comm = self._flight, self._comm
        comm._open()
        patience = ms
        if flight.late and ms >= 0:
            left = max(1, int((flight.late - time.monotonic()) * 1000) + 1)
            patience = min(ms, left) if ms > 0 else left

        def over(result: int) -> None:
            if result != -errno.EAGAIN and self._flight is not None:
                self._over(result)
        site = inside.site()
        result = comm._folds(flight, lambda: comm._run("wait_at", site, flight.handle.value,
                                                       patience, undo=over), over)
        if result != -errno.EAGAIN:
            self._over(result)
        elif flight.late and time.monotonic() >= flight.late:
            raise errors.of(errno.ETIMEDOUT, "", "the deadline of this operation has passed; it "
                                                 "goes on, and the comm is whole: wait() again", ())
        else:
            raise TimeoutError("not done yet: the operation goes on, wait() again")

    def _over(self, result: int) -> None:
        """The library has freed the handle. Keeps the result, before other threads see that there
        is one."""
        flight = self._flight
        try:
            self._comm._flying.discard(flight)
            self._comm._check(result)
            self._value = flight.value(result)
        except BaseException as error:
            self._failure = error
            flight.data.value = None
        finally:
            self._flight = None
        flight.drop()

    def test(self) -> bool:
        """True when the operation has ended, well or not: wait() then returns at once. Any
        thread."""
        if self._flight is None:
            return True
        got: List[bool] = []
        try:
            inside.kept(got, self._waits.acquire, False)
            if not got[0] or self._flight is None:
                return self._flight is None                 # the waiting thread frees the handle
            self._comm._open()
            return self._comm._library.test(self._flight.handle.value) != -errno.EAGAIN
        finally:
            if got and got[0]:
                self._waits.release()

    def _watch(self) -> Optional[bool]:
        """No end is reported here: the library's thread would have to wait for the interpreter."""
        return False if self._flight is None else None
