# Collectives of Python objects, of sizes that differ between ranks.
import torch
import torch.distributed as dist

from support import begin, check, end


def held(rank):
    return {"rank": rank, "text": "x" * (rank * 1000), "tensor": torch.arange(rank + 1),
            "none": None}


def equal(got, rank):
    check(got["rank"] == rank and got["text"] == "x" * (rank * 1000)
          and got["tensor"].tolist() == list(range(rank + 1)), got)


def main():
    me, size = begin()
    got = [None] * size
    dist.all_gather_object(got, held(me))
    for rank in range(size):
        equal(got[rank], rank)

    for root in range(size):
        sent = [held(root), root, ["list"]] if me == root else [None] * 3
        dist.broadcast_object_list(sent, src=root)
        equal(sent[0], root)
        check(sent[1:] == [root, ["list"]], sent)

        got = [None] * size if me == root else None
        dist.gather_object(held(me), got, dst=root)
        for rank in range(size if me == root else 0):
            equal(got[rank], rank)

        mine = [None]
        dist.scatter_object_list(mine, [held(rank) for rank in range(size)] if me == root else None,
                                 src=root)
        equal(mine[0], me)

    if me == 0:
        for rank in range(1, size):
            dist.send_object_list([held(rank), "to", rank], dst=rank)
    else:
        got = [None] * 3
        check(dist.recv_object_list(got, src=0) == 0)
        equal(got[0], me)
        check(got[1:] == ["to", me], got)

    group = dist.new_group([0, size - 1])
    if me in (0, size - 1):
        got = [None] * 2
        dist.all_gather_object(got, me, group=group)
        check(got == [0, size - 1], got)
    end(group)


if __name__ == "__main__":
    main()
