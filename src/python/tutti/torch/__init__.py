"""The torch.distributed backend "tutti".

    import tutti.torch

    torch.distributed.init_process_group("tutti")

That is all: collectives, send and recv, new_group, DistributedDataParallel and what stands on them are torch's own from there on. Ranks may be
started by torchrun, `tutti run`, torch.multiprocessing or anything else that init_process_group understands; they have to be on one
host. Errors are tutti's: tutti.RankDied, Mismatch, Timeout, Aborted, Deadlock, all of them RuntimeErrors, with the report as
their text. Ctrl-C ends a blocked call.

first(rank) and seed_everything(base) are for the idioms of training programs; monitored_barrier(group) stands in for torch's, which is
reserved for gloo.
"""
from ..comm import Comm as _Comm

if not hasattr(_Comm, "_raw"):
    raise ImportError("tutti.torch needs tutti's extension, and this tutti goes by ctypes: build it with Python.h (Debian: python3-dev)")

from ._order import first, monitored_barrier, seed_everything  # noqa: E402
from ._versions import register as _register  # noqa: E402

_register()

__all__ = ["first", "monitored_barrier", "seed_everything"]
