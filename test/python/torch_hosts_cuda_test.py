# ctest: timeout=120 labels=nosan
# A group on several hosts takes tensors of CUDA: their collectives go by copies on the host, in the
# order of the current stream. The hosts and the driver are those of torch.hosts and torch.cuda.
import torch_cuda_test as driver
import torch_hosts_test as hosts
from torch_support import check, dist, main, torch

BODIES = (driver.reductions, driver.scattered_reductions, driver.moves, driver.moves_of_lists,
          driver.strided, driver.beside_the_host)


def in_default_stream(rank):
    for body in BODIES:
        body(rank, hosts.SIZE)


def in_own_stream(rank):
    for body in BODIES:
        driver.own_stream(body)(rank, hosts.SIZE)


def others(rank):
    """An asynchronous one and its future; a message."""
    mine = driver.late(torch.full((100_000,), rank + 1.0))
    work = dist.all_reduce(mine, async_op=True)
    check(work.get_future().wait()[0] is mine, "its future")
    check((driver.read(mine) == 10).all(), mine)
    if rank < 2:
        dist.send(mine, rank + 2)
    else:
        got = driver.on(torch.zeros(100_000))
        dist.recv(got, rank - 2)
        check((driver.read(got) == 10).all(), got)


class Between_hosts(hosts.Case):
    def test_right(self):
        self.four(in_default_stream)
        self.four(in_own_stream)
        self.four(others)


if __name__ == "__main__":
    main()
