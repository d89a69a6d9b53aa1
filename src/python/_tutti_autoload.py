"""Registers the name "tutti" for torch.distributed, when `import torch` calls an installed tutti by
its entry point (group torch.backends); and, if TUTTI_VLLM is set, puts tutti.vllm in vLLM's place.

The package is imported only when a process group asks for it. Nothing here raises an exception,
because the import of torch would fail. TORCH_DEVICE_BACKEND_AUTOLOAD=0 switches it off; then
`import tutti.torch` does the same.
"""
import os
import sys
from typing import Any


def _create(options: Any, more: Any = None) -> Any:
    from tutti.torch._create import create
    return create(options, more)


def _check(config: str, plugins: Any) -> None:
    """Refuses two backends in one group that are not torch's own: torch would drop the second
    without a message."""
    names = {pair.split(":")[1] for pair in config.lower().split(",") if pair.count(":") == 1}
    others = sorted(name for name in names if name.upper() in plugins)
    if "tutti" in others and len(others) > 1:
        raise ValueError(f"backend={config!r}: {' and '.join(others)} cannot share a group, since "
                         "torch takes them for one: "
                         "beside tutti give gloo, nccl or mpi, or make a group of each")


def _mended(helper: Any, c10d: Any) -> Any:
    """Wraps torch's helper that makes groups: torch 2.13 leaves "cpu:gloo" without a default
    backend as soon as any plugin is registered."""
    import functools

    @functools.wraps(helper)
    def made(*args: Any, **words: Any) -> Any:
        backend = str(args[3] if len(args) > 3 else words.get("backend"))
        if ":" in backend:
            _check(backend, c10d.Backend._plugins)
        group, store = helper(*args, **words)
        if ":" in backend and isinstance(group, c10d.ProcessGroup):
            _set_default(group, c10d.BackendConfig(c10d.Backend(backend)).get_device_backend_map(),
                         c10d)
        return group, store
    return made


def _set_default(group: Any, devices: Any, c10d: Any) -> None:
    """As torch does without plugins: nccl's, else gloo's; the plugin's if there is neither."""
    try:
        group._has_hooks()
        return                                                          # there is one
    except Exception:
        pass
    names = [str(name) for name in devices.values()]
    name = next((name for name in ("nccl", "gloo", *names) if name in names), None)
    if name is not None:
        group._set_default_backend(c10d.Backend.backend_type_map[name])


def put() -> None:
    """Registers the name, once a process."""
    from torch.distributed import distributed_c10d as c10d
    if "TUTTI" in c10d.Backend._plugins:
        return
    c10d.Backend.register_backend("tutti", _create, extended_api=True, devices=["cpu", "cuda"])
    c10d._new_process_group_helper = _mended(c10d._new_process_group_helper, c10d)


def register() -> None:
    """The entry point."""
    try:
        if os.environ.get("TUTTI_VLLM", "0") not in ("", "0"):
            from tutti.vllm import switch
            switch()
        if "torch.distributed.distributed_c10d" in sys.modules:         # else this torch has none
            put()
            if os.environ.get("TUTTI_AS_GLOO", "0") not in ("", "0"):
                from tutti.torch._gloo import as_gloo
                as_gloo()
    except Exception as error:
        print(f"tutti: torch.distributed, or vLLM, does without tutti: {type(error).__name__}: "
              f"{error}", file=sys.stderr)
