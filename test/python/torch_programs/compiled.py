# torch.compile: collectives inside of a compiled function, compiled models within and around DDP,
# and sharded ones.
import torch
import torch._dynamo
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel as DDP

from support import batch, begin, check, end, fit, loss, net, same, trained

LIMIT = 240


def main():
    me, size = begin()
    for backend in ("eager", "aot_eager", "inductor"):
        torch._dynamo.reset()
        graphs = []

        def counted(graph, inputs):
            graphs.append(graph)
            return torch._dynamo.lookup_backend(backend)(graph, inputs)

        @torch.compile(backend=counted, fullgraph=True)
        def function(x):
            total = funcol.all_reduce(x * 2, "sum", dist.group.WORLD)
            every = funcol.all_gather_tensor(total + x, 0, dist.group.WORLD)
            share = funcol.reduce_scatter_tensor(every, "sum", 0, dist.group.WORLD)
            other = funcol.all_to_all_single(x, None, None, dist.group.WORLD)
            return total, every, share + 1, other
        x = torch.arange(2.0 * size) + me
        total = sum(2 * (torch.arange(2.0 * size) + rank) for rank in range(size))
        every = torch.cat([total + torch.arange(2.0 * size) + rank for rank in range(size)])
        for _ in range(2):
            got = function(x)
            same(got[0], total, backend)
            same(got[1], every, backend)
            same(got[2], every.chunk(size)[me] * size + 1, backend)
            same(got[3], torch.cat([(torch.arange(2.0 * size) + rank).chunk(size)[me]
                                    for rank in range(size)]), backend)
        check(len(graphs) == 1, len(graphs))

        @torch.compile(backend=backend, fullgraph=True)
        def in_place(x):              # torch.distributed's own, which the compiler makes functional
            y = x * 2
            dist.all_reduce(y)
            out = torch.empty(size * y.numel())
            dist.all_gather_into_tensor(out, y)
            return y + 1, out
        got = in_place(x)
        same(got[0], total + 1, backend)
        same(got[1], total.repeat(size), backend)

    # Inductor may fuse multiplications with additions: exact here all the same, as all numbers are.
    torch._dynamo.reset()
    model = torch.compile(DDP(net()), backend="aot_eager")
    trained(fit(model, me).module.state_dict(), size, "compiled DDP")
    torch._dynamo.reset()
    trained(fit(DDP(torch.compile(net())), me).module.state_dict(), size, "DDP of a compiled model")
    torch._dynamo.reset()
    model = fully_shard(net())
    trained(fit(torch.compile(model, backend="aot_eager"), me)._orig_mod.state_dict(), size,
            "compiled FSDP2")
    value = torch.compile(loss, backend="aot_eager")(net(), *batch(0))
    same(value.detach(), loss(net(), *batch(0)).detach())
    end()


if __name__ == "__main__":
    main()
