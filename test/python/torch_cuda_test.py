# ctest: timeout=300 labels=nosan
# tutti.torch serves tensors of CUDA: results, the order of streams, futures, failures, refusals. On
# the driver of the tests, under a torch that was built without CUDA: torch_cuda/guard.cc is what it
# lacks, compiled once into the build tree.
import glob
import os
import sys
import threading

from support import skip, tutti

BESIDE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(tutti.__file__))))
BUILD = os.environ.get("TUTTI_BUILD", BESIDE)
DRIVER = os.path.join(BUILD, "fake_cuda")
if not os.path.exists(os.path.join(DRIVER, "libcuda.so.1")):
    skip(f"the tests' CUDA driver is not in {DRIVER}: build the target fake_cuda")
if DRIVER not in os.environ.get("LD_LIBRARY_PATH", "").split(":"):
    os.environ["LD_LIBRARY_PATH"] = DRIVER + ":" + os.environ.get("LD_LIBRARY_PATH", "")
    os.execv(sys.executable, [sys.executable, *sys.argv])

from torch_support import (DEATH, Case, backend_of, check, default, die, dist, hear,  # noqa: E402
                           main, raises, same, tell, torch)
from tutti.torch import _build  # noqa: E402

if torch.version.cuda or torch.version.hip:
    skip(f"torch {torch.__version__} has a CUDA of its own")


def built():
    """The module of guard.cc."""
    here, folder = (os.path.join(os.path.dirname(os.path.abspath(__file__)), "torch_cuda"),
                    os.path.join(BUILD, "test", "python", "torch_cuda"))
    os.makedirs(folder, exist_ok=True)
    source = _build.Source(here, _build._source().include)
    try:
        path = _build._made(torch, source, _build._key(torch, source), folder, ["-Werror"])
    except ImportError as error:
        if "apt-get install" in str(error):                             # there is no compiler
            skip(str(error))
        raise
    for stale in glob.glob(os.path.join(glob.escape(folder), "_c10d-*.so")):
        if stale != path:
            os.remove(stale)
    loader = _build.importlib.machinery.ExtensionFileLoader("guard._c10d", path)
    module = _build.importlib.util.module_from_spec(
        _build.importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


cuda = built()
torch.cuda.get_device_capability = lambda device=None: (9, 0)        # which dist.broadcast asks for
BIG = 300_000


# ---- tensors, whose contents are of the host ----------------------------------------------------


def full(n, value, dtype=torch.float32):
    return torch.full((n,), value).to(dtype)


def ramp(n, start, dtype=torch.float32):
    return (torch.arange(n) % 61 + start).to(dtype)


def on(host, device=0):
    return cuda.empty(host, device).copy_(host)


def late(host, device=0):
    """What is in it is yet to come, by a copy in the current stream: whoever reads it in another
    one races."""
    return on(torch.zeros_like(host), device).copy_(on(host, device))


def read(tensor):
    """By the default stream, also where another one is current: it waits for no stream that
    torch makes."""
    device = tensor.device.index
    before = cuda.use(0, device)
    try:
        return tensor.cpu()
    finally:
        cuda.use(before, device)


class Held:
    """A stream is current whose work does not go on before the end of the block, or until go()."""

    def __enter__(self):
        self.stream = cuda.stream()
        self.before = cuda.use(self.stream)
        return self

    def hold(self):
        cuda.hold(self.stream, True)

    def go(self):
        cuda.hold(self.stream, False)

    def __exit__(self, *_):
        self.go()
        cuda.use(self.before)


def own_stream(body):
    """The body, with a stream of its own as the current one, as under torch.cuda.stream()."""
    def inside(rank, size, *args):
        cuda.use(cuda.stream())
        body(rank, size, *args)
    inside.__name__ = body.__name__
    return inside


# ---- results ------------------------------------------------------------------------------------


def reductions(rank, size):
    for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int32,
                  torch.int64, torch.uint8):
        for n in (0, 1, 1000):
            mine = late(ramp(n, rank, dtype))
            dist.all_reduce(mine)
            same(read(mine), sum(ramp(n, r) for r in range(size)).to(dtype), (dtype, n))
    mine = late(ramp(BIG, rank))
    dist.all_reduce(mine, dist.ReduceOp.MAX)
    same(read(mine), ramp(BIG, size - 1))
    mine = late(ramp(1000, rank))
    dist.all_reduce(mine, dist.ReduceOp.AVG)
    same(read(mine), ramp(1000, (size - 1) / 2))
    mine = late(ramp(1000, rank))
    dist.all_reduce(mine, dist._make_nccl_premul_sum(2.0))
    same(read(mine), 2 * sum(ramp(1000, r) for r in range(size)))
    for root in range(size):
        mine = late(ramp(1000, rank))
        dist.reduce(mine, root)
        if rank == root:
            same(read(mine), sum(ramp(1000, r) for r in range(size)))
    mine = [late(full(n, rank + 1.0)) for n in (3, 500)]
    dist.all_reduce_coalesced(mine)
    for one in mine:
        same(read(one), full(one.numel(), size * (size + 1) / 2))


