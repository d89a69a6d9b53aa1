# ctest: timeout=180 labels=nosan
# Every operation of torch.distributed against a plain computation, for every type it takes, waited
# for at once and later.
import itertools

from torch_support import Case, backend_of, check, default, dist, main, raises, same, torch, tutti
import torch.distributed._functional_collectives  # noqa: F401

WHOLE = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
COMPLEX = [torch.complex64, torch.complex128]
ALL = WHOLE + FLOATS + COMPLEX + [torch.bool]


def part(rank, dtype, shape=(3, 5)):
    """What the rank gives: small whole numbers, which every type holds."""
    count = int(torch.tensor(shape).prod()) if shape else 1
    values = (torch.arange(count) * 7 + rank * 3) % 5 + 1
    if dtype == torch.bool:
        return (values % 2 == 0).reshape(shape)
    if dtype in COMPLEX:
        return torch.complex(values.double(), (values + rank).double()).to(dtype).reshape(shape)
    return values.to(dtype).reshape(shape)


def both(call):
    """Waited for at once, and later."""
    call(False)
    work = call(True)
    if isinstance(work, torch._C.Future):
        work.wait()
    else:
        check(work.wait() is True and work.is_completed() and work.is_success()
              and work.exception() is None, work)


FOLDS = {"SUM": lambda a, b: a + b, "PRODUCT": lambda a, b: a * b, "MIN": torch.minimum,
         "MAX": torch.maximum, "BAND": lambda a, b: a & b, "BOR": lambda a, b: a | b,
         "BXOR": lambda a, b: a ^ b}


def fold(parts, op):
    if op == "AVG":
        total = fold(parts, "SUM")
        if total.is_complex():
            return torch.view_as_complex(torch.view_as_real(total) / len(parts))
        return total / len(parts) if total.is_floating_point() else torch.div(total, len(parts),
                                                                              rounding_mode="trunc")
    total = parts[0].clone()
    for other in parts[1:]:
        total = FOLDS[op](total, other)
    return total


def takes(dtype, op):
    if dtype == torch.bool:
        return op in ("BAND", "BOR", "BXOR")
    if dtype in COMPLEX:
        return op in ("SUM", "AVG")
    return dtype in WHOLE or op in ("SUM", "PRODUCT", "MIN", "MAX", "AVG")


def wide(dtype):
    return torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype


def all_reduce(rank, size):
    for dtype, op in itertools.product(ALL, [*FOLDS, "AVG"]):
        if not takes(dtype, op):
            continue
        expected = fold([part(peer, dtype).to(wide(dtype)) for peer in range(size)], op).to(dtype)

        def call(later):
            tensor = part(rank, dtype)
            work = dist.all_reduce(tensor, getattr(dist.ReduceOp, op), async_op=later)
            if later:
                work.wait()
            same(tensor, expected, (dtype, op))
            return work
        both(call)


def reduce(rank, size):
    for dtype, op, root in itertools.product([torch.int32, torch.float32, torch.bfloat16],
                                             ["SUM", "MAX"], range(size)):
        expected = fold([part(peer, dtype) for peer in range(size)], op)

        def call(later):
            tensor = part(rank, dtype)
            work = dist.reduce(tensor, root, getattr(dist.ReduceOp, op), async_op=later)
            if later:
                work.wait()
            same(tensor, expected if rank == root else part(rank, dtype), (dtype, op, root))
            return work
        both(call)


def moves(rank, size):
    for dtype in ALL:
        mine = part(rank, dtype)
        every = [part(peer, dtype) for peer in range(size)]
        root = size - 1

        def broadcast(later):
            tensor = mine.clone()
            work = dist.broadcast(tensor, root, async_op=later)
            work and work.wait()
            same(tensor, every[root], dtype)
            return work

        def all_gather(later):
            into = [torch.zeros_like(mine) for _ in range(size)]
            work = dist.all_gather(into, mine, async_op=later)
            work and work.wait()
            for got, expected in zip(into, every):
                same(got, expected, dtype)
            return work

        def all_gather_one(later):
            into = torch.zeros((size * 3, 5), dtype=dtype)
            work = dist.all_gather_single(into, mine, async_op=later)
            work and work.wait()
            same(into, torch.cat(every), dtype)
            return work

        def gather(later):
            into = [torch.zeros_like(mine) for _ in range(size)] if rank == root else None
            work = dist.gather(mine, into, root, async_op=later)
            work and work.wait()
            for got, expected in zip(into or [], every):
                same(got, expected, dtype)
            return work

        def scatter(later):
            got = torch.zeros_like(mine)
            work = dist.scatter(got, [tensor.clone() for tensor in every] if rank == root else None,
                                root, async_op=later)
            work and work.wait()
            same(got, mine, dtype)
            return work

        for call in (broadcast, all_gather, all_gather_one, gather, scatter):
            both(call)


