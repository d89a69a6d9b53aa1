"""What torch's own process groups say when they refuse or give up: programs, and torch's tests, know an error by these words. tutti's stand
behind them."""
import re
from typing import Any, List, Optional

from ..errors import Invalid, Timeout


def refused(what: str, why: str) -> Invalid:
    """Of arguments: a RuntimeError, as torch's, and a ValueError."""
    return Invalid(f"{what}: {why}")


def _missing(report: str) -> List[str]:
    line = re.search(r"missing: ranks? ([0-9, ]+)", report)
    return line[1].replace(" ", "").strip(",").split(",") if line else []


def monitored(error: Timeout, rank: int, ms: Optional[int], every: bool) -> Timeout:
    """Of a monitored_barrier: torch has rank 0 name who is missing, the first or all of them; the others point at rank 0."""
    missing = _missing(error.report)
    time = "the group's time" if ms is None else f"{ms} ms"
    if rank:
        said = (f"Rank {rank} successfully reached monitoredBarrier, but received errors while waiting for send/recv from rank 0. "
                "Who is missing stands below.")
    elif ms == 0 or not missing:
        said = f"Rank 0 timed out in monitoredBarrier after {time}."
    elif every:
        said = f"[Rank 0]: Ranks {', '.join(missing)} failed to pass monitoredBarrier in {time}"
    else:
        said = f"[Rank 0]: Rank {missing[0]} failed to pass monitoredBarrier in {time}"
    return Timeout(f"{said}\n{error.report}", error.errno, error.ranks)


def check_alike(what: str, tensors: Any, first: Any) -> None:
    """Type, layout and shape, as torch compares the tensors of one list."""
    for i, tensor in enumerate(tensors):
        if tensor.layout is not first.layout:
            raise refused(what, f"invalid tensor layout at index {i}: {tensor.layout}, where {first.layout} is expected")
        if tensor.dtype is not first.dtype or tensor.device.type != first.device.type:
            raise refused(what, f"invalid tensor type at index {i}: {tensor.dtype} on {tensor.device}, where {first.dtype} on {first.device} "
                                "is expected")
        if tensor.shape != first.shape:
            raise refused(what, f"invalid tensor size at index {i}: {tuple(tensor.shape)}, where {tuple(first.shape)} is expected")
