# Messages between two ranks: blocking and not, in a ring, in batches, by tag, from any rank, of
# every type and many sizes.
import torch
import torch.distributed as dist

from support import begin, check, end, same

TYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.uint8,
         torch.int32, torch.int64, torch.bool, torch.complex64)


def held(rank, n, dtype=torch.float32):
    return (torch.arange(n) % 100 + rank).to(dtype)


def main():
    me, size = begin()
    after, before = (me + 1) % size, (me - 1) % size

    for n in (0, 1, 1000, 300_000):
        got = torch.empty(n)
        if me % 2 == 0 and me != size - 1 or me == 0:
            dist.send(held(me, n), after)
            dist.recv(got, before)
        else:
            check(dist.recv(got, before) == before)
            dist.send(held(me, n), after)
        same(got, held(before, n))

    for dtype in TYPES:
        got = torch.empty(7, dtype=dtype)
        works = [dist.isend(held(me, 7, dtype), after), dist.irecv(got, before)]
        for work in works:
            work.wait()
        same(got, held(before, 7, dtype))

    # Each rank to each, in one batch.
    got = {rank: torch.empty(rank + 1) for rank in range(size) if rank != me}
    batch = [dist.P2POp(dist.irecv, got[rank], rank) for rank in got]
    batch += [dist.P2POp(dist.isend, held(me, me + 1), rank) for rank in got]
    for work in dist.batch_isend_irecv(batch):
        work.wait()
    for rank, value in got.items():
        same(value, held(rank, rank + 1))

    # By tag, taken in the other order than sent.
    if me == 0:
        works = [dist.isend(held(tag, 5), 1, tag=tag) for tag in (1, 2, 3)]
        for work in works:
            work.wait()
    elif me == 1:
        for tag in (3, 1, 2):
            got = torch.empty(5)
            dist.recv(got, 0, tag=tag)
            same(got, held(tag, 5), tag)

    # From whoever comes first.
    if me == 0:
        seen = set()
        for _ in range(size - 1):
            got = torch.empty(3)
            source = dist.recv(got)
            same(got, held(source, 3))
            seen.add(source)
        check(seen == set(range(1, size)), seen)
    else:
        dist.send(held(me, 3), 0)

    group = dist.new_group([size - 1, 0])
    if me == 0:
        dist.send(held(5, 4), size - 1, group=group)
    elif me == size - 1:
        got = torch.empty(4)
        dist.recv(got, group=group, group_src=dist.get_group_rank(group, 0))
        same(got, held(5, 4))
    end(group if me in (0, size - 1) else None)


if __name__ == "__main__":
    main()
