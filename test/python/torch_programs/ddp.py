# DistributedDataParallel in its variants: the parameters are those of one process that sees all
# batches, on every rank.
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

from support import (STEPS, Net, alike, alone, batch, begin, end, exact, filled, fit, loss, net,
                     same, sgd, trained)


class Forked(torch.nn.Module):
    """A rank uses one branch or the other."""

    def __init__(self):
        super().__init__()
        self.trunk = torch.nn.Linear(8, 8)
        self.left = torch.nn.Linear(8, 4)
        self.right = torch.nn.Linear(8, 4)

    def forward(self, x, left):
        return (self.left if left else self.right)(self.trunk(x))


def forked(me, size):
    model = DDP(filled(Forked()).double(), find_unused_parameters=True)
    single = filled(Forked()).double()
    for step in range(STEPS):
        for one, ranks in ((model, [me]), (single, range(size))):
            terms = ((one(batch(rank, step)[0],
                          (rank + step) % 2 == 0) * batch(rank, step)[1]).sum() / 4
                     for rank in ranks)
            (sum(terms) / len(ranks)).backward()
            sgd(one).step()
            one.zero_grad()
    for (name, got), expected in zip(model.module.named_parameters(), single.parameters()):
        exact(size)(got.detach(), expected.detach(), name)
        alike(got, name)


def gathered_over_steps(me, size):
    """no_sync: the gradients of two batches in one exchange."""
    model = DDP(net())
    single = net()
    with model.no_sync():
        loss(model, *batch(me, 0)).backward()
    loss(model, *batch(me, 1)).backward()
    (sum(loss(single, *batch(rank, step)) for rank in range(size)
         for step in (0, 1)) / size).backward()
    for got, expected in zip(model.parameters(), single.parameters()):
        exact(size)(got.grad, expected.grad)


def buffers(me, size):
    """Rank 0's running means are everybody's."""
    model = DDP(torch.nn.BatchNorm1d(8).double())
    for step in range(STEPS):
        model(batch(me, step)[0]).sum().backward()
    if size > 1:
        model(batch(me, 9)[0])
    single = torch.nn.BatchNorm1d(8).double()
    for step in range(STEPS):
        single(batch(0, step)[0])
    same(model.module.num_batches_tracked, torch.tensor(STEPS + 1))
    single(batch(me, 9)[0])
    same(model.module.running_mean, single.running_mean)


def started_apart(me, size):
    """The constructor gives all of them rank 0's parameters."""
    trained(fit(DDP(filled(Net().double(), seed=1 if me == 0 else 50 + me)),
                me).module.state_dict(), size, "started apart")


def main():
    me, size = begin()
    for words in ({}, {"static_graph": True}, {"find_unused_parameters": True},
                  {"gradient_as_bucket_view": True}, {"bucket_cap_mb": 0.001},
                  {"gradient_as_bucket_view": True, "bucket_cap_mb": 0.0001, "static_graph": True},
                  {"broadcast_buffers": False}):
        trained(fit(DDP(net(), **words), me).module.state_dict(), size, words)
    subgroup = dist.new_group([0, size - 1])
    if me in (0, size - 1):
        model = fit(DDP(net(), process_group=subgroup), 0 if me == 0 else 1)
        for name, value in alone(2).items():
            same(model.module.state_dict()[name], value, name)
    forked(me, size)
    gathered_over_steps(me, size)
    buffers(me, size)
    started_apart(me, size)
    end(subgroup)


if __name__ == "__main__":
    main()
