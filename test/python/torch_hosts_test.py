# ctest: timeout=150 labels=nosan,faults
# A group whose ranks are on several hosts: each collective against what it must give, the same bits
# in each run, DDP; and hosts that disagree, lose their leader, a rank or the link, or stand still.
# The hosts are namespaces of this machine (hosts_support.py): two with two ranks each, or three
# with two, one, one.
import datetime
import io
import os
import random
import signal
import tempfile
import threading
import time
import unittest

import hosts_support
from torch_support import backend_of, check, dist, main, raises, skip, torch, tutti

PER_HOST, SIZE = 2, 4
TWO, THREE = [2, 2, 0], [2, 1, 1]
ROUNDS = 30 if os.environ.get("TUTTI_PROVE") == "1" else 1
why = hosts_support.refusal()
if why:
    skip(why)
_ports = iter(range(29500, 29900))


def joined(body, rank, port, timeout, *args):
    torch.set_num_threads(1)
    dist.init_process_group("tutti", init_method=f"tcp://10.77.0.1:{port}", rank=rank,
                            world_size=SIZE, timeout=datetime.timedelta(seconds=timeout))
    body(rank, *args)
    if dist.is_initialized():
        dist.destroy_process_group()


def entry(rank, body, port, timeout, args):
    joined(body, rank, port, timeout, *args)


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.hosts = hosts_support.Hosts(3)

    @classmethod
    def tearDownClass(cls):
        cls.hosts.close()

    def four(self, body, *args, on=TWO, ends=None, timeout=30, meanwhile=None):
        got = self.hosts.run(on, entry, body, next(_ports), timeout, args,
                             meanwhile=meanwhile)
        self.assertEqual(got, [(ends or {}).get(rank, 0) for rank in range(SIZE)])


def numbers(n, dtype, rank):
    """Small integers, so every order of adding has the same sum."""
    made = torch.arange(n) * 7 % 5 + rank + 1
    return made % 2 == 0 if dtype == torch.bool else made.to(dtype)


def of_all(n, dtype):
    return torch.stack([numbers(n, dtype, rank) for rank in range(SIZE)])


OPERATIONS = {
    dist.ReduceOp.SUM: lambda all, dtype: all.sum(0).to(dtype),
    dist.ReduceOp.AVG: lambda all, dtype: (torch.div(all.sum(0), SIZE, rounding_mode="trunc")
                                           if not dtype.is_floating_point
                                           else all.double().mean(0)).to(dtype),
    dist.ReduceOp.PRODUCT: lambda all, dtype: all.double().prod(0).to(dtype),
    dist.ReduceOp.MIN: lambda all, dtype: all.amin(0),
    dist.ReduceOp.MAX: lambda all, dtype: all.amax(0),
}


def reductions(rank):
    for n in (0, 1, 100, 40001):
        for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8,
                      torch.int32, torch.int64):
            for op, fold in OPERATIONS.items():
                if op == dist.ReduceOp.PRODUCT and dtype in (torch.int8, torch.bfloat16):
                    continue
                x = numbers(n, dtype, rank)
                dist.all_reduce(x, op)
                check(x.equal(fold(of_all(n, dtype), dtype)), (n, dtype, op))
        root = n % SIZE
        x = numbers(n, torch.int32, rank)
        kept = x.clone()
        dist.reduce(x, root)
        want = of_all(n, torch.int32).sum(0).to(torch.int32) if rank == root else kept
        check(x.equal(want), (n, "reduce"))
        row = of_all(n * SIZE, torch.int64).sum(0).chunk(SIZE) if n else [torch.zeros(0).long()] * 4
        out = torch.zeros(n, dtype=torch.int64)
        dist.reduce_scatter_tensor(out, numbers(n * SIZE, torch.int64, rank))
        check(out.equal(row[rank]), (n, "reduce_scatter_tensor"))
        parts = [numbers(n + i, torch.int32, rank) for i in range(SIZE)]
        out = torch.zeros(n + rank, dtype=torch.int32)
        dist.reduce_scatter(out, parts, dist.ReduceOp.AVG)
        want = torch.div(of_all(n + rank, torch.int32).sum(0), SIZE, rounding_mode="trunc")
        check(out.equal(want.to(torch.int32)), (n, "reduce_scatter"))
    truth = numbers(9, torch.bool, rank)
    dist.all_reduce(truth, dist.ReduceOp.MIN)
    check(truth.equal(of_all(9, torch.bool).all(0)), truth)
    several = [numbers(n, torch.float32, rank) for n in (3, 500, 1)]
    dist.all_reduce_coalesced(several)
    for x in several:
        check(x.equal(of_all(len(x), torch.float32).sum(0)), x)


