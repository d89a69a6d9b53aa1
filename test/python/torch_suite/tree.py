# PyTorch's tests that only its source tree has: test/distributed/test_c10d_*.py. test_c10d_gloo is written for gloo by name; what it tests,
# but for gloo's own things below, is what any group of processes does. So the modules see another torch.distributed there, in which gloo is
# the backend that is tested: ProcessGroupGloo(store, rank, size, options) makes its group, "gloo" in a call is its name.
import datetime
import importlib
import os
import sys

from upstream import Instead

MODULES = ("test_c10d_common", "test_c10d_pypg", "test_c10d_object_collectives", "test_c10d_gloo")
CALLS = ("init_process_group", "new_group")
APART = {  # what gloo passes and a group in Python cannot, or is not to
    "test_allgather_checks": "all_gather refuses tensors of different sizes there; here ranks may give different amounts",
    "test_round_robin": "torch's round robin is C++, and keeps nothing of its groups but their C++ half",
    "test_round_robin_create_destroy": "as test_round_robin",
    "test_scatter_work_wait_cpu": "the dispatcher of torch 1.13 does not reach scatter of a group in Python",
}


def made(dist, backend, store, rank, size, timeout):
    """A group that torch does not know of, as the backend's creator makes the first one of a program."""
    if isinstance(timeout, (int, float)):
        timeout = datetime.timedelta(seconds=timeout)
    plugin = dist.Backend._plugins[backend.upper()]
    if not plugin.extended_api:
        return plugin.creator_fn(store, rank, size, timeout)
    options = dist.distributed_c10d._DistributedBackendOptions()
    options.store, options.group_rank, options.group_size, options.timeout = store, rank, size, timeout
    options.group_id, options.global_ranks_in_group = "", []
    return plugin.creator_fn(options, None)


def stand_in(dist, backend):
    """The names of torch.distributed by which a test asks for gloo."""
    def renamed(call):
        def named(*args, **words):
            words.update({"backend": backend} if words.get("backend") == "gloo" else {})
            return call(*((backend if arg == "gloo" else arg) for arg in args), **words)
        return named

    class ProcessGroupGloo:
        _Options = dist.ProcessGroupGloo._Options

        def __new__(cls, store, rank, size, options=None, timeout=datetime.timedelta(seconds=50)):
            if options is not None:
                timeout = options._timeout
            return made(dist, backend, store, rank, size, timeout)

    return {"ProcessGroupGloo": ProcessGroupGloo, **{name: renamed(getattr(dist, name)) for name in CALLS}}


def classes(root, backend):
    """The classes of tests in an unpacked source tree of PyTorch 1.13."""
    folder = os.path.join(root, "test", "distributed")
    if not os.path.exists(os.path.join(folder, MODULES[0] + ".py")):
        raise FileNotFoundError(f"no {MODULES[0]}.py in {folder}: TUTTI_TEST_PYTORCH wants the root of a source tree of PyTorch")
    sys.path.insert(0, folder)
    sys.dont_write_bytecode = True  # the tree is not ours
    modules = [importlib.import_module(name) for name in MODULES]
    if backend != "gloo":
        import torch.distributed as dist
        names = stand_in(dist, backend)
        for module in modules:
            for name in ("dist", "c10d"):
                if hasattr(module, name):
                    setattr(module, name, Instead(getattr(module, name), **names))
        modules[2].BACKEND = backend
    return [kind for module in modules for kind in vars(module).values()
            if isinstance(kind, type) and kind.__module__ == module.__name__]
