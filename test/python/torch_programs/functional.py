# torch.distributed._functional_collectives, which DTensor and torch.compile stand on, and the
# manager that coalesces calls.
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol

from support import begin, check, end, same


def held(rank, *shape):
    return torch.arange(float(torch.Size(shape).numel())).reshape(shape) + rank


def main():
    me, size = begin()
    world = dist.group.WORLD
    ranks = range(size)
    every = torch.stack([held(rank, 4, 3) for rank in ranks])

    same(funcol.all_reduce(held(me, 4, 3), "sum", world).clone(), every.sum(0))
    same(funcol.all_reduce(held(me, 4, 3), "max", world).clone(), every.amax(0))
    same(funcol.broadcast(held(me, 4, 3), size - 1, world).clone(), every[-1])
    same(funcol.all_gather_tensor(held(me, 4, 3), 0, world).clone(), every.flatten(0, 1))
    same(funcol.all_gather_tensor(held(me, 4, 3), 1, world).clone(), torch.cat(list(every), 1))
    same(funcol.reduce_scatter_tensor(held(me, 2 * size, 3), "sum", 0, world).clone(),
         sum(held(rank, 2 * size, 3) for rank in ranks)[2 * me:2 * me + 2])
    same(funcol.reduce_scatter_tensor(held(me, 3, 2 * size), "sum", 1, world).contiguous(),
         sum(held(rank, 3, 2 * size) for rank in ranks)[:, 2 * me:2 * me + 2].contiguous())
    same(funcol.all_to_all_single(held(10 * me, size), None, None, world).clone(),
         torch.arange(size) * 10.0 + me)
    got = funcol.permute_tensor(held(me, 3), [(rank + 1) % size for rank in ranks], world).clone()
    same(got, held((me - 1) % size, 3))

    coalesced = funcol.all_reduce_coalesced([held(me, 3), held(me, 5)], "sum", world)
    same(coalesced[0].clone(), sum(held(rank, 3) for rank in ranks))
    same(coalesced[1].clone(), sum(held(rank, 5) for rank in ranks))
    coalesced = funcol.all_gather_into_tensor_coalesced([held(me, 3), held(me, 5)], world)
    same(coalesced[1].clone(), torch.cat([held(rank, 5) for rank in ranks]))
    coalesced = funcol.reduce_scatter_tensor_coalesced([held(me, size), held(me, 2 * size)], "sum",
                                                       [0, 0], world)
    same(coalesced[0].clone(), sum(held(rank, size) for rank in ranks)[me:me + 1])

    x = held(me, size).requires_grad_()
    y = funcol.all_to_all_single_autograd(x, [1] * size, [1] * size, world)
    (y.sum() * (me + 1)).backward()
    same(x.grad, torch.arange(1.0, size + 1))

    values = [held(me, 6) + i for i in range(3)]
    with dist._coalescing_manager():
        for value in values:
            dist.all_reduce(value)
    for i, value in enumerate(values):
        same(value, sum(held(rank, 6) + i for rank in ranks), "coalesced")
    values = [held(me, 6) + i for i in range(3)]
    with dist._coalescing_manager(async_ops=True) as works:
        for value in values:
            dist.all_reduce(value)
    works.wait()
    for i, value in enumerate(values):
        same(value, sum(held(rank, 6) + i for rank in ranks), "coalesced")
    wholes = [torch.empty(size * 4) for _ in range(2)]
    with dist._coalescing_manager():
        for i, whole in enumerate(wholes):
            dist.all_gather_into_tensor(whole, held(me, 4) + i)
    for i, whole in enumerate(wholes):
        same(whole, torch.cat([held(rank, 4) + i for rank in ranks]), "coalesced")
    parts = [torch.empty(2) for _ in range(2)]
    with dist._coalescing_manager():
        for i, part in enumerate(parts):
            dist.reduce_scatter_tensor(part, held(me, 2 * size) + i)
    for i, part in enumerate(parts):
        same(part, sum(held(rank, 2 * size) + i for rank in ranks)[2 * me:2 * me + 2], "coalesced")
    check(isinstance(funcol.all_reduce(held(me, 1), "sum", world), torch.Tensor))
    end()


if __name__ == "__main__":
    main()
