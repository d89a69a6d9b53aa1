"""What differs between versions of torch: how a backend is registered, what its creator is told, whose functions wait at once.

torch 1.13: a creator returns a process group. torch 2: a backend for one device, or a process group, which then is the group for all
devices. tutti's is one: it takes tensors of the CPU and of CUDA. Where the program shared the devices out ("cpu:tutti,cuda:nccl") it hands
those of the others' devices on.
"""
import inspect
import os
import types
import weakref
from typing import Any, Dict, Optional

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d

from .. import _tutti
from ._group import Group
from ._meet import world
from ._split import SplitGroup, other_group
from ._tensors import LOCAL_OPS, OP_NAMES, OPS
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
    rank, size, timeout = options.group_rank, options.group_size, options.timeout
    ranks = list(options.global_ranks_in_group)                         # of the default group: none are listed
    parent = _default() if ranks else None
    if parent is None:
        comm = world(options.store, rank, size, timeout.total_seconds())
    else:
        comm = parent._comm.create(ranks)
        comm.set_timeout(timeout.total_seconds())
    names = _other_backends(inspect.currentframe())
    if names:
        others = {name: other_group(name, options.store, rank, size, timeout) for name in set(names.values())}
        made = SplitGroup({device: others[name] for device, name in names.items()}, comm, rank, size, parent is None)
    else:
        made = Group(comm, rank, size, parent is None)
    if not ranks:
        _default = weakref.ref(made)
    closing = weakref.ref(made)
    at_end(lambda: closing() and closing().abort("the program has ended"))
    return made


def _other_backends(frame: Any) -> Dict[str, str]:
    """Devices that the program has given to other backends: type of device -> name. torch 2 knows while it makes a group, and does not tell."""
    while frame is not None and frame.f_code.co_name != "_new_process_group_helper":
        frame = frame.f_back
    config = frame.f_locals.get("backend_config") if frame is not None else None
    devices = config.get_device_backend_map() if config is not None else {}
    return {device: name for device, name in devices.items() if name != "tutti"}


def _waiters() -> Dict[int, Optional[str]]:
    """torch.distributed's functions that wait for the Work before anybody sees it: by the address of their code, the name of the argument
    that keeps them from waiting, or None."""
    table: Dict[int, Optional[str]] = {}
    for name, function in list(vars(c10d).items()):
        if type(function) is not types.FunctionType or function.__module__ != c10d.__name__:
            continue
        code = inspect.unwrap(function).__code__
        if "async_op" in code.co_varnames[:code.co_argcount + code.co_kwonlyargcount]:
            table[id(code)] = "async_op"
        elif name in ("send", "recv"):
            table[id(code)] = None
    return table


def _pass_op_on(table: Dict[int, Optional[str]]) -> bool:
    """Whether each of these functions that calls allreduce gives it its local `op`."""
    for function in list(vars(c10d).values()):
        if type(function) is types.FunctionType and id(inspect.unwrap(function).__code__) in table:
            function = inspect.unwrap(function)
            try:
                if "allreduce" in function.__code__.co_names and "opts.reduceOp = op\n" not in inspect.getsource(function):
                    return False
            except OSError:
                return False
    return True


def register() -> None:
    """Tells torch of the backend; once a process."""
    if hasattr(dist.Backend, "TUTTI"):
        return
    words = {"devices": ["cpu", "cuda"]} if "devices" in inspect.signature(dist.Backend.register_backend).parameters else {}
    dist.Backend.register_backend("tutti", _create, extended_api=True, **words)
    table = _waiters()
    _tutti.watch_callers(table)
    if _pass_op_on(table):
        LOCAL_OPS.update({id(getattr(dist.ReduceOp, name)): OPS[i] for i, name in enumerate(OP_NAMES) if name != "PREMUL_SUM"})
    _tutti.pass_over(os.path.join(os.path.dirname(torch.__file__), ""))
