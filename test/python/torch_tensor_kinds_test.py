# ctest: timeout=240 labels=nosan
# Tensors that are not what their bytes say, in every operation: what arrives is what a plain
# computation gives, or the operation is refused with the reason, before anything is touched.
import torch.distributed._functional_collectives  # noqa: F401

from torch_support import (MESH_LIMIT, Case, check, default, dist, main, raises, same, torch,
                           tutti)

SHAPE = (2, 3)
LAZY = torch.ops._c10d_functional


def values(rank, shift=0):
    n = torch.arange(6.0).reshape(SHAPE) + 10 * rank + 100 * shift
    return torch.complex(n, n + 1)


# What holds the values, in memory of its own; all but the first are not what their bytes say.


def strided(x):
    return torch.stack([x, -x], -1).reshape(x.shape[0], -1)[:, ::2]


def windows(x):
    """Elements of its own that a look at the strides alone does not tell from shared ones."""
    steps = (3, 2) if x.dim() == 2 and x.shape[0] == 2 else (1,) * x.dim()
    if steps != (3, 2):
        return strided(x)
    room = torch.zeros(3 * (x.shape[0] - 1) + 2 * (x.shape[1] - 1) + 1, dtype=x.dtype)
    return room.as_strided(x.shape, steps).copy_(x)


@torch.inference_mode()
def inference(x):
    """torch lets nobody write to it outside of the mode, but an operation ends where it ends."""
    return x.t().contiguous().t()


KINDS = {
    "plain": lambda x: x.clone(),
    "negative": lambda x: torch._neg_view(-x),
    "conjugate": lambda x: x.conj().resolve_conj().conj(),
    "both": lambda x: torch._neg_view((-x).conj().resolve_conj().conj()),
    "permuted": lambda x: x.t().contiguous().t(),
    "strided": strided,
    "windows": windows,
    "inference": inference,
    "lazy and permuted": lambda x: torch._neg_view((-x).t().contiguous().t()),
}


def wait(work):
    work.wait()


# Each operation with tensors of a kind: what there is on this rank afterwards, and what has to be.


def sums(rank, size, shift=0):
    return sum(values(r, shift) for r in range(size))


def all_reduce(rank, size, make, group):
    t = make(values(rank))
    wait(group.allreduce([t]))
    return [(t, sums(rank, size))]


def all_reduce_coalesced(rank, size, make, group):
    a, b = make(values(rank)), make(values(rank, 1))
    wait(group.allreduce_coalesced([a, b]))
    return [(a, sums(rank, size)), (b, sums(rank, size, 1))]


def twice(rank, size, make, group):
    a, b = make(values(rank)), make(values(rank, 1))
    wait(group.allreduce_coalesced([a, b, a]))
    return [(a, sums(rank, size)), (b, sums(rank, size, 1))]


def several_reduced(rank, size, make, group):
    a, b = make(values(rank)), make(values(rank, 1))
    wait(group.allreduce([a, b]))
    return [(t, sums(rank, size) + sums(rank, size, 1)) for t in (a, b)]


def reduce(rank, size, make, group):
    t = make(values(rank))
    o = dist.ReduceOptions()
    o.rootRank = size - 1
    wait(group.reduce([t], o))
    return [(t, sums(rank, size) if rank == size - 1 else values(rank))]


def broadcast(rank, size, make, group):
    t = make(values(rank))
    o = dist.BroadcastOptions()
    o.rootRank = size - 1
    wait(group.broadcast([t], o))
    return [(t, values(size - 1))]


def all_gather(rank, size, make, group):
    into = [make(values(9)) for _ in range(size)]
    wait(group.allgather([into], [make(values(rank))]))
    return [(into[r], values(r)) for r in range(size)]


def all_gather_one(rank, size, make, group):
    into = make(torch.cat([values(9)] * size))
    wait(group._allgather_base(into, make(values(rank))))
    return [(into, torch.cat([values(r) for r in range(size)]))]


def all_gather_coalesced(rank, size, make, group):
    into = [make(torch.cat([values(9)] * size)) for _ in range(2)]
    wait(group.allgather_into_tensor_coalesced(into, [make(values(rank)), make(values(rank, 1))]))
    return [(into[i], torch.cat([values(r, i) for r in range(size)])) for i in range(2)]


def gather(rank, size, make, group):
    into = [make(values(9)) for _ in range(size)] if rank == 0 else []
    wait(group.gather([into] if rank == 0 else [], [make(values(rank))]))
    return [(t, values(r)) for r, t in enumerate(into)]


