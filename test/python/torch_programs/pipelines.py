# Pipelines: a model cut into stages, its micro-batches sent from rank to rank by the schedules
# GPipe, 1F1B and interleaved 1F1B.
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.pipelining import (PipelineStage, Schedule1F1B, ScheduleGPipe,
                                          ScheduleInterleaved1F1B, SplitPoint, pipeline)
from torch.nn.parallel import DistributedDataParallel as DDP

from support import begin, check, end, filled, integers, same

CHUNKS = 4


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)

    def forward(self, x):
        return self.linear(x).relu() / 8


def layers(n):
    made = torch.nn.Sequential(*(Layer() for _ in range(n))).double()
    for i, layer in enumerate(made):
        filled(layer, seed=i + 1)
    return made


def loss(out, y):
    return (out * y).sum()


def gradients(n):
    """What one process has for each layer; the schedules take the mean over the micro-batches."""
    model = layers(n)
    x, y = integers(40, 16, 8), integers(41, 16, 8)
    out = model(x)
    (loss(out, y) / CHUNKS).backward()
    return x, y, out.detach(), [[one.grad for one in layer.parameters()] for layer in model]


def run(schedule, first, last, x, y):
    losses = []
    words = {"target": y, "losses": losses} if last else {}
    out = schedule.step(*([x] if first else []), **words)
    return out, losses


def main():
    me, size = begin()
    cpu = torch.device("cpu")
    x, y, expected, wanted = gradients(size)
    for kind in (ScheduleGPipe, Schedule1F1B):
        mine = layers(size)[me]
        stage = PipelineStage(mine, me, size, cpu)
        out, losses = run(kind(stage, n_microbatches=CHUNKS, loss_fn=loss), me == 0, me == size - 1,
                          x, y)
        for got, grad in zip(mine.parameters(), wanted[me]):
            same(got.grad, grad, kind.__name__)
        if me == size - 1:
            same(out.detach(), expected, kind.__name__)
            same(sum(losses).detach(), loss(expected, y), kind.__name__)

    # Two stages on each rank.
    x, y, expected, wanted = gradients(2 * size)
    mine = [layers(2 * size)[i] for i in (me, me + size)]
    stages = [PipelineStage(layer, me + size * i, 2 * size, cpu) for i, layer in enumerate(mine)]
    out, _ = run(ScheduleInterleaved1F1B(stages, n_microbatches=CHUNKS, loss_fn=loss), me == 0,
                 me == size - 1, x, y)
    for layer, i in zip(mine, (me, me + size)):
        for got, grad in zip(layer.parameters(), wanted[i]):
            same(got.grad, grad, f"interleaved {i}")
    if me == size - 1:
        same(out.detach(), expected, "interleaved")

    # Cut by torch out of a traced model.
    x, y, expected, wanted = gradients(size)
    cut = pipeline(layers(size), mb_args=(x.chunk(CHUNKS)[0],),
                   split_spec={str(i): SplitPoint.BEGINNING for i in range(1, size)})
    check(cut.num_stages == size)
    stage = cut.build_stage(me, cpu)
    out, _ = run(ScheduleGPipe(stage, n_microbatches=CHUNKS, loss_fn=loss), me == 0, me == size - 1,
                 x, y)
    for got, grad in zip(stage.submod.parameters(), wanted[me]):
        same(got.grad, grad, "traced")

    # Two stages of two ranks each, DDP among the two of a stage: each pipeline has half
    # of the rows.
    groups = []
    if size == 4:
        mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("pipeline", "data"))
        groups = mesh.get_all_groups()
        x, y, expected, wanted = gradients(2)
        place, half = mesh["pipeline"].get_local_rank(), mesh["data"].get_local_rank()
        mine = layers(2)[place]
        stage = PipelineStage(DDP(mine, process_group=mesh.get_group("data")), place, 2, cpu,
                              group=mesh.get_group("pipeline"))
        run(Schedule1F1B(stage, n_microbatches=CHUNKS, loss_fn=loss), place == 0, place == 1,
            x.chunk(2)[half], y.chunk(2)[half])
        for got, grad in zip(mine.parameters(), wanted[place]):
            same(got.grad, grad / 2, "with DDP")
    dist.barrier()
    end(*groups)


if __name__ == "__main__":
    main()