def scattered_reductions(rank, size):
    for n in (1, 1000, BIG // 3):
        out, mine = on(torch.zeros(n)), late(torch.cat([ramp(n, rank + r) for r in range(size)]))
        dist.reduce_scatter_tensor(out, mine)
        same(read(out), sum(ramp(n, rank + r) for r in range(size)), n)
    out, mine = on(torch.zeros(50)), [late(ramp(50, rank + r)) for r in range(size)]
    dist.reduce_scatter(out, mine)
    same(read(out), sum(ramp(50, rank + r) for r in range(size)))


def moves(rank, size):
    for n in (1, 1000, BIG // 3):
        for root in range(size):
            mine = late(ramp(n, rank))
            dist.broadcast(mine, root)
            same(read(mine), ramp(n, root), (n, root))
        out = on(torch.zeros(n * size))
        dist.all_gather_into_tensor(out, late(ramp(n, rank)))
        same(read(out), torch.cat([ramp(n, r) for r in range(size)]), n)
        out = on(torch.zeros(n * size))
        dist.all_to_all_single(out, late(torch.cat([ramp(n, 10 * rank + r) for r in range(size)])))
        same(read(out), torch.cat([ramp(n, 10 * r + rank) for r in range(size)]), n)


def moves_of_lists(rank, size):
    rows = [on(torch.zeros(40)) for _ in range(size)]
    dist.all_gather(rows, late(ramp(40, rank)))
    for r, row in enumerate(rows):
        same(read(row), ramp(40, r))
    rows = [on(torch.zeros(40)) for _ in range(size)]
    dist.all_to_all(rows, [late(ramp(40, 10 * rank + r)) for r in range(size)])
    for r, row in enumerate(rows):
        same(read(row), ramp(40, 10 * r + rank))
    rows = [on(torch.zeros(40)) for _ in range(size)] if rank == 0 else None
    dist.gather(late(ramp(40, rank)), rows, 0)
    for r, row in enumerate(rows or []):
        same(read(row), ramp(40, r))
    out = on(torch.zeros(40))
    dist.scatter(out, [late(ramp(40, r)) for r in range(size)] if rank == 0 else None, 0)
    same(read(out), ramp(40, rank))


def messages(rank, size):
    right, left = (rank + 1) % size, (rank - 1) % size
    for n in (0, 1, 1000, BIG):
        out = on(torch.zeros(n))
        work = dist.irecv(out, left)
        dist.send(late(ramp(n, rank)), right)
        work.wait()
        same(read(out), ramp(n, left), n)
    if rank == 0:
        for _ in range(size - 1):
            out = on(torch.zeros(5))
            source = dist.recv(out, tag=1)
            same(read(out), ramp(5, source))
    else:
        dist.send(late(ramp(5, rank)), 0, tag=1)
    out, back = on(torch.zeros(7)), on(torch.zeros(7))
    for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, late(ramp(7, rank)), right),
                                        dist.P2POp(dist.irecv, out, left),
                                        dist.P2POp(dist.isend, late(ramp(7, 2 * rank)), left),
                                        dist.P2POp(dist.irecv, back, right)]):
        work.wait()
    same(read(out), ramp(7, left))
    same(read(back), ramp(7, 2 * right))
    host = torch.zeros(9)                                       # from a device to the host and back
    work = dist.irecv(host, left)
    dist.send(late(ramp(9, rank)), right)
    work.wait()
    same(host, ramp(9, left))
    out = on(torch.zeros(9))
    work = dist.irecv(out, left)
    dist.send(host, right)
    work.wait()
    same(read(out), ramp(9, (left - 1) % size))


