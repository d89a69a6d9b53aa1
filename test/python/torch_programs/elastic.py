# A start by torchrun whose first attempt fails: the workers are started anew and make their
# groups again.
import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

from support import TUTTI, alike, begin, check, end, fit, net, trained

LIMIT = 120


def command(ranks):
    # The workers of both attempts meet in one store, as torchrun has it by itself. Gloo finds the
    # addresses of the first there.
    apart = [] if TUTTI else ["env", "TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1"]
    return [*apart, sys.executable, "-m", "torch.distributed.run", "--standalone",
            "--nproc-per-node", str(ranks), "--max-restarts", "1", "--monitor-interval", "0.1",
            os.path.abspath(__file__)]


def main():
    me, size = begin()
    check(me == int(os.environ["RANK"]) and size == int(os.environ["WORLD_SIZE"]))
    value = torch.full((1000,), float(me))
    dist.all_reduce(value)
    check(int(value[0]) == size * (size - 1) // 2)
    attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    if attempt == 0:
        if me == size - 1:
            os._exit(3)                         # in the middle of an exchange of the others
        dist.all_reduce(value)
        dist.barrier()
        sys.exit("the exchange with a rank that is dead went well")
    alike(torch.tensor([attempt]), "attempt")
    trained(fit(DDP(net()), me).module.state_dict(), size, "after the restart")
    end()


if __name__ == "__main__":
    main()
