"""Devices shared out among backends, "cpu:tutti,cuda:nccl" (torch 2): what is on the others' devices is handed on to their groups."""
import functools
from typing import Any, Dict

import torch
import torch.distributed as dist

from ._group import Group

#: What takes tensors; the rest (barrier, abort …) is tutti's.
_HANDED_ON = ("allreduce", "allreduce_coalesced", "reduce", "reduce_scatter", "_reduce_scatter_base", "reduce_scatter_tensor_coalesced", "broadcast",
              "allgather", "_allgather_base", "allgather_coalesced", "allgather_into_tensor_coalesced", "gather", "scatter", "alltoall",
              "alltoall_base", "send", "recv", "recv_anysource")


def other_group(name: str, store: Any, rank: int, size: int, timeout: Any) -> Any:
    """A group of another backend, for tensors of its device."""
    store = dist.PrefixStore(f"tutti/{name}", store)
    if name == "nccl":
        options = dist.ProcessGroupNCCL.Options()
        options._timeout = timeout
        return dist.ProcessGroupNCCL(store, rank, size, options)
    if name == "gloo":
        return dist.ProcessGroupGloo(store, rank, size, timeout=timeout)
    raise ValueError(f"a group of tutti and {name}: beside tutti, tensors of another device can go to nccl or gloo")


def _device_of(value: Any) -> Any:
    """Of the first tensor there is."""
    if isinstance(value, torch.Tensor):
        return value.device.type
    for item in value if isinstance(value, (list, tuple)) else ():
        device = _device_of(item)
        if device is not None:
            return device
    return None


def _handed_on(name: str) -> Any:
    ours = getattr(Group, name)

    @functools.wraps(ours)
    def call(self: Any, *args: Any, **words: Any) -> Any:
        other = self._others.get(_device_of([*args, *words.values()]))
        return ours(self, *args, **words) if other is None else getattr(other, name)(*args, **words)
    return call


class SplitGroup(Group):
    """others: type of device -> the group that its tensors go to."""

    def __init__(self, others: Dict[str, Any], *args: Any):
        super().__init__(*args)
        self._others = others


for _name in _HANDED_ON:
    setattr(SplitGroup, _name, _handed_on(_name))
SplitGroup.all_gather_single, SplitGroup.reduce_scatter_single = SplitGroup._allgather_base, SplitGroup._reduce_scatter_base
SplitGroup.all_to_all_single = SplitGroup.alltoall_base
SplitGroup.all_gather_single_coalesced = SplitGroup.allgather_into_tensor_coalesced
SplitGroup.reduce_scatter_single_coalesced = SplitGroup.reduce_scatter_tensor_coalesced
