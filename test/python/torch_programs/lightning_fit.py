# Lightning: Fabric with DDP and with FSDP2, the Trainer with DDP, started as torchrun starts ranks.
# Its "fsdp" is for GPUs.
import logging
import os

import lightning
import torch
import torch.distributed as dist
from lightning.fabric.plugins.environments import TorchElasticEnvironment
from lightning.fabric.strategies import DDPStrategy as FabricDDP, ModelParallelStrategy
from lightning.pytorch.strategies import DDPStrategy
from torch.distributed.fsdp import fully_shard
from torch.utils.data import DataLoader, TensorDataset

from support import BACKEND, alike, carried, check, exact, integers, loss, net, same, sgd

LIMIT = 180
ROWS = 24


class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = net()
        self.seen = []

    def training_step(self, rows, _):
        value = loss(self.net, *rows)
        self.log("loss", value, sync_dist=True, on_epoch=True, on_step=False)
        return value

    def validation_step(self, rows, _):
        self.log("rows", float(len(rows[0])), sync_dist=True, reduce_fx="sum")

    def configure_optimizers(self):
        return sgd(self.net)


def data():
    return integers(5, ROWS, 8), integers(6, ROWS, 4)


def loader(size):
    return DataLoader(TensorDataset(*data()), batch_size=ROWS // size)


def equal(model, size):
    """One step over each rank's share is one step over all rows."""
    single = net()
    (loss(single, *data()) / size).backward()
    sgd(single).step()
    for (name, got), expected in zip(model.named_parameters(), single.parameters()):
        got = got.full_tensor() if hasattr(got, "full_tensor") else got
        exact(size)(got.detach(), expected.detach(), name)
        alike(got, name)


def fabric(size):
    made = lightning.Fabric(accelerator="cpu", devices=size, plugins=[TorchElasticEnvironment()],
                            strategy=FabricDDP(process_group_backend=BACKEND))
    made.launch()
    check(dist.get_backend() == BACKEND and made.world_size == size)
    raw = net()
    model, optimizer = made.setup(raw, sgd(raw))
    for x, y in made.setup_dataloaders(loader(size)):
        made.backward(loss(model, x, y))
        optimizer.step()
    equal(raw, size)
    me = made.global_rank
    same(made.all_gather(torch.tensor([me])).flatten(), torch.arange(size))
    same(made.all_reduce(torch.tensor([float(me)]), reduce_op="sum"),
         torch.tensor([size * (size - 1) / 2]))
    check(made.broadcast({"of": me}, src=size - 1) == {"of": size - 1})
    with made.rank_zero_first():
        pass
    made.save(os.path.join(os.environ["TUTTI_TEST_FOLDER"], "fabric"), {"model": model})
    made.barrier()


def sharded(size):
    made = lightning.Fabric(accelerator="cpu", devices=size, plugins=[TorchElasticEnvironment()],
                            strategy=ModelParallelStrategy(
        lambda model, mesh: fully_shard(model, mesh=mesh["data_parallel"]), data_parallel_size=size,
        tensor_parallel_size=1, process_group_backend=BACKEND))
    made.launch()
    raw = net()
    model = made.setup(raw)
    optimizer = made.setup_optimizers(sgd(model))
    for x, y in made.setup_dataloaders(loader(size)):
        made.backward(loss(model, x, y))
        optimizer.step()
    equal(raw, size)


def trainer(size):
    made = lightning.Trainer(accelerator="cpu", devices=size, plugins=[TorchElasticEnvironment()],
                             max_epochs=1, logger=False,
                             strategy=DDPStrategy(process_group_backend=BACKEND),
                             enable_progress_bar=False, enable_model_summary=False,
                             default_root_dir=os.environ["TUTTI_TEST_FOLDER"])
    module = Module()
    made.fit(module, loader(size), loader(size))
    equal(module.net, size)
    check(int(made.callback_metrics["rows"]) == ROWS, made.callback_metrics)
    check(len(os.listdir(os.path.join(os.environ["TUTTI_TEST_FOLDER"], "checkpoints"))) == 1)


def main():
    torch.set_num_threads(1)
    for name in ("lightning.pytorch", "lightning.fabric"):
        logging.getLogger(name).setLevel(logging.ERROR)
    size = int(os.environ["WORLD_SIZE"])
    os.environ.setdefault("GROUP_RANK", "0")
    fabric(size)
    sharded(size)
    trainer(size)
    carried()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
