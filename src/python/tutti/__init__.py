# SPDX-License-Identifier: MIT
"""tutti: collectives for the processes ("ranks") of one machine, through one shared arena.

    import numpy as np, tutti

    tutti.init()
    x = np.full(4, tutti.rank(), "f8")
    tutti.all_reduce(x, "avg")
    print(tutti.rank(), x)

    tutti run -n 4 python3 first.py

init() gives the world as a Comm. Each of its methods is also a function here, which acts on the
world that the last init() made.
"""
import os as _os

from . import _default
from ._core import core as _tutti
from ._default import *
from ._default import set as set
from ._op import Op
from .comm import ANY, Comm, Message
from .errors import (Aborted, Closed, Deadlock, Error, Invalid, Mismatch, RankDied,
                     Timeout)
from ._why import why
from .work import Work
from .world import init, spawn

TYPE_CHECKING = False                   # as typing has it
if TYPE_CHECKING:
    from ._queue import Queue

_tutti.set_package(_os.path.join(_os.path.dirname(__file__), ""))
_tutti.set_work(Work)

__version__: str = _tutti.version()

__all__ = ["ANY", "Aborted", "Closed", "Comm", "Deadlock", "Error", "Invalid", "Message",
           "Mismatch", "Op", "Queue", "RankDied", "Timeout", "Work", "init",
           "spawn", "why"]
__all__ += _default.__all__


def __getattr__(name: str) -> object:
    """Queue needs pickle and asyncio: they are loaded when it is first named."""
    if name != "Queue":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from ._queue import Queue
    globals()[name] = Queue
    return Queue
