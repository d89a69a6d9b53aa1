# SPDX-License-Identifier: MIT
"""The function that torch calls for a group of the backend "tutti"."""
from typing import Any

from ._extension import extension
from ._meet import Meeting, made


def create(options: Any, more: Any = None) -> Any:
    """Called on each member by init_process_group and new_group. options: torch's
    _DistributedBackendOptions. more: the program's; torch has already taken its timeout."""
    # torch 2.14: the group gets its ranks by reconfigure()
    if getattr(options, "enable_reconfigure", False):
        return extension().unmade("tutti", options.timeout)
    meeting = Meeting(options.store, options.group_rank, options.group_size, options.timeout)
    plan = meeting.plan(across=True)
    if plan.why:
        raise RuntimeError(f"tutti: {plan.why}.")
    backend = made(meeting, plan, "tutti", options.timeout)
    backend.options.global_ranks_in_group = list(options.global_ranks_in_group)
    backend.options.group_name = options.group_id
    return backend
