# ctest: timeout=180 labels=nosan,faults
# What is under way and how it ends: waits, futures and what hangs on them, threads, and that every
# wait() tells a failure again.
import datetime
import os
import threading

from torch_support import (DEATH, Case, backend_of, check, default, die, dist, hear, main, raises,
                           same, store, tell, torch, tutti)


def futures(rank, size):
    tensor = torch.full((1000,), float(rank))
    future = dist.all_reduce(tensor, async_op=True).get_future()
    doubled = future.then(lambda ended: ended.value()[0] * 2)
    check(future.wait()[0].data_ptr() == tensor.data_ptr(), "the tensor itself")
    same(doubled.wait(), torch.full((1000,), float(size * (size - 1))))
    work = dist.barrier(async_op=True)
    check(work.get_future().wait() == [] and work.wait() and work.result() == [], "of a barrier")
    check(work.get_future().done(), "one that is over is over at once")


def lists_of_tensors(rank, size):
    """What a future is worth is a list of tensors, for every operation: the reducer, which is C++,
    asserts it."""
    group, one, row = default(), torch.ones(2), [torch.zeros(2) for _ in range(size)]
    with dist.distributed_c10d._coalescing_manager(async_ops=True) as several:
        dist.all_reduce(torch.ones(3))
        dist.all_reduce(torch.ones(4))
    for work, count in ((group.allreduce([one.clone()]), 1),
                        (group.allreduce_coalesced([one.clone(), one.clone()]), 2),
                        (group.broadcast(one.clone(), 0), 1),
                        (dist.reduce(one.clone(), 0, async_op=True), 1),
                        (dist.all_gather(row, one, async_op=True), size),
                        (dist.all_gather_single(torch.zeros(2 * size), one, async_op=True), 1),
                        (dist.gather(one, row if rank == 0 else None, 0, async_op=True),
                         size if rank == 0 else 0),
                        (dist.scatter(one.clone(), row if rank == 0 else None, 0, async_op=True),
                         1),
                        (dist.reduce_scatter(one.clone(), row, async_op=True), 1),
                        (dist.barrier(async_op=True), 0),
                        (dist.reduce_scatter_single(one.clone(), torch.ones(2 * size),
                                                    async_op=True), 1),
                        (dist.all_to_all(row, [one] * size, async_op=True), size),
                        (several.works[0], 2),
                        (dist.all_to_all_single(torch.ones(size), torch.ones(size), async_op=True),
                         1),
                        (dist.isend(one, 1) if rank == 0 else dist.irecv(one.clone(), 0), 1)):
        value = work.get_future().wait()
        check(isinstance(value, list) and len(value) == count
              and all(isinstance(it, torch.Tensor) for it in value), (work, value))


def chained(rank, size):
    """Callbacks that start more and wait for it in the middle: as many threads as it takes. The
    order is the same on all ranks, since one chain follows the other."""
    total = torch.ones(1)
    for _ in range(5):
        def more(ended):
            return dist.all_reduce(ended.value()[0], async_op=True).get_future().wait()[0]
        total = dist.all_reduce(total, async_op=True).get_future().then(more).wait()
    check(total.item() == size ** 10, total)

    def blocks(ended):
        tensor = ended.value()[0]
        dist.all_reduce(tensor)
        dist.barrier()
        return tensor
    same(dist.all_reduce(torch.ones(1), async_op=True).get_future().then(blocks).wait(),
         torch.full((1,), float(size * size)))


def held_up(rank, size):
    """What hangs on one future, and waits for the program, does not hold up other works
    and futures."""
    go, inside = threading.Event(), threading.Event()

    def waits(ended):
        inside.set()
        return go.wait(50)
    if rank == 1:
        hear("attached")                                     # until then the other one's cannot end
    work = dist.all_reduce(torch.ones(1), async_op=True)
    if rank == 0:
        held = work.get_future().then(waits)
        tell("attached")
        check(inside.wait(50), "the callback")
    for _ in range(20):
        same(dist.all_reduce(torch.ones(1), async_op=True).get_future().wait()[0],
             torch.full((1,), float(size)))
        dist.barrier()
    go.set()
    check(rank == 1 or held.wait() is True, "to its end")


