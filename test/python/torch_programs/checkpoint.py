# torch.distributed.checkpoint: saved by all ranks, loaded into other shards, saved in the
# background by a thread or a process.
import os

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.checkpoint.state_dict_saver import AsyncCheckpointerType
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Replicate, Shard, distribute_tensor, zeros
from torch.nn.parallel import DistributedDataParallel as DDP

from support import BACKEND, alone, begin, end, exact, fit, integers, net, same


def main():
    me, size = begin()
    folder = os.environ["TUTTI_TEST_FOLDER"]
    mesh = init_device_mesh("cpu", (size,))
    whole = integers(1, 7, 5)

    # Of a plain tensor, of shards, of each rank's own; loaded into other shards.
    path = f"{folder}/plain"
    state = {"copy": whole, "rows": distribute_tensor(whole, mesh, [Shard(0)]), "step": 3,
             f"of {me}": torch.tensor([me])}
    dcp.save(state, checkpoint_id=path)
    state = {"copy": torch.zeros_like(whole), "step": 0,
             "rows": zeros(7, 5, dtype=whole.dtype, device_mesh=mesh, placements=[Shard(1)]),
             f"of {(me + 1) % size}": torch.tensor([-1])}
    dcp.load(state, checkpoint_id=path)
    same(state["copy"], whole)
    same(state["rows"].full_tensor(), whole)
    same(state[f"of {(me + 1) % size}"], torch.tensor([(me + 1) % size]))
    assert state["step"] == 3
    state = {"rows": zeros(7, 5, dtype=whole.dtype, device_mesh=mesh, placements=[Replicate()])}
    dcp.load(state, checkpoint_id=path)
    same(state["rows"].to_local(), whole)

    # A sharded model and its optimizer, loaded into DDP and trained on.
    def model_of(wrap):
        model = wrap(net())
        return model, torch.optim.SGD(model.parameters(), lr=1 / 64, momentum=0.5)
    model, optimizer = model_of(fully_shard)
    fit(model, me, steps=1, optimizer=optimizer)
    state, steps = get_state_dict(model, optimizer)
    path = f"{folder}/model"
    dcp.save({"model": state, "optimizer": steps}, checkpoint_id=path)
    model, optimizer = model_of(DDP)
    state, steps = get_state_dict(model, optimizer)
    loaded = {"model": state, "optimizer": steps}
    dcp.load(loaded, checkpoint_id=path)
    set_state_dict(model, optimizer, model_state_dict=loaded["model"],
                   optim_state_dict=loaded["optimizer"])
    expected = alone(size, steps=1)
    for name, value in model.module.state_dict().items():
        exact(size)(value, expected[name], name)

    # In the background while the default group works on: by a thread, on its own group; by a
    # process, which asks for gloo itself.
    group = dist.new_group(backend="gloo" if BACKEND == "gloo" else f"cpu:{BACKEND}")
    for i, kind in enumerate((AsyncCheckpointerType.THREAD, AsyncCheckpointerType.PROCESS)):
        path = f"{folder}/background{i}"
        mine = {"rows": distribute_tensor(whole * (i + 1), mesh, [Shard(0)])}
        its = group if kind == AsyncCheckpointerType.THREAD else dist.new_group(backend="gloo")
        future = dcp.async_save(mine, checkpoint_id=path, async_checkpointer_type=kind,
                                process_group=its)
        value = torch.full((1000,), float(me))
        for _ in range(20):
            dist.all_reduce(value.fill_(me))
        same(value, torch.full((1000,), size * (size - 1) / 2))
        future.result()
        state = {"rows": zeros(7, 5, dtype=whole.dtype, device_mesh=mesh, placements=[Shard(1)])}
        dcp.load(state, checkpoint_id=path)
        same(state["rows"].full_tensor(), whole * (i + 1), kind)
    end(group)


if __name__ == "__main__":
    main()
