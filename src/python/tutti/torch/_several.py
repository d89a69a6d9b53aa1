"""Lists of several tensors, one for each device of a rank, as torch had them once: folded or copied here, and one goes through the comm."""
from typing import Any, Callable, List

import torch
import torch.distributed as dist

from ._tensors import OP_NAMES, OPS
from ._words import check_alike, refused
from ._work import Flights, Work, _kept

_BY_NAME = {"SUM": torch.add, "PRODUCT": torch.mul, "MIN": torch.minimum, "MAX": torch.maximum,
            "BAND": torch.bitwise_and, "BOR": torch.bitwise_or, "BXOR": torch.bitwise_xor}
_FOLD = {OPS[OP_NAMES.index(name)]: fold for name, fold in _BY_NAME.items()}


def then(work: Any, value: Any, after: Callable[[], Any]) -> Work:
    """The Work whose end is that of `work`, and after() behind it."""
    _kept.pop(work, None)
    return Work(Flights([work]), value, lambda _: after(), work._line)


def all_reduce(group: Any, tensors: List[Any], opts: Any, which: int) -> Any:
    """All of them end as the fold of everybody's."""
    if not tensors:
        raise refused("all_reduce", "requires non-empty tensor list")
    first, rest = tensors[0], tensors[1:]
    check_alike("all_reduce", tensors, first)
    if which not in _FOLD or first.is_sparse:
        raise refused("all_reduce", f"a list of {len(tensors)} tensors: those of one rank may be several if they are dense, by "
                                    f"{', '.join(_BY_NAME)}")
    for tensor in rest:
        _FOLD[which](first, tensor, out=first)
    return then(group.allreduce([first], opts), tensors, lambda: [tensor.copy_(first) for tensor in rest])


def broadcast(group: Any, tensors: List[Any], opts: Any, root: int) -> Any:
    """All of them end as the root's, of whose list it is opts.rootTensor."""
    check_alike("broadcast", tensors, tensors[0])
    it = tensors[getattr(opts, "rootTensor", 0) if root == group.rank() else 0]
    one = dist.BroadcastOptions()
    one.timeout = getattr(opts, "timeout", one.timeout)
    return then(group.broadcast([it], one, root), tensors, lambda: [tensor.copy_(it) for tensor in tensors if tensor is not it])


def all_gather(group: Any, outputs: List[List[Any]], inputs: List[Any]) -> Any:
    """Each output list has the tensors of rank 0, of rank 1, ..."""
    if not inputs:
        raise refused("all_gather", "requires non-empty input tensor list")
    if len(outputs) != len(inputs):
        raise refused("all_gather", f"requires input/output tensor lists to have the same length, not {len(inputs)} and {len(outputs)}")
    check_alike("all_gather", inputs, inputs[0])
    for i, row in enumerate(outputs):
        if len(row) != group.size() * len(inputs):
            raise refused("all_gather", f"invalid output tensor list at index {i}: expected {group.size() * len(inputs)} tensors, not "
                                        f"{len(row)}")
        check_alike("all_gather", row, inputs[0])
    mine = torch.stack(inputs)
    every = [torch.empty_like(mine) for _ in range(group.size())]

    def spread() -> None:
        for row in outputs:
            for i, tensor in enumerate(row):
                tensor.copy_(every[i // len(inputs)][i % len(inputs)])
    return then(group.allgather([every], [mine]), outputs, spread)


def check_coalesced(group: Any, outputs: List[List[Any]], inputs: List[Any]) -> None:
    """all_gather_coalesced has, unlike the others, an output list for each rank."""
    what = "all_gather_coalesced"
    if not inputs:
        raise refused(what, "requires non-empty input tensor list")
    if len(outputs) != group.size():
        raise refused(what, f"output lists should be equal to world size: there are {len(outputs)} for {group.size()} ranks")
    for row in outputs:
        if len(row) != len(inputs):
            raise refused(what, f"invalid output size: a list of {len(row)} tensors for {len(inputs)} inputs")
        for i, (tensor, mine) in enumerate(zip(row, inputs)):
            if tensor.numel() != mine.numel():
                raise refused(what, f"invalid size of output tensor at index {i}: {tuple(tensor.shape)}, where the input has "
                                    f"{tuple(mine.shape)}")
            if tensor.dtype is not mine.dtype:
                raise refused(what, f"invalid tensor type at index {i}: {tensor.dtype}, where the input has {mine.dtype}")
