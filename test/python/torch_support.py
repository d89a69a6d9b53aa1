# What the tests of tutti.torch share: torch, or 77 with the reason; ranks that are forked from a process that has imported it.
import os
import sys
import tempfile
import unittest

from support import check, raises, skip  # noqa: F401

try:
    import torch
    import torch.distributed as dist
except ImportError:
    skip(f"torch is missing for {sys.executable}: install python3-torch")
import tutti
try:
    import tutti.torch  # noqa: F401
except ImportError as error:
    skip(str(error))

DEATH = -9


def _rank(world, path, backend, body, args):
    torch.set_num_threads(1)
    dist.init_process_group(backend, init_method=f"file://{path}", rank=world.rank, world_size=world.size)
    body(world.rank, world.size, *args)
    if dist.is_initialized():
        dist.destroy_process_group()


def plain(n, body, *args, timeout=100):
    """body(rank, size, *args) on n ranks without a process group; how each ended."""
    return tutti.spawn(lambda world: body(world.rank, world.size, *args), n, timeout=timeout)


class Case(unittest.TestCase):
    backend = "tutti"

    def ranks(self, n, body, *args, ends=None):
        """Runs body(rank, size, *args) on n ranks of a default group; every one ends by 0, or as `ends` says."""
        with tempfile.TemporaryDirectory() as folder:
            got = tutti.spawn(_rank, n, os.path.join(folder, "store"), self.backend, body, args, timeout=100)
        self.assertEqual(got, [(ends or {}).get(rank, 0) for rank in range(n)])


def same(got, expected, what=""):
    """Equal in type, shape and every bit that matters (NaN equals NaN)."""
    check(got.dtype == expected.dtype and got.shape == expected.shape, (what, got, expected))
    check(torch.equal(got, expected) or torch.allclose(got, expected, rtol=0, atol=0, equal_nan=True), (what, got, expected))


def main():
    unittest.main(module="__main__", verbosity=1, buffer=False)