def moves(rank):
    for n in (0, 1, 100, 40001):
        for root in range(SIZE):
            x = numbers(n, torch.float32, rank)
            dist.broadcast(x, root)
            check(x.equal(numbers(n, torch.float32, root)), (n, root, "broadcast"))
            row = [torch.zeros(n, dtype=torch.int16) for _ in range(SIZE)]
            dist.gather(numbers(n, torch.int16, rank), row if rank == root else None, root)
            if rank == root:
                check(torch.stack(row).equal(of_all(n, torch.int16)), (n, root, "gather"))
            out = torch.zeros(n, dtype=torch.int16)
            dist.scatter(out, [numbers(n, torch.int16, r) for r in range(SIZE)]
                         if rank == root else None, root)
            check(out.equal(numbers(n, torch.int16, rank)), (n, root, "scatter"))
        row = [torch.zeros(n + r) for r in range(SIZE)]
        dist.all_gather(row, numbers(n + rank, torch.float32, rank))
        for r in range(SIZE):
            check(row[r].equal(numbers(n + r, torch.float32, r)), (n, "all_gather"))
        whole = torch.zeros(SIZE * n)
        dist.all_gather_into_tensor(whole, numbers(n, torch.float32, rank))
        check(whole.equal(of_all(n, torch.float32).flatten()), (n, "all_gather_into_tensor"))
        splits = [n + rank + to for to in range(SIZE)]
        got = torch.zeros(sum(n + r + rank for r in range(SIZE)))
        dist.all_to_all_single(got, torch.cat([torch.full((k,), 10.0 * rank + to)
                                               for to, k in enumerate(splits)]),
                               [n + r + rank for r in range(SIZE)], splits)
        want = torch.cat([torch.full((n + r + rank,), 10.0 * r + rank) for r in range(SIZE)])
        check(got.equal(want), (n, "all_to_all_single"))
        outs = [torch.zeros(n) for _ in range(SIZE)]
        dist.all_to_all(outs, [torch.full((n,), float(10 * rank + to)) for to in range(SIZE)])
        for r in range(SIZE):
            check(outs[r].equal(torch.full((n,), float(10 * r + rank))), (n, "all_to_all"))
    dist.barrier()
    told = [None] * SIZE
    dist.all_gather_object(told, {"rank": rank})
    check([one["rank"] for one in told] == list(range(SIZE)), told)


def messages(rank):
    """Within a host and between hosts, in order, started together."""
    for distance in range(1, SIZE):
        to, source = (rank + distance) % SIZE, (rank - distance) % SIZE
        sent = [dist.isend(torch.full((n,), float(rank + n)), to, tag=3) for n in (1, 50000, 2)]
        for n in (1, 50000, 2):
            x = torch.zeros(n)
            dist.recv(x, source, tag=3)
            check(x.equal(torch.full((n,), float(source + n))), (distance, n))
        for work in sent:
            work.wait()
    error = raises(tutti.torch._errors.Invalid, dist.recv, torch.zeros(1))
    check("names its sender" in str(error), error)


