"""What perf/torch runs: ranks that measure a backend of torch.distributed beside another one, in
the same processes, in turns.

A line a round on stdout: operation, contender, number of operations, their time together, then the
time of each, in nanoseconds; each time is that of the slowest rank. "alone": one rank, which waits
for nobody; "nothing": the same on a backend of torch's that does nothing; for DDP, which wants
results, on a group of one rank; "engine": the same call of tutti's own package, without torch.
"""
import argparse
import datetime
import logging
import os
import sys
import tempfile
import time

import torch
import torch.distributed as dist
import tutti
import tutti.torch  # noqa: F401
from torch.nn.parallel import DistributedDataParallel
from torch.testing._internal.distributed.fake_pg import FakeStore

NOW = time.perf_counter_ns


def model():
    """A transformer of four blocks of 128."""
    torch.manual_seed(1)
    return torch.nn.Sequential(*(torch.nn.TransformerEncoderLayer(128, 4, 512, dropout=0.0,
                                                                  batch_first=True)
                                 for _ in range(4)))


def sharded(group):
    from torch.distributed.device_mesh import DeviceMesh
    from torch.distributed.fsdp import fully_shard
    mesh, net = DeviceMesh.from_group(group, "cpu"), model()
    for block in net:
        fully_shard(block, mesh=mesh)
    return fully_shard(net, mesh=mesh)


def step(net):
    optimizer = torch.optim.SGD(net.parameters(), 0.01)
    x = torch.randn(2, 16, 128)

    def run():
        optimizer.zero_grad()
        net(x).square().mean().backward()
        optimizer.step()
    return run


class Replicas:
    """DeepSpeed's word for a group over which it shards: here not the default one."""

    def __init__(self, group):
        self.get_data_parallel_group = lambda: group
        self.get_data_parallel_world_size = lambda: dist.get_world_size(group)
        self.get_data_parallel_rank = lambda: dist.get_rank(group)
        self.get_model_parallel_group = lambda: None
        self.get_model_parallel_world_size = lambda: 1
        self.get_model_parallel_rank = lambda: 0


def deepspeed_here():
    """DeepSpeed, set up for processors; None: it is not installed."""
    os.environ.update(DS_ACCELERATOR="cpu", LOCAL_RANK=str(dist.get_rank()))
    try:
        import deepspeed
    except ImportError:
        return None
    logging.getLogger("DeepSpeed").setLevel(logging.ERROR)
    # as where there is no compiler: built in a minute, and for inference
    deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
    deepspeed.init_distributed(dist_backend="tutti", verbose=False)
    return deepspeed


def zero3(deepspeed, group):
    net = model()
    config = {"train_micro_batch_size_per_gpu": 2, "zero_allow_untested_optimizer": True,
              "zero_force_ds_cpu_optimizer": False, "gradient_clipping": 0.0,
              "zero_optimization": {"stage": 3, "stage3_param_persistence_threshold": 0}}
    optimizer = torch.optim.SGD(net.parameters(), 0.01)
    engine, *_ = deepspeed.initialize(model=net, optimizer=optimizer, mpu=Replicas(group),
                                      dist_init_required=False, config=config)
    x = torch.randn(2, 16, 128)

    def run():
        engine.backward(engine(x).square().mean())
        engine.step()
    return run


