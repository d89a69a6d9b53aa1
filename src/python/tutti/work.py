# SPDX-License-Identifier: MIT
"""Work: an operation under way."""
from __future__ import annotations

from collections.abc import Callable, Generator

from . import _later
from ._core import core as _tutti
from ._hints import Any

TYPE_CHECKING = False                   # as typing has it
if TYPE_CHECKING:
    from concurrent.futures import Future
else:
    class Future:
        """For typing.get_type_hints: concurrent.futures is loaded when it is used."""

        def __class_getitem__(cls, result):
            import concurrent.futures
            return concurrent.futures.Future[result]


class Work(_tutti.Work):
    """What a call with async_=True returns. wait() gives its result, and test() says whether it has
    ended: any number of times and from any thread. `await work` does the same in asyncio. If nobody
    holds a Work any more, its operation still continues and keeps its arrays.
    """

    __slots__ = ("_callbacks",)

    def add_done_callback(self, function: Callable[[Work], Any]) -> None:
        """Runs function(work) once, when the operation has ended, well or not, in a thread of the
        package. If it has ended already, runs it at once, in this thread. If the function raises,
        that is printed and has no other effect. work.wait() does not block there.

        From the first use in a process on, the library treats a work under way as one that may
        still end any other wait. It then finds fewer cycles of waits: those end by their deadlines.
        """
        _later.add(self, function)

    def future(self) -> Future[Any]:
        """The same as a Future, for functions that take one: concurrent.futures.wait,
        asyncio.wrap_future. It cannot be cancelled."""
        import concurrent.futures
        future: Future[Any] = concurrent.futures.Future()
        future.set_running_or_notify_cancel()

        def settle(work: Work) -> None:
            try:
                value = work.wait()
            except BaseException as error:
                future.set_exception(error)
            else:
                future.set_result(value)
        self.add_done_callback(settle)
        return future

    def __await__(self) -> Generator[Any, None, Any]:
        import asyncio
        return asyncio.wrap_future(self.future()).__await__()