def reduce_scatter(rank, size):
    for dtype, op in itertools.product([torch.int64, torch.float16, torch.float64],
                                       ["SUM", "PRODUCT", "AVG"]):
        pieces = [[part(peer * size + piece, dtype) for piece in range(size)]
                  for peer in range(size)]
        expected = fold([pieces[peer][rank].to(wide(dtype)) for peer in range(size)], op).to(dtype)
        how = getattr(dist.ReduceOp, op)

        def lists(later):
            got = torch.zeros_like(expected)
            work = dist.reduce_scatter(got, [tensor.clone() for tensor in pieces[rank]], how,
                                       async_op=later)
            work and work.wait()
            same(got, expected, (dtype, op))
            return work

        def one(later):
            got = torch.zeros_like(expected)
            work = dist.reduce_scatter_single(got, torch.cat(pieces[rank]), how, async_op=later)
            work and work.wait()
            same(got, expected, (dtype, op))
            return work
        both(lists)
        both(one)


def all_to_all(rank, size):
    for dtype in (torch.int32, torch.float32, torch.complex64, torch.bool):
        give = [part(rank * size + peer, dtype, (rank + peer + 1, 2)) for peer in range(size)]
        take = [part(peer * size + rank, dtype, (rank + peer + 1, 2)) for peer in range(size)]

        def lists(later):
            into = [torch.zeros_like(tensor) for tensor in take]
            work = dist.all_to_all(into, give, async_op=later)
            work and work.wait()
            for got, expected in zip(into, take):
                same(got, expected, dtype)
            return work

        def uneven(later):
            into = torch.zeros_like(torch.cat(take))
            rows = [rank + peer + 1 for peer in range(size)]
            work = dist.all_to_all_single(into, torch.cat(give), rows, rows, async_op=later)
            work and work.wait()
            same(into, torch.cat(take), dtype)
            return work

        def even(later):
            mine = torch.cat([part(rank * size + peer, dtype, (2, 3)) for peer in range(size)])
            into = torch.zeros_like(mine)
            work = dist.all_to_all_single(into, mine, async_op=later)
            work and work.wait()
            same(into, torch.cat([part(peer * size + rank, dtype, (2, 3)) for peer in range(size)]),
                 dtype)
            return work
        for call in (lists, uneven, even):
            both(call)


def coalesced(rank, size):
    shapes = [(3,), (2, 2), (), (0,), (100,)]

    def reduces(later):
        tensors = [part(rank, torch.float32, shape) for shape in shapes]
        future = dist.all_reduce_coalesced(tensors, async_op=later)
        future and future.wait()
        for tensor, shape in zip(tensors, shapes):
            same(tensor, fold([part(peer, torch.float32, shape) for peer in range(size)], "SUM"),
                 shape)
        return future

    def gathers(later):
        into = [[torch.zeros(shape) for shape in shapes] for _ in range(size)]
        future = dist.all_gather_coalesced(into, [part(rank, torch.float32, shape)
                                                  for shape in shapes], async_op=later)
        future and future.wait()
        for peer in range(size):
            for got, shape in zip(into[peer], shapes):
                same(got, part(peer, torch.float32, shape), shape)
        return future
    both(reduces)
    both(gathers)


def sizes(rank, size):
    """Around every threshold of the library, and nothing at all."""
    for count in (0, 1, 2, 11, 12, 13, 1000, 16383, 16384, 100_003, 1 << 20):
        tensor = torch.arange(count, dtype=torch.float32) + rank
        dist.all_reduce(tensor)
        same(tensor, torch.arange(count, dtype=torch.float32) * size + size * (size - 1) / 2, count)