def raises_in_a_callback(rank, size):
    """What a callback raises is its own future's, and nobody else's."""
    future = dist.all_reduce(torch.ones(1), async_op=True).get_future()
    bad = future.then(lambda ended: 1 // 0)
    error = raises(Exception, bad.wait)
    check("division" in str(error), error)
    check(future.wait()[0].item() == size, "it is well")
    dist.barrier()


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


def dropped(rank, size):
    """A work that nobody holds ends all the same, and its result is there once a later operation
    has ended, also where it goes by a copy."""
    strided, dense = torch.ones(100, 2).t(), torch.ones(100)
    for tensor in (strided, dense):
        dist.all_reduce(tensor, async_op=True)
    dist.barrier()
    same(strided, torch.full((100, 2), float(size)).t())
    same(dense, torch.full((100,), float(size)))


def asked_by_many(rank, size):
    """Several threads wait for one work."""
    if rank == 1:
        hear("all are waiting")
    tensor = torch.ones(4)
    work = dist.all_reduce(tensor, async_op=True)
    future, seen, began = work.get_future(), [], threading.Barrier(4)

    def waits(call):
        began.wait()
        call()
        seen.append(tensor.tolist())
    threads = [threading.Thread(target=waits, args=[call])
               for call in (work.wait, work.wait, future.wait)]
    for thread in threads:
        thread.start()
    began.wait()
    if rank == 0:
        tell("all are waiting")
    for thread in threads:
        thread.join()
    check(seen == [[float(size)] * 4] * 3, seen)


def profile(rank, size):
    """Each operation is an event of a profile."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as found:
        dist.all_reduce(torch.ones(10))
        dist.barrier(async_op=True).wait()
    names = {event.name for event in found.events()}
    check({"tutti:all_reduce", "tutti:barrier"} <= names, names)


# ---- failures ------------------------------------------------------------------------------------


def rethrown(rank, size):
    """Every wait() of a work that failed raises: the first, the second, one from another thread,
    one after completion; so do its futures."""
    if rank == 1:
        hear("under way")
        die()
    works = [dist.all_reduce(torch.ones(3), async_op=True),
             dist.all_reduce(torch.ones(3), async_op=True)]
    future = works[0].get_future()
    tell("under way")
    for work in works:
        for _ in range(3):
            error = raises(tutti.RankDied, work.wait)
            check(isinstance(error, dist.DistBackendError) and 1 in error.ranks, error)
        seen = []
        thread = threading.Thread(target=lambda: seen.append(raises(tutti.RankDied, work.wait)))
        thread.start()
        thread.join()
        check(len(seen) == 1 and seen[0].ranks == (1,), seen)
        check(work.is_completed() and not work.is_success() and "rank 1" in str(work.exception()),
              work.exception())
        raises(tutti.RankDied, work.result)
        raises(tutti.RankDied, work.synchronize)
        if hasattr(work, "block_current_stream"):
            raises(tutti.RankDied, work.block_current_stream)
    for _ in range(2):
        raises(tutti.RankDied, future.wait)
        raises(tutti.RankDied, future.value)
        raises(tutti.RankDied, works[1].get_future().wait)
    check(works[0].get_future_result().wait() != 0, "the outcome")
    late = dist.all_reduce(torch.ones(3), async_op=True)  # what comes later fails by the same cause
    check(raises(tutti.RankDied, late.wait).ranks == (1,), "from then on")
    raises(tutti.RankDied, late.get_future().wait)


def rethrown_all_at_once(rank, size):
    """Threads that wait while it fails: each is told."""
    if rank == 1:
        hear("under way")
        die()
    work, seen = dist.all_reduce(torch.ones(3), async_op=True), []
    threads = [threading.Thread(target=lambda: seen.append(raises(tutti.RankDied, work.wait).ranks))
               for _ in range(4)]
    for thread in threads:
        thread.start()
    tell("under way")
    for thread in threads:
        thread.join()
    check(seen == [(1,)] * 4, seen)


def rethrown_functional(rank, size):
    """wait_tensor of a functional collective raises, the first time it is used; a second one has
    nothing left to wait for."""
    import torch.distributed._functional_collectives as functional
    if rank == 1:
        hear("under way")
        die()
    tensors = [functional.all_reduce(torch.ones(3), "sum", default()) for _ in range(2)]
    tell("under way")
    raises(tutti.RankDied, functional.wait_tensor, tensors[0])
    raises(tutti.RankDied, lambda: tensors[1] + 1)


def rethrown_together(rank, size):
    """A coalesced work."""
    if rank == 1:
        hear("under way")
        die()
    with dist.distributed_c10d._coalescing_manager(async_ops=True) as several:
        dist.all_reduce(torch.ones(3))
        dist.all_reduce(torch.ones(3))
    tell("under way")
    for _ in range(2):
        raises(tutti.RankDied, several.wait)
    raises(tutti.RankDied, several.works[0].get_future().wait)


def shot_down(rank, size):
    """A failure reaches what hangs on a future."""
    if rank == 1:
        die()
    future = dist.all_reduce(torch.ones(5), async_op=True).get_future()
    error = raises(RuntimeError, future.then(lambda ended: ended.value()).wait)
    check("RankDied" in str(error) or "died" in str(error), error)


def aborted(rank, size):
    """abort() of the backend, and of torch's _abort_process_group, ends what is under way, on
    every rank."""
    group = dist.new_group()
    if rank == 0:
        work = group.allreduce([torch.ones(1)])
        backend_of(group).abort()
        raises(tutti.Aborted, work.wait)
    else:
        raises(tutti.Aborted, dist.recv, torch.ones(1), 0, group)
    raises(tutti.Aborted, dist.barrier, group)
    dist.barrier()
    keys = store()
    if rank == 0:
        work = dist.barrier(async_op=True)
        dist.distributed_c10d._abort_process_group()
        keys.set("aborted", "")
        raises(tutti.Aborted, work.wait)
    else:
        keys.wait(["aborted"])
        error = raises(tutti.Error, dist.barrier)        # by then the other rank may have left, too
        check("rank 0 aborted" in error.report, error.report)


class Works(Case):
    def test_ends_well(self):
        self.each(2, futures, lists_of_tensors, chained, held_up, raises_in_a_callback, overlap,
                  dropped, asked_by_many, profile)

    def test_every_wait_rethrows(self):
        self.each(2, rethrown, rethrown_all_at_once, rethrown_functional, rethrown_together,
                  shot_down, ends={1: DEATH})

    def test_abort(self):
        self.ranks(2, aborted)


if __name__ == "__main__":
    main()
