# ctest: timeout=120 labels=nosan
# What differs between versions of torch. What can be tried with any version is; the rest waits for torch 2, and says so.
import inspect
import types
import unittest

from torch_support import Case, check, dist, main, same, torch, tutti
from tutti.torch import _split, _versions

TWO = int(torch.__version__.split(".")[0]) >= 2


class Recorder:
    """Stands for another backend's group: notes what it is called with."""

    def __init__(self):
        self.calls = []

    def __getattr__(self, name):
        return lambda *args, **words: self.calls.append(name) or tutti.torch._work.DONE


def split(rank, size):
    """Tensors of a device that another backend has go there, all others and the barrier to tutti."""
    comm = dist.distributed_c10d._get_default_group()._comm
    other = Recorder()
    group = _split.SplitGroup({"meta": other}, comm, rank, size, False)
    away, here = torch.ones(2, device="meta"), torch.ones(2)
    group.allreduce([away]).wait()
    group.broadcast([away], dist.BroadcastOptions()).wait()
    group.allgather([[away] * size], [away]).wait()
    group._allgather_base(torch.ones(2 * size, device="meta"), away).wait()
    group.send([away], 0, 0).wait()
    check(other.calls == ["allreduce", "broadcast", "allgather", "_allgather_base", "send"], other.calls)
    group.allreduce([here]).wait()
    group.barrier().wait()
    same(here, torch.full((2,), float(size)))
    check(len(other.calls) == 5, other.calls)


class Any(Case):
    def test_split(self):
        self.ranks(2, split)

    def test_who_has_a_device(self):
        """As torch 2 keeps it while it makes a group."""
        def _new_process_group_helper(devices):
            backend_config = types.SimpleNamespace(get_device_backend_map=lambda: devices)
            check(backend_config is not None, "used by name")
            return _versions._other_backends(inspect.currentframe())
        self.assertEqual(_new_process_group_helper({"cpu": "tutti", "cuda": "nccl"}), {"cuda": "nccl"})
        self.assertEqual(_new_process_group_helper({"cpu": "tutti", "cuda": "tutti"}), {})
        self.assertEqual(_versions._other_backends(None), {})
        with self.assertRaisesRegex(ValueError, "mpi"):
            _split.other_group("mpi", dist.HashStore(), 0, 1, None)

    def test_callers_that_wait(self):
        """torch's functions are told apart from others by their code: none of them is missed."""
        table = _versions._waiters()
        names = {name for name, function in list(vars(dist.distributed_c10d).items())
                 if isinstance(function, types.FunctionType) and id(inspect.unwrap(function).__code__) in table}
        for name in ("all_reduce", "broadcast", "reduce", "all_gather", "gather", "scatter", "reduce_scatter", "all_to_all", "barrier", "send",
                     "recv"):
            self.assertIn(name, names)
        self.assertFalse({"isend", "irecv"} & names)

    def test_once(self):
        """Registered by the import, however often."""
        tutti.torch._register()
        self.assertEqual(dist.Backend("tutti"), "tutti")


@unittest.skipUnless(TWO, f"torch is {torch.__version__}: devices shared out among backends need torch 2")
class Two(Case):
    backend = "cpu:tutti,cuda:gloo"

    def test_devices(self):
        def body(rank, size):
            tensor = torch.ones(1)
            dist.all_reduce(tensor)
            check(tensor.item() == size, tensor)
            check(isinstance(dist.distributed_c10d._get_default_group(), _split.SplitGroup), "two backends")
        self.ranks(2, body)


if __name__ == "__main__":
    main()
