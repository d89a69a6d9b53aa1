# The Join context: ranks with fewer batches shadow the exchanges of the others.
import torch
from torch.distributed.algorithms.join import Join
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel as DDP

from support import RATE, alike, batch, begin, end, exact, loss, near, net, raises, sgd


def alone(size, by_all):
    """Rank r has r + 1 batches; the mean is over all ranks, or over those that still have one."""
    model = net()
    optimizer = sgd(model)
    for step in range(size):
        having = [rank for rank in range(size) if rank >= step]
        (sum(loss(model, *batch(rank, step))
             for rank in having) / (size if by_all else len(having))).backward()
        optimizer.step()
        optimizer.zero_grad()
    return model.state_dict()


def uneven(model, optimizer, me):
    for step in range(me + 1):
        loss(model, *batch(me, step)).backward()
        optimizer.step()
        optimizer.zero_grad()


def main():
    me, size = begin()
    for by_all in (True, False):
        model = DDP(net())
        with model.join(divide_by_initial_world_size=by_all):
            uneven(model, sgd(model), me)
        # more steps take more digits than there are
        compare = exact(size) if by_all and size == 2 else near
        for name, expected in alone(size, by_all).items():
            compare(model.module.state_dict()[name], expected, f"{by_all} {name}")
            alike(model.module.state_dict()[name], name)

    model = DDP(net(), gradient_as_bucket_view=True)
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.SGD, lr=RATE)
    with Join([model, optimizer]):
        uneven(model, optimizer, me)
    # a rank that shadows keeps its share as it was
    for name, value in model.module.state_dict().items():
        alike(value, name)

    model = DDP(net())

    def stopped():
        with model.join(throw_on_early_termination=True):
            uneven(model, sgd(model), me)
    raises(RuntimeError, stopped)               # the first rank without a batch stops all
    end()


if __name__ == "__main__":
    main()
