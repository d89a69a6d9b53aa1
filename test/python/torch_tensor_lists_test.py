# ctest: timeout=120
# Lists of several tensors of one rank, a tensor that stands in a list twice, what is refused in
# torch's words, many futures: each of these came to light by PyTorch's own tests.
import os
import threading

from torch_support import (Case, backend_of, check, default as group, dist, hear, main, raises,
                           same, tell, torch, tutti)


def all_reduce(rank, size):
    for op, expected in ((dist.ReduceOp.SUM, size * (size - 1) + size),
                         (dist.ReduceOp.MAX, 2 * size - 1), (dist.ReduceOp.MIN, 0)):
        tensors = [torch.full((3,), 2 * rank), torch.full((3,), 2 * rank + 1)]
        opts = dist.AllreduceOptions()
        opts.reduceOp = op
        got = group().allreduce(tensors, opts).get_future().wait()
        expected = sum(range(2 * size)) if op == dist.ReduceOp.SUM else expected
        for tensor in (*tensors, *got):
            same(tensor, torch.full((3,), expected), op)


def broadcast(rank, size):
    for root in range(size):
        for which in range(2):
            tensors = [torch.tensor([10 * rank]), torch.tensor([10 * rank + 1])]
            opts = dist.BroadcastOptions()
            opts.rootRank, opts.rootTensor = root, which
            group().broadcast(tensors, opts).wait()
            for tensor in tensors:
                same(tensor, torch.tensor([10 * root + which]))


def all_gather(rank, size):
    mine = [torch.tensor([3 * rank + i]) for i in range(3)]
    rows = [[torch.zeros(1, dtype=torch.int64) for _ in range(3 * size)] for _ in range(3)]
    got = group().allgather(rows, mine).get_future().wait()
    for row in (*rows, *got):
        check([tensor.item() for tensor in row] == list(range(3 * size)), row)


def twice(rank, size):
    """It is summed for each place in the list, and gets that sum."""
    tensor = torch.tensor([rank + 1.0])
    dist.all_reduce_coalesced([tensor, tensor])
    same(tensor, torch.tensor([size * (size + 1) / 2]))


def words(rank, size):
    """Asked of the backend itself: torch's own group does not let an empty list through to it."""
    one, two, other, ours = (torch.zeros(1), torch.zeros(2), torch.zeros(1, dtype=torch.float64),
                             backend_of())
    for said, call, *args in (
            ("invalid root rank", ours.broadcast, one, size),
            ("invalid root rank", ours.reduce, one, -1), ("requires non-empty tensor list",
                                                          ours.allreduce, []),
            ("requires non-empty tensor list", ours.allreduce_coalesced, []),
            ("invalid tensor size", ours.allreduce, [one, two]),
            ("invalid tensor type", ours.allreduce, [one, other]),
            ("invalid tensor type", ours.allreduce_coalesced, [one, other]),
            ("invalid tensor size", ours.allgather, [[two] * size], [one]),
            ("Incorrect input list size", ours.scatter, [one], [[one] * (size + 1)],
             scatter_from(rank)),
            ("requires empty output on non-root", ours.gather, [[one] * size], [one],
             gather_to((rank + 1) % size)),
    ):
        error = raises(RuntimeError, call, *args)
        check(isinstance(error, tutti.Invalid) and said in str(error), (said, error))
        if said != "requires non-empty tensor list":
            error = raises(tutti.Invalid, getattr(group(), call.__name__), *args)
            check(said in str(error), (said, error))
    dist.barrier()


def scatter_from(root):
    opts = dist.ScatterOptions()
    opts.rootRank = root
    return opts


def gather_to(root):
    opts = dist.GatherOptions()
    opts.rootRank = root
    return opts


def sparse(rank, size):
    def part(i):
        return torch.sparse_coo_tensor([[2 * rank + i]], [rank + 1.0], (2 * size,))
    tensors = [part(0), part(1), part(0)]
    got = group().allreduce(tensors).get_future().wait()
    expected = torch.tensor([float(r // 2 + 1) * (2 - r % 2) for r in range(2 * size)])
    for tensor in (*tensors, *got):
        same(tensor.to_dense(), expected)
    error = raises(tutti.Invalid, group().allreduce, [part(0), torch.zeros(2 * size)])
    check("invalid tensor layout" in str(error), error)


def sparse_gradients(rank, size):
    """The reducer, which is C++, asks the Work of a sparse all_reduce for its future."""
    torch.manual_seed(0)
    net = torch.nn.parallel.DistributedDataParallel(torch.nn.EmbeddingBag(6, 2, sparse=True,
                                                                          mode="sum"))
    net(torch.tensor([[rank, 3]])).sum().backward()
    got = net.module.weight.grad.to_dense()
    for row in range(6):
        same(got[row], torch.full((2,), 1.0 if row == 3 else 1 / size if row < size else 0.0), row)


def futures(rank, size):
    """Hundreds under way have a few threads; what hangs on one may wait for another that
    comes later."""
    tensors = [torch.tensor([float(i)]) for i in range(500)]
    got = [group().allreduce([tensor]).get_future() for tensor in tensors]
    check(len(os.listdir("/proc/self/task")) < 50, os.listdir("/proc/self/task"))
    for i, future in enumerate(got):
        same(future.wait()[0], torch.tensor([float(i * size)]))

    hangs, come, late = threading.Event(), threading.Event(), []

    def waits(_):
        hangs.set()
        come.wait(50)
        return late[0].wait()[0]
    if rank > 0:
        hear("attached")                                     # until then rank 0's future cannot end
        group().allreduce([torch.ones(1)]).wait()
        group().allreduce([torch.ones(1)]).wait()
        return
    held = group().allreduce([torch.ones(1)]).get_future().then(waits)
    tell("attached")
    check(hangs.wait(50), "the first one's end")
    late.append(group().allreduce([torch.ones(1)]).get_future())
    come.set()
    same(held.wait(), torch.tensor([float(size)]))


class Several(Case):
    def test_all(self):
        self.each(3, all_reduce, broadcast, all_gather, twice, words, sparse, sparse_gradients,
                  futures)


if __name__ == "__main__":
    main()
