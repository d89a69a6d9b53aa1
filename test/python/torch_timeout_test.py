# ctest: timeout=120 labels=nosan,faults
# Deadlines: of a group, of one call, of one wait, set later; and what becomes of the operation.
import datetime

from torch_support import (Case, backend_of, check, default, dist, hear, main, raises, tell,
                           torch, tutti)


def ms(n):
    return datetime.timedelta(milliseconds=n)


def of_one_wait(rank, size):
    """The patience of one wait() is no deadline: the operation goes on, and a later wait()
    ends well."""
    if rank == 0:
        tensor = torch.ones(1)
        work = dist.all_reduce(tensor, async_op=True)
        for _ in range(2):
            error = raises(tutti.Timeout, work.wait, ms(20))
            check(isinstance(error, TimeoutError) and "goes on" in str(error), error)
        check(not work.is_completed(), "under way")
        tell("patience is over")
        check(work.wait() and work.wait(ms(20)) and tensor.item() == size, tensor)
        got = torch.zeros(1)
        receive = dist.irecv(got, 1)
        raises(tutti.Timeout, receive.wait, ms(20))
        tell("of a message, too")
        check(receive.wait() and got.item() == 7, got)
    else:
        hear("patience is over")
        dist.all_reduce(torch.ones(1))
        hear("of a message, too")
        dist.send(torch.full((1,), 7.0), 0)
    dist.barrier()


def of_one_call(rank, size):
    """A call's own timeout, of its options."""
    group = dist.new_group()
    if rank == 0:
        options = dist.AllreduceOptions()
        options.timeout = ms(100)
        error = raises(tutti.Timeout, group.allreduce([torch.ones(1)], options).wait)
        check("rank 1" in error.report, error)
        raises(tutti.Timeout, dist.barrier, group)                  # broken; the cause is the first
        tell("over")
    else:
        hear("over")
        raises(tutti.Error, dist.all_reduce, torch.ones(1), group=group)
    options = dist.BarrierOptions()
    options.timeout = ms(60_000)
    default().barrier(options).wait()


def of_a_group(rank, size):
    group = dist.new_group(timeout=ms(200))
    check(backend_of(group).options._timeout == ms(200), backend_of(group).options._timeout)
    if rank == 0:
        error = raises(tutti.Timeout, dist.barrier, group)
        check(isinstance(error, TimeoutError) and isinstance(error, dist.DistBackendError)
              and "rank 1" in error.report, error)
        raises(tutti.Timeout, dist.barrier, group)
    dist.barrier()


def set_later(rank, size):
    """By the group, and by the backend. torch's _set_pg_timeout knows gloo and nccl alone."""
    for set_timeout in (lambda group, time: group.set_timeout(time),
                        lambda group, time: backend_of(group)._set_default_timeout(time)):
        group = dist.new_group()
        set_timeout(group, ms(150))
        check(backend_of(group).options._timeout == ms(150), "known")
        if rank == 0:
            raises(tutti.Timeout, dist.barrier, group)
        dist.barrier()


def of_messages(rank, size):
    """A message that does not come fails that call alone."""
    group = dist.new_group(timeout=ms(150))
    if rank == 0:
        raises(tutti.Timeout, dist.recv, torch.ones(1), 1, group)
        raises(tutti.Timeout, dist.irecv(torch.ones(1), group=group).wait)
        tell("none came")
    else:
        hear("none came")
    backend_of(group)._set_default_timeout(ms(60_000))
    tensor = torch.ones(1)
    dist.all_reduce(tensor, group=group)
    check(tensor.item() == size, tensor)


def beyond_the_clock(rank, size):
    """A time of more nanoseconds than 63 bits count is not one that is over."""
    if rank == 0:
        tell("waiting")
        tutti.torch.monitored_barrier(timeout=datetime.timedelta(days=200_000))
    else:
        hear("waiting")
        tutti.torch.monitored_barrier()
    check(dist.barrier(async_op=True).wait(datetime.timedelta(days=200_000)), "a wait")


class Timeouts(Case):
    def test_all(self):
        self.each(2, of_one_wait, of_one_call, of_a_group, set_later, of_messages, beyond_the_clock)


class TimeoutsBelowGloo(Case):
    backend = "gloo"

    def test_group(self):
        def body(rank, size):
            group = dist.new_group(backend="tutti", timeout=ms(200))
            if rank == 0:
                raises(tutti.Timeout, dist.barrier, group)
            dist.barrier()
        self.ranks(2, body)


if __name__ == "__main__":
    main()
