# ctest: timeout=180 labels=nosan
# tutti in gloo's place: who gets it, alike on all ranks; what torch and programs ask of such a
# group; what is said; that nothing is touched without it.
import datetime
import os
import subprocess
import sys
import unittest

from torch_support import (backend_of, check, default, die, dist, hear, main, meshed, plain, raises,
                           store, tell, torch, tutti)
from torch.distributed import distributed_c10d as c10d
from tutti.torch import _gloo, _meet

GLOO = c10d.ProcessGroupGloo
BRIEF = datetime.timedelta(seconds=4)


def is_tutti(group=None):
    return type(backend_of(group)) is tutti.torch._extension.extension().Backend


def _rank(rank, size, folder, body, args, without, hosts, quiet, timeout):
    torch.set_num_threads(1)
    os.dup2(os.open(os.path.join(folder, f"said-{rank}"), os.O_WRONLY | os.O_CREAT), 2)
    os.environ["TUTTI_AS_GLOO_QUIET"] = "1" if quiet else "0"
    if hosts:
        _meet._host = lambda: hosts[rank]
    if rank not in without:
        tutti.torch.as_gloo()
    begin = lambda: dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank,
                                            world_size=size, timeout=timeout)  # noqa: E731
    if without:
        return body(rank, size, begin, *args)
    begin()
    body(rank, size, *args)
    if dist.is_initialized():
        dist.destroy_process_group()


class Place(unittest.TestCase):
    def ranks(self, n, body, *args, ends=None, without=(), hosts=None, quiet=False,
              timeout=datetime.timedelta(seconds=60)):
        """body(rank, size, *args) on n ranks that ask for gloo. What each said on stderr."""
        said = []

        def run(folder):
            got = plain(n, _rank, folder, body, args, without, hosts, quiet, timeout)
            said.clear()
            for rank in range(n):
                with open(os.path.join(folder, f"said-{rank}"), errors="replace") as file:
                    said.append(file.read())
            return got
        got = meshed(run)
        self.assertEqual(got, [(ends or {}).get(rank, 0) for rank in range(n)], "\n".join(said))
        return said

    def each(self, n, *bodies, **words):
        for body in bodies:
            with self.subTest(body=body.__name__):
                self.ranks(n, body, **words)

    def test_group(self):
        self.each(3, names, collectives, shapes, sparse, groups, again, monitored, patience)

    def test_detail(self):
        self.ranks(2, detail)

    def test_death(self):
        self.ranks(3, death, ends={1: -9})

    def test_monitored_gone(self):
        self.ranks(3, monitored_gone, ends={2: -9})

    def test_said(self):
        said = self.ranks(3, collectives)
        self.assertEqual(said[0].count("tutti: in gloo's place for groups whose ranks share this "
                                       "host\n"), 1, said)
        self.assertEqual(said[1:], ["", ""])
        self.assertEqual(self.ranks(2, collectives, quiet=True), ["", ""])

    def test_hosts(self):
        said = self.ranks(4, across, hosts=["a", "a", "b", "b"])
        self.assertIn(
            "gloo serves a group of 4 ranks, as asked for: the ranks are on several hosts", said[0])
        self.assertEqual(said[3], "")                                   # first of no group

    def test_cannot_join(self):
        said = self.ranks(3, refused)
        self.assertIn("gloo serves a group of 3 ranks, as asked for: rank 2: ImportError: no "
                      "extension here", said[0])

    def test_switch_on_some(self):
        for lacks in (0, 1):
            with self.subTest(lacks=lacks):
                self.ranks(2, switched, lacks, without=(lacks,), timeout=BRIEF)

    def test_switch(self):
        """Without it torch is as it was; the variable and the call do the same; a group that
        exists goes on."""
        program = ("import torch.distributed as d; from torch.distributed import distributed_c10d "
                   "as c; import torch._C._distributed_c10d as C;"
                   "print(c.ProcessGroupGloo is C.ProcessGroupGloo, d.ProcessGroupGloo is "
                   "C.ProcessGroupGloo)")
        for value, expected in (("", "True True"), ("0", "True True"), ("1", "False False")):
            got = subprocess.run([sys.executable, "-c", program],
                                 env=dict(os.environ, TUTTI_AS_GLOO=value), capture_output=True,
                                 text=True, timeout=100)
            self.assertEqual((got.returncode, got.stdout.strip()), (0, expected), got.stderr)
        self.ranks(2, afterwards, without=(0, 1))


