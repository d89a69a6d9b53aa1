# DistributedSampler and DataLoader with workers of their own: every sample once, in another order
# each epoch, and DDP on top.
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from support import alike, begin, check, end, exact, integers, loss, net, sgd

ROWS = 48


def main():
    me, size = begin()
    x, y = integers(5, ROWS, 8), integers(6, ROWS, 4)
    data = TensorDataset(torch.arange(ROWS), x, y)
    orders = []
    for workers in (0, 2):
        sampler = DistributedSampler(data, shuffle=True, seed=3)
        loader = DataLoader(data, batch_size=4, sampler=sampler, num_workers=workers)
        for epoch in range(2):
            sampler.set_epoch(epoch)
            mine = torch.cat([index for index, _, _ in loader])
            parts = [torch.empty_like(mine) for _ in range(size)]
            dist.all_gather(parts, mine)
            check(sorted(torch.cat(parts).tolist()) == list(range(ROWS)), parts)
            orders.append(mine.tolist())
    check(orders[0] == orders[2] and orders[1] == orders[3] and orders[0] != orders[1], orders)

    # Uneven: padded with samples from the start, or dropped.
    check(len(list(DistributedSampler(range(size + 1)))) == 2)
    check(len(list(DistributedSampler(range(size + 1), drop_last=True))) <= 2)

    # One step over each rank's share is one step over all.
    model = DDP(net())
    for _, a, b in DataLoader(data, batch_size=ROWS // size,
                              sampler=DistributedSampler(data, shuffle=False), num_workers=1):
        loss(model, a, b).backward()
    sgd(model).step()
    single = net()
    (loss(single, x, y) / size).backward()
    sgd(single).step()
    for got, expected in zip(model.parameters(), single.parameters()):
        exact(size)(got.detach(), expected.detach())
        alike(got)
    end()


if __name__ == "__main__":
    main()
