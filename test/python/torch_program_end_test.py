# ctest: timeout=180 labels=nosan,faults
# How programs end: with works and futures under way, with groups that nobody destroyed, in forks;
# bounded, by 0 or an error, never by a signal.
import os
import signal
import sys
import tempfile

from torch_support import (Case, backend_of, check, default, die, dist, hear, main, raises, tell,
                           torch, tutti)
import torch.distributed._functional_collectives as functional

KEPT = []                                           # what lives until the interpreter takes it down


def work_under_way(rank, size):
    if rank == 0:
        KEPT.append(dist.all_reduce(torch.ones(1), async_op=True))
        tell("under way")
    else:
        hear("under way")                                               # and leaves without it


def work_dropped(rank, size):
    if rank == 0:
        dist.all_reduce(torch.ones(1), async_op=True)
        tell("under way")
    else:
        hear("under way")


def future_under_way(rank, size):
    if rank == 0:
        KEPT.append(dist.all_reduce(torch.ones(1), async_op=True).get_future())
        tell("under way")
    else:
        hear("under way")


def continuation_under_way(rank, size):
    """What hangs on it is Python, which is run, or is not any more."""
    if rank == 0:
        ending = dist.all_reduce(torch.ones(1), async_op=True).get_future()
        KEPT.append(ending.then(lambda ended: sum(range(1000))))
        tell("under way")
    else:
        hear("under way")


def continuations_in_time(rank, size):
    """All of them have come to their end: what hangs on the futures is run before the
    program ends."""
    for _ in range(20):
        dist.all_reduce(torch.ones(1),
                        async_op=True).get_future().then(lambda ended: os.write(2, b"run\n"))
    dist.barrier()


def functional_unwaited(rank, size):
    """torch's registry destroys it in a static destructor."""
    KEPT.append(functional.all_reduce(torch.ones(5), "sum", default()))
    if rank == 0:
        tell("under way")
    else:
        hear("under way")


def receive_under_way(rank, size):
    KEPT.append(dist.irecv(torch.ones(1), 1 - rank))
    KEPT.append(dist.irecv(torch.ones(1), 1 - rank).get_future())


def nothing_destroyed(rank, size):
    KEPT.append(dist.new_group())
    dist.all_reduce(torch.ones(1))


def destroyed_under_way(rank, size):
    """destroy_process_group with work under way, which is then waited for."""
    work = dist.all_reduce(torch.ones(4), async_op=True)
    future = dist.all_reduce(torch.ones(4), async_op=True).get_future()
    keys = dist.distributed_c10d._get_default_store()
    dist.destroy_process_group()
    check(work.wait() and future.wait()[0][0] == size, "it goes on")
    keys.set(f"over-{rank}", "")
    keys.wait([f"over-{peer}" for peer in range(size)])


def destroyed_and_left(rank, size):
    """The other rank has never come."""
    if rank == 0:
        work = dist.all_reduce(torch.ones(4), async_op=True)
        KEPT.append(work)
        tell("under way")
    else:
        hear("under way")
    dist.destroy_process_group()
    if rank == 0:
        raises(tutti.Error, work.wait)


def used_after(rank, size):
    """A group that was destroyed, and is still held."""
    group, ours = default(), backend_of()
    dist.barrier()
    dist.destroy_process_group()
    error = raises(tutti.Invalid, ours.barrier)
    check("destroyed" in str(error), error)
    check(group.size() == size, group)


def receive_after_others(rank, size):
    """Threads that have completed futures and are idle, and one that is still needed when the
    program ends."""
    for _ in range(3):
        futures = [dist.irecv(torch.ones(1), 1 - rank, tag=tag).get_future() for tag in range(20)]
        for tag in range(20):
            dist.send(torch.ones(1), 1 - rank, tag=tag)
        for future in futures:
            future.wait()
    KEPT.append(dist.irecv(torch.ones(1), 1 - rank).get_future())


def raised(rank, size):
    """An uncaught exception on one rank, while the other waits for it."""
    if rank == 1:
        hear("under way")
        raise ValueError("of the program")
    work = dist.all_reduce(torch.ones(1), async_op=True)
    future = work.get_future()
    tell("under way")
    raises(tutti.RankDied, work.wait)
    raises(tutti.RankDied, future.wait)


def uncaught(rank, size):
    """The failure itself is what the program ends with."""
    if rank == 1:
        die()
    dist.all_reduce(torch.ones(1))


def interrupted_by_sigterm(rank, size):
    if rank == 1:
        dist.recv(torch.ones(1), 0)
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(7))
    KEPT.append(dist.irecv(torch.ones(1), 1).get_future())
    os.kill(os.getpid(), signal.SIGTERM)
    dist.recv(torch.ones(1), 1)


def forked(rank, size):
    """A fork of a rank is not the rank: it is told so, ends well, and its parent goes on."""
    work = dist.all_reduce(torch.ones(2), async_op=True) if rank == 0 else None
    future = work.get_future() if work else None
    pid = os.fork()
    if pid == 0:
        error = raises(tutti.Error, dist.barrier)
        check("fork" in str(error), error)
        if work:
            error = raises(tutti.Error, work.wait)
            check("fork" in str(error), error)
        return                                                          # to the interpreter's end
    check(os.waitpid(pid, 0)[1] == 0, "the fork's end")
    if rank:
        dist.all_reduce(torch.ones(2))
    else:
        check(work.wait() and future.wait()[0][0] == size, "the parent's work")
    dist.barrier()


def fork_with_groups_of_its_own(rank, size):
    """A fork that leaves the parent's groups alone may make others, with the forks of
    other ranks."""
    dist.barrier()
    pid = os.fork()
    if pid == 0:
        c10d = dist.distributed_c10d
        c10d._world.pg_map.clear()
        path = os.environ["TUTTI_TEST_STORE"]
        backend = tutti.torch._create.create(type("Options", (), {
            "store": dist.FileStore(path, size), "group_rank": rank, "group_size": size,
            "timeout": c10d.default_pg_timeout, "global_ranks_in_group": list(range(size)),
            "group_id": "forks"})())
        tensor = torch.ones(3)
        backend.allreduce([tensor], dist.AllreduceOptions()).wait()
        check(tensor[0] == size, tensor)
        os._exit(0)
    check(os.waitpid(pid, 0)[1] == 0, "the fork's end")
    dist.barrier()


class Ends(Case):
    def test_under_way(self):
        for body in (work_under_way, work_dropped, future_under_way, continuation_under_way,
                     functional_unwaited, receive_under_way, receive_after_others,
                     nothing_destroyed, destroyed_under_way, destroyed_and_left, used_after):
            with self.subTest(body=body.__name__):
                for said in self.whole(2, body):
                    self.assertNotIn("Traceback", said)
                    self.assertNotIn("terminate", said)

    def test_continuations_are_run(self):
        for said in self.whole(2, continuations_in_time):
            self.assertEqual(said.count("run\n"), 20, said)

    def test_by_errors(self):
        said = self.whole(2, raised, ends={1: 1})
        self.assertIn("ValueError: of the program", said[1])
        said = self.whole(2, uncaught, ends={0: 1, 1: -9})
        self.assertIn("RankDied", said[0])
        self.whole(2, interrupted_by_sigterm, ends={0: 7, 1: 1})

    def test_forks(self):
        self.whole(2, forked)
        with tempfile.TemporaryDirectory() as folder:
            os.environ["TUTTI_TEST_STORE"] = os.path.join(folder, "store")
            self.ranks(2, fork_with_groups_of_its_own)


if __name__ == "__main__":
    main()
