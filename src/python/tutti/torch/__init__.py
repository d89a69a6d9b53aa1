"""The torch.distributed backend "tutti".

    torch.distributed.init_process_group("tutti")

That is all: collectives, send and recv, new_group, DeviceMesh, DistributedDataParallel, FSDP and
what stands on them are torch's own from there on. Where tutti is installed its name is known to
torch without an import (but with TORCH_DEVICE_BACKEND_AUTOLOAD=0); else `import tutti.torch` makes
it known. Ranks may be started by torchrun, `tutti run`, torch.multiprocessing or anything else that
init_process_group understands; they have to be on one host. Errors are tutti's, tutti.RankDied,
Mismatch, Timeout, Aborted, Deadlock, and torch.distributed.DistBackendError at once, with the
report as their text. Ctrl-C ends a blocked call.

as_gloo() puts tutti in gloo's place: programs that ask for "gloo" get tutti where all ranks of a
group share this host. So do TUTTI_AS_GLOO=1 in the environment and `tutti run --as-gloo`.
first(rank) and seed_everything(base) are for the idioms of training programs;
monitored_barrier(group) stands in for torch's, which is reserved for gloo; stats(group) has a
group's figures.
"""
import _tutti_autoload as _autoload

from ._gloo import as_gloo
from ._order import first, monitored_barrier, seed_everything, stats


def register() -> None:
    """Makes the name "tutti" known to torch.distributed; once a process. An import of this package
    has done it."""
    _autoload.put()


register()

__all__ = ["as_gloo", "first", "monitored_barrier", "register", "seed_everything", "stats"]
