# DTensor: made, redistributed between all placements, computed with, on a mesh of one and of
# two dimensions.
import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor, full

from support import begin, end, integers, same


def main():
    me, size = begin()
    mesh = init_device_mesh("cpu", (size,))
    whole = integers(1, 5, 7)                   # shards of 5 and 7 are uneven
    placed = {"rows": [Shard(0)], "columns": [Shard(1)], "copies": [Replicate()]}
    for name, first in placed.items():
        one = distribute_tensor(whole, mesh, first)
        same(one.full_tensor(), whole, name)
        for other, second in placed.items():
            again = one.redistribute(mesh, second)
            same(again.full_tensor(), whole, f"{name} to {other}")
            same(again.to_local(), distribute_tensor(whole, mesh, second).to_local(),
                 f"{name} to {other}")

    parts = DTensor.from_local(whole * (me + 1), mesh, [Partial()])
    for name, second in placed.items():
        same(parts.redistribute(mesh, second).full_tensor(), whole * (size * (size + 1) // 2),
             f"sum to {name}")
    largest = DTensor.from_local(whole + me, mesh, [Partial("max")])
    same(largest.full_tensor(), whole + size - 1, "max")
    mean = DTensor.from_local(whole * size, mesh, [Partial("avg")])
    same(mean.full_tensor(), whole * size, "mean")

    a, b = integers(2, 7, 8), integers(3, 8, 4)
    for left in placed.values():
        for right in placed.values():
            got = distribute_tensor(a, mesh, left) @ distribute_tensor(b, mesh, right)
            same(got.full_tensor(), a @ b, f"{left} @ {right}")
    rows = distribute_tensor(a, mesh, [Shard(0)])
    same(rows.sum().full_tensor(), a.sum(), "sum")
    same(rows.amax(0).full_tensor(), a.amax(0), "max of columns")
    same(rows.t().full_tensor(), a.t(), "turned")
    same((rows + rows.redistribute(mesh, [Shard(1)]).redistribute(mesh, [Shard(0)])).full_tensor(),
         a + a, "added")

    leaf = distribute_tensor(a, mesh, [Shard(0)]).requires_grad_()
    (leaf @ distribute_tensor(b, mesh, [Replicate()])).redistribute(mesh,
                                                                    [Replicate()]).sum().backward()
    same(leaf.grad.full_tensor(), b.sum(1).expand(7, 8).contiguous(), "gradient")
    same(full((3, 5), 2.0, device_mesh=mesh, placements=[Shard(1)]).full_tensor(),
         torch.full((3, 5), 2.0))

    groups = []
    if size == 4:
        grid = init_device_mesh("cpu", (2, 2), mesh_dim_names=("y", "x"))
        groups = grid.get_all_groups()
        ways = (Shard(0), Shard(1), Replicate())
        for first in ((y, x) for y in ways for x in ways):
            one = distribute_tensor(whole, grid, first)
            for second in ((y, x) for y in ways for x in ways):
                same(one.redistribute(grid, second).full_tensor(), whole, f"{first} to {second}")
        mixed = DTensor.from_local(whole[:, :4] * (me + 1), grid, [Partial(), Replicate()],
                                   run_check=False)
        got = mixed.redistribute(grid, [Shard(0), Replicate()]).full_tensor()
        same(got, whole[:, :4] * (2 * (me % 2) + 4), "a sum of one dimension")
    end(mesh.get_group(), *groups)


if __name__ == "__main__":
    main()
