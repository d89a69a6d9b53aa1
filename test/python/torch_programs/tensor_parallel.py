# Layers split among ranks by parallelize_module: columns then rows, sequence parallel, an
# embedding, the loss of split logits.
import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import (ColwiseParallel, PrepareModuleInput, RowwiseParallel,
                                               SequenceParallel, loss_parallel, parallelize_module)

from support import batch, begin, check, end, filled, integers, loss, near, net, same, sgd


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = torch.nn.Embedding(16, 8)
        self.norm = torch.nn.LayerNorm(8)
        self.up = torch.nn.Linear(8, 16)
        self.down = torch.nn.Linear(16, 8)
        self.logits = torch.nn.Linear(8, 16)

    def forward(self, x):
        x = self.norm(self.tokens(x))
        return self.logits(self.down(torch.nn.functional.gelu(self.up(x))))


def train(model, ranks, steps=2):
    for step in range(steps):
        sum(loss(model, *batch(rank, step)) for rank in ranks).backward()
        sgd(model).step()
        model.zero_grad()
    return model


def main():
    me, size = begin()
    mesh = init_device_mesh("cpu", (size,))

    model = parallelize_module(net(), mesh,
                               {"first": ColwiseParallel(), "second": RowwiseParallel()})
    check(model.first.weight.to_local().shape == (16 // size, 8)
          and model.second.weight.to_local().shape == (12, 16 // size))
    single = train(net(), [0])
    train(model, [0])
    for (name, got), expected in zip(model.named_parameters(), single.parameters()):
        got = got.full_tensor() if hasattr(got, "full_tensor") else got
        same(got.detach(), expected.detach(), name)

    model = parallelize_module(net(), mesh, {
        "first": ColwiseParallel(input_layouts=Shard(0)),
        "second": RowwiseParallel(output_layouts=Shard(0)),
        "third": PrepareModuleInput(input_layouts=Shard(0), desired_input_layouts=Replicate(),
                                    use_local_output=True)})
    x, _ = batch(0)
    got = model(x.chunk(size)[me])
    same(got.detach(), net()(x).detach(), "rows in, rows out")

    # A block as transformers have it, rows of the sequence between its layers. Its
    # normalization rounds.
    block = filled(Block()).double()
    alone = filled(Block()).double()
    parallelize_module(block, mesh, {
        "tokens": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)),
        "norm": SequenceParallel(),
        "up": ColwiseParallel(input_layouts=Shard(1)),
        "down": RowwiseParallel(output_layouts=Shard(1)),
        "logits": ColwiseParallel(input_layouts=Shard(1), output_layouts=Shard(-1),
                                  use_local_output=False)})
    x = integers(4, 2, 8, dtype=torch.int64) + 2
    y = integers(5, 2, 8, dtype=torch.int64) + 2
    with loss_parallel():
        got = torch.nn.functional.cross_entropy(block(x).flatten(0, 1), y.flatten())
        got.backward()
    expected = torch.nn.functional.cross_entropy(alone(x).flatten(0, 1), y.flatten())
    expected.backward()
    near(got.full_tensor().detach() if hasattr(got, "full_tensor") else got.detach(),
         expected.detach(), "loss", rtol=1e-10)
    for (name, one), other in zip(block.named_parameters(), alone.parameters()):
        near(one.grad.full_tensor(), other.grad, name, rtol=1e-9, atol=1e-9)
    end(mesh.get_group())


if __name__ == "__main__":
    main()
