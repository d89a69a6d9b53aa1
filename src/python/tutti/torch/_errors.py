# SPDX-License-Identifier: MIT
"""The failures of a process group: tutti's errors. Each is torch.distributed's DistBackendError,
too."""
import signal
from typing import Any, Dict, Tuple

from torch.distributed import DistBackendError

from .. import errors

_both: Dict[type, type] = {}


def _of(kind: type) -> type:
    """One class that is both `kind` and DistBackendError, with the name of `kind`. Made once."""
    if kind not in _both:
        made = type(kind.__name__, (kind, DistBackendError),
                    {"__doc__": kind.__doc__, "__module__": __name__})
        _both[kind] = globals()[kind.__name__] = made
    return _both[kind]


for _kind in (errors.Error, errors.RankDied, errors.Mismatch, errors.Timeout, errors.Aborted,
              errors.Deadlock, errors.Invalid):
    _of(_kind)


def make(errno: int, kind: str, report: str, ranks: Tuple[int, ...]) -> Any:
    """The exception for a number of the library. The extension calls it."""
    error = errors.of(errno, kind, report, ranks)
    return _of(type(error))(error.report, error.errno, error.ranks)


class Interrupted(KeyboardInterrupt):
    """The class in a future that Ctrl-C has ended. The instance is made in the main thread, when
    that is back in Python. If the signal's own handler has not run yet, it runs within __new__, and
    the program gets what it raises."""

    def __new__(cls, *args: Any) -> Any:
        for _ in range(2):                     # a loop lets the interpreter run signal handlers
            pass
        return KeyboardInterrupt.__new__(KeyboardInterrupt)


def is_default() -> bool:
    """True: SIGINT raises KeyboardInterrupt, and the program has no handler of its own."""
    return signal.getsignal(signal.SIGINT) is signal.default_int_handler
