# ctest: timeout=240 labels=nosan,faults
# DistributedDataParallel and what stands on it: the weights after some steps are those of one
# process that has seen all the data.
import os
import signal
import time

from torch_support import DEATH, Case, check, dist, main, raises, torch, tutti
from torch.nn.parallel import DistributedDataParallel as DDP

nn = torch.nn
# else a small model has one bucket, whatever bucket_cap_mb says
dist._DEFAULT_FIRST_BUCKET_BYTES = 1
STEPS, BATCH = 4, 6


class Net(nn.Module):
    """One layer is used on odd steps only, where it is asked for."""

    def __init__(self, wide=8, branches=False):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, wide), nn.Tanh(), nn.Linear(wide, wide), nn.Tanh())
        self.left, self.right = nn.Linear(wide, 2), nn.Linear(wide, 2)
        self.branches = branches

    def forward(self, x, step=0):
        x = self.body(x)
        if not self.branches:
            return self.left(x) + self.right(x)
        return self.right(x) if step % 2 else self.left(x)


def net(**words):
    torch.manual_seed(1)
    return Net(**words).double()


def data(step, rank):
    made = torch.Generator().manual_seed(step * 100 + rank)
    return (torch.randn(BATCH, 4, generator=made, dtype=torch.float64),
            torch.randn(BATCH, 2, generator=made, dtype=torch.float64))


def loss_of(model, batch, *more):
    x, y = batch
    return (model(x, *more) - y).pow(2).mean()


def alone(size, steps=STEPS, accumulate=1, **words):
    """The same training by one process: the loss is the mean over all ranks' batches."""
    model = net(**words)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for step in range(steps):
        optimizer.zero_grad()
        for part in range(accumulate):
            for rank in range(size):
                (loss_of(model, data(step * accumulate + part, rank), step) / size).backward()
        optimizer.step()
    return model


def agree(model, reference, size, tolerance=1e-12):
    for name, value in model.state_dict().items():
        expected = reference.state_dict()[name.replace("module.", "")]
        check(torch.allclose(value, expected, rtol=0, atol=tolerance), (name, value, expected))
        every = [torch.empty_like(value) for _ in range(size)]
        dist.all_gather(every, value)
        check(all(torch.equal(other, value) for other in every), (name, "differs between ranks"))


def train(rank, size, model, optimizer=None, steps=STEPS, **words):
    optimizer = optimizer or torch.optim.SGD(model.parameters(), 0.1)
    for step in range(steps):
        optimizer.zero_grad()
        loss_of(model, data(step, rank), step).backward()
        optimizer.step()


def simple(rank, size):
    for words in ({}, {"bucket_cap_mb": 0.0001}, {"gradient_as_bucket_view": True},
                  {"broadcast_buffers": False}):
        model = DDP(net(), **words)
        train(rank, size, model)
        agree(model, alone(size), size)
    torch.manual_seed(rank)
    model = DDP(Net().double())                                         # the weights are rank 0's
    torch.manual_seed(0)
    agree(model, Net().double(), size)


def ahead(rank, size):
    """A rank goes on with its backward pass while its peers have not come to the buckets that it
    has given: they wait for a letter from there."""
    model, letter = DDP(net(), bucket_cap_mb=0.0001), torch.zeros(1)

    def sends(gradient):
        for peer in range(1, size):
            dist.send(letter, peer)

    def waits(gradient):
        dist.recv(letter, 0)
    if rank == 0:
        # the last one; the heads' buckets have been given
        model.module.body[0].weight.register_hook(sends)
    else:
        model.register_forward_hook(lambda module, given, out: out.register_hook(waits) and None)
    train(rank, size, model)
    agree(model, alone(size), size)


def static(rank, size):
    model = DDP(net(), static_graph=True)
    train(rank, size, model)
    agree(model, alone(size), size)


def unused(rank, size):
    model = DDP(net(branches=True), find_unused_parameters=True)
    train(rank, size, model)
    agree(model, alone(size, branches=True), size)
    error = raises(RuntimeError, train, rank, size, DDP(net(branches=True)))
    check("unused" in str(error) or "Expected to have finished" in str(error), error)


def no_sync(rank, size):
    model = DDP(net())
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for step in range(STEPS):
        optimizer.zero_grad()
        with model.no_sync():
            loss_of(model, data(step * 2, rank)).backward()
        loss_of(model, data(step * 2 + 1, rank)).backward()
        optimizer.step()
    agree(model, alone(size, accumulate=2), size)


def hooks(rank, size):
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
    group = dist.group.WORLD

    def mean(state, bucket):
        future = dist.all_reduce(bucket.buffer(), async_op=True).get_future()
        return future.then(lambda ended: ended.value()[0] / size)

    def twice(state, bucket):
        """A hook that communicates again in what hangs on the first future."""
        def more(ended):
            half = ended.value()[0] / size
            return dist.all_reduce(half, dist.ReduceOp.MAX, async_op=True).get_future().wait()[0]
        return dist.all_reduce(bucket.buffer(), async_op=True).get_future().then(more)

    def twice_and_late(state, bucket):
        """One rank is late, so the others' first operation is not over when the next bucket comes:
        the order of the second ones is the same."""
        if rank == 1:
            time.sleep(0.005)
        return twice(state, bucket)

    half = {"tolerance": 2e-2}
    for hook, words in ((default_hooks.allreduce_hook, {}), (mean, {}), (twice, {}),
                        (twice_and_late, {}), (default_hooks.fp16_compress_hook, half),
                        (default_hooks.fp16_compress_wrapper(mean), half)):
        for cap in (25, 0.0001):
            model = DDP(net(), bucket_cap_mb=cap)
            model.register_comm_hook(group, hook)
            train(rank, size, model)
            agree(model, alone(size), size, **words)
    for cap in (25, 0.001):
        model = DDP(net(wide=64), bucket_cap_mb=cap)
        state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=64,
                                            start_powerSGD_iter=2, min_compression_rate=0)
        model.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
        train(rank, size, model)
        agree(model, alone(size, wide=64), size, tolerance=0.2)