def names(rank, size):
    check(dist.get_backend() == "gloo" and dist.get_backend_config() == "cpu:gloo,cuda:gloo",
          dist.get_backend_config())
    check(is_tutti() and backend_of().name() == "gloo", backend_of().name())
    check(isinstance(backend_of(), dist.ProcessGroupGloo)
          and isinstance(backend_of(), c10d.ProcessGroupGloo), "isinstance")
    check(not isinstance(default(), dist.ProcessGroupGloo)
          and issubclass(GLOO, dist.ProcessGroupGloo), "another class")
    check(isinstance(dist.ProcessGroupGloo.create_default_device(), dist.ProcessGroupGloo.Device),
          "a device")
    check(dist.ProcessGroupGloo._Options is GLOO._Options, "its options")
    other = dist.ProcessGroupGloo(dist.PrefixStore("by hand", store()), rank, size, BRIEF)
    tensor = torch.ones(2)
    other.allreduce(tensor).wait()
    check(tensor.tolist() == [size] * 2, tensor)


def collectives(rank, size):
    tensor = torch.full((3,), rank + 1.)
    dist.all_reduce(tensor)
    check(tensor.tolist() == [size * (size + 1) / 2] * 3, tensor)
    dist.barrier()
    seen = [None] * size
    dist.all_gather_object(seen, {"rank": rank})
    check(seen == [{"rank": r} for r in range(size)], seen)


def shapes(rank, size):
    """gloo looks at how many elements there are; what it refuses is refused."""
    tensor = torch.full([(6,), (2, 3), (3, 1, 2)][rank], rank + 1.)
    dist.all_reduce(tensor)
    check(tensor.flatten().tolist() == [6.] * 6, tensor)
    dist.broadcast(tensor, 2)
    out = [torch.zeros(2, 3) for _ in range(size)]
    dist.all_gather(out, torch.full((6,), float(rank)).view(2, 3))
    check([int(t[1, 2]) for t in out] == [0, 1, 2], out)
    for said, call, *args in (
            ("invalid tensor size", dist.all_gather, [torch.zeros(1 + (r == (rank + 1) % size))
                                                      for r in range(size)], torch.zeros(1)),
            ("Tensors must be contiguous", dist.all_to_all_single, torch.zeros(size, size),
             torch.zeros(size, size).t())):
        error = raises(ValueError, call, *args)
        check(said in str(error), (said, error))
    whole = torch.zeros(size * 2, 3)
    dist.all_gather_into_tensor(whole, torch.full((6,), float(rank)))
    check(whole.view(size, 6)[:, 0].tolist() == [0, 1, 2], whole)


def sparse(rank, size):
    """Each rank has another number of elements."""
    tensor = torch.sparse_coo_tensor([list(range(rank + 1))], [1.] * (rank + 1), size=(size,))
    dist.all_reduce(tensor)
    check(tensor.to_dense().tolist() == [3., 2., 1.], tensor)


def groups(rank, size):
    pair = dist.new_group([0, 2], backend="gloo")
    if rank != 1:
        tensor = torch.ones(1)
        dist.all_reduce(tensor, group=pair)
        check(tensor.item() == 2 and is_tutti(pair) and dist.get_backend(pair) == "gloo", tensor)
    own = dist.new_group(backend="tutti")
    check(dist.get_backend(own) == "tutti" and backend_of(own).name() == "tutti", own)
    check(not isinstance(backend_of(own), dist.ProcessGroupGloo),
          "tutti by its own name is not gloo")
    mixed = dist.new_group(backend="cpu:gloo")
    tensor = torch.ones(1)
    dist.all_reduce(tensor, group=mixed)
    check(tensor.item() == size and is_tutti(mixed), tensor)


