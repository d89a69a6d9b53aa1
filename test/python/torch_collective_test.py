# ctest: timeout=180 labels=nosan
# Every operation of torch.distributed against a plain computation, for every type it takes, waited for at once and later.
import itertools

from torch_support import Case, check, dist, main, raises, same, torch, tutti

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
        check(work.wait() is True and work.is_completed() and work.is_success() and work.exception() is None, work)


FOLDS = {"SUM": lambda a, b: a + b, "PRODUCT": lambda a, b: a * b, "MIN": torch.minimum, "MAX": torch.maximum,
         "BAND": lambda a, b: a & b, "BOR": lambda a, b: a | b, "BXOR": lambda a, b: a ^ b}


def fold(parts, op):
    if op == "AVG":
        total = fold(parts, "SUM")
        return total / len(parts) if total.is_floating_point() or total.is_complex() else torch.div(total, len(parts), rounding_mode="trunc")
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
    for dtype, op, root in itertools.product([torch.int32, torch.float32, torch.bfloat16], ["SUM", "MAX"], range(size)):
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
            if dtype in COMPLEX:                        # torch's own function does not view these as real ones
                return Seen
            work = dist.all_gather_into_tensor(into, mine, async_op=later)
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
            work = dist.scatter(got, [tensor.clone() for tensor in every] if rank == root else None, root, async_op=later)
            work and work.wait()
            same(got, mine, dtype)
            return work

        for call in (broadcast, all_gather, all_gather_one, gather, scatter):
            both(call)


class Seen:
    """Nothing to be waited for."""
    wait = staticmethod(lambda: True)
    is_completed = is_success = wait
    exception = staticmethod(lambda: None)


def reduce_scatter(rank, size):
    for dtype, op in itertools.product([torch.int64, torch.float16, torch.float64], ["SUM", "PRODUCT", "AVG"]):
        pieces = [[part(peer * size + piece, dtype) for piece in range(size)] for peer in range(size)]
        expected = fold([pieces[peer][rank].to(wide(dtype)) for peer in range(size)], op).to(dtype)
        how = getattr(dist.ReduceOp, op)

        def lists(later):
            got = torch.zeros_like(expected)
            work = dist.reduce_scatter(got, [tensor.clone() for tensor in pieces[rank]], how, async_op=later)
            work and work.wait()
            same(got, expected, (dtype, op))
            return work

        def one(later):
            got = torch.zeros_like(expected)
            work = dist.reduce_scatter_tensor(got, torch.cat(pieces[rank]), how, async_op=later)
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
            same(into, torch.cat([part(peer * size + rank, dtype, (2, 3)) for peer in range(size)]), dtype)
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
            same(tensor, fold([part(peer, torch.float32, shape) for peer in range(size)], "SUM"), shape)
        return future

    def gathers(later):
        into = [[torch.zeros(shape) for shape in shapes] for _ in range(size)]
        future = dist.all_gather_coalesced(into, [part(rank, torch.float32, shape) for shape in shapes], async_op=later)
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
        return torch.sparse_coo_tensor(torch.tensor([[peer, 3, peer], [0, 1, 0]]), torch.tensor([1.0, 2.0, peer + 1.0]), (size + 4, 2))
    tensor = mine(rank)
    dist.all_reduce(tensor)
    check(tensor.is_sparse, tensor.layout)
    same(tensor.to_dense(), sum(mine(peer).to_dense() for peer in range(size)))
    work = dist.distributed_c10d._get_default_group().allreduce([mine(rank)])
    same(work.get_future().wait()[0].to_dense(), sum(mine(peer).to_dense() for peer in range(size)))
    raises(ValueError, dist.all_reduce, mine(rank), dist.ReduceOp.MAX)
    dist.barrier()