def scatter(rank, size, make, group):
    t = make(values(9))
    wait(group.scatter([t], [[make(values(r)) for r in range(size)]] if rank == 0 else []))
    return [(t, values(rank))]


def reduce_scatter(rank, size, make, group):
    t = make(values(9))
    wait(group.reduce_scatter([t], [[make(values(rank, p)) for p in range(size)]]))
    return [(t, sums(rank, size, rank))]


def reduce_scatter_one(rank, size, make, group):
    t = make(values(9))
    wait(group._reduce_scatter_base(t, make(torch.cat([values(rank, p) for p in range(size)]))))
    return [(t, sums(rank, size, rank))]


def reduce_scatter_coalesced(rank, size, make, group):
    into = [make(values(9)) for _ in range(2)]
    wait(group.reduce_scatter_tensor_coalesced(into,
                                               [make(torch.cat([values(rank, p + i)
                                                                for p in range(size)]))
                                                for i in range(2)]))
    return [(into[i], sums(rank, size, rank + i)) for i in range(2)]


def all_to_all(rank, size, make, group):
    into = [make(values(9)) for _ in range(size)]
    wait(group.alltoall(into, [make(values(rank, p)) for p in range(size)]))
    return [(into[r], values(r, rank)) for r in range(size)]


def all_to_all_one(rank, size, make, group):
    into = make(torch.cat([values(9)] * size))
    wait(group.alltoall_base(into, make(torch.cat([values(rank, p) for p in range(size)])), [], []))
    return [(into, torch.cat([values(r, rank) for r in range(size)]))]


def messages(rank, size, make, group):
    into = make(values(9))
    work = group.recv([into], (rank - 1) % size, 5)
    wait(group.send([make(values(rank))], (rank + 1) % size, 5))
    wait(work)
    any_ = make(values(9))
    work = group.recv_anysource([any_], 6)
    wait(group.send([make(values(rank, 1))], (rank + 1) % size, 6))
    wait(work)
    return [(into, values((rank - 1) % size)), (any_, values((rank - 1) % size, 1))]


def functional(rank, size, make, group):
    name, t = group.group_name, make(values(rank))
    got = [(LAZY.wait_tensor(LAZY.all_reduce(t, "sum", name)), sums(rank, size)), (t, values(rank)),
           (LAZY.wait_tensor(LAZY.broadcast(t, 1, name)), values(1)),
           (LAZY.wait_tensor(LAZY.all_gather_into_tensor(t, size, name)),
            torch.cat([values(r) for r in range(size)])),
           (LAZY.wait_tensor(LAZY.reduce_scatter_tensor(make(torch.cat([values(rank, p)
                                                                        for p in range(size)])),
                                                        "sum", size, name)),
            sums(rank, size, rank)),
           (LAZY.wait_tensor(LAZY.all_to_all_single(t, [1] * size, [1] * size, name)),
            torch.cat([values(r)[rank:rank + 1] for r in range(size)]))]
    return got


def functional_in_place(rank, size, make, group):
    """What changes the tensor that it was given, and waits for it by it."""
    name, t, u = group.group_name, make(values(rank)), make(values(rank, 1))
    a, b = make(values(rank, 2)), make(values(rank, 3))
    into = make(torch.cat([values(9)] * size))
    piece, got = make(values(9)), make(values(9))
    pieces = make(torch.cat([values(rank, p) for p in range(size)]))
    waited = [LAZY.wait_tensor(LAZY.all_reduce_(t, "sum", name)),
              LAZY.wait_tensor(LAZY.broadcast_(u, 1, name)),
              *(LAZY.wait_tensor(x) for x in LAZY.all_reduce_coalesced_([a, b], "sum", name)),
              LAZY.wait_tensor(LAZY.all_gather_into_tensor_out(make(values(rank)), size, name,
                                                               out=into)),
              LAZY.wait_tensor(LAZY.reduce_scatter_tensor_out(pieces, "sum", size, name,
                                                              out=piece))]
    expected = [sums(rank, size), values(1, 1), sums(rank, size, 2), sums(rank, size, 3),
                torch.cat([values(r) for r in range(size)]), sums(rank, size, rank)]
    LAZY.irecv(got, (rank - 1) % size, 7, name)
    sent = LAZY.isend(make(values(rank)), (rank + 1) % size, 7, name)
    LAZY.wait_tensor(got)
    LAZY.wait_tensor(sent)
    return list(zip(waited, expected)) + list(zip((t, u, a, b, into, piece),
                                                  expected)) + [(got, values((rank - 1) % size))]


