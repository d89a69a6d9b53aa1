# torch.distributed.nn.functional: collectives that gradients flow through.
import torch
import torch.distributed as dist
import torch.distributed.nn.functional as through

from support import begin, end, same


def leaf(rank, n=4):
    return (torch.arange(n, dtype=torch.float64) + rank).requires_grad_()


def main():
    me, size = begin()
    ranks = range(size)
    # what this rank's loss weighs: the gradient of what others got is theirs
    weight = float(me + 1)
    weights = float(sum(rank + 1 for rank in ranks))

    x = leaf(me)
    y = through.all_reduce(x)
    same(y.detach(), sum(leaf(rank).detach() for rank in ranks))
    (y.sum() * weight).backward()
    same(x.grad, torch.full_like(x, weights).detach())

    x = leaf(me)
    parts = through.all_gather(x)
    for rank, part in enumerate(parts):
        same(part.detach(), leaf(rank).detach())
    (sum(part.sum() * (rank + 1) for rank, part in enumerate(parts)) * weight).backward()
    same(x.grad, torch.full_like(x, weights * (me + 1)).detach())

    x = leaf(me)
    y = through.broadcast(x, size - 1)
    same(y.detach(), leaf(size - 1).detach())
    (y.sum() * weight).backward()
    same(x.grad, torch.full_like(x, weights if me == size - 1 else 0).detach())

    x = leaf(me)
    y = through.reduce(x, 0)
    if me == 0:
        same(y.detach(), sum(leaf(rank).detach() for rank in ranks))
    (y.sum() * 3).backward()
    same(x.grad, torch.full_like(x, 3).detach())

    x = [leaf(me * 10 + rank) for rank in ranks]
    outs = through.all_to_all([torch.empty(4, dtype=torch.float64) for _ in ranks], x)
    for rank, out in enumerate(outs):
        same(out.detach(), leaf(rank * 10 + me).detach())
    (sum(out.sum() for out in outs) * weight).backward()
    for rank, one in enumerate(x):
        same(one.grad, torch.full_like(one, rank + 1).detach())

    x = leaf(me, size)
    y = through.all_to_all_single(torch.empty(size, dtype=torch.float64), x)
    same(y.detach(), torch.arange(size, dtype=torch.float64) + me)
    (y.sum() * weight).backward()
    same(x.grad, torch.arange(1, size + 1, dtype=torch.float64))

    x = [leaf(me + rank) for rank in ranks]
    y = through.reduce_scatter(torch.empty(4, dtype=torch.float64), x)
    same(y.detach(), sum(leaf(rank + me).detach() for rank in ranks))
    (y.sum() * weight).backward()
    for rank, one in enumerate(x):
        same(one.grad, torch.full_like(one, rank + 1).detach())

    x = leaf(me)
    parts = through.gather(x, dst=0)
    twice = torch.full_like(x, 2 if me == 0 else 0).detach()
    sum((part * twice).sum() for part in parts).backward()
    same(x.grad, torch.full_like(x, 2).detach())
    x = [leaf(rank) for rank in ranks]
    y = through.scatter(x, src=0)
    same(y.detach(), leaf(me).detach())
    (y.sum() * weight).backward()
    if me == 0:
        for rank, one in enumerate(x):
            same(one.grad, torch.full_like(one, rank + 1).detach())
    dist.barrier()
    end()


if __name__ == "__main__":
    main()
