# Shards in rows and copies in columns of a mesh of 2 by 2: FSDP2, FSDP1's hybrid strategy, and
# FSDP2 with tensor parallel layers.
import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, ShardingStrategy, fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

from support import alone, begin, check, end, fit, net, same, trained


def main():
    me, size = begin()
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("copies", "shards"))
    model = net()
    for layer in (model.first, model.second):
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    check(model.first.weight.to_local().shape[0] == 8, model.first.weight.to_local().shape)
    trained(fit(model, me).state_dict(), size, "HSDP")

    model = FullyShardedDataParallel(net(), device_mesh=mesh,
                                     sharding_strategy=ShardingStrategy.HYBRID_SHARD,
                                     use_orig_params=True, device_id=torch.device("cpu"))
    fit(model, me)
    with FullyShardedDataParallel.summon_full_params(model):
        trained({name: value.clone() for name, value in model.module.state_dict().items()}, size,
                "HYBRID_SHARD")

    # The ranks of a row have one batch, and the halves of each layer.
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "tensor"))
    model = parallelize_module(net(), mesh["tensor"],
                               {"first": ColwiseParallel(), "second": RowwiseParallel()})
    fully_shard(model, mesh=mesh["data"])
    fit(model, me // 2)
    expected = alone(2)
    for name, value in model.state_dict().items():
        same(value.full_tensor(), expected[name], f"2-D {name}")
    end(*mesh.get_all_groups())


if __name__ == "__main__":
    main()
