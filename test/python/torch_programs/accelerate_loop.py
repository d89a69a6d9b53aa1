# Accelerate: a loop as its users write it, its gathers and its shared data loader. It takes a group
# that is there already.
import torch
import torch.distributed as dist
from accelerate import Accelerator, DistributedType
from accelerate.utils import (broadcast, broadcast_object_list, gather_object, pad_across_processes,
                              reduce, set_seed)
from torch.utils.data import DataLoader, TensorDataset

from support import BACKEND, alike, begin, check, end, exact, integers, loss, net, same, sgd

ROWS = 48


def main():
    if BACKEND != "gloo":
        begin()                      # on processors it asks for gloo by itself, whatever it is told
    torch.set_num_threads(1)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    me, size = accelerator.process_index, accelerator.num_processes
    check(accelerator.distributed_type == DistributedType.MULTI_CPU
          and dist.get_backend() == BACKEND)
    set_seed(3)

    x, y = integers(5, ROWS, 8), integers(6, ROWS, 4)
    loader = DataLoader(TensorDataset(torch.arange(ROWS), x, y), batch_size=ROWS // size // 2)
    raw = net()
    model, optimizer, loader = accelerator.prepare(raw, sgd(raw), loader)
    seen = []
    for index, a, b in loader:
        with accelerator.accumulate(model):
            accelerator.backward(loss(model, a, b))
            optimizer.step()
            optimizer.zero_grad()
        seen += accelerator.gather_for_metrics(index).tolist()
    check(sorted(seen) == list(range(ROWS)), seen)
    single = net()
    (loss(single, x, y) / 2 / size).backward()
    sgd(single).step()
    for got, expected in zip(accelerator.unwrap_model(model).parameters(), single.parameters()):
        exact(size)(got.detach(), expected.detach())
        alike(got)

    same(accelerator.gather(torch.tensor([me])), torch.arange(size))
    same(reduce(torch.full((3,), float(me)), "mean"), torch.full((3,), (size - 1) / 2))
    same(broadcast(torch.tensor([me]), from_process=size - 1), torch.tensor([size - 1]))
    check(gather_object([{"of": me}]) == [{"of": rank} for rank in range(size)])
    check(broadcast_object_list([me, "text"]) == [0, "text"])
    padded = pad_across_processes(torch.ones(me + 1))
    check(padded.tolist() == [1.0] * (me + 1) + [0.0] * (size - 1 - me), padded)
    with accelerator.main_process_first():
        pass
    with accelerator.split_between_processes(list(range(2 * size))) as mine:
        check(mine == [2 * me, 2 * me + 1], mine)
    accelerator.wait_for_everyone()
    end()


if __name__ == "__main__":
    main()
