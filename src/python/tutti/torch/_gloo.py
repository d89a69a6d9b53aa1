# SPDX-License-Identifier: MIT
"""tutti in gloo's place: programs ask for "gloo", and groups whose ranks share this host get tutti.

torch makes such a group by ProcessGroupGloo(store, rank, size, ...). The class that replaces it
lets the ranks meet in that store, and they agree on one backend: tutti, if all are on one host, can
load it, and have joined; else gloo itself. torch's own classes do not change: code that took the
name ProcessGroupGloo from torch before as_gloo() still makes gloo's groups.
"""
import datetime
import os
import sys
import time
from typing import Any, Optional

from ._extension import extension
from ._meet import Meeting, Plan, made

_DEFAULT = datetime.timedelta(minutes=30)
_real: Any = None                            # torch's own class, once it has been replaced
_said = set()
_SWITCH = "TUTTI_AS_GLOO"


def real() -> Any:
    """torch's own ProcessGroupGloo, also where tutti has taken its place."""
    import torch.distributed as dist
    if not dist.is_gloo_available():
        raise RuntimeError("tutti: the ranks are on several hosts, between which they need gloo, "
                           "and this torch is built without it")
    return _real or dist.ProcessGroupGloo


def _say(text: str) -> None:
    """Prints each line once; with TUTTI_AS_GLOO_QUIET=1 never."""
    if os.environ.get("TUTTI_AS_GLOO_QUIET", "0") in ("", "0") and text not in _said:
        _said.add(text)
        print(f"tutti: {text}", file=sys.stderr, flush=True)


class _Meeting(Meeting):
    """A meeting that detects a rank without the switch. Such a rank makes gloo's group: gloo writes
    its address into the group's store, under "0/its rank"."""

    def __init__(self, store: Any, rank: int, size: int, timeout: datetime.timedelta):
        import torch.distributed as dist
        super().__init__(dist.PrefixStore("tutti", store), rank, size, timeout)
        self._whole = store

    def hear(self, what: str, rank: int, timeout: Optional[datetime.timedelta] = None) -> Any:
        end = time.monotonic() + (timeout or self.timeout).total_seconds()
        key = f"{self.at}/{what}/{rank}"
        while not self.store.check([key]):
            left = max(end - time.monotonic(), 0.001)
            try:
                self.store.wait([key], datetime.timedelta(seconds=min(left, 1)))
            except Exception:
                if self._whole.check([f"0/{rank}"]) and not self.store.check([key]):
                    raise RuntimeError(f"rank {rank} makes a group of gloo itself: set {_SWITCH}=1 "
                                       "for all ranks or for none") from None
                if left <= 1:
                    raise
        return super().hear(what, rank, timeout)


def _agreed(store: Any, rank: int, size: int, timeout: datetime.timedelta) -> Any:
    """tutti's backend; None: all ranks take gloo."""
    meeting = _Meeting(store, rank, size, timeout)
    try:
        extension()
        why = ""
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
    plan = meeting.plan(why)
    if "makes a group of gloo itself" in plan.why:
        raise RuntimeError(f"tutti: {plan.why}")
    backend = None if plan.why else _joined(meeting, plan, timeout)
    if rank == 0:
        why = plan.why or ("" if backend else "a rank could not join")
        _say(f"gloo serves a group of {size} ranks, as asked for: {why.splitlines()[0]}" if why else
             "in gloo's place for groups whose ranks share this host")
    return backend


def _joined(meeting: Meeting, plan: Plan, timeout: datetime.timedelta) -> Any:
    """tutti's backend if all ranks have joined. Else None, and no rank uses what it has made."""
    try:
        backend, why = made(meeting, plan, "gloo", timeout), ""
        # gloo's own functions, which programs call on any of its groups
        for name in ("create_device", "create_default_device"):
            if hasattr(_real, name):
                setattr(type(backend), name, staticmethod(getattr(_real, name)))
    except Exception as error:
        backend, why = None, f"{type(error).__name__}: {error}"
    meeting.tell("joined", why)
    wrong = [(rank, said) for rank, said in enumerate(meeting.all("joined")) if said]
    if not wrong:
        return backend
    _say(f"rank {wrong[0][0]} could not join: {wrong[0][1].splitlines()[0]}")
    return None


class _Place(type):
    """The metaclass of the class that replaces gloo's."""

    def __instancecheck__(cls, it: Any) -> bool:
        return isinstance(it, _real) or (isinstance(it, extension().Backend)
                                         and it.name() == "gloo")

    def __subclasscheck__(cls, kind: Any) -> bool:
        return issubclass(kind, _real)

    def __getattr__(cls, name: str) -> Any:
        return getattr(_real, name)


class ProcessGroupGloo(metaclass=_Place):
    """Replaces torch.distributed.ProcessGroupGloo: gives the backend that the ranks agree on."""

    def __new__(cls, store: Any, rank: int, size: int, *args: Any, **words: Any) -> Any:
        options = args[0] if args else words.get("options", words.get("timeout", _DEFAULT))
        timeout = options if isinstance(options, datetime.timedelta) else getattr(options,
                                                                                  "_timeout",
                                                                                  _DEFAULT)
        # torch 2.14: its ranks and their hosts are not known yet
        if getattr(options, "enable_reconfigure", False):
            return _real(store, rank, size, *args, **words)
        backend = _agreed(store, rank, size, timeout)
        return _real(store, rank, size, *args, **words) if backend is None else backend


def _with_real(make: Any, c10d: Any) -> Any:
    """torch's wrapper of TORCH_DISTRIBUTED_DEBUG=DETAIL needs gloo's own C++ class for its helper
    group."""
    import functools

    @functools.wraps(make)
    def call(*args: Any, **words: Any) -> Any:
        c10d.ProcessGroupGloo = _real
        try:
            return make(*args, **words)
        finally:
            c10d.ProcessGroupGloo = ProcessGroupGloo
    return call


def as_gloo() -> None:
    """Makes tutti replace gloo, for groups that are made from now on. All ranks of a group call it,
    or none."""
    global _real
    import torch.distributed as dist
    from torch.distributed import distributed_c10d as c10d
    if not dist.is_available() or not dist.is_gloo_available():
        raise RuntimeError("as_gloo: this torch is built without gloo, so there is no place to "
                           "take: ask for the backend \"tutti\"")
    if _real is not None:
        return
    _real = c10d.ProcessGroupGloo
    c10d.ProcessGroupGloo = dist.ProcessGroupGloo = ProcessGroupGloo
    c10d._create_process_group_wrapper = _with_real(c10d._create_process_group_wrapper, c10d)
