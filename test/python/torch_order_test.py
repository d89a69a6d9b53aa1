# ctest: timeout=120 labels=nosan,faults
# One rank first, with and without a process group, and what becomes of the idiom with plain
# barriers; seeds.
import contextlib
import datetime
import os
import random
import re
import signal
import tempfile
import time

from torch_support import DEATH, Case, check, dist, main, plain, raises, torch, tutti

zero_first, seed_everything = tutti.torch.zero_first, tutti.torch.seed_everything


@contextlib.contextmanager
def by_barriers(rank):
    """The idiom, as programs have it."""
    if rank not in (-1, 0):
        dist.barrier()
    yield
    if rank == 0:
        dist.barrier()


def prepared(how):
    """Rank 0 makes the file, the others find it."""
    path = os.environ["TUTTI_TEST_FOLDER"]

    def body(rank, size):
        for i in range(5):
            with how(rank):
                name = os.path.join(path, f"{how.__name__}-{i}")
                check(os.path.exists(name) == (rank != 0), (rank, i))
                if rank == 0:
                    with open(name, "w") as file:
                        file.write("made")
        dist.barrier()
    return body


def says_who(rank, size):
    with zero_first() as mine:
        check(mine == (rank == 0), mine)


def nobody(rank, size):
    """Without a process group, or with rank -1, there is nobody to wait for: it can be called by
    one alone."""
    with zero_first() as mine:
        check(mine is True, mine)
    with zero_first(rank) as mine:
        check(mine is True, mine)


def minus_one(rank, size):
    if rank == 1:
        with zero_first(-1) as mine:
            check(mine is True, mine)
    dist.barrier()


def raised(rank, size):
    """What rank 0 raises in the block the others are told."""
    stay = dist.new_group()
    if rank == 0:
        with contextlib.suppress(KeyError):
            with zero_first(rank):
                raise KeyError("no such data")
    else:
        error = raises(tutti.Aborted, zero_first(rank).__enter__)
        check("went first" in error.report and "no such data" in error.report, error.report)
    dist.barrier(stay)


def died(rank, size):
    if rank == 0:
        with zero_first(rank):
            os.kill(os.getpid(), signal.SIGKILL)
    error = raises(tutti.RankDied, zero_first(rank).__enter__)
    check(0 in error.ranks, error.ranks)


def idiom_alone(rank, size):
    """Rank 1 does not come to the idiom, but to the next collective: an error that says where
    everybody is, and no hang."""
    if rank == 1:
        error = raises(tutti.Mismatch, dist.all_reduce, torch.ones(1))
    else:
        error = raises(tutti.Mismatch, by_barriers(rank).__enter__ if rank else leave_idiom)
    check("barrier" in error.report and "all_reduce f32 sum 1" in error.report
          and "torch_order_test.py" in error.report, error.report)


def leave_idiom():
    with by_barriers(0):
        pass


def idiom_never(rank, size):
    """Rank 0 never comes: the deadline ends it, and names it."""
    group = dist.new_group(timeout=datetime.timedelta(milliseconds=200))
    if rank:
        error = raises(tutti.Timeout, dist.barrier, group)
        check("rank 0" in error.report, error.report)
    dist.barrier()


def until_waits():
    """What tutti.torch.why() says once the other rank waits in its all_reduce."""
    for _ in range(1000):
        text = tutti.torch.why()
        if re.search(r"(?m)^  waiting: rank 0: all_reduce ", text):
            return text
        time.sleep(0.01)
    raise AssertionError("rank 0 is not seen to wait: " + text)


def asks_why(rank, size):
    """Each rank asks about its own jobs; rank 1 comes later than rank 0."""
    dist.barrier()
    dist.barrier()
    if rank == 1:
        text = until_waits()
        check(re.search(r"(?m)^job torch-\S+: 2 ranks, ", text), text)
    dist.all_reduce(torch.ones(1))
    figures = tutti.torch.stats()
    check(figures["compared"] >= 3, figures)
    check(rank == 0 or (figures["came_last"] and figures["late_cost_ns"] > 1000), figures)
    dist.barrier()


def numbers():
    return [random.random(), torch.rand(1).item()] + ([__import__("numpy").random.rand()]
                                                      if has_numpy() else [])


def has_numpy():
    try:
        import numpy
    except ImportError:
        return False
    return numpy is not None


def seeds(rank, size):
    torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = False, True
    seed = seed_everything(7)
    mine = numbers()
    check(torch.backends.cudnn.deterministic and not torch.backends.cudnn.benchmark, "the flags")
    check(seed_everything(7) == seed and numbers() == mine, "the same again")
    every = [None] * size
    dist.all_gather_object(every, (seed, mine))
    check(len({seed for seed, _ in every}) == size and len({str(mine) for _, mine in every})
          == size, every)
    # that of the library, by base and rank alone
    check(seed == tutti._worlds.current().seed(7), seed)
    torch.backends.cudnn.deterministic = False
    check(seed_everything(8, deterministic=False) != seed
          and not torch.backends.cudnn.deterministic, "the flags are left alone")


class Order(Case):
    def test_first(self):
        with tempfile.TemporaryDirectory() as folder:
            os.environ["TUTTI_TEST_FOLDER"] = folder
            for how in (zero_first, by_barriers):
                self.ranks(3, prepared(how))
        for body in (says_who, minus_one, raised):
            with self.subTest(body=body.__name__):
                self.ranks(3, body)
        self.ranks(3, died, ends={0: DEATH})
        self.assertEqual(plain(2, nobody), [0, 0])

    def test_idiom(self):
        self.ranks(3, idiom_alone)
        self.ranks(2, idiom_never)

    def test_seeds(self):
        self.ranks(3, seeds)

    def test_why(self):
        self.ranks(2, asks_why)


class OrderOfGloo(Case):
    """The same program on gloo."""
    backend = "gloo"

    def test_first(self):
        with tempfile.TemporaryDirectory() as folder:
            os.environ["TUTTI_TEST_FOLDER"] = folder
            self.ranks(2, prepared(zero_first))
        self.ranks(2, says_who)

    def test_seeds(self):
        self.ranks(2, seeds)


if __name__ == "__main__":
    main()