def functional_by_object(rank, size, make, group):
    t, u = make(values(rank)), make(values(rank, 1))
    LAZY.wait_tensor(LAZY.all_reduce_(t, "sum", group))
    return [(t, sums(rank, size)), (LAZY.wait_tensor(LAZY.all_reduce(u, "sum", group)),
                                    sums(rank, size, 1))]


def of_a_parameter(rank, size, make, group):
    """No gradient goes through an operation in place, and a leaf's memory may be changed by one."""
    leaf = torch.zeros(SHAPE, dtype=torch.complex64, requires_grad=True)
    views = [leaf.conj(), torch._neg_view(leaf), leaf.t()]
    for view in views:
        with torch.no_grad():
            view.copy_(values(rank).reshape(view.shape))
        LAZY.wait_tensor(LAZY.all_reduce_(view, "sum",
                                          group.group_name)) if view.is_contiguous() else wait(
            group.allreduce([view]))
        same(view, sums(rank, size).reshape(view.shape))
    return []


CALLS = [all_reduce, all_reduce_coalesced, twice, several_reduced, reduce, broadcast, all_gather,
         all_gather_one, all_gather_coalesced, gather, scatter, reduce_scatter, reduce_scatter_one,
         reduce_scatter_coalesced, all_to_all, all_to_all_one, messages, functional,
         functional_in_place, functional_by_object, of_a_parameter]
# where torch itself wants contiguous tensors
ONE_LAYOUT = (functional, functional_in_place, functional_by_object)


def each_kind(rank, size):
    """On all ranks, and on the last one alone."""
    group = default()
    for name, make in KINDS.items():
        for call in CALLS:
            if (call in ONE_LAYOUT and not make(values(0)).is_contiguous()
                or call is several_reduced and name == "inference"):
                continue                # torch itself refuses them
            for alone in (False, True):
                for i, (got, expected) in enumerate(call(rank, size, KINDS["plain"] if alone
                                                         and rank != size - 1 else make, group)):
                    same(got, expected, (name, call.__name__, alone, i))


def by_name(rank, size):
    """As programs call it, who have real numbers; torch itself refuses lazy conjugates, which it
    views as pairs."""
    def make(x):
        return torch.complex(torch.zeros_like(x), -x).conj().imag if rank == 0 else x.clone()
    mine = [torch.full((1,), 3.0 * r + 1) for r in range(size)]
    total = sum(mine)
    check(rank != 0 or make(mine[0]).is_neg(), "is no lazy negative")
    for later in (False, True):
        t = make(mine[rank])
        work = dist.all_reduce(t, async_op=later)
        work and work.wait()
        same(t, total)
        into = [make(torch.zeros(1)) for _ in range(size)]
        work = dist.all_gather(into, make(mine[rank]), async_op=later)
        work and work.wait()
        for r in range(size):
            same(into[r], mine[r])
        t = make(mine[rank])
        work = dist.broadcast(t, 0, async_op=later)
        work and work.wait()
        same(t, mine[0])
    t = make(mine[rank])
    future = dist.all_reduce(t, async_op=True).get_future()
    same(future.wait()[0], total)
    same(t, total)
    dropped = make(mine[rank])
    dist.all_reduce(dropped, async_op=True)
    dist.all_reduce(make(mine[rank]))
    same(dropped, total)
    raises(RuntimeError, dist.all_reduce, torch.ones(1, dtype=torch.complex64).conj())


def dense(rank, size):
    """Dense tensors in another order of memory, each rank in its own."""
    base = torch.arange(120.0).reshape(2, 3, 4, 5)
    orders = [torch.channels_last, torch.contiguous_format]
    t = (base + rank).to(memory_format=orders[rank % 2])
    dist.all_reduce(t)
    same(t, size * base + size * (size - 1) / 2)
    check(t.is_contiguous(memory_format=orders[rank % 2]), t.stride())


