# Collectives of tensors: all-to-all even and uneven, gathers and scatters of lists and of one
# tensor, in one call, asynchronous.
import torch
import torch.distributed as dist

from support import begin, check, end, same

OPS = {dist.ReduceOp.SUM: torch.sum, dist.ReduceOp.PRODUCT: torch.prod,
       dist.ReduceOp.MIN: torch.amin, dist.ReduceOp.MAX: torch.amax}


def held(rank, n=6, dtype=torch.float64):
    return (torch.arange(n) % 3 + rank + 1).to(dtype)


def main():
    me, size = begin()
    every = torch.stack([held(rank) for rank in range(size)])

    for op, fold in OPS.items():
        value = held(me)
        dist.all_reduce(value, op)
        same(value, fold(every, 0), op)
        for root in range(size):
            value = held(me)
            dist.reduce(value, root, op)
            if me == root:
                same(value, fold(every, 0), op)
    for root in range(size):
        value = held(me)
        dist.broadcast(value, root)
        same(value, held(root))
        parts = [torch.empty(6, dtype=torch.float64) for _ in range(size)] if me == root else None
        dist.gather(held(me), parts, root)
        if me == root:
            same(torch.stack(parts), every)
        got = torch.empty(6, dtype=torch.float64)
        dist.scatter(got, list(every) if me == root else None, root)
        same(got, held(me))

    whole = torch.empty(size * 6, dtype=torch.float64)
    dist.all_gather_into_tensor(whole, held(me))
    same(whole, every.flatten())
    got = torch.empty(6, dtype=torch.float64)
    dist.reduce_scatter_tensor(got, every.flatten() * (me + 1))
    same(got, held(me) * (size * (size + 1) // 2))
    dist.reduce_scatter(got, [row * (me + 1) for row in every])
    same(got, held(me) * (size * (size + 1) // 2))

    # Row j of what rank i sends is i * 10 + j.
    got = torch.empty(size, dtype=torch.int64)
    dist.all_to_all_single(got, me * 10 + torch.arange(size))
    same(got, torch.arange(size) * 10 + me)
    # Rank i sends j + 1 numbers to rank j: in all, rank j gets j + 1 of each.
    sizes = [rank + 1 for rank in range(size)]
    got = torch.empty(size * (me + 1), 2)
    dist.all_to_all_single(got, torch.full((sum(sizes), 2), float(me)), [me + 1] * size, sizes)
    same(got, torch.arange(size).float().repeat_interleave(me + 1)[:, None].expand(-1,
                                                                                   2).contiguous())
    parts = [torch.empty(rank + 1) for rank in range(size)]
    try:
        dist.all_to_all(parts, [torch.full((me + 1,), float(me * 10 + rank))
                                for rank in range(size)])
    except RuntimeError as error:
        if "gloo" not in str(error).lower() or "TUTTI" in str(error):
            raise                               # gloo may lack it
    else:
        for rank, part in enumerate(parts):
            same(part, torch.full((rank + 1,), float(rank * 10 + me)))

    # Several asynchronous ones, waited for in the other order.
    values = [held(me) + i for i in range(8)]
    works = [dist.all_reduce(value, async_op=True) for value in values]
    for work in reversed(works):
        work.wait()
        check(work.is_completed())
    for i, value in enumerate(values):
        same(value, (every + i).sum(0))
    future = dist.all_reduce(values[0].fill_(1),
                             async_op=True).get_future().then(lambda done: done.value()[0] * 2)
    same(future.wait(), torch.full((6,), 2.0 * size, dtype=torch.float64))

    dist.all_gather(parts := [torch.empty(2, 3).t() for _ in range(size)],
                    torch.full((2, 3), float(me)).t().contiguous())
    for rank, part in enumerate(parts):
        same(part.contiguous(), torch.full((3, 2), float(rank)))
    dist.all_reduce_coalesced(values := [held(me), held(me, 3)])
    same(values[0], every.sum(0))
    same(values[1], every[:, :3].sum(0))
    end()


if __name__ == "__main__":
    main()
