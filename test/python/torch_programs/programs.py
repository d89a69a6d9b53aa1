# Runs the programs of this folder: what users of torch.distributed run, on gloo and on tutti.
#
#   programs.py PROGRAM|all MODE|all RANKS|all     several of each with commas between: programs.py
#                                                  ddp,mesh named 2,4
#   programs.py ci                                 the runs of CI, or with TUTTI_PROVE=1 all of
#                                                  named and place
#
# MODE: gloo   plain torch, without tutti
#       named  the program asks for the backend "tutti"
#       place  the program asks for gloo, and TUTTI_AS_GLOO=1 puts tutti in its place
# A line for each run: program, mode, ranks, seconds, and ok, FAILED with the last lines of the
# ranks, or skipped with the reason. The exit status is 0, or 1 where one failed, or 77 where all
# were skipped.
#
# A program's libraries are imported once for its mode, after torch and tutti.torch, and its ranks
# are forked from there: that saves each of them the seconds that imports take; nothing else differs
# from a start by torchrun. Imports must leave no threads behind.
import importlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
MODES = {"gloo": {}, "named": {"TUTTI_TEST_BACKEND": "tutti"}, "place": {"TUTTI_AS_GLOO": "1"}}
OK, FAILED, SKIPPED = 1, 2, 4
PROVE = os.environ.get("TUTTI_PROVE") == "1"
ALL, PAIRS = (2, 3, 4), (2, 4)

# Ranks that a program is made for. Its limit is 90 seconds, or LIMIT in the program.
PROGRAMS = {
    "objects": ALL, "groups": ALL, "messages": ALL, "exchange": ALL, "autograd": ALL,
    "functional": ALL, "mesh": ALL, "dtensors": ALL, "tensor_parallel": PAIRS,
    "ddp": ALL, "ddp_hooks": ALL, "ddp_join": ALL, "zero": ALL, "sampler": ALL, "compiled": ALL,
    "fsdp1": ALL, "fsdp2": ALL, "hsdp": (4,),
    "checkpoint": ALL, "pipelines": PAIRS, "elastic": ALL,
    "deepspeed_zero": ALL, "lightning_fit": ALL, "accelerate_loop": ALL,
    "transformers_trainer": ALL,
}
# CI runs each in both modes, named with 3 ranks and place with 2, but where that takes too long for
# it or next to nothing.
QUICK = {"objects", "groups", "messages", "exchange", "autograd", "mesh"}
SLOW = {"compiled", "elastic", "deepspeed_zero", "lightning_fit", "transformers_trainer",
        "checkpoint"}
CI = {name: {"named": PAIRS if name in QUICK else ranks[:1] if name in SLOW else (3,) if 3 in ranks
             else (4,), "place": (3,) if name in QUICK else ranks[:1]}
      for name, ranks in PROGRAMS.items()}


def free_port():
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        return door.getsockname()[1]


def end_group(pid, by=signal.SIGKILL):
    """Ranks lead a session of their own: what they started ends with them."""
    try:
        os.killpg(pid, by)
    except ProcessLookupError:
        pass


def tail(path):
    with open(path, errors="replace") as log:
        return "".join(f"    {line.rstrip()}\n" for line in log.read().splitlines()[-40:])


def await_all(pids, seconds, launcher):
    """How each ended: its exit status, -signal, or None where it had to be ended: too late, or 10
    seconds after another failed."""
    ends, left, deadline = {}, set(pids), time.monotonic() + seconds
    while left and time.monotonic() < deadline:
        pid, status = 0, 0
        for one in left:
            pid, status = os.waitpid(one, os.WNOHANG)
            if pid:
                break
        if not pid:
            time.sleep(0.01)
            continue
        left.discard(pid)
        ends[pid] = os.waitstatus_to_exitcode(status)
        if ends[pid]:
            deadline = min(deadline, time.monotonic() + 10)
    for pid in left:             # faulthandler says where it hung; a launcher ends what it launched
        end_group(pid, signal.SIGTERM if launcher else signal.SIGABRT)
    for pid in left:
        deadline = time.monotonic() + (40 if launcher else 1)
        while time.monotonic() < deadline and os.waitid(os.P_PID, pid,
                                                        os.WEXITED | os.WNOHANG
                                                        | os.WNOWAIT) is None:
            time.sleep(0.05)
    for pid in pids:
        end_group(pid)
    for pid in left:
        os.waitpid(pid, 0)
    return [ends.get(pid) for pid in pids]


def fork_rank(module, rank, ranks, port, folder):
    """The rank runs the program and ends as a program ends, by way of its at-exit handlers."""
    pid = os.fork()
    if pid:
        return pid
    os.setsid()
    log = os.open(os.path.join(folder, f"rank{rank}"), os.O_WRONLY | os.O_CREAT | os.O_APPEND,
                  0o600)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    import faulthandler
    faulthandler.enable()
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(ranks),
                      LOCAL_WORLD_SIZE=str(ranks), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port),
                      TUTTI_TEST_FOLDER=folder)
    warnings.simplefilter("ignore")
    status = 0
    try:
        module.main()
    except BaseException:
        traceback.print_exc()
        status = 1
    sys.exit(status)


