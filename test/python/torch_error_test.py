# ctest: timeout=180 labels=nosan,faults
# Every failure is tutti's exception and torch.distributed's at once, whichever way it comes out;
# and it names the program's line.
import pickle
import threading

from support import line_of_caller
from torch_support import (DEATH, Case, backend_of, check, default, die, dist, hear, main, raises,
                           tell, torch, tutti)
import torch._dynamo
import torch.distributed._functional_collectives as functional
from torch.nn.parallel import DistributedDataParallel as DDP

KINDS = (tutti.RankDied, dist.DistBackendError, RuntimeError)


def is_death(error, *said):
    check(all(isinstance(error, kind) for kind in KINDS), type(error).__mro__)
    check(type(error).__name__ == "RankDied" and 1 in error.ranks and error.errno > 0,
          (error.ranks, error.errno))
    check(str(error) == error.report and "torch_error_test.py" in error.report, error.report)
    check(all(text in error.report for text in said), (said, error.report))


# ---- ways out ------------------------------------------------------------------------------------


def blocked():
    dist.all_reduce(torch.ones(5))


def later():
    dist.all_reduce(torch.ones(5), async_op=True).wait()


def direct():
    default().allreduce([torch.ones(5)]).wait()


def future_ends():
    dist.all_reduce(torch.ones(5), async_op=True).get_future().wait()


def future_value():
    future = dist.all_reduce(torch.ones(5), async_op=True).get_future()
    raises(tutti.RankDied, future.wait)
    future.value()


def receives():
    dist.recv(torch.ones(5), 1)


def receives_any():
    dist.recv(torch.ones(5))


def objects():
    dist.all_gather_object([None] * dist.get_world_size(), {"a": 1})


def waits_for_tensor():
    functional.wait_tensor(functional.all_reduce(torch.ones(5), "sum", default()))


def uses_tensor():
    functional.all_reduce(torch.ones(5), "sum", default()).sum().item()


def coalesces():
    with dist.distributed_c10d._coalescing_manager():
        dist.all_reduce(torch.ones(5))
        dist.all_reduce(torch.ones(5))


def autograds():
    from torch.distributed.nn.functional import all_reduce
    all_reduce(torch.ones(3, requires_grad=True)).sum().backward()


def barriers():
    dist.barrier()


def monitors():
    tutti.torch.monitored_barrier()


def dies(rank, size, call):
    if rank == 1:
        die()
    error = raises(tutti.RankDied, call)
    is_death(error)
    is_death(pickle.loads(pickle.dumps(error)))
    again = raises(tutti.RankDied, lambda: dist.barrier())             # from then on: what broke it
    check(again.ranks == (1,), again.ranks)


class Dies(torch.autograd.Function):
    """A layer whose backward pass kills its rank."""

    @staticmethod
    def forward(context, x, dead):
        context.dead = dead
        return x

    @staticmethod
    def backward(context, gradient):
        if context.dead:
            die()
        return gradient, None


def in_backward(rank, size, hook):
    model = DDP(torch.nn.Linear(3, 2))
    if hook:
        from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
        model.register_comm_hook(None, default_hooks.allreduce_hook)
    loss = Dies.apply(model(torch.ones(4, 3)), rank == 1).sum()
    error = raises(dist.DistBackendError if not hook else RuntimeError, lambda: loss.backward())
    if hook:                             # torch passes on what a Python callback raises by its text
        check("RankDied" in str(error) or "died" in str(error), error)
    else:
        is_death(error)


def compiled(rank, size):
    """A graph that torch.compile has made, with the collective in it."""
    torch._dynamo.config.suppress_errors = False

    @torch.compile(backend="aot_eager", fullgraph=True)
    def step(x):
        return functional.all_reduce(x * 2, "sum", default()) + 1
    check(torch.equal(step(torch.ones(4)), torch.full((4,), 2.0 * size + 1)), "well at first")
    dist.barrier()
    if rank == 1:
        die()
    error = raises(tutti.RankDied, step, torch.ones(4))
    check(isinstance(error, dist.DistBackendError) and 1 in error.ranks, error)