def sparse(rank, size):
    def mine(peer):
        return torch.sparse_coo_tensor(torch.tensor([[peer, 3, peer], [0, 1, 0]]),
                                       torch.tensor([1.0, 2.0, peer + 1.0]), (size + 4, 2))
    tensor = mine(rank)
    dist.all_reduce(tensor)
    check(tensor.is_sparse, tensor.layout)
    same(tensor.to_dense(), sum(mine(peer).to_dense() for peer in range(size)))
    work = default().allreduce([mine(rank)])
    same(work.get_future().wait()[0].to_dense(), sum(mine(peer).to_dense() for peer in range(size)))
    raises(tutti.Invalid, dist.all_reduce, mine(rank), dist.ReduceOp.MAX)
    dist.barrier()


def refused(rank, size):
    """A wrong argument is refused on the rank that has it, before anything is under way; then the
    group still works."""
    group, one, two = default(), torch.ones(1), torch.ones(2)
    for call, *args in (
            (group.allgather, [[two] * (size + 1)], [two]),
            (dist.all_gather, [two] * (size + 1), two),
            (dist.all_gather_single, torch.ones(3 * size), two),
            (dist.reduce_scatter_single, torch.ones(3), torch.ones(2 * size)),
            (dist.all_to_all_single, torch.ones(2 * size), torch.ones(2 * size), [1] * size,
             [2] * size),
            (dist.all_to_all_single, torch.ones(2 * size), torch.ones(2 * size), [2] * (size + 1),
             [2] * size),
            (dist.all_to_all_single, torch.ones(2 * size), torch.ones(2 * size),
             [3] + [2] * (size - 2) + [-1], [2] * size),
            (dist.all_to_all, [one] * size, [one] * (size + 1)),
            (group.allreduce, [one, two]),
            (group.reduce_scatter, [two], [[torch.ones(2, dtype=torch.int32)] * size]),
            (dist.all_gather_single, torch.ones(2 * size, dtype=torch.int32), two),
            (dist.all_reduce, torch.quantize_per_tensor(two, 1.0, 0, torch.qint8)),
            (dist.all_reduce, two, dist.ReduceOp.BAND), (dist.all_reduce, two.to(torch.complex64),
                                                         dist.ReduceOp.MAX),
            (dist.all_reduce, two.to(torch.int32), dist._make_nccl_premul_sum(2.5)),
            (dist.all_reduce, two.to(torch.int8), dist._make_nccl_premul_sum(300.0)),
            (dist.send, two, (rank + 1) % size, None, -1),
            (dist.scatter, two, [one] * size if rank == 0 else None)):
        if call is dist.send and size == 1 or call is dist.scatter and rank != 0:
            continue
        try:
            got = call(*args)
        except (ValueError, RuntimeError, TypeError):
            continue
        raise AssertionError((call, args, got))
    error = raises(tutti.Invalid, group.allreduce, [one, two])
    check(isinstance(error, ValueError) and isinstance(error, dist.DistBackendError),
          type(error).__mro__)
    tensor = torch.ones(1)
    dist.all_reduce(tensor)
    check(tensor.item() == size, tensor)


