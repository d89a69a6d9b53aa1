# What the tests of tutti.torch share: torch, or 77 with the reason; ranks that are forked from a
# process that has imported it.
import datetime
import os
import signal
import sys
import tempfile
import threading
import time
import traceback
import unittest

from support import check, raises, skip  # noqa: F401

# torch warns of each function that is to go some day
os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
try:
    import torch
    import torch.distributed as dist
except ImportError:
    skip(f"torch is missing for {sys.executable}: ./bootstrap test makes a Python that has it, "
         "build/venv")
import tutti
try:
    import tutti.torch  # noqa: F401
except ImportError as error:
    skip(str(error))

DEATH = -9
# Gloo was seen to drop a connection while it made its mesh ("Connection closed by peer"); the rank
# at the other end waits for the group's whole timeout. Then there is no group, and what is tested
# here has not begun. How such a rank ends (EX_TEMPFAIL), and what a group of gloo's own may wait.
NO_MESH, MESH_LIMIT = 75, datetime.timedelta(seconds=25)
DOUBLE = torch.float64
default = dist.distributed_c10d._get_default_group
store = dist.distributed_c10d._get_default_store


def backend_of(group=None):
    """tutti's own object, below torch's process group."""
    return (group or default())._get_backend(torch.device("cpu"))


def tell(key):
    store().set(key, "")


def hear(*keys):
    """Waits for what other ranks tell: order without a collective, and without a clock."""
    store().wait(list(keys))


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def _rank(rank, size, path, backend, body, args):
    torch.set_num_threads(1)
    dist.init_process_group(backend, init_method=f"file://{path}", rank=rank, world_size=size,
                            timeout=MESH_LIMIT if backend == "gloo" else None)
    body(rank, size, *args)
    if dist.is_initialized():
        dist.destroy_process_group()


def _end(world, body, args):
    try:
        return body(world.rank, world.size, *args)
    except RuntimeError as error:
        if "connectFullMesh" not in str(error):
            raise
        traceback.print_exc()
        return NO_MESH


def plain(n, body, *args, timeout=100):
    """body(rank, size, *args) on n ranks without a process group; how each ended."""
    return tutti.spawn(_end, n, body, args, timeout=timeout)


def meshed(run):
    """run(folder), which says how each rank ended, where gloo has connected its ranks. A rank that
    a signal ended closes its connections, too: then it is not gloo's fault."""
    for _ in range(3):
        with tempfile.TemporaryDirectory() as folder:
            got = run(folder)
        if NO_MESH not in got or min(got) < 0:
            break
        print(f"gloo did not connect its ranks, which ended by {got}: once more", file=sys.stderr)
    return got


class _Unwound(KeyboardInterrupt):
    """Takes a forked rank out of unittest, which lets nothing else through, to the end of
    the script."""

    def __init__(self, status):
        self.status = status


def _status_of(body, *args):
    try:
        body(*args)
        return 0
    except SystemExit as end:
        return end.code or 0
    except BaseException:
        traceback.print_exc()
        return 1


class Case(unittest.TestCase):
    backend = "tutti"

    def ranks(self, n, body, *args, ends=None):
        """Runs body(rank, size, *args) on n ranks of a default group; every one ends by 0, or as
        `ends` says."""
        got = meshed(lambda folder: plain(n, _rank, os.path.join(folder, "store"), self.backend,
                                          body, args))
        self.assertEqual(got, [(ends or {}).get(rank, 0) for rank in range(n)])

    def each(self, n, *bodies, **words):
        for body in bodies:
            with self.subTest(body=body.__name__):
                self.ranks(n, body, **words)

    def whole(self, n, body, *args, limit=30, ends=None):
        """As ranks(), but of programs that end as programs do: by the interpreter's end and static
        destructors. What they said on stderr, each."""
        folder = tempfile.mkdtemp(prefix="tutti-test-")
        path, pids, said = os.path.join(folder, "store"), [], []
        sys.stdout.flush()
        sys.stderr.flush()
        for rank in range(n):
            pid = os.fork()
            if pid == 0:
                log = os.open(f"{path}-{rank}.err", os.O_WRONLY | os.O_CREAT)
                os.dup2(log, 2)
                torch.set_num_threads(1)
                raise _Unwound(_status_of(lambda: (
                    dist.init_process_group(self.backend, init_method=f"file://{path}", rank=rank,
                                            world_size=n), body(rank, n, *args))))
            pids.append(pid)
        got = [ended(pid, limit) for pid in pids]
        for rank in range(n):
            with open(f"{path}-{rank}.err", errors="replace") as file:
                said.append(file.read())
        for name in os.listdir(folder):
            os.remove(os.path.join(folder, name))
        os.rmdir(folder)
        self.assertEqual(got, [(ends or {}).get(rank, 0) for rank in range(n)], "\n".join(said))
        return said


def ended(pid, limit):
    """How the process ended, as subprocess says it; "hung" if it had to be killed."""
    end = time.monotonic() + limit
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return "hung"


def _sleeps(thread):
    with open(f"/proc/self/task/{thread}/stat") as stat:
        return stat.read().rpartition(")")[2].split()[0] == "S"


def _stands_in(ident, code):
    frame = sys._current_frames().get(ident)
    while frame and frame.f_code is not code:
        frame = frame.f_back
    return frame is not None


def when_blocked(call, then):
    """A thread that does `then` once the calling thread stands in `call`, a Python function, and
    sleeps there."""
    ident, native = threading.get_ident(), threading.get_native_id()

    def watch():
        quiet = 0
        while quiet < 50:
            os.sched_yield()
            quiet = quiet + 1 if _stands_in(ident, call.__code__) and _sleeps(native) else 0
        then()
    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    return thread


def interrupt():
    """Ctrl-C, as a terminal sends it: to the process."""
    os.kill(os.getpid(), signal.SIGINT)


def bits(tensor):
    """The bytes of its elements, in the order of its indices."""
    return tensor.detach().clone(memory_format=torch.contiguous_format).reshape(-1).view(
        torch.uint8)


def same(got, expected, what=""):
    """Equal in type, shape and every bit."""
    check(got.dtype == expected.dtype and got.shape == expected.shape, (what, got, expected))
    check(torch.equal(bits(got), bits(expected)), (what, got, expected))


def main():
    try:
        unittest.main(module="__main__", verbosity=1, buffer=False, warnings="ignore")
    except _Unwound as rank:
        sys.exit(rank.status)
