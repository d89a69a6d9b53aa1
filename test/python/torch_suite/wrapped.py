# gloo under a name that torch does not know, as a backend of others is. What gloo passes and this
# one does not, torch refuses to every backend of such a name, or a gate is shut. The variable FAULT
# has it fail in one of several ways, in its all_reduce.
import os
import time
import unittest
from multiprocessing import util

NAME = "wrapped"


def register():
    import torch.distributed as dist

    class Faulty(dist.ProcessGroup):
        """A group in Python, since what a class of C++ does cannot be changed in Python."""

        def __init__(self, inner):
            super().__init__(inner.rank(), inner.size())
            self.inner = inner

        def getBackendName(self):
            return NAME

        def allreduce(self, tensors, options=None):
            fault = os.environ["FAULT"]
            if fault == "stuck":
                time.sleep(1000)
            if fault == "gone" and self.rank() == 1:
                os._exit(3)
            # when all is done, as by a crash of what is cleaned up then
            if fault == "ends" and self.rank() == 1:
                util.Finalize(None, os._exit, (3,), exitpriority=0)
            if fault == "skipped":
                raise unittest.SkipTest("not today")
            work = self.inner.allreduce(tensors, *([options] if options else []))
            work.wait()
            tensors[0].add_(fault == "wrong" and self.rank() == 1)
            return work

    def create(options, _):
        group = dist.ProcessGroupGloo(options.store, options.group_rank, options.group_size,
                                      timeout=options.timeout)
        group.options.global_ranks_in_group, group.options.group_name = (
            options.global_ranks_in_group, options.group_id)
        group._set_sequence_number_for_group()
        return Faulty(group) if os.environ.get("FAULT") else group

    dist.Backend.register_backend(NAME, create, extended_api=True, devices=["cpu"])


def monitored_barrier(group=None, timeout=None, wait_all_ranks=False):
    """torch's refuses a group by its name; what is asked is the same."""
    import torch.distributed as dist
    c10d = dist.distributed_c10d
    if c10d._rank_not_in_group(group):
        return None
    timeout = c10d._get_default_timeout(dist.get_backend(group)) if timeout is None else timeout
    return (group or c10d._get_default_group()).monitored_barrier(timeout,
                                                                  wait_all_ranks=wait_all_ranks)
