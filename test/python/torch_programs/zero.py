# ZeroRedundancyOptimizer: each rank has the optimizer's state of its share of the parameters.
import torch
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel as DDP

from support import ADAM, RATE, STEPS, alike, alone, begin, check, end, fit, near, net, trained


def main():
    me, size = begin()
    for words in ({}, {"parameters_as_bucket_view": True}):
        model = DDP(net())
        optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.SGD, lr=RATE, **words)
        trained(fit(model, me, optimizer=optimizer).module.state_dict(), size, words)

    single = net()
    expected = alone(size, model=single, optimizer=torch.optim.Adam(single.parameters(), lr=RATE))
    model = DDP(net())
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=RATE)
    fit(model, me, optimizer=optimizer)
    for name, value in model.module.state_dict().items():
        near(value, expected[name], name, **ADAM)
        alike(value, name)

    # The whole state, put together on each rank in turn.
    held = optimizer.optim.state_dict()["state"]
    check(0 < len(held) < 6, held.keys())
    for root in range(size):
        optimizer.consolidate_state_dict(to=root)
        if me == root:
            state = optimizer.state_dict()
            check([int(one["step"]) for one in state["state"].values()] == [STEPS] * 6,
                  state["state"].keys())
            optimizer.load_state_dict(state)
    end()


if __name__ == "__main__":
    main()
