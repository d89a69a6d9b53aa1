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
    it. why: the reason why they cannot meet; "": they can."""
    job: str = ""
    join: bool = False
    members: List[int] = []
    why: str = ""


def _host() -> str:
    """A text that is different on every host."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as boot:
            return boot.read().strip()
    except OSError:
        return socket.gethostname()


def _elsewhere(said: List[Dict[str, Any]]) -> str:
    others = [rank for rank, one in enumerate(said) if one["host"] != said[0]["host"]]
    if not others:
        return ""
    return (f"the ranks are on several hosts: rank 0 on {said[0]['name']}, rank {others[0]} on "
            f"{said[others[0]]['name']}"
            f"{' and others' if len(others) > 1 else ''}")


def _planned(said: List[Dict[str, Any]]) -> Plan:
    why = next((f"rank {rank}: {one['why']}" for rank, one in enumerate(said) if one["why"]),
               "") or _elsewhere(said)
    if why:
        return Plan(why=why)
    for job in said[0]["worlds"]:
        if all(job in one["worlds"] for one in said):
            return Plan(job, False, [one["worlds"][job] for one in said])
    return Plan(f"torch-{os.getpid()}-{secrets.token_hex(8)}", True, list(range(len(said))))


class Meeting:
    """One meeting of a group's ranks in its store."""

    def __init__(self, store: Any, rank: int, size: int, timeout: datetime.timedelta):
        self.store, self.rank, self.size, self.timeout = store, rank, size, timeout
        self._at = f"tutti/{store.add(f'tutti/count/{rank}', 1)}"

    def tell(self, what: str, value: Any) -> None:
        self.store.set(f"{self._at}/{what}/{self.rank}", json.dumps(value))

    def hear(self, what: str, rank: int, timeout: Optional[datetime.timedelta] = None) -> Any:
        key = f"{self._at}/{what}/{rank}"
        self.store.wait([key], timeout or self.timeout)
        return json.loads(self.store.get(key))

    def all(self, what: str) -> List[Any]:
        return [self.hear(what, rank) for rank in range(self.size)]

    def plan(self, why: str = "") -> Plan:
        """why: the reason why this rank cannot take part; "": it can."""
        worlds = {} if why else extension().worlds()
        self.tell("rank", {"host": _host(), "name": socket.gethostname(), "worlds": worlds,
                           "why": why})
        if self.rank == 0:
            self.tell("plan", self._gathered()._asdict())
        # rank 0 waits for the others as long as they would wait for it
        return Plan(**self.hear("plan", 0, self.timeout + _LATER))

    def _gathered(self) -> Plan:
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
        return _planned(said)


def made(meeting: Meeting, plan: Plan, name: str,
         timeout: Optional[datetime.timedelta] = None) -> Any:
    """The backend on which the ranks have agreed."""
    module = extension()
    if plan.join:
        world = module.join(plan.job, meeting.rank, meeting.size, meeting.timeout)
    else:
        world = module.world(plan.job)
    return module.make(world, plan.members, name, timeout or meeting.timeout)