def again(rank, size):
    """A group after a group, in the same processes."""
    file = store()
    while isinstance(file, dist.PrefixStore):
        file = file.underlying_store
    path = file.path
    dist.barrier()
    dist.destroy_process_group()
    dist.init_process_group("gloo", init_method=f"file://{path}-again", rank=rank, world_size=size)
    check(is_tutti(), "again")
    collectives(rank, size)


def monitored(rank, size):
    dist.monitored_barrier()
    if rank == 2:
        return hear("named")
    error = raises(RuntimeError,
                   lambda: dist.monitored_barrier(timeout=datetime.timedelta(milliseconds=200),
                                                  wait_all_ranks=True))
    if rank == 0:
        check("Ranks 2 failed to pass monitoredBarrier in 200 ms" in str(error), error)
        tell("named")
    else:
        hear("named")


def monitored_gone(rank, size):
    """A rank that died does not pass, and is named as one that does not come."""
    if rank == 2:
        hear("zero", "one")
        die()
    tell("zero" if rank == 0 else "one")
    error = raises(tutti.RankDied, lambda: dist.monitored_barrier(wait_all_ranks=True))
    check(("Ranks 2 failed to pass monitoredBarrier" if rank == 0
           else "Please check rank 0 logs for faulty rank") in str(error), error)


def patience(rank, size):
    c10d._set_pg_timeout(datetime.timedelta(milliseconds=300))
    if rank == 0:
        error = raises(tutti.Timeout, lambda: dist.recv(torch.ones(1), 1))
        check(isinstance(error, dist.DistBackendError), type(error))
        tell("late")
    hear("late")


def detail(rank, size):
    """TORCH_DISTRIBUTED_DEBUG=DETAIL: torch's wrapper compares what the ranks call, over a group of
    gloo's own."""
    dist.set_debug_level(dist.DebugLevel.DETAIL)
    group = dist.new_group()
    tensor = torch.ones(2)
    dist.all_reduce(tensor, group=group)
    check(tensor.tolist() == [2, 2], tensor)
    wrapper = group._get_backend(torch.device("cpu"))
    check(isinstance(wrapper.wrapped_pg, tutti.torch._extension.extension().Backend), wrapper)
    error = raises(RuntimeError, lambda: dist.all_reduce(torch.ones(2 + rank), group=group))
    check("Detected mismatch between collectives on ranks" in str(error), error)


def death(rank, size):
    if rank == 1:
        hear("first", "third")
        die()
    tell("first" if rank == 0 else "third")
    error = raises(tutti.RankDied, dist.barrier)
    check(isinstance(error, dist.DistBackendError) and "rank 1" in str(error), error)


def across(rank, size):
    """Two hosts: gloo itself between them, and tutti on each."""
    check(not is_tutti() and type(backend_of()) is GLOO, type(backend_of()))
    collectives(rank, size)
    for first in (0, 2):
        pair = dist.new_group([first, first + 1])
        if rank in (first, first + 1):
            tensor = torch.ones(1)
            dist.all_reduce(tensor, group=pair)
            check(tensor.item() == 2 and is_tutti(pair), type(backend_of(pair)))
    split = dist.new_group([1, 2])
    if rank in (1, 2):
        dist.barrier(group=split)
        check(not is_tutti(split), "across")


def refused(rank, size):
    """One rank cannot: all take gloo."""
    if rank == 2:
        def none():
            raise ImportError("no extension here")
        real, _gloo.extension = _gloo.extension, none
    group = dist.new_group()
    if rank == 2:
        _gloo.extension = real
    check(type(backend_of(group)) is GLOO, type(backend_of(group)))
    dist.barrier(group=group)


def switched(rank, size, begin, lacks):
    error = raises(RuntimeError, begin)
    if rank != lacks:
        check(f"rank {lacks} makes a group of gloo itself: set TUTTI_AS_GLOO=1 for all ranks or "
              "for none" in str(error), error)


def afterwards(rank, size, begin):
    begin()
    tutti.torch.as_gloo()
    check(type(backend_of()) is GLOO, "made before")
    dist.barrier()
    group = dist.new_group()
    check(is_tutti(group), type(backend_of(group)))
    dist.barrier(group=group)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
