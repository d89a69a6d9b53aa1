# SPDX-License-Identifier: MIT
"""The ranks of a process group find each other through the store that torch has made for it.

Each rank writes its host and the worlds that it has joined. Rank 0 compares them and writes a plan,
the same for all ranks. Keys contain the number of the meeting, so that a store may be used again.
"""
import datetime
import json
import os
import secrets
import socket
import time
from typing import Any, Dict, List, NamedTuple, Optional

from ._extension import extension


_LATER = datetime.timedelta(seconds=10)


class Plan(NamedTuple):
    """job: of the world. join: it is a new world, which all ranks join now. members: their ranks in
    it. why: the reason why they cannot meet; "": they can. hosts: if they are on several, one for
    each: its name, the ranks that are there, and their own job, join, members."""
    job: str = ""
    join: bool = False
    members: List[int] = []
    why: str = ""
    hosts: List[Dict[str, Any]] = []


def _host() -> str:
    """A text that is different on every host. It only says who may share one: the proof is that
    they join a world, in an arena. Ranks that cannot see each other's processes or sockets are on
    different hosts."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as boot:
            return " ".join([boot.read().strip()] + [os.readlink(f"/proc/self/ns/{one}")
                                                     for one in ("net", "pid")])
    except OSError:
        return socket.gethostname()


def _elsewhere(said: List[Dict[str, Any]]) -> str:
    others = [rank for rank, one in enumerate(said) if one["host"] != said[0]["host"]]
    if not others:
        return ""
    return (f"the ranks are on several hosts: rank 0 on {said[0]['name']}, rank {others[0]} on "
            f"{said[others[0]]['name']}"
            f"{' and others' if len(others) > 1 else ''}")


def _world(said: List[Dict[str, Any]]) -> Plan:
    """Of ranks that share a host: a world that all are in, or a new one."""
    for job in said[0]["worlds"]:
        if all(job in one["worlds"] for one in said):
            return Plan(job, False, [one["worlds"][job] for one in said])
    return Plan(f"torch-{os.getpid()}-{secrets.token_hex(8)}", True, list(range(len(said))))


def _planned(said: List[Dict[str, Any]], across: bool) -> Plan:
    why = next((f"rank {rank}: {one['why']}" for rank, one in enumerate(said) if one["why"]), "")
    elsewhere = _elsewhere(said)
    if why or (elsewhere and not across):
        return Plan(why=why or elsewhere)
    if not elsewhere:
        return _world(said)
    at: Dict[str, List[int]] = {}
    for rank, one in enumerate(said):
        at.setdefault(one["host"], []).append(rank)
    hosts: List[Dict[str, Any]] = []
    for ranks in at.values():
        world = _world([said[rank] for rank in ranks])
        hosts.append({"name": said[ranks[0]]["name"], "ranks": ranks, "job": world.job,
                      "join": world.join, "members": world.members})
    return Plan(secrets.token_hex(8), hosts=hosts)


class Meeting:
    """One meeting of a group's ranks in its store."""

    def __init__(self, store: Any, rank: int, size: int, timeout: datetime.timedelta):
        self.store, self.rank, self.size, self.timeout = store, rank, size, timeout
        self.at = f"tutti/{store.add(f'tutti/count/{rank}', 1)}"

    def tell(self, what: str, value: Any) -> None:
        self.store.set(f"{self.at}/{what}/{self.rank}", json.dumps(value))

    def hear(self, what: str, rank: int, timeout: Optional[datetime.timedelta] = None) -> Any:
        key = f"{self.at}/{what}/{rank}"
        self.store.wait([key], timeout or self.timeout)
        return json.loads(self.store.get(key))

    def all(self, what: str) -> List[Any]:
        return [self.hear(what, rank) for rank in range(self.size)]

    def plan(self, why: str = "", across: bool = False) -> Plan:
        """why: the reason why this rank cannot take part; "": it can. across: several hosts will
        do; on each rank alike."""
        worlds = {} if why else extension().worlds()
        self.tell("rank", {"host": _host(), "name": socket.gethostname(), "worlds": worlds,
                           "why": why})
        if self.rank == 0:
            self.tell("plan", self._gathered(across)._asdict())
        # rank 0 waits for the others as long as they would wait for it
        return Plan(**self.hear("plan", 0, self.timeout + _LATER))

    def _gathered(self, across: bool) -> Plan:
        said: List[Dict[str, Any]] = []
        end = time.monotonic() + self.timeout.total_seconds()
        for rank in range(self.size):
            try:
                said.append(self.hear("rank", rank,
                                      datetime.timedelta(seconds=max(end - time.monotonic(),
                                                                     0.001))))
            except Exception as error:                  # of the store: it wrote nothing in time
                return Plan(why=f"rank {rank} did not come to the meeting within "
                                f"{self.timeout.total_seconds():g} s "
                                f"({type(error).__name__}: {error})".splitlines()[0])
        return _planned(said, across)


def _joined(meeting: Meeting, job: str, join: bool, rank: int, size: int) -> Any:
    module = extension()
    return module.join(job, rank, size, meeting.timeout) if join else module.world(job)


def made(meeting: Meeting, plan: Plan, name: str,
         timeout: Optional[datetime.timedelta] = None) -> Any:
    """The backend on which the ranks have agreed."""
    if plan.hosts:
        return _made_across(meeting, plan, name, timeout or meeting.timeout)
    world = _joined(meeting, plan.job, plan.join, meeting.rank, meeting.size)
    return extension().make(world, plan.members, name, timeout or meeting.timeout)


def _gloo(store: Any, prefix: str, rank: int, size: int, timeout: datetime.timedelta,
          lazy: bool) -> Any:
    """A group of torch's own gloo. lazy: ranks connect when they first send each other
    something."""
    import torch.distributed as dist
    from . import _gloo as place
    kind = place.real()
    options = kind._Options()
    options._timeout = timeout
    names = [name for name in os.environ.get("GLOO_SOCKET_IFNAME", "").split(",") if name]
    options._devices = ([kind.create_device(interface=name, lazy_init=lazy) for name in names]
                        or [kind.create_default_device(lazy_init=lazy)])
    return kind(dist.PrefixStore(prefix, store), rank, size, options)


def _made_across(meeting: Meeting, plan: Plan, name: str, timeout: datetime.timedelta) -> Any:
    """Each host's ranks join a world of theirs; the first of each are its leaders, in a group of
    gloo. A group of gloo of all ranks is for messages between hosts."""
    import torch.distributed as dist
    at = next(i for i, host in enumerate(plan.hosts) if meeting.rank in host["ranks"])
    host = plan.hosts[at]
    place = host["ranks"].index(meeting.rank)
    world = _joined(meeting, host["job"], host["join"], place, len(host["ranks"]))
    store = dist.PrefixStore(f"{meeting.at}/across", meeting.store)
    engine = (_gloo(store, "leaders", at, len(plan.hosts), meeting.timeout, False) if place == 0
              else None)
    messages = _gloo(store, "messages", meeting.rank, meeting.size, meeting.timeout, True)
    return extension().make_across(world, host["members"], name, timeout,
                                   [one["ranks"] for one in plan.hosts],
                                   [one["name"] for one in plan.hosts], meeting.rank, engine,
                                   messages, store, plan.job)
