# ctest: timeout=120 labels=nosan
# Groups are called from the main thread, from autograd's, from threads of the program, at once:
# nobody is held up by what another waits for.
import concurrent.futures
import os
import threading

from torch_support import Case, check, dist, hear, main, same, tell, torch


def blocked_receive(rank, size):
    """A receive that is blocked holds nobody up: not a send, not a collective, not an
    asynchronous one."""
    got = torch.zeros(1)
    thread = threading.Thread(target=lambda: dist.recv(got, 1 - rank, tag=7))
    thread.start()
    for i in range(50):
        tensor = torch.ones(10)
        dist.all_reduce(tensor)
        check(tensor[0] == size, tensor)
    dist.send(torch.ones(1) + rank, 1 - rank, tag=7)
    thread.join()
    check(got.item() == 2 - rank, got)


def blocked_collective(rank, size):
    """A collective that is blocked holds up neither the start of an asynchronous one nor a message
    nor another group."""
    other = dist.new_group()
    if rank == 1:
        got = torch.zeros(1)
        dist.recv(got, 0)
        dist.barrier(other)
        hear("started")
        for _ in range(2):
            dist.all_reduce(torch.ones(3))
        return
    inside, ended = threading.Event(), []

    def blocks():
        inside.set()
        tensor = torch.ones(3)
        dist.all_reduce(tensor)
        ended.append(tensor)
    thread = threading.Thread(target=blocks)
    thread.start()
    inside.wait()
    while thread_state(thread.native_id) != "S":
        os.sched_yield()
    dist.send(torch.ones(1), 1)
    dist.barrier(other)
    tensor = torch.ones(3)
    work = dist.all_reduce(tensor, async_op=True)
    check(not ended and not work.is_completed(), "nobody has come")
    tell("started")
    check(work.wait() and tensor[0] == size, tensor)
    thread.join()
    same(ended[0], torch.full((3,), float(size)))


def thread_state(thread):
    with open(f"/proc/self/task/{thread}/stat") as stat:
        return stat.read().rpartition(")")[2].split()[0]


def main_blocked(rank, size):
    """The main thread is alone when it begins to wait; a thread that torch, or a signal, starts
    meanwhile may call as well."""
    if rank == 1:
        got = torch.zeros(1)
        dist.recv(got, 0, tag=5)
        dist.all_reduce(torch.ones(1))
        return
    pool = concurrent.futures.ThreadPoolExecutor(1)
    sent = pool.submit(dist.send, torch.ones(1), 1, None, 5)           # it may come before or after
    tensor = torch.ones(1)
    dist.all_reduce(tensor)
    sent.result()
    check(tensor.item() == size, tensor)


def started_while_main_waits(rank, size):
    """A thread that is started by a signal's handler, while the main thread is in a collective that
    waits for what the thread sends."""
    import signal
    if rank == 1:
        dist.recv(torch.zeros(1), 0, tag=5)
        dist.all_reduce(torch.ones(1))
        return
    threads = []

    def handler(number, frame):
        threads.append(threading.Thread(target=lambda: dist.send(torch.ones(1), 1, tag=5)))
        threads[0].start()
    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    tensor = torch.ones(1)
    dist.all_reduce(tensor)
    check(tensor.item() == size and len(threads) == 1, tensor)
    threads[0].join()


def many(rank, size):
    """Threads that start and wait as they like."""
    totals = []
    threads = [threading.Thread(target=lambda: totals.append(dist.all_reduce(torch.ones(1),
                                                                             async_op=True).wait()))
               for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check(totals == [True] * 8, totals)
    groups = [dist.new_group() for _ in range(4)]
    wrong = []

    def works(i):
        for turn in range(100):
            tensor = torch.full((10 + i,), float(turn))
            dist.all_reduce(tensor, group=groups[i])
            if tensor[0] != turn * size:
                wrong.append((i, turn, tensor))
    threads = [threading.Thread(target=works, args=[i]) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check(not wrong, wrong)


def exchanged(rank, size):
    """Each sends to each from a thread of its own, and receives in another."""
    got = {(peer, tag): torch.zeros(1) for peer in range(size) if peer != rank for tag in range(3)}
    with concurrent.futures.ThreadPoolExecutor(2 * len(got)) as pool:
        jobs = [pool.submit(dist.recv, tensor, peer, None, tag)
                for (peer, tag), tensor in got.items()]
        jobs += [pool.submit(dist.send, torch.full((1,), 10.0 * rank + tag), peer, None, tag)
                 for peer, tag in got]
        for job in jobs:
            job.result()
    for (peer, tag), tensor in got.items():
        check(tensor.item() == 10 * peer + tag, (peer, tag, tensor))


def checkpoints(rank, size):
    """Autograd's own threads: a node whose backward pass communicates, run from several threads."""
    from torch.distributed.nn.functional import all_reduce

    def passes(group, out):
        x = torch.full((3,), float(rank + 1), requires_grad=True)
        all_reduce(x * 2, group=group).sum().backward()
        out.append(x.grad)
    groups, out = [dist.new_group() for _ in range(3)], []
    threads = [threading.Thread(target=passes, args=[group, out]) for group in groups]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check(len(out) == 3, out)
    for grad in out:
        same(grad, torch.full((3,), 2.0 * size))


class Threads(Case):
    def test_two(self):
        self.each(2, blocked_receive, blocked_collective, main_blocked, started_while_main_waits,
                  many, exchanged, checkpoints)

    def test_three(self):
        self.each(3, many, exchanged)


if __name__ == "__main__":
    main()