# ---- kinds ---------------------------------------------------------------------------------------


def kinds(rank, size):
    """Each class of tutti's, and what else it is."""
    group = dist.new_group()
    error = raises(tutti.Mismatch, lambda: dist.all_reduce(torch.ones(4 + rank), group=group))
    check(isinstance(error, dist.DistBackendError) and error.errno > 0, error)
    error = raises(tutti.Invalid, lambda: dist.all_reduce(torch.ones(2), dist.ReduceOp.BAND))
    check(isinstance(error, (dist.DistBackendError, ValueError)), error)
    group = dist.new_group()
    if rank == 0:
        backend_of(group).abort()
    error = raises(tutti.Aborted, lambda: dist.barrier(group))
    check(isinstance(error, dist.DistBackendError), error)
    dist.barrier()


# ---- lines ---------------------------------------------------------------------------------------


def differ(rank, size):
    """Each rank does something else, and is shown where, with the others."""
    if rank == 0:
        site = line_of_caller()
        error = raises(tutti.Mismatch, lambda: dist.barrier())
    elif rank == 1:
        site = line_of_caller()
        error = raises(tutti.Mismatch, lambda: dist.all_reduce(torch.ones(4)))
    else:
        site = line_of_caller()
        error = raises(tutti.Mismatch, lambda: dist.broadcast(torch.ones(4), 0,
                                                              async_op=True).wait())
    check(site in error.report, (site, error.report))
    check(sum(call in error.report for call in ("barrier", "all_reduce f32 sum 4",
                                                "broadcast f32 4 root 0")) > 1, error.report)


def lines(rank, size):
    """The line of the program, never one of torch's files: from a thread, below a backward pass,
    from an object collective, a functional one."""
    if rank == 1:
        hear("all of them are under way")
        die()
    seen = {}

    def look(name, call):
        seen[name] = raises(tutti.RankDied, call).report
    in_thread = threading.Thread(target=look, args=["thread", lambda: dist.recv(torch.ones(1), 1)])
    in_thread.start()
    x = torch.ones(3, requires_grad=True)
    x.register_hook(lambda gradient: dist.recv(torch.ones(1), 1, tag=3))
    tell("all of them are under way")
    look("hook", lambda: (x * 2).sum().backward())
    in_thread.join()
    look("objects", lambda: dist.broadcast_object_list([1], 0))
    look("functional", lambda: functional.all_reduce(torch.ones(5), "sum", default()) + 1)
    for name, report in seen.items():
        here = [line for line in report.splitlines() if "called here" in line
                or "called by rank 0" in line]
        check(here and "torch_error_test.py:" in here[0], (name, report))
        check("distributed_c10d" not in report and "_tutti_autoload" not in report, (name, report))


def line_of_backward(rank, size):
    """DDP's reducer calls from C++, in the thread that calls backward()."""
    model = DDP(torch.nn.Linear(3, 2))
    loss = Dies.apply(model(torch.ones(4, 3)), rank == 1).sum()
    site = line_of_caller()
    error = raises(tutti.RankDied, lambda: loss.backward())
    check(site in error.report, (site, error.report))


class Errors(Case):
    def test_ways_out(self):
        for call in (blocked, later, direct, future_ends, future_value, receives, receives_any,
                     objects, waits_for_tensor, uses_tensor, coalesces, autograds,
                     barriers, monitors):
            with self.subTest(call=call.__name__):
                self.ranks(2, dies, call, ends={1: DEATH})

    def test_backward_and_graphs(self):
        for hook in (False, True):
            self.ranks(2, in_backward, hook, ends={1: DEATH})
        self.ranks(2, compiled, ends={1: DEATH})

    def test_kinds(self):
        self.ranks(2, kinds)

    def test_lines(self):
        self.ranks(3, differ)
        for body in (lines, line_of_backward):
            self.ranks(2, body, ends={1: DEATH})


if __name__ == "__main__":
    main()
