# SPDX-License-Identifier: MIT
"""Idioms of training programs: one rank first; seeds; a barrier that names the missing ranks."""
from typing import Any, ContextManager, Dict, Optional

import torch
import torch.distributed as dist

from .._order import seed_everything as _seed_all

_WORD = 0xFFFFFFFFFFFFFFFF


def backend_of(group: Any = None) -> Any:
    """tutti's backend of a process group; group None: of the default group. None: it has none."""
    from torch.distributed import distributed_c10d as c10d
    from ._extension import extension
    group = c10d._get_default_group() if group is None else group
    for device in getattr(group, "_device_types", ()):
        backend = group._get_backend(device)
        if isinstance(backend, extension().Backend):
            return backend
    return None


def _mixed(x: int) -> int:
    """splitmix64, as in tutti_seed."""
    x = (x + 0x9E3779B97F4A7C15) & _WORD
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & _WORD
    x = (x ^ x >> 27) * 0x94D049BB133111EB & _WORD
    return x ^ x >> 31


class _Nobody:
    """zero_first() without other ranks: nobody to wait for."""

    def __enter__(self) -> bool:
        return True

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        pass


class _Barriers:
    """zero_first() on another backend: the idiom itself, with barriers."""

    def __enter__(self) -> bool:
        self._mine = dist.get_rank() == 0
        if not self._mine:
            dist.barrier()
        return self._mine

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        if self._mine and kind is None:
            dist.barrier()


class _First:
    """Runs rank 0's block first, then the others'."""

    def __init__(self, backend: Any):
        self._backend, self._mine = backend, backend.rank() == 0

    def __enter__(self) -> bool:
        if not self._mine:
            self._backend.first_awaited()
        return self._mine

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        if not self._mine:
            return
        if kind is not None:
            self._backend.break_off(
                f"rank 0, which went first, raised {kind.__name__}: {value}"[:110])
            return
        self._backend.first_done()


def zero_first(rank: Optional[int] = None) -> ContextManager[bool]:
    """Rank 0 runs the block first; the others run it when rank 0 has left it. True on rank 0.

        with tutti.torch.zero_first(local_rank):
            data = prepare_or_load_the_cache()

    It replaces the idiom torch_distributed_zero_first, and has no barrier. If torch.distributed is
    not initialised, or rank is -1, it does not wait and is True. Any other rank has no effect: the
    idiom has this argument. All ranks of the default group call it, equally often. If rank 0 raises
    in the block, the others get tutti.Aborted with its text. If it dies, they get tutti.RankDied.
    If it does not come within the group's timeout, tutti.Timeout. On another backend it is the
    idiom, with barriers.
    """
    if rank == -1 or not dist.is_available() or not dist.is_initialized():
        return _Nobody()
    backend = backend_of()
    return _Barriers() if backend is None else _First(backend)


def seed_everything(base: int, deterministic: bool = True) -> int:
    """Seeds random, NumPy if it is installed, and torch with all its devices, with a seed of this
    rank, which depends on (base, rank) only.

    deterministic: make cuDNN choose deterministic algorithms and not search for the fastest.
    Returns the seed, of 64 bits. It works without torch.distributed and on another backend, too,
    with the same seeds.
    are the same.
    """
    rank = dist.get_rank() if dist.is_available() and dist.is_initialized() else 0
    seed = _mixed((_mixed(base & _WORD) + rank) & _WORD)
    _seed_all(seed)
    if deterministic:
        torch.backends.cudnn.deterministic = True
        torch.backends.cudnn.benchmark = False
    return seed


def monitored_barrier(group: Any = None, timeout: Any = None, wait_all_ranks: bool = False) -> None:
    """torch.distributed.monitored_barrier, which torch allows for gloo only: a barrier whose error
    names the ranks that did not come.

    timeout: a timedelta; None: the group's. Rank 0 names the first missing rank, or with
    wait_all_ranks all of them; the error of the other waiting ranks refers to rank 0. The error is
    tutti.Timeout, and the group stays whole. For a group of another backend: torch's own function.
    """
    ours = backend_of(group)
    if ours is None:
        dist.monitored_barrier(group, timeout, wait_all_ranks)
    else:
        ours.monitored_barrier(timeout, wait_all_ranks)


def stats(group: Any = None) -> Dict[str, Any]:
    """A group's figures on this rank: those of tutti_stats by name, and the name of its backend.

    Since it was made: operations, bytes, wait_ns, fold_ns, waits, sleeps. Of its last collectives,
    `compared` of them: came_last, late_median_ns, late_p99_ns, late_cost_ns.

    ValueError: the group has another backend.
    """
    ours = backend_of(group)
    if ours is None:
        raise ValueError("stats: the group has no tensors' device that tutti serves: its backend "
                         "is another one")
    return {"backend": ours.name(), **ours.stats()}
