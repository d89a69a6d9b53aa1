# SPDX-License-Identifier: MIT
"""The torch.distributed backend "tutti".

    torch.distributed.init_process_group("tutti")

That is all: from there on, collectives, send and recv, new_group, DeviceMesh,
DistributedDataParallel, FSDP and what uses them are torch's own. If tutti is installed, torch has
its name without an import (but not with TORCH_DEVICE_BACKEND_AUTOLOAD=0); else `import tutti.torch`
registers it. The ranks may be started by torchrun, `tutti run`, torch.multiprocessing or anything
else that init_process_group understands. Between hosts one rank of each talks, by gloo. Errors are
tutti's RankDied, Mismatch, Timeout, Aborted and Deadlock; each is
torch.distributed.DistBackendError, too, with the report as its text. Ctrl-C ends a blocked call.

as_gloo() makes tutti replace gloo: programs that ask for "gloo" get tutti if all ranks of a group
share this host. So do TUTTI_AS_GLOO=1 in the environment and `tutti run --as-gloo`.
zero_first(rank) and seed_everything(base) are for the idioms of training programs.
monitored_barrier(group) replaces torch's, which torch allows for gloo only. stats(group) gives a
group's figures. why() says what this process's jobs wait for, as tutti.why() does.
"""
import _tutti_autoload as _autoload

from .._why import why
from ._gloo import as_gloo
from ._order import monitored_barrier, seed_everything, stats, zero_first


def register() -> None:
    """Registers the name "tutti" with torch.distributed, once a process. An import of this package
    does it."""
    _autoload.put()


register()

__all__ = ["as_gloo", "monitored_barrier", "register", "seed_everything", "stats",
           "why", "zero_first"]
