"""Work: an operation under way."""
import concurrent.futures
from typing import Any, Callable, Generator

from . import _later
from ._core import core as _tutti


class Work(_tutti.Work):
    """What a call with async_=True returns. wait() gives its result, test() says whether it has
    ended, any number of times and from any thread; `await work` does the same in asyncio. A Work
    that nobody holds any more goes on all the same, and so do its arrays.
    """

    __slots__ = ("_callbacks",)

    def add_done_callback(self, function: Callable[["Work"], Any]) -> None:
        """function(work) runs once, when the operation has ended, well or not, in a thread of the
        package; at once, in this thread, if it has ended already. What it raises is printed and
        harms nobody. work.wait() does not block there.

        From the first use in a process on, the library takes works under way for something that
        could still end any other wait: it then finds fewer cycles of waits, and those end by
        their deadlines.
        """
        _later.add(self, function)

    def future(self) -> "concurrent.futures.Future[Any]":
        """The same as a Future, for what takes one: concurrent.futures.wait, asyncio.wrap_future.
        It cannot be cancelled."""
        future: "concurrent.futures.Future[Any]" = concurrent.futures.Future()
        future.set_running_or_notify_cancel()

        def settle(work: "Work") -> None:
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
