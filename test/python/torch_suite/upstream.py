# Test files of PyTorch's source tree, as they are: each once with gloo and once with
# TUTTI_AS_GLOO=1 in the environment, by which tutti stands in gloo's place without the tests'
# knowing. What gloo passes there, tutti has to pass. Each file has a process of its own for either,
# forked from one that has imported torch and knows what stands behind the name of gloo.
#   ranks    are forked, as in suite.py; --spawn starts them anew, as the tests would by themselves,
#            and takes many times as long
#   files    some are for GPUs, of which a machine without skips all; some have another place in
#            another release; missing ones are named
#   import   a file that cannot be imported is counted as one failed test
#   release  one that is older than torch has tests of what is gone: gloo fails those, and they
#            do not count
import contextlib
import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from concurrent import futures

import runner

BOUND = int(os.environ.get("TUTTI_TEST_BOUND", 120))  # seconds for one test
FILE_BOUND = 1500  # and for a file
# in test/distributed, the first that is there of each line; a folder is all test_*.py below it
FILES = (
    ("test_c10d_gloo.py",),
    ("test_c10d_common.py",),
    ("test_c10d_object_collectives.py",),
    ("test_c10d_spawn_gloo.py",),
    ("test_pg_wrapper.py",),
    ("test_device_mesh.py",),
    ("test_functional_api.py",),
    ("tensor/test_redistribute.py", "_tensor/test_redistribute.py"),
    ("checkpoint",),
)
SWITCH = "TUTTI_AS_GLOO"
PROBE = """
import torch.distributed as dist
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
made = type(dist.group.WORLD._get_backend(__import__("torch").device("cpu")))
asked = dist.distributed_c10d.ProcessGroupGloo
print("BACKEND", asked.__module__ + "." + asked.__name__ + " -> "
      + made.__module__ + "." + made.__name__)
"""


def cases(path):
    """The cases of a file; one that fails, where it cannot be imported."""
    sys.path.insert(0, os.path.dirname(path))
    sys.dont_write_bytecode = True  # the tree is not ours
    name = os.path.splitext(os.path.basename(path))[0]
    try:
        module = importlib.import_module(name)
    except BaseException as error:
        class Import(unittest.TestCase):
            why = f"{type(error).__name__}: {error}"

            def test_import(self):
                if (error.__class__ is unittest.SkipTest
                        or isinstance(error, SystemExit) and not error.code):
                    self.skipTest(self.why)
                self.fail(self.why)
        return [Import("test_import")]
    kinds = [kind for kind in vars(module).values() if isinstance(kind, type)
             and issubclass(kind, unittest.TestCase)]
    return [kind(test) for kind in kinds if kind.__module__ == name
            for test in unittest.defaultTestLoader.getTestCaseNames(kind)]


def files(root, wanted):
    """Paths below test/distributed, and which lines of FILES have none there."""
    folder = os.path.join(root, "test", "distributed")
    if not os.path.isdir(folder):
        raise FileNotFoundError(f"no {folder}: TUTTI_TEST_PYTORCH wants the root of a source tree "
                                "of PyTorch")
    found, missing = [], []
    for names in [(name,) for name in wanted.split(",")] if wanted else FILES:
        name = next((name for name in names if os.path.exists(os.path.join(folder, name))), None)
        if name is None:
            missing.append(names[0])
        elif name.endswith(".py"):
            found.append(name)
        else:
            below = [os.path.relpath(os.path.join(path, file), folder)
                     for path, _, names in os.walk(os.path.join(folder, name))
                     for file in names if file.startswith("test_") and file.endswith(".py")]
            found += sorted(below)
    return folder, found, missing


def environment(on):
    told = {key: value for key, value in os.environ.items() if key != SWITCH}
    return {**told, SWITCH: "1"} if on else told


def backend(on):
    """The class that torch asks for a group by the name of gloo, and that of what it gets."""
    done = subprocess.run([sys.executable, "-c", PROBE], env=environment(on), capture_output=True,
                          text=True)
    for line in done.stdout.splitlines():
        if line.startswith("BACKEND "):
            return line.partition(" ")[2]
    raise RuntimeError(f"no group of one by the name of gloo:\n{done.stderr}")


