"""tutti: collectives for the processes ("ranks") of one machine, through one shared arena.

    import numpy as np, tutti

    world = tutti.init()
    x = np.full(4, world.rank, "f8")
    world.all_reduce(x, "avg")
    print(world.rank, x)

    tutti run -n 4 python3 first.py
"""
import os as _os

from . import _tutti
from .comm import ANY, Comm, Message, Work
from .errors import Aborted, Deadlock, Error, Invalid, Mismatch, RankDied, Timeout
from .world import init, spawn

_tutti.set_package(_os.path.join(_os.path.dirname(__file__), ""))

__version__: str = _tutti.version()

__all__ = ["ANY", "Aborted", "Comm", "Deadlock", "Error", "Invalid", "Message", "Mismatch", "RankDied", "Timeout", "Work", "init", "spawn"]
