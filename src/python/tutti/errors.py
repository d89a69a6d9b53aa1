# SPDX-License-Identifier: MIT
"""The failures as exceptions. Each has the library's report: who, what, at which file and line."""
from __future__ import annotations

import errno as _errno

from ._hints import Any


class Error(RuntimeError):
    """An operation of tutti failed. Every failure is this class or a subclass.

    errno: the library's number, positive (errno.EIO …).
    report: the whole report, several lines; the text of the exception.
    ranks: the ranks of the comm known to be dead or gone, ascending.
    """

    errno: int = 0
    report: str = ""
    ranks: tuple[int, ...] = ()

    def __init__(self, report: str = "", errno: int = 0, ranks: tuple[int, ...] = ()):
        super().__init__(report)
        self.report, self.errno, self.ranks = report, errno, tuple(ranks)

    def __str__(self) -> str:
        return self.report

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.report, self.errno, self.ranks)


class RankDied(Error):
    """A rank died or left: `ranks` says which. The comm is broken. comm.shrink() makes one of the
    survivors."""


class Mismatch(Error):
    """The ranks called different operations; the report names both calls."""


class Timeout(Error, TimeoutError):  # type: ignore[misc]
    """The deadline of the operation passed; the report says which ranks did not come."""


class Aborted(Error):
    """A rank aborted, or the comm is broken by an earlier failure."""


class Deadlock(Error):
    """The ranks wait for each other in a cycle; the report says who waits where for which rank."""


class Closed(Error):
    """The queue is closed: by this rank; or by the writer, and all is read; or by all readers."""


class Invalid(Error, ValueError):
    """An argument was refused before any memory was touched."""


_classes = {
    _errno.EOWNERDEAD: RankDied,
    _errno.EPROTO: Mismatch,
    _errno.ETIMEDOUT: Timeout,
    _errno.ECANCELED: Aborted,
    _errno.EDEADLK: Deadlock,
    _errno.ESHUTDOWN: Closed,
    _errno.EINVAL: Invalid,
}


def of(errno: int, kind: str, report: str, ranks: tuple[int, ...]) -> Error:
    """The exception for a number of the library. The extension calls it."""
    text = report.rstrip() or kind
    if errno == _errno.ETIMEDOUT:
        text += ("\n  to wait longer: a larger timeout for the call, or where the world or group "
                 "is made")
    return _classes.get(errno, Error)(text, errno, ranks)
