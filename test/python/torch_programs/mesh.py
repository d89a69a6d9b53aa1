# DeviceMesh: of one and of two dimensions, its groups, slices and coordinates, and a mesh of groups
# that were there before.
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh

from support import begin, check, end, same


def summed(me, group):
    value = torch.tensor([float(1 << me)])
    dist.all_reduce(value, group=group)
    return int(value)


def main():
    me, size = begin()
    line = init_device_mesh("cpu", (size,), mesh_dim_names=("all",))
    check(line.get_rank() == me and line.size() == size and line.get_local_rank() == me
          and list(line.get_coordinate()) == [me])
    check(summed(me, line.get_group()) == (1 << size) - 1)
    groups = [line.get_group()]

    again = DeviceMesh("cpu", torch.arange(size).flip(0))
    check(list(again.get_coordinate()) == [size - 1 - me])
    parts = [torch.empty(1) for _ in range(size)]
    dist.all_gather(parts, torch.tensor([float(me)]), group=again.get_group())
    check(sorted(int(part) for part in parts) == list(range(size)))

    known = DeviceMesh.from_group(dist.new_group(), "cpu")
    check(summed(me, known.get_group()) == (1 << size) - 1)
    groups += [again.get_group(), known.get_group()]

    if size == 4:
        grid = init_device_mesh("cpu", (2, 2), mesh_dim_names=("rows", "columns"))
        row, column = divmod(me, 2)
        check(list(grid.get_coordinate()) == [row, column] and grid.shape == (2, 2)
              and grid.ndim == 2)
        check(grid["rows"].get_local_rank() == row and grid["columns"].get_local_rank() == column)
        check(summed(me, grid["rows"].get_group()) == (1 << column) + (1 << column + 2))
        check(summed(me, grid["columns"].get_group()) == (1 << 2 * row) + (1 << 2 * row + 1))
        check(summed(me, grid.get_group("rows")) == (1 << column) + (1 << column + 2))
        check(grid["rows", "columns"].mesh.tolist() == [[0, 1], [2, 3]])
        flat = grid["rows", "columns"]._flatten("both")
        check(summed(me, flat.get_group()) == 15)
        groups += grid.get_all_groups()
    same(line.mesh, torch.arange(size, dtype=line.mesh.dtype))
    end(*groups)


if __name__ == "__main__":
    main()
