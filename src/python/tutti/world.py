# SPDX-License-Identifier: MIT
"""init makes a process a rank; spawn makes ranks for a test."""
from __future__ import annotations

import itertools
import os
import select
import sys
import time
from collections.abc import Callable

from . import _stack, _worlds
from ._children import Kept
from ._core import core as _tutti
from ._hints import Any
from ._number import LONGEST, SIZE, UNSIGNED, milliseconds, refuse_timeout, whole
from .comm import Comm

_BIND = {None: 0, "core": 1, "numa": 2}
_NO_SPIN, _LOCAL = 4, 8
_number = itertools.count()


def init(*, job: str | None = None, rank: int = 0, size: int = 0,
         timeout: float | None = None, join_timeout: float | None = None,
         warn: float | None = None, spin_us: int = 0, bind: str | None = None,
         spin: bool = True, local: bool = False, span_bytes: int = 0) -> Comm:
    """Joins the world: all ranks of the job, found by `tutti run`, torchrun, mpirun or srun, or by
    job, rank and size. Without any of these: alone, as rank 0 of 1. Blocks until all ranks have
    joined.

    job, rank, size: the name under which the ranks meet, this rank's number, their number.
    timeout: deadline of every operation in seconds; None: 30 minutes; negative: none.
    join_timeout: deadline for all ranks to arrive; None: 60 s.
    warn: a wait older than this many seconds prints the roll-call on stderr; None: 30 s; negative:
    never. spin_us: longest spin before a wait yields or sleeps; spin=False: none.
    bind: "core" or "numa": keep each rank on its CPU or node. local: only this host's ranks.
    span_bytes: address space of this rank's own memory in the arena.

    An argument of 0 or None takes the value of its variable of the environment (TUTTI_TIMEOUT_MS
    …), else the default. Raises Timeout (the text names the missing ranks), RankDied, Mismatch
    (another size, another build), Invalid, Error. finalize(), the end of a `with` block, or the end
    of the program leaves the world. The functions of the package (tutti.rank(),
    tutti.all_reduce(x) …) act on the last world that was made and not left; in a thread that made
    one, on that thread's.
    """
    if bind not in _BIND:
        raise ValueError(f"bind={bind!r}: expected None, 'core' or 'numa'")
    flags = _BIND[bind] | (0 if spin else _NO_SPIN) | (_LOCAL if local else 0)
    world = _tutti.init(Comm, job, whole("init: rank", rank), whole("init: size", size),
                        milliseconds(timeout), milliseconds(join_timeout), milliseconds(warn),
                        whole("init: spin_us", spin_us, UNSIGNED), flags,
                        whole("init: span_bytes", span_bytes, SIZE))
    _worlds.made(world)
    try:
        _stack.answer()
    except (OSError, ValueError, RuntimeError):
        pass                                # no /proc, no room: then there is no stack to show
    return world


def _rank(fn: Callable[..., Any], args: Any, options: Any) -> int:
    """Runs a spawned rank. Returns its exit status."""
    try:
        world = init(**options)
        value = fn(world, *args)
        status = value & 255 if isinstance(value, int) else 0
        del value
        try:
            world.finalize()
        except BufferError:
            pass                        # that memory ends with the process
        return status
    except SystemExit as end:
        return end.code & 255 if isinstance(end.code, int) else 0 if end.code is None else 1
    except BaseException:
        import traceback
        traceback.print_exc()
        return 1


def _fork(fn: Callable[..., Any], args: Any, options: Any, kept: Kept) -> int:
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            kept.__exit__()
            status = _rank(fn, args, options)
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(status)
    return pid


def _reap(rank: int, pid: int, deadline: float | None) -> int | None:
    """How the child ended, in the form of subprocess: the exit status, or minus the signal. None:
    the deadline passed."""
    try:
        fd = os.pidfd_open(pid)
        try:
            poll = select.poll()
            poll.register(fd, select.POLLIN)
            if not poll.poll(None if deadline is None else max(0.0,
                                                               deadline - time.monotonic()) * 1000):
                return None
        finally:
            os.close(fd)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    except (ChildProcessError, ProcessLookupError):
        raise ChildProcessError(f"spawn: how rank {rank} (pid {pid}) ended cannot be known: "
                                "something else in this process waits for its children, or "
                                "ignores SIGCHLD; set that to signal.SIG_DFL first") from None


def _kill(pid: int) -> None:
    try:
        if os.waitpid(pid, os.WNOHANG)[0] == 0:    # else another process may have this pid
            import signal
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    except (ChildProcessError, ProcessLookupError):
        pass                            # it has ended; other code has waited for it


def spawn(fn: Callable[..., Any], n: int, *args: Any, timeout: float | None = None,
          **options: Any) -> list[int]:
    """Forks n children, each a rank of one world, and runs fn(world, *args) in each: for tests.

    Returns how each child ended: 0; the int that fn returned (& 255); 1 after an exception (its
    traceback is on stderr); minus the number of the signal that killed it. timeout: seconds for the
    whole job; after that all children are killed, and TimeoutError names them. options: as for
    init(). Call it when no other thread runs: a thread does not survive the fork.
    """
    job = f"spawn-{os.getpid()}-{next(_number)}-{time.time_ns()}"
    if timeout is not None and not timeout <= LONGEST:
        refuse_timeout(timeout)
    deadline = None if timeout is None else time.monotonic() + timeout
    sys.stdout.flush()
    sys.stderr.flush()
    ends: list[int | None] = [None] * n
    pids: list[int] = []
    with Kept() as kept:
        try:
            for rank in range(n):
                pids.append(_fork(fn, args, {**options, "job": job, "rank": rank, "size": n}, kept))
            for rank, pid in enumerate(pids):
                ends[rank] = _reap(rank, pid, deadline)
            late = [str(rank) for rank, end in enumerate(ends) if end is None]
            if late:
                raise TimeoutError("; ".join(
                    [f"spawn: not done within {timeout} seconds, and killed: "
                     f"rank{'s' * (len(late) > 1)} {', '.join(late)}"]
                    + [f"rank {rank} had ended by {end}" for rank, end in enumerate(ends) if end]))
        finally:
            for rank, pid in enumerate(pids):
                if ends[rank] is None:
                    _kill(pid)
    return [end for end in ends if end is not None]