def pieces(rank, size):
    """Tensors that do not lie in one piece: copied where that is no harm, refused where the result would have to come back into them."""
    grid = torch.arange(6.0).reshape(2, 3) + rank
    error = raises(ValueError, dist.all_reduce, grid.t())
    check("contiguous()" in str(error), error)
    raises(ValueError, dist.broadcast, grid.t(), 0)
    raises(ValueError, dist.send, grid.t(), 0)
    into = [torch.zeros(2, 3).t() for _ in range(size)]
    dist.all_gather(into, grid.t())
    for peer, got in enumerate(into):
        same(got.contiguous(), (torch.arange(6.0).reshape(2, 3) + peer).t().contiguous())
    out = torch.zeros(4, 2)[:, 0]
    dist.reduce_scatter(out, [torch.ones(4, 2)[:, 1] for _ in range(size)])
    same(out.contiguous(), torch.full((4,), float(size)))


def refused(rank, size):
    """A wrong argument is refused on the rank that has it, before anything is under way; then the group still works."""
    group = dist.distributed_c10d._get_default_group()
    raises(ValueError, group.allgather, [[torch.ones(2)] * (size + 1)], [torch.ones(2)])
    raises(ValueError, dist.all_gather, [torch.ones(2)] * (size - 1), torch.ones(2))
    raises(ValueError, dist.all_gather_into_tensor, torch.ones(3 * size), torch.ones(2))
    raises(ValueError, dist.reduce_scatter_tensor, torch.ones(3), torch.ones(2 * size))
    raises((ValueError, RuntimeError), dist.all_to_all_single, torch.ones(2 * size), torch.ones(2 * size), [1] * size, [2] * size)
    raises(ValueError, group.allreduce, [torch.ones(1), torch.ones(2)])
    raises(ValueError, group.reduce_scatter, [torch.ones(2)], [[torch.ones(2, dtype=torch.int32)] * size])
    raises(TypeError, group.allreduce, [torch.quantize_per_tensor(torch.ones(2), 1.0, 0, torch.qint8)])
    raises(tutti.Invalid, dist.all_reduce, torch.ones(2), dist.ReduceOp.BAND)
    if not hasattr(dist.ReduceOp, "__getstate__") or torch.__version__.startswith("1."):
        raises(NotImplementedError, dist.all_reduce, torch.ones(2), torch._C._distributed_c10d._make_nccl_premul_sum(2.0))
    tensor = torch.ones(1)
    dist.all_reduce(tensor)
    check(tensor.item() == size, tensor)


def direct(rank, size):
    """The process group's own methods, in all their forms."""
    group = dist.distributed_c10d._get_default_group()
    check((group.rank(), group.size(), group.name()) == (rank, size, "tutti"), group.name())
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
    group.gather(into if rank == 0 else [], torch.ones(1) * rank, root=0).wait()
    check(rank or [t.item() for t in into] == list(range(size)), into)
    got = torch.zeros(1)
    group.scatter(got, [torch.ones(1) * peer for peer in range(size)] if rank == 0 else [], root=0).wait()
    check(got.item() == rank, got)
    group.reduce_scatter(got, [torch.ones(1) for _ in range(size)], op=dist.ReduceOp.SUM).wait()
    check(got.item() == size, got)
    group.alltoall(into, [torch.ones(1) * rank for _ in range(size)]).wait()
    check([t.item() for t in into] == list(range(size)), into)
    row = torch.zeros(size)
    group.alltoall_base(row, torch.full((size,), float(rank)), [], []).wait()
    check(row.tolist() == list(range(size)), row)
    group.barrier().wait()


class Collectives(Case):
    def test_two(self):
        for body in (all_reduce, reduce, moves, reduce_scatter, all_to_all, coalesced, sizes, sparse, pieces, refused, direct):
            with self.subTest(body=body.__name__):
                self.ranks(2, body)

    def test_three(self):
        def everything(rank, size):
            for body in (all_reduce, reduce, moves, reduce_scatter, all_to_all, coalesced, sparse, pieces, direct):
                body(rank, size)
        self.ranks(3, everything)

    def test_alone(self):
        def everything(rank, size):
            for body in (all_reduce, reduce, moves, reduce_scatter, all_to_all, coalesced, sparse, direct):
                body(rank, size)
        self.ranks(1, everything)


if __name__ == "__main__":
    main()
