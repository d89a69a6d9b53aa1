"""all_reduce of sparse tensors: everybody gets all indices and values, and adds them up in rank order."""
from typing import Any

import torch

from ..errors import Invalid
from ._work import Done

_SUM = 0


def all_reduce_sparse(group: Any, tensor: Any, op: int, keep: bool) -> Any:
    """Into the tensor, coalesced. It is done when this returns, also where it was not to wait: what comes second depends on what comes first."""
    if op != _SUM:
        raise Invalid("all_reduce of sparse tensors: unsupported reduction operation: SUM alone; or make them dense by to_dense()")
    mine = tensor.coalesce()
    indices, values = mine.indices(), mine.values()
    said = torch.tensor([*mine.shape, mine.sparse_dim(), values.shape[0]], dtype=torch.int64)
    heard = [torch.empty_like(said) for _ in range(group.size())]
    group.allgather([heard], [said]).wait()
    for rank, other in enumerate(heard):
        if not torch.equal(other[:-1], said[:-1]):
            raise Invalid(f"all_reduce of sparse tensors: shape and sparse dimensions are {said[:-1].tolist()} here, {other[:-1].tolist()} "
                             f"on rank {rank}: they have to be the same")
    all_indices = [indices.new_empty((indices.shape[0], int(other[-1]))) for other in heard]
    all_values = [values.new_empty((int(other[-1]), *values.shape[1:])) for other in heard]
    group.allgather([all_indices], [indices]).wait()
    group.allgather([all_values], [values]).wait()
    total = torch.sparse_coo_tensor(torch.cat(all_indices, 1), torch.cat(all_values), tensor.shape).coalesce()
    tensor.copy_(total)
    return Done(value=[tensor], keep=keep)