def direct(rank, size):
    """The process group's own methods, in all their forms."""
    group = default()
    check((group.rank(), group.size(), dist.get_backend(group)) == (rank, size, "tutti"),
          dist.get_backend(group))
    check((backend_of().rank(), backend_of().size(), backend_of().name()) == (rank, size, "tutti"),
          backend_of().name())
    tensor = torch.ones(2)
    group.allreduce(tensor).wait()
    group.allreduce([tensor], dist.ReduceOp.MAX).wait()
    group.allreduce(tensor, op=dist.ReduceOp.SUM).wait()
    same(tensor, torch.full((2,), float(size * size)))
    group.broadcast(tensor, root=0).wait()
    tensor = torch.ones(1) + rank
    group.reduce(tensor, root=0, op=dist.ReduceOp.MAX).wait()
    check(tensor.item() == (size if rank == 0 else rank + 1), tensor)
    into = [torch.zeros(1) for _ in range(size)]
    group.allgather(into, torch.ones(1) * rank).wait()
    check([t.item() for t in into] == list(range(size)), into)
    into = [torch.zeros(1) for _ in range(size)]
    options = dist.GatherOptions()
    options.rootRank = 0
    group.gather([into] if rank == 0 else [], [torch.ones(1) * rank], options).wait()
    check(rank or [t.item() for t in into] == list(range(size)), into)
    got = torch.zeros(1)
    group.scatter(got, [torch.ones(1) * peer for peer in range(size)] if rank == 0 else [],
                  root=0).wait()
    check(got.item() == rank, got)
    group.reduce_scatter(got, [torch.ones(1) for _ in range(size)], op=dist.ReduceOp.SUM).wait()
    check(got.item() == size, got)
    group.alltoall(into, [torch.ones(1) * rank for _ in range(size)]).wait()
    check([t.item() for t in into] == list(range(size)), into)
    row = torch.zeros(size)
    group.alltoall_base(row, torch.full((size,), float(rank)), [], []).wait()
    check(row.tolist() == list(range(size)), row)
    group.barrier().wait()


def coalescing(rank, size):
    """Several calls as one work: each is done, and what it returns is waited for once."""
    tensors = [part(rank, torch.int64, (count,)) for count in (3, 1000, 1)]
    with dist.distributed_c10d._coalescing_manager(async_ops=True) as manager:
        for tensor in tensors:
            dist.all_reduce(tensor)
    manager.wait()
    for tensor in tensors:
        same(tensor, fold([part(peer, torch.int64, tensor.shape) for peer in range(size)], "SUM"))
    into, outs = [torch.zeros(2 * size) for _ in range(3)], [torch.zeros(2) for _ in range(3)]
    with dist.distributed_c10d._coalescing_manager():
        for i in range(3):
            dist.all_gather_single(into[i], torch.full((2,), float(10 * i + rank)))
    with dist.distributed_c10d._coalescing_manager():
        for i in range(3):
            dist.reduce_scatter_single(outs[i], into[i])
    for i in range(3):
        same(into[i], torch.cat([torch.full((2,), float(10 * i + peer)) for peer in range(size)]),
             i)
        same(outs[i], torch.full((2,), float(10 * i + rank)) * size, i)


def functional(rank, size):
    """The collectives of compiled programs: new tensors, which are waited for when they
    are used."""
    ours = dist._functional_collectives
    mine, every = part(rank, torch.float32), [part(peer, torch.float32) for peer in range(size)]
    same(ours.all_reduce(mine, "sum", default()) + 0, fold(every, "SUM"))
    same(ours.all_gather_tensor(mine, 0, default()) + 0, torch.cat(every))
    same(ours.broadcast(mine, size - 1, default()) + 0, every[-1])
    same(ours.reduce_scatter_tensor(torch.cat([mine] * size), "max", 0, default()) + 0,
         fold(every, "MAX"))
    same(ours.all_to_all_single(torch.cat([mine[:1]] * size), None, None, default()) + 0,
         torch.cat([other[:1] for other in every]))
    for times, got in zip((1, 2), ours.all_reduce_coalesced([mine, mine * 2], "sum", default())):
        same(got + 0, fold(every, "SUM") * times)
    for got in ours.all_gather_into_tensor_coalesced([mine, mine], default()):
        same(got + 0, torch.cat(every))
    both = ours.reduce_scatter_tensor_coalesced([torch.cat([mine] * size)] * 2, "sum",
                                                [0, 0], default())
    for got in both:
        same(got + 0, fold(every, "SUM"))


ALL_BODIES = (all_reduce, reduce, moves, reduce_scatter, all_to_all, coalesced, sizes, sparse,
              refused, direct, coalescing, functional)


class Collectives(Case):
    def test_two(self):
        self.each(2, *ALL_BODIES)

    def test_three(self):
        def everything(rank, size):
            for body in ALL_BODIES:
                body(rank, size)
        self.ranks(3, everything)

    def test_alone(self):
        def everything(rank, size):
            for body in ALL_BODIES:
                body(rank, size)
        self.ranks(1, everything)


if __name__ == "__main__":
    main()
