# DDP's communication hooks: built in, of Python, in half precision, by low rank, after local steps.
import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import (default_hooks, post_localSGD_hook,
                                                         powerSGD_hook)
from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
from torch.nn.parallel import DistributedDataParallel as DDP

from support import alike, begin, end, fit, integers, near, net, trained


def half(got, expected, what=""):
    """Gradients of half precision: integers up to 2048 and their halves are exact there, a mean
    over ranks is not."""
    near(got, expected, what, rtol=0.02, atol=0.5)


def compress(me, size):
    """A gradient of rank `size` is what PowerSGD of that rank gives back, but for rounding."""
    def model():
        made = torch.nn.Linear(32, 32, bias=False).double()
        with torch.no_grad():
            made.weight.copy_(integers(7, 32, 32))
        return made

    def step(one, ranks):
        sum((one(integers(70 + rank, 1, 32)) * integers(90 + rank, 1, 32)).sum()
            for rank in ranks).backward()
    ddp, single = DDP(model()), model()
    state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=size, start_powerSGD_iter=2,
                                        min_compression_rate=1)
    ddp.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    step(single, range(size))
    for i in range(4):
        ddp.zero_grad()
        step(ddp, [me])
        near(ddp.module.weight.grad, single.weight.grad / size, f"PowerSGD step {i}",
             rtol=1e-4, atol=1e-3)
        alike(ddp.module.weight.grad, "PowerSGD")


def main():
    me, size = begin()

    def hooked(hook, state=None, what="", compare=None, **words):
        model = DDP(net(), **words)
        if isinstance(hook, dist.BuiltinCommHookType):
            model._register_builtin_comm_hook(hook)
        else:
            model.register_comm_hook(state, hook)
        trained(fit(model, me).module.state_dict(), size, what or hook, compare=compare)

    def own(state, bucket):
        """A hook as programs write them: asynchronous, then divided."""
        return dist.all_reduce(bucket.buffer(),
                               async_op=True).get_future().then(lambda done: done.value()[0] / size)

    hooked(dist.BuiltinCommHookType.ALLREDUCE)
    hooked(dist.BuiltinCommHookType.ALLREDUCE, what="small buckets", bucket_cap_mb=0.0005)
    hooked(dist.BuiltinCommHookType.FP16_COMPRESS, compare=half)
    hooked(default_hooks.allreduce_hook)
    hooked(default_hooks.fp16_compress_hook, compare=half)
    hooked(default_hooks.fp16_compress_wrapper(own), what="wrapped", compare=half)
    hooked(own, what="own")
    hooked(own, what="own in small buckets", bucket_cap_mb=0.0005, gradient_as_bucket_view=True)
    compress(me, size)

    # A step of the whole group, one of the subgroup; then what each has by itself is averaged.
    model = DDP(net())
    group = dist.new_group()
    state = post_localSGD_hook.PostLocalSGDState(None, group, start_localSGD_iter=1)
    model.register_comm_hook(state, post_localSGD_hook.post_localSGD_hook)
    trained(fit(model, me).module.state_dict(), size, "steps of a subgroup")
    averager = PeriodicModelAverager(period=1, warmup_steps=0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(float(me))
            parameter.grad = torch.zeros_like(parameter)
    averager.average_parameters(model.parameters())
    for parameter in model.parameters():
        near(parameter.detach(), torch.full_like(parameter, (size - 1) / 2).detach(), "averaged")
    end(group)


if __name__ == "__main__":
    main()