def strided(rank, size):
    """They go by a copy in the current stream, and are in place for every stream when they
    are back."""
    def turned(value):
        return late(ramp(600, value).view(20, 30)).t()
    mine = turned(rank)
    dist.all_reduce(mine)
    same(read(mine), sum(ramp(600, r) for r in range(size)).view(20, 30).t())
    for work in [dist.all_reduce(mine, async_op=True)]:
        work.get_future().wait()
    same(read(mine), size * sum(ramp(600, r) for r in range(size)).view(20, 30).t())
    out = late(torch.zeros(20, 30)).t()
    work = dist.irecv(out, (rank - 1) % size)
    dist.send(turned(rank), (rank + 1) % size)
    work.wait()
    same(read(out), ramp(600, (rank - 1) % size).view(20, 30).t())
    rows = [late(torch.zeros(20, 30)).t() for _ in range(size)]
    dist.all_gather(rows, turned(rank))
    for r, row in enumerate(rows):
        same(read(row), ramp(600, r).view(20, 30).t())


def blocks_its_stream(rank, size):
    """What PyTorch 2.9 has for backends that the CPU drives: here it waits as wait() does, so the
    result is in place for every stream."""
    if not hasattr(dist.Work, "block_current_stream"):
        return
    dense, turned = late(ramp(1000, rank)), late(ramp(600, rank).view(20, 30)).t()
    for mine, n, shape in ((dense, 1000, lambda x: x), (turned, 600, lambda x: x.view(20, 30).t())):
        work = dist.all_reduce(mine, async_op=True)
        work.block_current_stream()
        same(read(mine), shape(sum(ramp(n, r) for r in range(size))))
        check(work.is_completed(), "it has ended")


def beside_the_host(rank, size):
    """One rank's tensor on the device, the others' in host memory; and both kinds by turns."""
    host = ramp(1000, rank)
    mine = late(host) if rank == 0 else host.clone()
    backend_of().allreduce([mine]).wait()
    same(read(mine) if rank == 0 else mine, sum(ramp(1000, r) for r in range(size)))
    for place in (lambda x: x.clone(), late, lambda x: x.clone()):
        mine = place(host)
        dist.all_reduce(mine)
        same(mine.cpu(), sum(ramp(1000, r) for r in range(size)))
    dist.barrier()
    got = [None] * size
    dist.all_gather_object(got, rank)
    check(got == list(range(size)), got)


def devices(rank, size):
    """Each rank's tensors on another device."""
    mine = late(ramp(1000, rank), rank % 2)
    check(mine.device == torch.device("cuda", rank % 2), mine.device)
    dist.all_reduce(mine)
    same(read(mine), sum(ramp(1000, r) for r in range(size)))
    check(dist.all_reduce(mine, async_op=True).get_future().wait()[0] is mine, "its future")
    out = on(torch.zeros(5), rank % 2)
    work = dist.irecv(out, (rank - 1) % size)
    dist.send(late(ramp(5, rank), rank % 2), (rank + 1) % size)
    work.wait()
    same(read(out), ramp(5, (rank - 1) % size))
    error = raises(tutti.Invalid, dist.all_reduce_coalesced,
                   [on(torch.zeros(5), 0), on(torch.zeros(5), 1)])
    check("invalid tensor device" in str(error), error)


# ---- streams ------------------------------------------------------------------------------------


def current_stream(rank, size):
    """An operation comes behind what its stream had to do at the call, and waits for it while the
    caller goes on."""
    source, mine = on(ramp(1000, rank)), on(torch.zeros(1000))
    with Held() as held:
        held.hold()
        mine.copy_(source)
        work = dist.all_reduce(mine, async_op=True)
        check(not work.is_completed() and not cuda.is_idle(held.stream), "it has to wait")
        held.go()
        work.wait()
        same(read(mine), sum(ramp(1000, r) for r in range(size)))
    for call in (lambda: dist.all_reduce(mine),
                 lambda: dist.all_reduce(mine, async_op=True).get_future().wait()):
        with Held() as held:                                  # the same where the call itself waits
            mine.copy_(source)
            dist.barrier()
            held.hold()
            mine.copy_(source)
            thread = threading.Timer(0.05, held.go)
            thread.start()
            call()
            thread.join()
            same(read(mine), sum(ramp(1000, r) for r in range(size)))


def no_other_stream(rank, size):
    """What another stream still has to do is not waited for."""
    source, other, mine = on(ramp(1000, rank)), on(torch.zeros(1000)), on(ramp(1000, rank))
    with Held() as held:
        held.hold()
        other.copy_(source)
        cuda.use(held.before)
        dist.all_reduce(mine)
        same(read(mine), sum(ramp(1000, r) for r in range(size)))
        check(not cuda.is_idle(held.stream), "it is held")
        cuda.use(held.stream)


