# ctest: timeout=180 labels=nosan,faults
# What is under way and how it ends: futures, patience, threads, Ctrl-C; and every failure as tutti's exception, naming the caller's line.
import datetime
import os
import signal
import sys
import threading

from support import line_of_caller
from torch_support import DEATH, Case, check, dist, main, raises, same, torch, tutti

default = dist.distributed_c10d._get_default_group


def futures(rank, size):
    tensor = torch.full((1000,), float(rank))
    future = dist.all_reduce(tensor, async_op=True).get_future()
    doubled = future.then(lambda ended: ended.value()[0] * 2)
    check(future.wait()[0].data_ptr() == tensor.data_ptr(), "the tensor itself")
    same(doubled.wait(), torch.full((1000,), float(size * (size - 1))))
    work = dist.barrier(async_op=True)
    check(work.get_future() is work.get_future(), "one future")
    check(work.get_future().wait() == [] and work.wait() and work.result() == [], "of a barrier")


def many_futures(rank, size):
    """Callbacks that start more and wait for it in the middle: as many threads as it takes. The order is the same on all ranks, since one
    chain follows the other."""
    total = torch.ones(1)
    for _ in range(5):
        def more(ended):
            return dist.all_reduce(ended.value()[0], async_op=True).get_future().wait()[0]
        total = dist.all_reduce(total, async_op=True).get_future().then(more).wait()
    check(total.item() == size ** 10, total)


def overlap(rank, size):
    """Work goes on while nobody waits for it; as many as one likes, ended in any order."""
    tensors = [torch.full((5000,), float(i)) for i in range(50)]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    for i in (49, 0, 25):
        works[i].wait()
    while not all(work.is_completed() for work in works):
        os.sched_yield()
    for i, tensor in enumerate(tensors):
        same(tensor, torch.full((5000,), float(i * size)))
    dist.all_reduce(torch.ones(100_000), async_op=True)                 # nobody ever asks


def patience(rank, size):
    """The patience of one wait() is no deadline."""
    group = default()
    other = dist.new_group()
    if rank == 0:
        tensor = torch.ones(1)
        work = dist.all_reduce(tensor, async_op=True)
        error = raises(TimeoutError, work.wait, datetime.timedelta(milliseconds=20))
        check(not isinstance(error, tutti.Error), error)
        check(not work.is_completed(), "under way")
        dist.barrier(other)
        check(work.wait() and tensor.item() == size, tensor)
    else:
        dist.barrier(other)
        dist.all_reduce(torch.ones(1))
    check(group.rank() == rank, group)


def options(rank, size):
    """A call's own timeout, of its options."""
    other = dist.new_group()
    if rank == 0:
        opts = dist.AllreduceOptions()
        opts.timeout = datetime.timedelta(milliseconds=100)
        error = raises(tutti.Timeout, default().allreduce([torch.ones(1)], opts).wait)
        check("rank 1" in error.report, error)
    dist.barrier(other)


def late(rank, size):
    """The timeout of a group."""
    group = dist.new_group(timeout=datetime.timedelta(milliseconds=200))
    if rank == 0:
        error = raises(tutti.Timeout, dist.barrier, group)
        check(isinstance(error, TimeoutError) and isinstance(error, RuntimeError) and "rank 1" in error.report, error)
        raises(tutti.Aborted, dist.barrier, group)
    dist.barrier()


def differ(rank, size):
    if rank == 0:
        site = line_of_caller()
        error = raises(tutti.Mismatch, lambda: dist.barrier())
    elif rank == 1:
        site = line_of_caller()
        error = raises(tutti.Mismatch, lambda: dist.all_reduce(torch.ones(4)))
    else:
        site = line_of_caller()
        error = raises(tutti.Mismatch, lambda: dist.broadcast(torch.ones(4), 0, async_op=True).wait())
    check(site in error.report, (site, error.report))
    check(sum(call in error.report for call in ("barrier", "all_reduce f32 sum 4", "broadcast f32 4 root 0")) > 1, error.report)