def serve(folder, names, common, process, lines, only):
    """Runs files one after another, and adds what each test came to, {file: {name: row}},
    to `lines`."""
    for name in names:
        with tempfile.TemporaryDirectory(prefix="tutti-upstream-") as there:
            rows, said = os.path.join(there, "rows"), os.path.join(there, "said")
            child = process(target=body, args=(os.path.join(folder, name), common, process, rows,
                                               said, only))
            began = time.monotonic()
            child.start()
            child.join(FILE_BOUND)
            end = child.exitcode
            with contextlib.suppress(ProcessLookupError):  # what it has left behind, too
                os.killpg(child.pid, signal.SIGKILL)
            child.join()
            found = {}
            if os.path.exists(rows):
                with open(rows) as file:
                    for line in file:
                        found.update(json.loads(line))
            if end != 0:
                with open(said) as file:
                    ended = (f"the file's process ended by {child.exitcode} after "
                             f"{time.monotonic() - began:.0f} s")
                    why = f"{file.read()[-4000:]}\n{ended}"
                found["File.all of it"] = {"end": runner.FAILED,
                                           "seconds": time.monotonic() - began, "why": why}
            with open(lines, "a") as file:
                print(json.dumps({name: found}), file=file)


def body(path, common, process, rows, said, only):
    os.setsid()
    with open(said, "w") as out:
        os.dup2(out.fileno(), 1), os.dup2(out.fileno(), 2)
    chosen = [case for case in cases(path) if not only or only & {case._testMethodName,
                                                                  runner.Results.name(case)}]
    runner.run(chosen, common.MultiProcessTestCase, process, BOUND, rows)


def side(on, options):
    """What all files came to, {file: {name: row}}, with what stands behind the name of gloo."""
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "torch_suite.py")
    with tempfile.TemporaryDirectory(prefix="tutti-upstream-") as there:
        lines = os.path.join(there, "lines")
        command = [sys.executable, program, "files", "--json", lines, "--files", options.files,
                   "--only", options.only]
        done = subprocess.run(command + (["--spawn"] if options.spawn else []), env=environment(on),
                              cwd=there)
        found = {}
        if os.path.exists(lines):
            with open(lines) as file:
                for line in file:
                    found.update(json.loads(line))
        if done.returncode:
            raise RuntimeError(f"the process that runs the files ended by {done.returncode} after "
                               f"{', '.join(found) or 'none'}")
        return found


def differences(gloo, tutti):
    """What gloo passes and tutti does not, with the reason."""
    missing = {"end": runner.FAILED, "seconds": 0, "why": "it was not run"}
    return {name: tutti.get(name, missing) for name in runner.of(gloo, runner.PASSED)
            if tutti.get(name, missing)["end"] != runner.PASSED}


def compare(root, options):
    """Runs them all and prints a table; 0 if tutti passes what gloo passes."""
    _, found, missing = files(root, options.files)
    plain, switched = backend(False), backend(True)
    print(f"by the name of gloo: {plain}, with {SWITCH}=1 {switched}", flush=True)
    if plain == switched:
        print(f"{SWITCH}=1 changes nothing: the package is not where this Python looks when it "
              "imports torch")
        return 1
    began, rows, wrong = time.monotonic(), {}, {}
    with futures.ThreadPoolExecutor(min(options.jobs, 2)) as pool:
        gloo, tutti = pool.map(lambda on: side(on, options), (False, True))
    width = max(map(len, found))
    print(f"{'file':{width}} tests  gloo: passed skipped failed      s  tutti: passed skipped "
          "failed      s  behind")
    for name in found:
        rows[name] = {"gloo": gloo[name], "tutti": tutti[name]}
        behind = differences(gloo[name], tutti[name])
        wrong.update({f"{name} {test}": row for test, row in behind.items()})
        print(f"{name:{width}} {len(gloo[name]):5}        {counts(gloo[name])}         "
              f"{counts(tutti[name])}  {len(behind):6}")
    for kind in ("gloo", "tutti"):
        every = [row for pair in rows.values() for row in pair[kind].values()]
        ends = [sum(row["end"] == end for row in every)
                for end in (runner.PASSED, runner.SKIPPED, runner.FAILED)]
        print("{}: {} tests, {} passed, {} skipped, {} failed".format(kind, len(every), *ends))
    print(f"{time.monotonic() - began:.0f} s in all" + (f"; not in this tree: {', '.join(missing)}"
                                                        if missing else ""))
    if options.json:
        with open(options.json, "w") as file:
            json.dump(rows, file, indent=1)
    for name, row in wrong.items():
        print(f"BEHIND gloo, which passes it: {name}: {row['end']}\n{runner.tail(row['why'], 15)}")
    return 1 if wrong else 0


def counts(rows):
    ends = [len(runner.of(rows, end)) for end in (runner.PASSED, runner.SKIPPED, runner.FAILED)]
    return "{:6} {:7} {:6} {:6.0f}".format(*ends, sum(row["seconds"] for row in rows.values()))
