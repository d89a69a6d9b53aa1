# SPDX-License-Identifier: MIT
"""Data-parallel training with PyTorch: pictures of ten kinds, made by a formula, a small
net, DistributedDataParallel.

    tutti run -n 2 python3 ddp_mnist_like.py              # or torchrun --nproc_per_node
                                                          2 ddp_mnist_like.py
    tutti run -n 2 python3 ddp_mnist_like.py gloo         # the same program on another backend

What is tutti's: the import, the name of the backend, and two idioms. zero_first(): rank 0 makes and
caches the data set, the others load it. seed_everything(): a seed per rank, so that no two ranks
add the same noise.
"""
import os
import sys
import tempfile

import torch
import torch.distributed as dist
import tutti.torch
from torch.nn.parallel import DistributedDataParallel

SIDE, KINDS, PICTURES, BATCH, EPOCHS = 12, 10, 2000, 50, 3


def make_pictures():
    """Kind k is a wave of its own direction and length; each picture has its phase."""
    index = torch.arange(PICTURES)
    kind = index % KINDS
    y, x = torch.meshgrid(torch.arange(SIDE) / SIDE, torch.arange(SIDE) / SIDE, indexing="ij")
    angle = (kind * 0.62).view(-1, 1, 1)
    phase = (index * 0.37).view(-1, 1, 1)
    return torch.sin((x * angle.cos() + y * angle.sin()) * (4 + kind.view(-1, 1, 1)) + phase), kind


def load(cache):
    if not os.path.exists(cache):
        print(f"rank {dist.get_rank()} makes the data set", flush=True)
        torch.save(make_pictures(), cache)
    return torch.utils.data.TensorDataset(*torch.load(cache))


def mean_of(value):
    """The mean over all ranks."""
    total = torch.tensor([float(value)])
    dist.all_reduce(total)
    return total.item() / dist.get_world_size()


def train():
    """The share of pictures told right in the last epoch."""
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.set_num_threads(max(1, (os.cpu_count() or 1) // size))

    cache = os.path.join(tempfile.gettempdir(),
                         f"waves-{os.getuid()}-{os.environ.get('MASTER_PORT', '0')}.pt")
    with tutti.torch.zero_first(rank):
        pictures = load(cache)
    dist.barrier()
    if rank == 0:
        os.unlink(cache)

    torch.manual_seed(1)                                               # the same weights everywhere
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(SIDE * SIDE, 64), torch.nn.ReLU(),
                              torch.nn.Linear(64, KINDS))
    model = DistributedDataParallel(net)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    sampler = torch.utils.data.distributed.DistributedSampler(pictures, size, rank, seed=1)
    tutti.torch.seed_everything(1)                                      # other noise on every rank
    for epoch in range(EPOCHS):
        sampler.set_epoch(epoch)
        losses, right, seen = 0.0, 0, 0
        for image, kind in torch.utils.data.DataLoader(pictures, BATCH // size, sampler=sampler):
            optimizer.zero_grad()
            guess = model(image + 0.3 * torch.randn_like(image))
            loss = torch.nn.functional.cross_entropy(guess, kind)
            loss.backward()
            optimizer.step()
            losses, right, seen = (losses + loss.item() * len(kind),
                                   right + (guess.argmax(1) == kind).sum().item(), seen + len(kind))
        loss, share = mean_of(losses / seen), mean_of(right / seen)
        if rank == 0:
            print(f"epoch {epoch}: loss {loss:.3f}, {share:.0%} right", flush=True)
    return share


def main():
    dist.init_process_group(sys.argv[1] if len(sys.argv) > 1 else "tutti")
    share = train()
    dist.destroy_process_group()           # when the model is gone, which uses the group to its end
    if share < 0.9:
        sys.exit(f"only {share:.0%} right after {EPOCHS} epochs")


if __name__ == "__main__":
    main()
