"""What differs between versions of torch: how a backend is registered, what its creator is told, whose functions wait at once.

torch 1.13: a creator returns a process group. torch 2: a backend for one device, or a process group, which then is the group for all
devices. tutti's is one: it takes tensors of the CPU and of CUDA. Where the program gave the devices to two backends ("cpu:tutti,cuda:nccl"), the group
hands tensors of CUDA on to an NCCL group of its own.
"""
import inspect
import os
import types
import weakref
from typing import Any, Callable, Dict, Optional

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d

from .. import _tutti
from ._group import Group
from ._meet import world
from ._threads import at_end

_default: Any = lambda: None                                            # a weak reference to the default group


def group_of(group: Any = None) -> Optional[Group]:
    """The Group of a process group, of the default one for None; None: it is another backend's."""
    if group is None or group is dist.group.WORLD:
        group = c10d._get_default_group()
    return group if isinstance(group, Group) else None


def _create(options: Any, group_options: Any = None) -> Any:
    """Called by init_process_group and new_group on each member; options: torch's _DistributedBackendOptions."""
    global _default
    rank, size, timeout = options.group_rank, options.group_size, options.timeout.total_seconds()
    ranks = list(options.global_ranks_in_group)
    parent = _default()
    if not ranks or parent is None:
        made = Group(world(options.store, rank, size, timeout), rank, size, True)
        if not ranks:
            _default = weakref.ref(made)
    else:
        comm = parent._comm.create(ranks)
        comm.set_timeout(timeout)
        made = Group(comm, rank, size, False)
    closing = weakref.ref(made)
    at_end(lambda: closing() and closing().abort("the program has ended"))
    inner = _device_backend(inspect.currentframe(), "cuda")
    if inner is None or inner == "tutti":
        return made
    from ._split import SplitGroup
    return SplitGroup(made, options, inner)


def _device_backend(frame: Any, device: str) -> Optional[str]:
    """The backend that the program has named for a device, where torch 2 keeps it while it makes the group; None: not named."""
    while frame is not None and frame.f_code.co_name != "_new_process_group_helper":
        frame = frame.f_back
    config = frame.f_locals.get("backend_config") if frame is not None else None
    return config.get_device_backend_map().get(device) if config is not None else None


def _waiters() -> Dict[int, Optional[str]]:
    """torch.distributed's functions that wait for the Work before anybody sees it: by the address of their code, the name of the argument
    that keeps them from waiting, or None."""
    table: Dict[int, Optional[str]] = {}
    for name, function in vars(c10d).items():
        if type(function) is not types.FunctionType or function.__module__ != c10d.__name__:
            continue
        code = inspect.unwrap(function).__code__
        if "async_op" in code.co_varnames[:code.co_argcount + code.co_kwonlyargcount]:
            table[id(code)] = "async_op"
        elif name in ("send", "recv"):
            table[id(code)] = None
    return table


def register() -> None:
    """Tells torch of the backend; once a process."""
    if hasattr(dist.Backend, "TUTTI"):
        return
    words = {"devices": ["cpu", "cuda"]} if "devices" in inspect.signature(dist.Backend.register_backend).parameters else {}
    dist.Backend.register_backend("tutti", _create, extended_api=True, **words)
    _tutti.watch_callers(_waiters())
    _tutti.pass_over(os.path.join(os.path.dirname(torch.__file__), ""))