def groups(rank):
    """Groups below: of one host they are as ever, of several they go between hosts again."""
    near = [dist.new_group([0, 1]), dist.new_group([2, 3])][rank // PER_HOST]
    far = [dist.new_group([0, 2]), dist.new_group([3, 1], sort_ranks=False)
           if "sort_ranks" in dist.new_group.__code__.co_varnames
           else dist.new_group([1, 3])][rank % PER_HOST]
    for group, ranks in (near, (0, 1) if rank < 2 else (2, 3)), (far, (rank % 2, rank % 2 + 2)):
        x = torch.full((1000,), 2.0 ** rank)
        work = dist.all_reduce(x, group=group, async_op=True)
        work.wait()
        check(x[-1] == sum(2.0 ** r for r in ranks), (ranks, x[-1]))
    world = torch.ones(3)
    dist.all_reduce(world)
    check(world[0] == SIZE, world)


def bits(rank):
    """Host by host: ((0 + 1) + (2 + 3)), in each size and run, on every rank."""
    for n in (5, 300, 50000, 1000000):
        torch.manual_seed(n)
        all = torch.randn(SIZE, n)
        for _ in range(2):
            x = all[rank].clone()
            dist.all_reduce(x)
            check(x.equal((all[0] + all[1]) + (all[2] + all[3])), n)


def bits_of_three(rank):
    """Of three hosts each folds a share of what is large: the same order all the same."""
    for n in (5, 300, 50001, 1000000):
        torch.manual_seed(n)
        all = torch.randn(SIZE, n)
        x = all[rank].clone()
        dist.all_reduce(x)
        check(x.equal((all[0] + all[1]) + all[2] + all[3]), n)


def ddp(rank):
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 8))
    alone = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 8))
    alone.load_state_dict(model.state_dict())
    ours = torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=0.05)
    data = torch.randn(SIZE, 16, 64)
    for whose, x in (ours, data[rank]), (alone, data.reshape(-1, 64)):
        by = torch.optim.SGD(whose.parameters(), 0.1)
        for _ in range(3):
            by.zero_grad()
            whose(x).square().mean().backward()
            by.step()
    flat = torch.cat([p.detach().flatten() for p in model.parameters()])
    theirs = torch.cat([p.detach().flatten() for p in alone.parameters()])
    check(torch.allclose(flat, theirs, atol=1e-6), (flat - theirs).abs().max())
    row = [torch.zeros_like(flat) for _ in range(SIZE)]
    dist.all_gather(row, flat)
    check(all(one.equal(flat) for one in row), "the same weights on every rank")


class Right(Case):
    def test_right(self):
        for body in reductions, moves, messages, groups, bits, ddp:
            with self.subTest(body=body.__name__):
                self.four(body)

    def test_three(self):
        for body in reductions, moves, bits_of_three:
            with self.subTest(body=body.__name__):
                self.four(body, on=THREE)


def until_it_fails(kind, *said):
    """Operations until one fails; what it says, and that all later ones say the same."""
    x = torch.ones(1000)
    begun = [0.0]

    def all():
        while True:
            begun[0] = time.monotonic()
            dist.all_reduce(x)
            x.fill_(1)
    error = raises(kind, all)
    took = time.monotonic() - begun[0]
    for text in said:
        check(text in str(error), (text, str(error)))
    again = raises(kind, dist.barrier)
    check(said[0] in str(again), str(again))
    print(f"{os.uname().nodename}: rank {dist.get_rank()}: {took:.2f} s, "
          f"{str(error).splitlines()[0][:160]}", file=io.open(2, "w", closefd=False), flush=True)
    return error


def disagree(rank):
    dist.barrier()
    x = torch.ones(3 if rank < PER_HOST else 4)
    error = raises(tutti.Mismatch, lambda: dist.all_reduce(x))
    check("all_reduce of 3 elements" in str(error) and "all_reduce of 4 elements" in str(error)
          and str(error).count("torch_hosts_test.py:") == 2, str(error))
    check("host a" in str(error) and "host b" in str(error), str(error))


def other_operation(rank):
    error = raises(tutti.Mismatch, lambda: dist.barrier() if rank < PER_HOST
                   else dist.all_reduce(torch.ones(1)))
    check("barrier at" in str(error) and "all_reduce of 1 elements" in str(error), str(error))


def dies(rank, victim, after):
    if rank == victim:
        for _ in range(after):
            dist.all_reduce(torch.ones(1000))
        os.kill(os.getpid(), signal.SIGKILL)
    error = until_it_fails(tutti.RankDied, "host b")
    # of a leader the other host may notice first that its connection is gone
    check(error.ranks == (victim,) or victim == 2 and error.ranks == (2, 3), error.ranks)


def dies_of_three(rank):
    """Host c dies; a and b agree on whom they miss."""
    dist.barrier()
    if rank == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    error = until_it_fails(tutti.RankDied, "host c (rank 3)")
    check(error.ranks == (3,), error.ranks)


def host_dies(rank):
    dist.barrier()
    if rank >= PER_HOST:
        os.kill(os.getpid(), signal.SIGKILL)
    error = until_it_fails(tutti.RankDied, "host b (ranks 2, 3)")
    check(error.ranks == (2, 3), error.ranks)