def operations(groups, one, world, most, deepspeed):
    """name -> contender -> a function; and how many make a batch. one: a group of this
    rank alone."""
    communicate = {name: group for name, group in groups.items() if name != "nothing"}
    def barrier(group):
        return lambda: dist.barrier(group)

    def all_reduce(group, tensor):
        return lambda: dist.all_reduce(tensor, group=group)

    def engine(tensor):
        array = tensor.numpy()
        return lambda: world.all_reduce(array)

    def later(group, tensor):
        return lambda: dist.all_reduce(tensor, group=group, async_op=True).wait()

    made = {"barrier": (200, {**{name: barrier(group) for name, group in groups.items()},
                              "engine": world.barrier})}
    for bytes_, times in ((4, 200), (4096, 200), (65536, 100), (1 << 20, 20), (64 << 20, 2)):
        if bytes_ <= most:
            tensor = torch.ones(bytes_ // 4)
            made[f"all_reduce {bytes_}"] = times, {**{name: all_reduce(group, tensor)
                                                      for name, group in groups.items()},
                                                   "engine": engine(tensor)}
    small = torch.ones(1024)
    made["async 4096"] = 200, {name: later(group, small) for name, group in groups.items()}
    made["plain step"] = 3, {name: step(model()) for name in communicate}
    made["DDP step"] = 3, {name: step(DistributedDataParallel(model(), process_group=group))
                           for name, group in {**groups, "nothing": one}.items()}
    made["FSDP2 step"] = 3, {name: step(sharded(group)) for name, group in groups.items()}
    if deepspeed:
        made["ZeRO3 step"] = 2, {name: zero3(deepspeed, group)
                                 for name, group in communicate.items()}
    return made


def batch(run, times):
    """The whole, and each."""
    each = torch.empty(times, dtype=torch.float64)
    began = NOW()
    for _ in range(times):
        run()
    whole = NOW() - began
    for i in range(times):
        began = NOW()
        run()
        each[i] = NOW() - began
    return torch.cat([torch.tensor([float(whole)], dtype=torch.float64), each])


def rank(world, path, seconds, most):
    torch.set_num_threads(1)
    dist.init_process_group("tutti", init_method=f"file://{path}", rank=world.rank,
                            world_size=world.size, timeout=datetime.timedelta(seconds=100))
    groups = {"tutti": dist.new_group(), "gloo": dist.new_group(backend="gloo"),
              "nothing": dist.new_group(backend="fake")}
    one, _ = dist.new_subgroups(1)
    if world.size <= len(os.sched_getaffinity(0)):   # this thread alone: gloo's run where they like
        os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[world.rank]})
    made = operations(groups, one, world, most, deepspeed_here() if seconds >= 1 else None)
    began, turn, on = time.monotonic(), 0, torch.ones(1)
    for _, contenders in made.values():
        for run in contenders.values():
            run()
            run()
    while on.item():
        for name, (times, contenders) in made.items():
            for who in list(contenders) if turn % 2 == 0 else reversed(list(contenders)):
                dist.barrier()
                took = batch(contenders[who], times)
                dist.all_reduce(took, dist.ReduceOp.MAX)
                if world.rank == 0:
                    print(name.replace(" ", "_"), who, times,
                          *(f"{value:.0f}" for value in took.tolist()), flush=True)
        turn += 1
        on[0] = 1.0 if turn < 2 or time.monotonic() - began < seconds else 0.0
        dist.broadcast(on, 0)
    os._exit(0)                                                  # gloo's threads are not waited for


def alone(world, path, backend):
    """backend: tutti, or torch's own that does nothing."""
    torch.set_num_threads(1)
    if backend == "fake":
        dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=1)
    else:
        dist.init_process_group(backend, init_method=f"file://{path}", rank=0, world_size=1)
    tensor = torch.ones(1)
    for name, run in (("barrier", dist.barrier), ("all_reduce_4", lambda: dist.all_reduce(tensor))):
        for _ in range(100):
            took = batch(run, 500)
            print("alone_" + name, "nothing" if backend == "fake" else "tutti", 500,
                  *(f"{value:.0f}" for value in took.tolist()), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--most", type=int, default=64 << 20)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        ends = [end for backend in ("tutti", "fake")
                for end in tutti.spawn(alone, 1, os.path.join(folder, "before"), backend)]
        ends += tutti.spawn(rank, options.ranks, os.path.join(folder, "store"), options.seconds,
                            options.most, timeout=options.seconds + 100)
        # Once more, so that one slow phase of the machine is not all that it sees.
        ends += [end for backend in ("tutti", "fake")
                 for end in tutti.spawn(alone, 1, os.path.join(folder, "after"), backend)]
    sys.exit(any(ends))


if __name__ == "__main__":
    main()