def run_once(module, ranks, folder):
    """None where all went well, or what the ranks said."""
    limit = getattr(module, "LIMIT", 90)
    if hasattr(module, "command"):              # the program has a launcher of its own
        with open(os.path.join(folder, "rank0"), "w") as log:
            pids = [subprocess.Popen(module.command(ranks), stdin=subprocess.DEVNULL,
                                     stdout=log, stderr=log, start_new_session=True,
                                     env={**os.environ, "TUTTI_TEST_FOLDER": folder}).pid]
    else:
        port = free_port()
        pids = [fork_rank(module, rank, ranks, port, folder) for rank in range(ranks)]
    ends = await_all(pids, limit, hasattr(module, "command"))
    if not any(end != 0 for end in ends):
        return None
    said = ""
    for rank, end in enumerate(ends):
        if end != 0:
            how = "had to be ended" if end is None else f"ended by {end}"
            said += f"  rank {rank} {how}:\n{tail(os.path.join(folder, f'rank{rank}'))}"
    return said


def run_program(name, mode, several, started):
    """In a process of its own: imports the program for a mode, runs it with each number of ranks;
    the bits of what came of it."""
    os.environ.update(MODES[mode])
    sys.path.insert(0, HERE)
    signal.alarm(180)
    try:
        # before the program's libraries, as an installed tutti is there before them
        importlib.import_module("support")
        module = importlib.import_module(name)
    except ImportError as error:
        print(f"{name:22} {mode:6} {'-':>2} {'-':>7}  skipped: {error}", flush=True)
        return SKIPPED
    signal.alarm(0)
    bits = 0
    for ranks in several:
        why = module.unfit(mode, ranks) if hasattr(module, "unfit") else None
        if why:
            print(f"{name:22} {mode:6} {ranks:2} {'-':>7}  skipped: {why}", flush=True)
            bits |= SKIPPED
            continue
        folder = tempfile.mkdtemp(prefix="tutti-program-")
        here = os.getpid()
        try:
            said = run_once(module, ranks, folder)
        finally:
            if os.getpid() == here:
                shutil.rmtree(folder, ignore_errors=True)
        now = time.monotonic()
        print(f"{name:22} {mode:6} {ranks:2} {now - started:7.1f}  {'FAILED' if said else 'ok'}\n"
              f"{said or ''}", end="", flush=True)
        started = now
        bits |= FAILED if said else OK
    return bits


def run_mode(name, mode, several):
    started = time.monotonic()
    pid = os.fork()
    if pid == 0:
        sys.exit(run_program(name, mode, several, started))
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if status < 0 or not status:
        print(f"{name:22} {mode:6} {'-':>2} {time.monotonic() - started:7.1f}  FAILED: its process "
              f"ended by {status}", flush=True)
        return FAILED
    return status


def chosen(argv):
    """(program, mode, ranks) of the command line, in order."""
    if argv == ["ci"]:
        if PROVE:
            return [(name, mode, ranks) for name, ranks in PROGRAMS.items()
                    for mode in ("named", "place")]
        return [(name, mode, ranks) for name, modes in CI.items() for mode, ranks in modes.items()]
    if len(argv) != 3:
        sys.exit("usage: programs.py PROGRAM|all MODE|all RANKS|all, or programs.py ci")
    names = list(PROGRAMS) if argv[0] == "all" else argv[0].split(",")
    modes = list(MODES) if argv[1] == "all" else argv[1].split(",")
    ranks = set(ALL) if argv[2] == "all" else {int(one) for one in argv[2].split(",")}
    for one in set(names) - set(PROGRAMS) | set(modes) - set(MODES):
        sys.exit(f"programs.py: there is no {one}")
    return [(name, mode, tuple(n for n in PROGRAMS[name] if n in ranks))
            for name in names for mode in modes if ranks & set(PROGRAMS[name])]


def main(argv):
    runs = chosen(argv)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    os.environ.update(TORCHINDUCTOR_COMPILE_THREADS="1", TOKENIZERS_PARALLELISM="false",
                      HF_HUB_OFFLINE="1", DS_ACCELERATOR="cpu", CUDA_VISIBLE_DEVICES="",
                      PYTHONWARNINGS="ignore")
    for name in [*MODES["named"], *MODES["place"]]:
        os.environ.pop(name, None)
    try:
        import torch
    except ImportError as error:
        print(f"skipped: {error}: pip install torch")
        return 77
    torch.set_num_threads(1)
    if threading.active_count() > 1:
        print("programs.py: torch's import left threads", file=sys.stderr)
    cache, here = tempfile.mkdtemp(prefix="tutti-inductor-"), os.getpid()
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = cache
    bits = 0
    try:
        for name, mode, ranks in runs:
            bits |= run_mode(name, mode, ranks)
    finally:
        if os.getpid() == here:
            shutil.rmtree(cache, ignore_errors=True)
    return 1 if bits & FAILED else 0 if bits & OK else 77


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
