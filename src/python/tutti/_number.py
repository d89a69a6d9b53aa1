# SPDX-License-Identifier: MIT
"""Python's numbers have no limits, the library's have. A number that does not fit is refused, with
its name and the range. It is never cut or clamped."""
from __future__ import annotations

import errno
import math
import operator

from ._hints import Any, NoReturn
from .errors import Invalid

INT: tuple[int, int] = (-1 << 31, (1 << 31) - 1)
UNSIGNED: tuple[int, int] = (0, (1 << 32) - 1)
LONG: tuple[int, int] = (-1 << 63, (1 << 63) - 1)
SIZE: tuple[int, int] = (0, (1 << 64) - 1)
LONGEST = INT[1] // 1000                # seconds, so that the milliseconds fit into an int


def refuse(what: str, value: Any, within: tuple[int, int] = INT) -> NoReturn:
    shown = (str(value) if -1 << 200 < value < 1 << 200 else f"an integer of {value.bit_length()} "
                                                             "bits")
    raise Invalid(f"{what} is {shown}: expected an integer from {within[0]} to {within[1]}",
                  errno.EINVAL)


def whole(what: str, value: Any, within: tuple[int, int] = INT) -> int:
    number = operator.index(value)
    if within[0] <= number <= within[1]:
        return number
    refuse(what, number, within)


def refuse_timeout(timeout: Any) -> NoReturn:
    raise Invalid(f"timeout is {timeout}: expected seconds, at most {LONGEST}; None is the "
                  "default, a negative one or math.inf none", errno.EINVAL)


def milliseconds(timeout: float | None, zero: int = 0) -> int:
    """Seconds as milliseconds. None: the default; negative or infinite: no deadline."""
    if timeout is None:
        return zero
    if timeout == 0:
        raise ValueError("a timeout of 0 seconds: give more, or test() of the Work; None is the "
                         "default, a negative one none")
    if timeout < 0 or timeout == math.inf:
        return -1
    if not timeout <= LONGEST:          # also true for a NaN
        refuse_timeout(timeout)
    return max(1, math.ceil(timeout * 1000))


def patience(timeout: float | None) -> int:
    """For Work.wait: 0 becomes one millisecond."""
    return 1 if timeout == 0 else milliseconds(timeout)