def stream_of_each_thread(rank, size):
    """The current stream is that of the thread that calls."""
    group = dist.new_group()
    source, mine = on(ramp(1000, rank)), on(torch.zeros(1000))

    def calls():
        cuda.use(cuda.stream())
        mine.copy_(source)
        dist.all_reduce(mine, group=group)
    thread = threading.Thread(target=calls)
    thread.start()
    thread.join()
    same(read(mine), sum(ramp(1000, r) for r in range(size)))


def receive_in_its_stream(rank, size):
    """What a stream had to do with a tensor when it was given to irecv comes first, whatever stream
    is current when the message comes, and in whatever thread."""
    right, left = (rank + 1) % size, (rank - 1) % size
    for finish in (lambda work: work.wait(), lambda work: work.get_future().wait()):
        source, out = on(full(1000, -1.0)), on(torch.zeros(1000))
        with Held() as held:
            held.hold()
            out.copy_(source)
            work = dist.irecv(out, left)
            cuda.use(held.before)
            dist.send(on(ramp(1000, rank)), right)
            threading.Timer(0.05, held.go).start()
            finish(work)
            same(read(out), ramp(1000, left))
            cuda.use(held.stream)


# ---- futures ------------------------------------------------------------------------------------


def futures(rank, size):
    total, seen = sum(ramp(1000, r) for r in range(size)), []

    def then(ended):
        value = ended.value()
        seen.append((len(value), cuda.now() != 0))
        return value[0].cpu()                        # in the stream that torch makes current for it
    mine = late(ramp(1000, rank))
    future = dist.all_reduce(mine, async_op=True).get_future()
    same(future.then(then).wait(), total)
    check(future.wait()[0] is mine and future.value()[0] is mine and future.done(),
          "the tensor itself")
    check(seen == [(1, True)], seen)
    same(read(mine), total)
    same(future.then(then).wait(), total)                               # of one that is over
    out = on(torch.zeros(1000 * size))
    value = dist.all_gather_into_tensor(out, late(ramp(1000, rank)),
                                        async_op=True).get_future().wait()
    check(len(value) == 1 and value[0] is out, value)
    rows = [on(torch.zeros(5)) for _ in range(size)]
    value = dist.all_gather(rows, late(ramp(5, rank)), async_op=True).get_future().wait()
    check(len(value) == size and all(a is b for a, b in zip(value, rows)), len(value))
    out = on(torch.zeros(5))
    future = dist.irecv(out, (rank - 1) % size).get_future()
    value = dist.isend(late(ramp(5, rank)), (rank + 1) % size).get_future().wait()
    check(len(value) == 1 and future.wait()[0] is out, value)
    same(read(out), ramp(5, (rank - 1) % size))


def futures_of_several(rank, size):
    mine = [late(full(n, rank + 1.0)) for n in (3, 500)]
    with dist.distributed_c10d._coalescing_manager(async_ops=True) as several:
        for one in mine:
            dist.all_reduce(one)
    value = several.works[0].get_future().wait()
    check(len(value) == 2 and all(a is b for a, b in zip(value, mine)), len(value))
    for one in mine:
        same(read(one), full(one.numel(), size * (size + 1) / 2))
    backend = backend_of()
    mine = [late(full(n, rank + 1.0)) for n in (4, 60)]
    backend._start_coalescing()
    for one in mine:
        backend.allreduce([one])
    value = backend._end_coalescing().get_future().wait()
    check(len(value) == 2 and all(a is b for a, b in zip(value, mine)), len(value))
    for one in mine:
        same(read(one), full(one.numel(), size * (size + 1) / 2))


def chained(rank, size):
    """Callbacks whose operations go by the stream that is current in them."""
    def more(ended):
        return dist.all_reduce(late(ended.value()[0].cpu()),
                               async_op=True).get_future().wait()[0].cpu()
    got = dist.all_reduce(late(full(10, 1.0)), async_op=True).get_future().then(more).wait()
    same(got, full(10, float(size * size)))


# ---- failures -----------------------------------------------------------------------------------


def death(rank, size):
    mine = late(ramp(1000, rank))
    dist.all_reduce(mine)
    if rank == 1:
        hear("under way")
        die()
    work = dist.all_reduce(mine, async_op=True)
    future = work.get_future()
    seen = future.then(lambda ended: ended.value())
    if rank == 0:
        tell("under way")
    for _ in range(2):
        error = raises(tutti.RankDied, work.wait)
        check(1 in error.ranks and isinstance(error, dist.DistBackendError), error)
        raises(tutti.RankDied, future.wait)
    error = raises(RuntimeError, seen.wait)
    check("RankDied" in str(error) or "died" in str(error), error)
    check(1 in raises(tutti.RankDied, dist.all_reduce, on(ramp(9, rank))).ranks, "from then on")
    raises(tutti.RankDied, lambda: dist.all_reduce(on(ramp(9, rank)),
                                                   async_op=True).get_future().wait())


