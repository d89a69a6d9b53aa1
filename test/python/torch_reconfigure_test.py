# ctest: timeout=120 labels=nosan
# What torch has from 2.14 on: groups whose ranks are told later, and again (reconfigure), hooks
# that run before a group is given up, time that is given to a group for a while, gather_single.
import datetime

from torch_support import (DEATH, Case, backend_of, check, default, die, dist, hear, main, plain,
                           raises, same, skip, tell, torch, tutti)

if torch.__version__ < (2, 14):
    skip(f"torch {torch.__version__} has no reconfigure, abort hooks or ephemeral timeouts: they "
         "came with 2.14")
import os
import tempfile


def again(rank, size):
    """Three ranks; two of them without the third; three in another order."""
    path = os.environ["TUTTI_TEST_STORE"]
    meet = dist.FileStore(path + "-handles", size)
    dist.init_process_group("tutti", init_method=f"file://{path}", rank=rank, world_size=size,
                            enable_reconfigure=True)
    raises(tutti.Invalid, dist.barrier)
    check(dist._supports_reconfigure(), "it does")
    meet.set(str(rank), dist._get_reconfigure_handle())
    handles = [meet.get(str(peer)).decode() for peer in range(size)]
    for number, members in enumerate(([0, 1, 2], [2, 0], [2, 1, 0])):
        if rank not in members:
            continue
        dist._reconfigure(uuid=number, handles=[handles[peer] for peer in members],
                          timeout=datetime.timedelta(seconds=50)).wait()
        backend = backend_of()
        check((backend.rank(), backend.size()) == (members.index(rank), len(members)),
              (backend.rank(), backend.size()))
        got = [torch.zeros(2) for _ in members]
        default().allgather([got], [torch.full((2,), float(rank))]).wait()
        check([int(tensor[0]) for tensor in got] == members, got)
    raises(tutti.Invalid, dist._reconfigure, uuid=9, handles=["somebody"])
    dist.destroy_process_group()


def hooks(rank, size):
    """Each runs once, on every rank that meets the death, before its error comes out."""
    group, seen = dist.new_group(), []
    group.register_abort_hook(1, lambda: seen.append(1))
    group.register_abort_hook(2, lambda: seen.append(2))
    group.unregister_abort_hook(2)
    dist.barrier(group=group)
    check(seen == [], seen)
    if rank == 1:
        hear("first", "third")
        die()
    tell("first" if rank == 0 else "third")
    for _ in range(2):
        raises(tutti.RankDied, dist.barrier, group=group)
        check(seen == [1], seen)


def more_time(rank, size):
    """A group's time plus what it is given once; then its own again."""
    group = dist.new_group(timeout=datetime.timedelta(milliseconds=150))
    if rank == 1:
        hear("late")
        dist.barrier(group=group)
        return hear("over")
    group._add_ephemeral_timeout(datetime.timedelta(seconds=100))
    work = dist.barrier(group=group, async_op=True)
    check(not work.is_completed(), "without rank 1")
    done = datetime.datetime.now() + datetime.timedelta(milliseconds=400)
    while datetime.datetime.now() < done:
        check(not work.is_completed(), "its time is not over")
    tell("late")
    work.wait()
    raises(tutti.Timeout, dist.barrier, group=group)
    tell("over")


def gathered(rank, size):
    for root in range(size):
        whole = torch.zeros(size * 2) if rank == root else torch.zeros(0)
        opts = dist.GatherOptions()
        opts.rootRank = root
        backend_of().gather_single(whole, torch.full((2,), float(rank)), opts).wait()
        if rank == root:
            same(whole, torch.arange(size).repeat_interleave(2).float())


class Again(Case):
    def test_reconfigure(self):
        with tempfile.TemporaryDirectory() as folder:
            os.environ["TUTTI_TEST_STORE"] = os.path.join(folder, "store")
            self.assertEqual(plain(3, again), [0, 0, 0])

    def test_hooks(self):
        self.ranks(3, hooks, ends={1: DEATH})

    def test_more_time(self):
        self.ranks(2, more_time)

    def test_gathered(self):
        self.ranks(3, gathered)


if __name__ == "__main__":
    main()