def stands_still(rank):
    dist.barrier()
    if rank >= PER_HOST:
        os.kill(os.getpid(), signal.SIGSTOP)
    error = until_it_fails(tutti.Timeout, "host b (ranks 2, 3)")
    check(error.ranks == (2, 3), error.ranks)


def is_cut_off(rank, path):
    dist.all_reduce(torch.ones(1000))
    open(os.path.join(path, str(rank)), "w").close()
    there = "host b (ranks 2, 3)" if rank < PER_HOST else "host a (ranks 0, 1)"
    error = until_it_fails(tutti.Timeout, there)
    check(error.ranks == ((2, 3) if rank < PER_HOST else (0, 1)), error.ranks)


def leader_does_nothing(rank, path, waits, deadline):
    """The link is cut. The leader of host a waits in an operation, for so long by the clock of
    rank 1, which is to blame somebody at its own deadline; then it does nothing more until rank 1
    has its error: its handler of signals runs in the wait."""
    dist.all_reduce(torch.ones(1000))
    seen, told = [], os.path.join(path, "told")
    cut, enough = os.path.join(path, "cut"), os.path.join(path, "enough")

    def late(number, frame):
        if os.path.exists(enough):
            seen.append((frame, frame.f_lasti))
        # thrice at the same place: the main thread is in a call into C++, and has turned since
        if len(seen) > 2 and seen[-1] == seen[-2] == seen[-3]:
            signal.setitimer(signal.ITIMER_REAL, 0)
            hosts_support.waited(told)

    open(os.path.join(path, str(rank)), "w").close()
    if rank == 0:
        hosts_support.waited(cut)
        signal.signal(signal.SIGALRM, late)
        signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
    elif rank == 1:
        hosts_support.waited(cut)
        threading.Timer(waits, lambda: open(enough, "w").close()).start()
    lost = waits < deadline - 1
    there = "host a" if rank >= PER_HOST or lost else "host b (ranks 2, 3)"
    try:
        error = until_it_fails(tutti.Timeout, there, "rank 0" if rank < 2 and lost else "host")
        check(lost or error.ranks == ((2, 3) if rank < PER_HOST else (0, 1)), error.ranks)
    finally:
        if rank == 1:
            open(told, "w").close()


def aborts(rank):
    dist.barrier()
    if rank == 3:
        backend_of().break_off("no more")
    until_it_fails(tutti.Aborted, "no more")


class Wrong(Case):
    def test_disagree(self):
        self.four(disagree)
        self.four(other_operation)

    def test_dies(self):
        for victim in [2, 3] + [2] * (ROUNDS - 1):
            self.four(dies, victim, random.randrange(50), ends={victim: hosts_support.KILLED})

    def test_one_of_three_dies(self):
        self.four(dies_of_three, on=THREE, ends={3: hosts_support.KILLED})

    def test_host_dies(self):
        self.four(host_dies, ends={2: hosts_support.KILLED, 3: hosts_support.KILLED})

    def test_stands_still(self):
        self.four(stands_still, timeout=1.5, ends={2: "stopped", 3: "stopped"})

    def test_link(self):
        def cut():
            for rank in range(SIZE):
                hosts_support.waited(os.path.join(path, str(rank)))
            self.hosts.link(1, "down")
        for _ in range(ROUNDS):
            try:
                with tempfile.TemporaryDirectory() as path:
                    self.four(is_cut_off, path, timeout=1.5, meanwhile=cut)
            finally:
                self.hosts.link(1, "up")

    def test_leader_does_nothing(self):
        """Whom the leader's host blames: the host for which the leader has waited, unless the
        leader itself has stood still for long."""
        def cut():
            for rank in range(SIZE):
                hosts_support.waited(os.path.join(path, str(rank)))
            self.hosts.link(1, "down")
            open(os.path.join(path, "cut"), "w").close()
        for waits, deadline in (1.2, 1.5), (0.2, 3):
            try:
                with tempfile.TemporaryDirectory() as path:
                    self.four(leader_does_nothing, path, waits, deadline, timeout=deadline,
                              meanwhile=cut)
            finally:
                self.hosts.link(1, "up")

    def test_aborts(self):
        self.four(aborts)


if __name__ == "__main__":
    main()