def death_of_a_sender(rank, size):
    if rank == 1:
        hear("under way")
        die()
    if rank == 0:
        out = on(ramp(1000, 5))
        future = dist.irecv(out, 1).get_future()
        tell("under way")
        check(raises(tutti.RankDied, future.wait).ranks == (1,), "the sender")
        same(read(out), ramp(1000, 5))


def refusals(rank, size):
    host, device = torch.ones(6), on(torch.ones(6))
    wide, rows = on(torch.zeros(6 * size)), [on(torch.ones(6)) for _ in range(size)]
    for call, *args in ((dist.all_gather_into_tensor, wide, host),
                        (dist.all_gather_into_tensor, torch.zeros(6 * size), device),
                        (dist.reduce_scatter_tensor, host, wide),
                        (dist.all_to_all_single, device, host), (dist.all_gather, rows, host),
                        (dist.all_to_all, rows, [host] * size),
                        (dist.all_to_all, rows, [*rows[1:], host]),
                        (dist.all_reduce_coalesced, [host, device]),
                        (backend_of().allreduce_coalesced, [device, host])):
        error = raises(tutti.Invalid, call, *args)
        check("invalid tensor device" in str(error), (call, error))
    error = raises(tutti.Invalid, default().allreduce, [device, host])
    check("invalid tensor type" in str(error), error)                   # gloo's words for it
    error = raises(tutti.Invalid, dist.all_reduce, on(torch.ones(6)), dist.ReduceOp.BOR)
    check("non-integral" in str(error), error)
    dist.all_reduce(device)
    same(read(device), full(6, float(size)))


def both_kinds(rank, size):
    for place in (on, torch.clone):
        mine = place(ramp(100, rank))
        dist.all_reduce(mine)
        same(mine.cpu(), sum(ramp(100, r) for r in range(size)))
    dist.barrier()


def of_cuda_alone(rank, size):
    mine = on(ramp(100, rank))
    dist.all_reduce(mine)
    same(read(mine), sum(ramp(100, r) for r in range(size)))


def ends(rank, size):
    """The driver looks at what is still registered or open when a program is over."""
    mine = late(ramp(BIG, rank))
    dist.all_reduce(mine)
    dist.all_reduce(mine, async_op=True).get_future().wait()


def ends_destroyed(rank, size):
    ends(rank, size)
    dist.destroy_process_group()


class Cuda(Case):
    def test_results(self):
        for n in (2, 3):
            self.each(n, reductions, scattered_reductions, moves, moves_of_lists, messages, strided,
                      beside_the_host)

    def test_results_of_a_stream(self):
        for n in (2, 3):
            self.each(n, *(own_stream(body) for body in (reductions, scattered_reductions, moves,
                                                         moves_of_lists, messages, strided)))

    def test_devices(self):
        os.environ["FAKE_CUDA_DEVICES"] = "2"
        self.addCleanup(os.environ.pop, "FAKE_CUDA_DEVICES")
        self.each(2, devices, own_stream(devices))

    def test_streams(self):
        self.each(2, blocks_its_stream, own_stream(blocks_its_stream))
        self.each(2, current_stream, no_other_stream, stream_of_each_thread, receive_in_its_stream)

    def test_futures(self):
        self.each(2, futures, futures_of_several, chained)
        self.each(3, own_stream(futures), own_stream(futures_of_several), own_stream(chained))

    def test_failures(self):
        self.each(2, death, death_of_a_sender, ends={1: DEATH})
        self.each(3, own_stream(death), ends={1: DEATH})
        self.each(2, refusals)
        self.each(3, refusals)

    def test_ends(self):
        for body in (ends, ends_destroyed):
            with self.subTest(body=body.__name__):
                said = self.whole(2, body)
                check(not any("misuse" in text for text in said), said)


class Named(Case):
    """The backend of each kind of tensor, by its name."""
    backend = "cpu:tutti,cuda:tutti"

    def test_named(self):
        self.each(2, both_kinds, refusals, own_stream(futures))


class BesideGloo(Case):
    backend = "cpu:gloo,cuda:tutti"

    def test_named(self):
        self.each(2, both_kinds)


class Alone(Case):
    backend = "cuda:tutti"

    def test_named(self):
        self.each(2, of_cuda_alone)


if __name__ == "__main__":
    main()
