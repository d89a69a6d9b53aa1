# ctest: timeout=120 labels=nosan
# A group on several hosts refuses collectives of CUDA tensors, on all ranks, and is whole
# afterwards; messages go by copies on the host. The hosts and the driver are those of torch.hosts
# and torch.cuda.
import torch_cuda_test as driver
import torch_hosts_test as hosts
from torch_support import check, dist, main, raises, torch, tutti


def refused(rank):
    mine = driver.on(torch.full((8,), rank + 1.0))
    for call in (lambda: dist.all_reduce(mine), lambda: dist.broadcast(mine, 0),
                 lambda: dist.all_reduce(mine, async_op=True)):
        error = raises(tutti.Invalid, call)
        check("between hosts" in str(error), error)
    here = torch.full((8,), rank + 1.0)
    dist.all_reduce(here)
    check(here[0].item() == 10, here)
    if rank < 2:
        dist.send(mine, rank + 2)
    else:
        dist.recv(mine, rank - 2)
        check((driver.read(mine) == rank - 1).all(), mine)


class Refused(hosts.Case):
    def test_refused(self):
        self.four(refused)


if __name__ == "__main__":
    main()