def dies(rank, size, call):
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    error = raises(tutti.RankDied, call)
    check(error.ranks == (1,) and "torch_work_test.py" in error.report, error.report)
    check(raises(tutti.Aborted, dist.barrier).ranks == (1,), "from then on")


def blocked():
    dist.all_reduce(torch.ones(5))


def later():
    dist.all_reduce(torch.ones(5), async_op=True).wait()


def direct():
    default().allreduce([torch.ones(5)]).wait()


def future_ends():
    dist.all_reduce(torch.ones(5), async_op=True).get_future().wait()


def receives():
    dist.recv(torch.ones(5), 1)


def objects():
    dist.all_gather_object([None] * dist.get_world_size(), {"a": 1})


def chained(rank, size):
    """A failure reaches what hangs on a future, as torch passes it on: by its text."""
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    future = dist.all_reduce(torch.ones(5), async_op=True).get_future()
    error = raises(RuntimeError, future.then(lambda ended: ended.value()).wait)
    check("RankDied" in str(error) or "died" in str(error), error)


def aborted(rank, size):
    group = default()
    if rank == 0:
        group.abort("enough of this")
    error = raises(tutti.Aborted, dist.barrier)
    check(rank == 0 or "enough of this" in error.report, error)


def asleep(pid):
    with open(f"/proc/{pid}/stat") as stat:
        return stat.read().rpartition(")")[2].split()[0] == "S"


def interrupted(rank, size, call):
    """Ctrl-C in a call that waits for the other rank."""
    other = dist.new_group()
    if rank == 0:
        dist.send(torch.tensor([os.getpid()]), 1, group=other)
        raises(KeyboardInterrupt, call)
        default().abort("interrupted")
        dist.barrier(other)
    else:
        pid = torch.zeros(1, dtype=torch.int64)
        dist.recv(pid, 0, group=other)
        while not asleep(int(pid)):
            os.sched_yield()
        os.kill(int(pid), signal.SIGINT)
        dist.barrier(other)
        raises(tutti.Aborted, dist.barrier)


def threads(rank, size):
    """Several threads of a rank use one group: a receive that is blocked holds nobody up."""
    got = torch.zeros(1)
    thread = threading.Thread(target=lambda: dist.recv(got, 1 - rank, tag=7))
    thread.start()
    for i in range(50):
        tensor = torch.ones(10)
        dist.all_reduce(tensor)
        check(tensor[0] == size, tensor)
    dist.send(torch.ones(1) + rank, 1 - rank, tag=7)
    thread.join()
    check(got.item() == 2 - rank, got)
    totals = []
    many = [threading.Thread(target=lambda: totals.append(dist.all_reduce(torch.ones(1), async_op=True).wait())) for _ in range(8)]
    for thread in many:
        thread.start()
    for thread in many:
        thread.join()
    check(totals == [True] * 8, totals)


def end_under_way(rank, size):
    """The program ends while futures are under way: that is an end, not a hang."""
    if rank == 0:
        dist.all_reduce(torch.ones(1), async_op=True).get_future().then(lambda ended: None)
        sys.stderr = open(os.devnull, "w")
        tutti.torch._threads._end()
    else:
        raises(tutti.Aborted, dist.recv, torch.ones(1), 0)


class Works(Case):
    def test_ends_well(self):
        for body in (futures, many_futures, overlap, patience, threads):
            with self.subTest(body=body.__name__):
                self.ranks(2, body)

    def test_ends_badly(self):
        for body in (options, late, aborted, end_under_way):
            with self.subTest(body=body.__name__):
                self.ranks(2, body)
        self.ranks(3, differ)

    def test_a_killed_rank(self):
        for call in (blocked, later, direct, future_ends, receives, objects):
            with self.subTest(call=call.__name__):
                self.ranks(2, dies, call, ends={1: DEATH})
        self.ranks(2, chained, ends={1: DEATH})

    def test_interrupt(self):
        for call in (blocked, later, direct, receives):
            with self.subTest(call=call.__name__):
                self.ranks(2, interrupted, call)


if __name__ == "__main__":
    main()
