# SPDX-License-Identifier: MIT
"""What `tutti why` says, for a program that asks about its own job."""
from __future__ import annotations

import os
import sys
from collections.abc import Iterator

from .errors import Error


def _places() -> Iterator[str]:
    """Where the command may be: beside the build that this package is of, in the environment of
    this interpreter, on PATH."""
    yield os.path.join(os.path.dirname(__file__), "..", "..", "tutti")
    yield os.path.join(os.path.dirname(sys.executable), "tutti")
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        yield os.path.join(folder or ".", "tutti")


def _command() -> str:
    for place in _places():
        if os.path.isfile(place) and os.access(place, os.X_OK):
            return place
    raise Error("why: the command tutti is neither beside this package nor on PATH")


def why(timeout: float = 30.0) -> str:
    """What the jobs of this process wait for, which ranks keep them waiting, and what these do
    instead, with Python's lines: the text of `tutti why`, at most five lines a job, continued and
    indented where they are wider than 80 columns; "" without a job. It looks from outside, by that
    command, and disturbs nobody: any thread may call it, while others wait. timeout: how long to
    wait for it, in seconds."""
    import subprocess
    done = subprocess.run([_command(), "why", str(os.getpid())], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, errors="replace", timeout=timeout)
    if done.returncode == 65:                        # there is none
        return ""
    if done.returncode >= 64:
        raise Error(f"why: {(done.stderr or done.stdout).strip()}")
    return done.stdout