def refusals(rank, size):
    """The reason, and nothing is touched: the group is whole."""
    group = default()
    expanded = torch.ones(1, 3).expand(2, 3)
    overlapping = torch.ones(4).as_strided((2, 3), (1, 1))
    both = torch.ones(2, 2).t()
    zero = torch._efficientzerotensor((2, 3))
    plain = [torch.zeros(2, 3) for _ in range(size)]
    quantized = torch.quantize_per_tensor(torch.ones(2, 3), 0.1, 0, torch.qint8)
    nested = torch.nested.nested_tensor([torch.zeros(2), torch.zeros(3)])
    jagged = torch.nested.nested_tensor([torch.zeros(2), torch.zeros(3)], layout=torch.jagged)
    csr = torch.ones(2, 3).to_sparse_csr()
    coo = torch.ones(2, 3).to_sparse()
    mkldnn = torch.ones(2, 3).to_mkldnn()
    for text, tensor in (("several elements in one place", expanded),
                         ("several elements in one place", overlapping), ("lazy zero", zero)):
        for call in (lambda t: group.allreduce([t]),
                     lambda t: group.broadcast(t, (rank + 1) % size),
                     lambda t: group.recv([t], 0, 0),
                     lambda t: group.allgather([[t] * size], [plain[0]]),
                     lambda t: group.scatter([t], [plain] if rank == 0 else []),
                     lambda t: group.allreduce_coalesced([plain[0], t]),
                     lambda t: LAZY.all_reduce_(t, "sum", group.group_name)):
            check(text in str(raises(tutti.Invalid, call, tensor)), text)
        group.allgather([plain], [tensor]).wait()       # to be read it will do
        same(plain[0], tensor.clone() if tensor is not zero else torch.zeros(2, 3))
    for text, tensor in (("quantized", quantized), ("nested", nested), ("nested", jagged),
                         ("layout SparseCsr", csr), ("layout Mkldnn", mkldnn)):
        for call in (lambda t: group.allreduce([t]), lambda t: group.broadcast(t, 0),
                     lambda t: group.send([t], 0, 0), lambda t: group.recv([t], 0, 0),
                     lambda t: group.allgather([[t] * size], [t]),
                     lambda t: group.allgather([[t] * size], [plain[0]]),
                     lambda t: group._allgather_base(t, t),
                     lambda t: group.gather([[t] * size] if rank == 0 else [], [t]),
                     lambda t: group.scatter([t], [[t] * size] if rank == 0 else []),
                     lambda t: group.reduce_scatter([t], [[t] * size]),
                     lambda t: group.alltoall([t] * size, [t] * size)):
            check(text in str(raises(tutti.Invalid, call, tensor)), text)
    check("layout Sparse" in str(raises(tutti.Invalid, group.broadcast, coo, 0)), "coo")
    group.allreduce([coo]).wait()
    same(coo.to_dense(), torch.full((2, 3), float(size)))
    for outs in ([both] * size,
                 [both[:1], both[:, :1], *[torch.ones(2, 2).t() for _ in range(size)]][:size]):
        check("share memory" in str(raises(tutti.Invalid, group.allgather, [outs],
                                           [torch.ones(outs[0].shape)])), outs)
    group.barrier().wait()


def beside_gloo(rank, size):
    """Groups of another backend in the same process get what torch gives them."""
    gloo = dist.new_group(backend="gloo", timeout=MESH_LIMIT)
    t = torch.zeros(1)
    dist.broadcast(torch._neg_view(torch.ones(1)) if rank == 0 else t, 0, group=gloo)
    same(t, torch.full((1,), -1.0) if rank else torch.zeros(1))
    if rank == 0:
        check("Quantized" in str(raises(NotImplementedError, gloo.allreduce,
                                        [torch.quantize_per_tensor(torch.ones(1), 0.1, 0,
                                                                   torch.qint8)])), "gloo")


def wrapped(rank, size):
    """A group that torch has wrapped to check it is ours all the same."""
    dist.set_debug_level(dist.DebugLevel.DETAIL)
    group = dist.new_group()
    check(type(group._get_backend(torch.device("cpu"))).__name__ == "_ProcessGroupWrapper", group)
    t = torch._neg_view(torch.full((2,), -1.0 - rank))
    dist.all_reduce(t, group=group)
    same(t, torch.full((2,), size * (size + 1) / 2))


class Kinds(Case):
    def test_two(self):
        self.each(2, each_kind, by_name, dense, refusals, beside_gloo, wrapped)

    def test_three(self):
        self.each(3, by_name, dense)


class KindsAsGloo(Case):
    backend = "gloo"

    def setUp(self):
        tutti.torch.as_gloo()

    def test_two(self):
        self.each(2, by_name, dense)


if __name__ == "__main__":
    main()
