"""How the ranks of a process group find each other: through the store that init_process_group has made."""
import os
import secrets
import socket
from typing import Any, Dict, List, Optional

from ..comm import Comm
from ..world import init

_worlds: Dict[int, Any] = {}                                            # at most one: the world of the default group


def _host() -> str:
    """What differs from host to host, and what people call it."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as boot:
            kernel = boot.read().strip()
    except OSError:
        kernel = socket.gethostname()
    return f"{kernel} {socket.gethostname()}"


def _elsewhere(hosts: List[str]) -> Optional[str]:
    kernels = [host.split(" ")[0] for host in hosts]
    others = [rank for rank, kernel in enumerate(kernels) if kernel != kernels[0]]
    if not others:
        return None
    rank = others[0]
    return (f"tutti: the ranks are on several hosts: rank 0 on {hosts[0].split(' ')[1]}, rank {rank} on {hosts[rank].split(' ')[1]}"
            f"{' and others' if len(others) > 1 else ''}. tutti is for the ranks of one host; use gloo or nccl between hosts, "
            "or a group of each host's ranks with backend=\"tutti\".")


def _job(store: Any, rank: int, size: int) -> str:
    """The name they meet under: rank 0 makes it when it knows where all are."""
    store.set(f"tutti/host/{rank}", _host())
    if rank == 0:
        why = _elsewhere([store.get(f"tutti/host/{peer}").decode() for peer in range(size)])
        store.set("tutti/job", f"!{why}" if why else f"torch-{os.getpid()}-{secrets.token_hex(8)}")
    said = store.get("tutti/job").decode()
    if said.startswith("!"):
        raise RuntimeError(said[1:])
    return said


def world(store: Any, rank: int, size: int, timeout: float) -> Comm:
    """A world of its own. The store has brought them all here, so the meeting itself is a matter of moments."""
    return init(job=_job(store, rank, size), rank=rank, size=size, timeout=timeout)
