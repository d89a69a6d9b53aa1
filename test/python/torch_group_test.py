# ctest: timeout=180 labels=nosan
# Groups of some of the ranks, send and recv, objects, and groups one after the other.
import datetime
import functools
import gc
import itertools
import os

from torch_support import (DEATH, MESH_LIMIT, Case, backend_of, check, default, die, dist, hear,
                           main, meshed, plain, raises, same, tell, torch, tutti)


def groups(rank, size):
    """Every pair is a group; each has its own operations, beside the others and the whole."""
    pairs = [(pair, dist.new_group(list(pair))) for pair in itertools.combinations(range(size), 2)]
    again = dist.new_group([0, 1])
    for round in range(3):
        for pair, group in pairs:
            if rank not in pair:
                continue
            tensor = torch.full((4,), float(rank))
            dist.all_reduce(tensor, group=group)
            same(tensor, torch.full((4,), float(sum(pair))))
            dist.broadcast(tensor.fill_(rank), pair[1], group=group)
            check(tensor[0] == pair[1], (pair, tensor))
            check((dist.get_rank(group), dist.get_world_size(group)) == (pair.index(rank), 2), pair)
        dist.barrier()
    if rank < 2:
        dist.barrier(again)
    solo = [dist.new_group([peer]) for peer in range(size)][rank]
    tensor = torch.ones(3)
    dist.all_reduce(tensor, group=solo)
    same(tensor, torch.ones(3))


def a_group_breaks(rank, size):
    """What breaks a group does not break the others."""
    pair = dist.new_group([0, 1])
    if rank < 2:
        raises(tutti.Mismatch, (lambda: dist.barrier(pair)) if rank
               else lambda: dist.all_reduce(torch.ones(1), group=pair))
    tensor = torch.ones(1)
    dist.all_reduce(tensor)
    check(tensor.item() == size, tensor)


