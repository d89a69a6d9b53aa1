# Groups: of some ranks, overlapping, by enumeration, in another order, destroyed and made anew;
# their ranks; barriers of them.
from datetime import timedelta

import torch
import torch.distributed as dist

from support import BACKEND, begin, check, end, monitored_barrier, raises, same


def total(ranks):
    return torch.tensor([float(sum(1 << rank for rank in ranks))])


def summed(me, group):
    value = torch.tensor([float(1 << me)])
    dist.all_reduce(value, group=group)
    return value


def main():
    me, size = begin()
    check(dist.get_backend() == BACKEND, dist.get_backend())
    everyone = list(range(size))
    # First: names of such groups count the groups that a rank is in.
    turned = dist.new_group(everyone[::-1], use_local_synchronization=True,
                            timeout=timedelta(seconds=30), group_desc="turned round")
    parts = [torch.empty(1, dtype=torch.int64) for _ in everyone]
    dist.all_gather(parts, torch.tensor([me]), group=turned)
    check([int(part) for part in parts] == dist.get_process_group_ranks(turned), parts)
    check(turned.group_desc == "turned round")

    kept = []
    for ranks in (everyone, everyone[:-1], everyone[1:], [me for me in everyone if me % 2 == 0],
                  [size - 1]):
        group = dist.new_group(ranks)
        kept.append(group)
        check(dist.get_rank(group) == (ranks.index(me) if me in ranks else -1))
        if me in ranks:
            check(dist.get_world_size(group) == len(ranks)
                  and dist.get_process_group_ranks(group) == ranks)
            check(dist.get_global_rank(group, 0) == ranks[0] and dist.get_group_rank(group, me)
                  == ranks.index(me))
            check(dist.get_backend(group) == BACKEND)
            same(summed(me, group), total(ranks), ranks)
    for i in range(10):
        again = dist.new_group(everyone[:2])
        if me < 2:
            same(summed(me, again), total([0, 1]), i)
            dist.destroy_process_group(again)

    mine, every = dist.new_subgroups(1)
    check(len(every) == size)
    same(summed(me, mine), total([me]))
    if size % 2 == 0:
        mine, every = dist.new_subgroups(2)
        same(summed(me, mine), total([me & ~1, me | 1]))
        mine, _ = dist.new_subgroups_by_enumeration([[rank, rank + size // 2]
                                                     for rank in range(size // 2)])
        same(summed(me, mine), total([me % (size // 2), me % (size // 2) + size // 2]))

    dist.barrier()
    dist.barrier(group=turned, async_op=True).wait()
    monitored_barrier(timeout=timedelta(seconds=30))
    monitored_barrier(turned, timedelta(seconds=30), wait_all_ranks=True)
    raises(ValueError, dist.new_group, [0, 0])
    raises((ValueError, RuntimeError), dist.new_group, [size])
    end(turned, *kept)


if __name__ == "__main__":
    main()