def join(rank, size):
    """Rank 0 has twice as many batches."""
    model = DDP(net())
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    steps = 4 if rank == 0 else 2
    with model.join(divide_by_initial_world_size=False):
        for step in range(steps):
            optimizer.zero_grad()
            loss_of(model, data(step, rank)).backward()
            optimizer.step()
    reference = net()
    optimizer = torch.optim.SGD(reference.parameters(), 0.1)
    for step in range(4):
        optimizer.zero_grad()
        who = range(size) if step < 2 else [0]
        for peer in who:
            (loss_of(reference, data(step, peer)) / len(who)).backward()
        optimizer.step()
    agree(model, reference, size)


def zero(rank, size):
    from torch.distributed.optim import ZeroRedundancyOptimizer
    for words in ({}, {"parameters_as_bucket_view": True}):
        model = DDP(net())
        optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.01, **words)
        train(rank, size, model, optimizer)
        optimizer.consolidate_state_dict(0)
        if rank == 0:
            check(len(optimizer.state_dict()["state"]) == len(list(model.parameters())),
                  "the whole state")
        reference = net()
        adam = torch.optim.Adam(reference.parameters(), lr=0.01)
        for step in range(STEPS):
            adam.zero_grad()
            for peer in range(size):
                (loss_of(reference, data(step, peer)) / size).backward()
            adam.step()
        agree(model, reference, size)


def local_sgd(rank, size):
    from torch.distributed.algorithms.ddp_comm_hooks.post_localSGD_hook import (PostLocalSGDState,
                                                                                post_localSGD_hook)
    from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
    from torch.distributed.optim import PostLocalSGDOptimizer
    model = DDP(net())
    subgroup = [dist.new_group([peer]) for peer in range(size)][rank]
    model.register_comm_hook(PostLocalSGDState(None, subgroup, 2), post_localSGD_hook)
    optimizer = PostLocalSGDOptimizer(torch.optim.SGD(model.parameters(), 0.1),
                                      PeriodicModelAverager(period=2, warmup_steps=2))
    train(rank, size, model, optimizer, steps=5)
    weights = [value.detach().clone() for value in model.parameters()]
    for value in weights:
        every = [torch.empty_like(value) for _ in range(size)]
        dist.all_gather(every, value)
        check(all(torch.equal(other, value) for other in every),
              "averaged in step 4, which is the fifth")


class Squares(torch.utils.data.Dataset):
    def __len__(self):
        return 24

    def __getitem__(self, index):
        return torch.tensor([float(index)]), torch.tensor([float(index * index)])


def workers(rank, size):
    """Workers of a DataLoader are forks of a rank: they begin, work and end while the
    rank communicates."""
    sampler = torch.utils.data.distributed.DistributedSampler(Squares(), shuffle=True)
    seen = torch.zeros(24)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for x, y in torch.utils.data.DataLoader(Squares(), batch_size=3, sampler=sampler,
                                                num_workers=2):
            check(torch.equal(x * x, y), (x, y))
            seen[x.long().view(-1)] += 1
            dist.all_reduce(torch.ones(10))
    dist.all_reduce(seen)
    check(seen.tolist() == [2.0] * 24, seen)


class Dies(torch.autograd.Function):
    """A layer whose backward pass kills its rank, in the given step."""

    @staticmethod
    def forward(context, x, dead):
        context.dead = dead
        return x

    @staticmethod
    def backward(context, gradient):
        if context.dead:
            os.kill(os.getpid(), signal.SIGKILL)
        return gradient, None


def dies(rank, size, make):
    model = make()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for step in range(3):
        optimizer.zero_grad()
        x, y = data(step, rank)
        loss = (Dies.apply(model(x), rank == 1 and step == 2) - y).pow(2).mean()
        if step < 2:
            loss.backward()
            optimizer.step()
            continue
        began = time.monotonic()
        error = raises(tutti.RankDied, lambda: loss.backward())
        check(1 in error.ranks and "torch_ddp_test.py" in error.report, error.report)
        # the figure is perf's: here it is no hang
        check(time.monotonic() - began < 60, "long after")


def with_hook():
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
    model = DDP(net(), bucket_cap_mb=0.0001)
    model.register_comm_hook(None, default_hooks.fp16_compress_hook)
    return model


def differ(rank, size):
    """Ranks whose models differ in shape are told so when the model is wrapped."""
    error = raises(RuntimeError, DDP, nn.Linear(3 + rank, 2))
    check(error is not None, error)


class Training(Case):
    def test_two(self):
        for body in (simple, ahead, static, unused, no_sync, hooks, join, zero, local_sgd,
                     workers, differ):
            with self.subTest(body=body.__name__):
                self.ranks(2, body)

    def test_three(self):
        def everything(rank, size):
            for body in (simple, ahead, unused, join, zero):
                body(rank, size)
        self.ranks(3, everything)

    def test_a_rank_killed_in_backward(self):
        for make in (lambda: DDP(net()), lambda: DDP(net(), bucket_cap_mb=0.0001), with_hook,
                     lambda: DDP(net(), find_unused_parameters=True),
                     lambda: DDP(net(), static_graph=True)):
            self.ranks(3, dies, make, ends={1: DEATH})


if __name__ == "__main__":
    main()
