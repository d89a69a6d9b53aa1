# ctest: timeout=180 labels=nosan,faults
# Ctrl-C where a rank waits for another: in a blocking call, in wait(), in a future, in DDP's
# backward pass. One KeyboardInterrupt comes out, and a program that catches it goes on to its end;
# a handler of the program's own that does not raise lets the operation go on.
import os
import signal
import tempfile

from torch_support import Case, check, default, dist, hear, main, raises, store, torch, tutti
import torch._dynamo  # noqa: F401  (what DDP imports, once)
from torch.nn.parallel import DistributedDataParallel as DDP


def asleep(pid):
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return fields[0] == "S" and (fields[11], fields[12])      # its times: it has not run in between


def interrupter(then=lambda: None):
    """A process that sends SIGINT to this one once that has said so and then sleeps: a thread would
    be noticed by what is tested. A pipe."""
    out, into = os.pipe()
    pid = os.getpid()
    if os.fork() == 0:
        os.close(into)
        while os.read(out, 1):
            quiet, seen = 0, False
            while quiet < 100:
                os.sched_yield()
                now = asleep(pid)
                quiet = quiet + 1 if now and now == seen else 0
                seen = now
            os.kill(pid, signal.SIGINT)
            then()
        os._exit(0)
    os.close(out)
    return into


def goes_on():
    """More of the program: where a second KeyboardInterrupt would come out."""
    return sum(len(str(i)) for i in range(20_000))


def interrupted(rank, size, call):
    other = dist.new_group()
    if rank == 1:
        hear("interrupted")
        return
    pipe, before = interrupter(), signal.getsignal(signal.SIGINT)
    caught = 0
    try:
        os.write(pipe, b"x")
        call()
    except KeyboardInterrupt as error:
        caught += 1
        check(type(error) is KeyboardInterrupt, type(error))
    check(goes_on() > 0 and caught == 1, caught)
    check(signal.getsignal(signal.SIGINT) is before, "the handler")
    store().set("interrupted", "")
    os.close(pipe)
    os.wait()
    check(dist.get_world_size(other) == size, other)


def blocked():
    dist.all_reduce(torch.ones(5))


def barrier():
    dist.barrier()


def later():
    dist.all_reduce(torch.ones(5), async_op=True).wait()


def receives():
    dist.recv(torch.ones(5), 1)


def future():
    dist.all_reduce(torch.ones(5), async_op=True).get_future().wait()


def functional():
    torch.distributed._functional_collectives.all_reduce(torch.ones(5), "sum", default()) + 1


def objects():
    dist.all_gather_object([None, None], "mine")


def monitored():
    tutti.torch.monitored_barrier()


def in_backward(rank, size, hook):
    """The reducer waits for futures in C++ at the end of the pass."""
    model, works = DDP(torch.nn.Linear(3, 2)), []

    def in_python(state, bucket):
        works.append(dist.all_reduce(bucket.buffer(), async_op=True))
        return works[-1].get_future().then(lambda ended: ended.value()[0])
    if hook:
        model.register_comm_hook(None, in_python)
    loss = model(torch.ones(4, 3)).sum()
    interrupted(rank, size, lambda: loss.backward())
    for work in works:       # what was interrupted has ended: a future of it does not wait for ever
        raises(tutti.Error, work.get_future().wait)


def own_handler(rank, size, call):
    """A handler that does not raise: it runs while the operation waits, and the operation
    ends well."""
    if rank == 1:
        hear("handled")
        call()
        return
    seen = []

    def handler(number, frame):
        seen.append(number)
        store().set("handled", "")
    signal.signal(signal.SIGINT, handler)
    pipe = interrupter()
    os.write(pipe, b"x")
    call()
    check(seen == [signal.SIGINT], seen)
    os.close(pipe)
    os.wait()


def own_handler_of_a_future(rank, size):
    """The main thread stands in torch's wait for the future, so the handler runs after it; the
    operation ends well all the same."""
    path = os.environ["TUTTI_TEST_FILE"]
    if rank == 1:
        while not os.path.exists(path):
            os.sched_yield()
        return reduced_in_future()
    seen = []
    signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))
    pipe = interrupter(lambda: os.close(os.open(path, os.O_CREAT)))
    os.write(pipe, b"x")
    reduced_in_future()
    check(seen == [signal.SIGINT], seen)
    os.close(pipe)
    os.wait()


def raising_handler(rank, size, call):
    """One that raises something of its own: that comes out."""
    if rank == 1:
        hear("interrupted")
        return

    def handler(number, frame):
        raise LookupError("of the program's own")
    signal.signal(signal.SIGINT, handler)
    pipe = interrupter()
    os.write(pipe, b"x")
    raises(LookupError, call)
    check(goes_on() > 0, "on")
    store().set("interrupted", "")
    os.close(pipe)
    os.wait()


def reduced():
    tensor = torch.ones(5)
    dist.all_reduce(tensor)
    check(tensor[0] == 2, tensor)


def reduced_later():
    tensor = torch.ones(5)
    check(dist.all_reduce(tensor, async_op=True).wait() and tensor[0] == 2, tensor)


def reduced_in_future():
    check(dist.all_reduce(torch.ones(5), async_op=True).get_future().wait()[0][0] == 2, "its value")


class Interrupts(Case):
    def test_one_comes_out(self):
        for call in (blocked, barrier, later, receives, future, functional, objects, monitored):
            with self.subTest(call=call.__name__):
                self.ranks(2, interrupted, call)

    def test_in_backward(self):
        for hook in (False, True):
            with self.subTest(hook=hook):
                self.ranks(2, in_backward, hook)

    def test_own_handler(self):
        for call in (reduced, reduced_later):
            with self.subTest(call=call.__name__):
                self.ranks(2, own_handler, call)
        with tempfile.TemporaryDirectory() as folder:
            os.environ["TUTTI_TEST_FILE"] = os.path.join(folder, "sent")
            self.ranks(2, own_handler_of_a_future)
        for call in (blocked, later, receives):
            with self.subTest(call=call.__name__):
                self.ranks(2, raising_handler, call)


if __name__ == "__main__":
    main()
