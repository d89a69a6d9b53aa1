"""What goes wrong in a process group: tutti's errors, each of them torch.distributed's
DistBackendError, too."""
import signal
from typing import Any, Dict, Tuple

from torch.distributed import DistBackendError

from .. import errors

_both: Dict[type, type] = {}


def _of(kind: type) -> type:
    """The class `kind` and DistBackendError in one, under the former's name; made once."""
    if kind not in _both:
        made = type(kind.__name__, (kind, DistBackendError),
                    {"__doc__": kind.__doc__, "__module__": __name__})
        _both[kind] = globals()[kind.__name__] = made
    return _both[kind]


for _kind in (errors.Error, errors.RankDied, errors.Mismatch, errors.Timeout, errors.Aborted,
              errors.Deadlock, errors.Invalid):
    _of(_kind)


def make(errno: int, kind: str, report: str, ranks: Tuple[int, ...]) -> Any:
    """The exception for a number of the library. Called by the extension."""
    error = errors.of(errno, kind, report, ranks)
    return _of(type(error))(error.report, error.errno, error.ranks)


class Interrupted(KeyboardInterrupt):
    """Stands in a future that Ctrl-C has ended. It is made in the main thread, when that is back in
    Python: where the signal's own handler has still to run, it runs within __new__, and what that
    raises is what comes out."""

    def __new__(cls, *args: Any) -> Any:
        for _ in range(2):                     # the interpreter looks at signals where a loop turns
            pass
        return KeyboardInterrupt.__new__(KeyboardInterrupt)


def is_default() -> bool:
    """Whether SIGINT raises KeyboardInterrupt, and no handler of the program's has it."""
    return signal.getsignal(signal.SIGINT) is signal.default_int_handler