def split(rank, size):
    """ProcessGroup.split_group, which dist.split_group calls for bound accelerators alone: made by
    its members, and longer-lived than its parent."""
    parent = dist.new_group()
    group = parent.split_group([0, 2], timeout=seconds(7))
    check((group is None) == (rank == 1), group)
    del parent
    if rank != 1:
        tensor = torch.full((4,), float(rank + 1))
        group.allreduce([tensor]).wait()
        same(tensor, torch.full((4,), 4.0))
        check((group.rank(), group.size()) == (rank // 2, 2), group)
        check(backend_of(group).options._timeout == seconds(7), backend_of(group).options._timeout)
    check(backend_of().supports_splitting and backend_of().supports_shrinking,
          "what torch asks first")
    raises(tutti.Invalid, default().split_group, [rank, 7])
    dist.barrier()


def shrunk(rank, size):
    """After a death: what is left of the default group becomes the default group, and goes on when
    torch has destroyed the old one."""
    pair = dist.new_group([0, 2])
    if rank == 1:
        hear("first", "third")
        die()
    tell("first" if rank == 0 else "third")
    raises(tutti.RankDied, dist.barrier)
    pair = dist.shrink_group([1], shrink_flags=dist.distributed_c10d.SHRINK_ABORT)
    check(pair is default() and (dist.get_rank(), dist.get_world_size()) == (rank // 2, 2), pair)
    for value in range(3):
        tensor = torch.full((100,), float(value))
        dist.all_reduce(tensor)
        same(tensor, torch.full((100,), 2.0 * value))
    alone = dist.shrink_group([1 - dist.get_rank()], group=dist.new_group())
    tensor = torch.ones(1)
    dist.all_reduce(tensor, group=alone)
    same(tensor, torch.ones(1))
    dist.barrier()


def crossed(rank, size):
    """Two groups waited for in the other order: that no wait ends is found, and said to all
    who wait."""
    one, two = dist.new_group([0, 1]), dist.new_group([0, 1])
    if rank < 2:
        error = raises(tutti.Deadlock, lambda: dist.barrier(two if rank else one))
        check("rank 0" in error.report and "rank 1" in error.report
              and "torch_group_test.py" in error.report, error.report)
    dist.barrier()


def one_skips(rank, size):
    """A rank does not come to a group's operation, and waits in the default group. What was given a
    deadline ends by that, and the default group, whose 30 minutes nobody has given, is whole. Of
    two groups without one it is said that no wait ends."""
    by_group = dist.new_group(timeout=seconds(1))
    one, two = dist.new_group(), dist.new_group()
    if rank != 1:
        raises(tutti.Timeout, dist.all_reduce, torch.ones(1), group=by_group)
    dist.barrier()
    tensor = torch.ones(1)
    dist.all_reduce(tensor)
    same(tensor, torch.full((1,), float(size)))
    if rank == 1:
        raises(tutti.Deadlock, dist.barrier, one)
    else:
        raises(tutti.Deadlock, dist.barrier, two)
    dist.barrier()


def messages(rank, size):
    left, right = (rank - 1) % size, (rank + 1) % size
    for dtype in (torch.float32, torch.int64, torch.bool, torch.bfloat16, torch.complex64):
        for count in (0, 1, 1000, 100_000):
            tensor = (torch.arange(count) % 2 + rank).to(dtype)
            got = torch.zeros_like(tensor)
            works = [dist.isend(tensor, right, tag=3), dist.irecv(got, left, tag=3)]
            for work in works:
                work.wait()
            same(got, (torch.arange(count) % 2 + left).to(dtype), (dtype, count))
    if rank == 0:
        froms = set()
        for _ in range(1, size):
            got = torch.zeros(2)
            source = dist.recv(got)
            check(got[0] == source, (got, source))
            froms.add(source)
        check(froms == set(range(1, size)), froms)
        work = dist.irecv(torch.zeros(1), tag=9)
        check(work.wait() and work.source_rank() == size - 1, work.source_rank())
    else:
        dist.send(torch.full((2,), float(rank)), 0)
        if rank == size - 1:
            dist.send(torch.zeros(1), 0, tag=9)
    dist.barrier()                                      # what follows is not for a receive from any
    got = torch.zeros(3)
    batch = [dist.P2POp(dist.irecv, got, left),
             dist.P2POp(dist.isend, torch.full((3,), float(rank)), right)]
    for work in dist.batch_isend_irecv(batch):
        work.wait()
    check(got.tolist() == [left] * 3, got)


def tags(rank, size):
    """A message waits for the receive with its tag; what is longer or shorter than the tensor is an
    error, and no garbage."""
    if rank == 0:
        for tag in (5, 6):
            dist.send(torch.tensor([float(tag)]), 1, tag=tag)
        dist.send(torch.ones(3), 1)
        dist.send(torch.ones(3), 1)
        dist.send(torch.ones(3, dtype=torch.int32), 1)
    elif rank == 1:
        got = torch.zeros(1)
        for tag in (6, 5):
            dist.recv(got, 0, tag=tag)
            check(got.item() == tag, got)
        error = raises(tutti.Mismatch, dist.recv, torch.zeros(4), 0)
        check("3 elements" in str(error), error)
        raises(tutti.Error, dist.recv, torch.zeros(2), 0)
        raises(tutti.Mismatch, dist.recv, torch.zeros(3), 0)
    dist.barrier()


def in_a_group(rank, size):
    """Ranks of a message are the whole job's, in a group, too."""
    group = dist.new_group([1, 2])
    if rank == 1:
        dist.send(torch.ones(1), 2, group=group)
    if rank == 2:
        got = torch.zeros(1)
        check(dist.recv(got, group=group) == 1 and got.item() == 1, got)


def objects(rank, size):
    mine = {"rank": rank, "text": "ä" * rank * 1000, "set": {rank}}
    every = [{"rank": peer, "text": "ä" * peer * 1000, "set": {peer}} for peer in range(size)]
    got = [None] * size
    dist.all_gather_object(got, mine)
    check(got == every, got)
    got = [None] * size if rank == 1 else None
    dist.gather_object(mine, got, 1)
    check(rank != 1 or got == every, got)
    got = every[:] if rank == 0 else [None] * size
    dist.broadcast_object_list(got, 0)
    check(got == every, got)
    got = [None]
    dist.scatter_object_list(got, every if rank == 0 else [None] * size, 0)
    check(got == [mine], got)


def seconds(n):
    return datetime.timedelta(seconds=n)


def monitored(rank, size):
    """torch 2.13 keeps its monitored_barrier for gloo: tutti.torch's is the same for tutti's
    groups. Who is missing is named, and the group stays whole, for latecomers, too."""
    if torch.__version__ < (2, 14):
        raises(ValueError, dist.monitored_barrier)
    else:
        dist.monitored_barrier()
    monitored_barrier = tutti.torch.monitored_barrier
    monitored_barrier()
    monitored_barrier(timeout=seconds(50), wait_all_ranks=True)
    for everybody in (False, True):
        if rank == 0:
            error = raises(tutti.Timeout, monitored_barrier,
                           timeout=datetime.timedelta(milliseconds=100), wait_all_ranks=everybody)
            said = "Ranks 1, 2" if everybody else "Rank 1"
            check(said in error.report and error.ranks == ((1, 2) if everybody else (1,)),
                  (error.report, error.ranks))
            tell(f"late-{everybody}")
        else:
            hear(f"late-{everybody}")
            error = raises(tutti.Timeout, monitored_barrier, timeout=seconds(50),
                           wait_all_ranks=everybody)
            check("rank 0" in error.report, error.report)
        monitored_barrier()
        tensor = torch.ones(1)
        dist.all_reduce(tensor)
        check(tensor.item() == size, tensor)
    if rank == 2:                                # one is missing: the one that came is told as well
        hear("missed")
    else:
        limit = datetime.timedelta(milliseconds=300) if rank == 0 else seconds(50)
        error = raises(tutti.Timeout, monitored_barrier, timeout=limit, wait_all_ranks=True)
        check(rank or error.ranks == (2,), (error.report, error.ranks))
        if rank == 0:
            tell("missed")
    if rank == 2:
        raises(tutti.Timeout, monitored_barrier)
    monitored_barrier()


def monitored_direct(rank, size):
    """torch's process group asks the backend of its device."""
    default().monitored_barrier(seconds(50))
    default().monitored_barrier(seconds(50), wait_all_ranks=True)


def other_backends(rank, size):
    """A group of gloo beside tutti's."""
    gloo = dist.new_group(backend="gloo", timeout=MESH_LIMIT)
    check((dist.get_backend(), dist.get_backend(gloo)) == ("tutti", "gloo"), dist.get_backend())
    tensor = torch.ones(1)
    dist.all_reduce(tensor, group=gloo)
    dist.all_reduce(tensor)
    check(tensor.item() == size * size, tensor)
    tutti.torch.monitored_barrier(gloo)


def beside_gloo(rank, size):
    """A group of tutti's where the default is another's."""
    check(dist.get_backend() == "gloo", dist.get_backend())
    group = dist.new_group([0, 1], backend="tutti")
    if rank < 2:
        tensor = torch.ones(1)
        dist.all_reduce(tensor, group=group)
        check(tensor.item() == 2, tensor)


def below_gloo(rank, size):
    """Groups of tutti's below a default group that is gloo's: some of the ranks, all of them, two
    of the same ones, one after the other, each with worlds of their own, which are shared."""
    for turn in range(3):
        groups = [([0, 1], dist.new_group([0, 1], backend="tutti")),
                  ([0, 1], dist.new_group([0, 1], backend="tutti")),
                  (list(range(size)), dist.new_group(backend="tutti")),
                  ([1, 2], dist.new_group([1, 2], backend="tutti"))]
        for i, (members, group) in enumerate(groups):
            if rank not in members:
                continue
            check(dist.get_backend(group) == "tutti" and backend_of(group).size() == len(members),
                  group)
            tensor = torch.tensor([10 ** rank + i])
            dist.all_reduce(tensor, group=group)
            check(tensor.item() == sum(10 ** member + i for member in members), (turn, i, tensor))
            dist.barrier(group)
        # what is left is destroyed with the default group, or not at all
        for members, group in groups[turn:]:
            if rank in members:
                dist.destroy_process_group(group)
        dist.barrier()


def inited_again(rank, size):
    """Destroyed and initialised again, in the same store, where the groups have the same names as
    before. Gloo itself needs another one."""
    common, backend = (dist.FileStore(os.environ["TUTTI_TEST_STORE"], size),
                       os.environ["TUTTI_TEST_BACKEND"])
    for turn in range(3):
        where = common if backend == "tutti" else dist.PrefixStore(str(turn), common)
        dist.init_process_group(backend, store=where, rank=rank, world_size=size,
                                timeout=MESH_LIMIT)
        group = dist.new_group([0, 1], backend="tutti")
        tensor = torch.ones(1)
        if rank < 2:
            dist.all_reduce(tensor, group=group)
        dist.all_reduce(tensor)
        check(tensor.item() == 2 * 2 + size - 2, tensor)
        dist.destroy_process_group()


def mapped():
    """Mappings of arenas in this process."""
    with open("/proc/self/maps") as maps:
        return sum("memfd:" in line for line in maps)


def one_after_the_other(rank, size):
    """Each has its own world, which is left when it is destroyed."""
    before = mapped()
    path = os.environ["TUTTI_TEST_STORE"]
    for i in range(3):
        dist.init_process_group("tutti", init_method=f"file://{path}-{i}", rank=rank,
                                world_size=size)
        group = dist.new_group()
        tensor = torch.ones(1)
        dist.all_reduce(tensor)
        dist.all_reduce(tensor, group=group)
        check(tensor.item() == size * size, tensor)
        del group
        dist.destroy_process_group()
    gc.collect()
    check(mapped() == before, (before, mapped()))


def hosts(rank, size):
    """Ranks that say they are elsewhere: what they do goes between hosts (torch_hosts_test.py), and
    what only one host can do is refused."""
    if rank == 1:
        tutti.torch._meet._host = lambda: "another-kernel"
        tutti.torch._meet.socket.gethostname = lambda: "elsewhere"
    dist.init_process_group("tutti", init_method=f"file://{os.environ['TUTTI_TEST_STORE']}",
                            rank=rank, world_size=size)
    x = torch.full((100,), 2.0 ** rank)
    dist.all_reduce(x)
    check(x[-1] == 2 ** size - 1, x)
    error = raises(tutti.Invalid, backend_of().shrink, [1]) if hasattr(
        backend_of(), "shrink") else "a group on several hosts"
    check("several hosts" in str(error), error)
    dist.destroy_process_group()


def one_is_missing(rank, size):
    """A rank that never comes to the meeting: the others say which."""
    path = os.environ["TUTTI_TEST_STORE"]
    if rank == 2:
        return
    store = dist.FileStore(path, size)
    error = raises(RuntimeError, dist.init_process_group, "tutti", store=store, rank=rank,
                   world_size=size, timeout=seconds(1))
    check("rank 2 did not come" in str(error), error)


class Groups(Case):
    def test_groups(self):
        self.each(3, groups, a_group_breaks, split, crossed, one_skips, messages, tags,
                  in_a_group, objects, monitored, monitored_direct, other_backends)

    def test_shrunk(self):
        self.ranks(3, shrunk, ends={1: DEATH})

    def test_worlds(self):
        def run(folder, body):
            os.environ["TUTTI_TEST_STORE"] = os.path.join(folder, "store")
            return plain(3, body)
        for backend, body in (("tutti", one_after_the_other), ("tutti", hosts),
                              ("tutti", one_is_missing), ("tutti", inited_again),
                              ("gloo", inited_again)):
            with self.subTest(body=body.__name__, backend=backend):
                os.environ["TUTTI_TEST_BACKEND"] = backend
                self.assertEqual(meshed(functools.partial(run, body=body)), [0, 0, 0])


class BesideGloo(Case):
    backend = "gloo"

    def test_group(self):
        self.each(3, beside_gloo, below_gloo)


if __name__ == "__main__":
    main()
