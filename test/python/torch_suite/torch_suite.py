# ctest: timeout=900 labels=nosan serial
# PyTorch's own tests of torch.distributed against a backend, and against gloo what the backend did
# not pass: gloo must not have passed it. Both are run here, by the same code: no list of what is
# expected stands anywhere.
#
#   torch_suite.py suite -n 2                  torch.testing._internal.distributed.distributed_test,
#                                              with two ranks
#   torch_suite.py upstream                    files of test/distributed of a source tree of
#                                              PyTorch, TUTTI_TEST_PYTORCH=DIR, as they are: once
#                                              with gloo, once with TUTTI_AS_GLOO=1, by which tutti
#                                              stands in gloo's place
#   ... suite --backend gloo                   another backend; `wrapped` is gloo under a
#                                              foreign name
#   ... upstream --files test_device_mesh.py   some files; --spawn: ranks are started anew, as the
#                                              tests do it themselves
#   ... --only test_barrier,test_send_recv     some tests
#   ... --json FILE                            what each came to, and after how long
import argparse
import importlib
import json
import os
import subprocess
import sys
import tempfile

import runner
import suite
import upstream
import wrapped

BOUND = 60  # seconds for one test, whose own timeouts are 60 s at most


def skip(why):
    print(why)
    sys.exit(77)


def register(backend):
    """torch as it is, and the backend in it, whose monitored_barrier it returns; 77 with the reason
    where one is missing."""
    try:
        import torch
    except ImportError:
        skip(f"torch is missing for {sys.executable}: pip install torch==2.13.0")
    if not torch.distributed.is_available():
        skip("this torch is built without torch.distributed")
    if not torch.distributed.is_gloo_available():
        skip("this torch is built without gloo, which the tests are written for")
    if tuple(int(part) for part in torch.__version__.split(".")[:2]) < (2, 6):
        skip(f"torch is {torch.__version__}; the tests are prepared for those of 2.6 and later")
    if backend == "tutti":
        try:
            return importlib.import_module("tutti.torch").monitored_barrier
        except ImportError as error:
            skip(f"tutti.torch is not in reach ({error}): set PYTHONPATH to <build>/python")
    if backend == wrapped.NAME:
        wrapped.register()
        return wrapped.monitored_barrier
    return None


def warm(backend):
    """A group of one, in a process of its own: what a backend may have to build for its first group
    is not a test's time."""
    if backend == "tutti":
        text = "dist.init_process_group('tutti', store=dist.HashStore(), rank=0, world_size=1)"
        subprocess.run([sys.executable, "-c", "import torch.distributed as dist, tutti.torch\n"
                        + text], check=True)


def by(backend, options, names):
    """What another backend makes of these, in a process of its own: a test is defined for
    one backend."""
    if not names:
        return {}
    with tempfile.NamedTemporaryFile("r") as file:
        subprocess.run([sys.executable, __file__, "suite", "-n", str(options.ranks), "--backend",
                        backend, "--quiet", "--json", file.name, "--only", ",".join(names)],
                       check=True)
        return json.load(file)


def judge(rows, gloo, renamed):
    """Prints what is wrong; 0 if nothing is. `gloo` has made what it could of all that did not
    pass; `renamed` is gloo under a foreign name, of what failed: what it fails, too, though gloo
    passes it, is refused by torch to any backend that torch does not know. What gloo is not let
    into is no excuse: the gate has been opened for more than gloo can do."""
    wrong, left = [], {}
    for name in runner.of(rows, runner.FAILED):
        if gloo[name]["end"] == runner.FAILED:
            left[name] = "gloo fails it, too"
        elif gloo[name]["end"] == runner.PASSED and renamed[name]["end"] == runner.FAILED:
            left[name] = "gloo under a foreign name fails it, too"
        else:
            wrong.append(name)
    behind = [name for name in runner.of(gloo, runner.PASSED)
              if rows[name]["end"] == runner.SKIPPED]
    for name, why in left.items():
        print(f"left: {runner.short(name)}: {why}\n{runner.tail(rows[name]['why'], 3)}")
    for name in behind:
        print(f"BEHIND gloo, which passes it: {runner.short(name)}: {rows[name]['why']}")
    for name in wrong:
        print(f"FAILED {name}\n{runner.tail(rows[name]['why'])}")
    return 1 if wrong or behind else 0


def arguments(given=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("suite", "upstream", "files"),
                        help="`files` is what upstream calls itself with")
    parser.add_argument("-n", "--ranks", type=int, default=2)
    parser.add_argument("--backend", default="tutti")
    parser.add_argument("--only", default="")
    parser.add_argument("--files", default="")
    parser.add_argument("--spawn", action="store_true")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--json")
    parser.add_argument("--quiet", action="store_true")
    return parser.parse_args(given)


def chosen(cases, options):
    only = set(options.only.split(",")) - {""}
    return [case for case in cases if not only or only & {case._testMethodName,
                                                          runner.Results.name(case)}]


def main():
    options = arguments()
    root = os.environ.get("TUTTI_TEST_PYTORCH")
    if options.what != "suite" and not root:
        skip("TUTTI_TEST_PYTORCH is not set: the root of a source tree of PyTorch, which has "
             "test/distributed")
    if options.what == "files":
        folder, names, _ = upstream.files(root, options.files)
        common, process = suite.prepare(upstream.BOUND, not options.spawn)
        upstream.serve(folder, names, common, process, options.json,
                       set(options.only.split(",")) - {""})
        return 0
    if options.what == "upstream":
        register("tutti")
        return upstream.compare(root, options)

    monitored_barrier = register(options.backend)
    warm(options.backend)
    common, process = suite.prepare(BOUND)
    cases = chosen(suite.suite(options.backend, options.ranks, common, monitored_barrier), options)
    rows = runner.run(cases, common.MultiProcessTestCase, process, BOUND)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(rows, file, indent=1)
    if options.quiet:
        return 0
    runner.summary(f"suite, {options.backend}, {options.ranks} ranks", rows)
    if options.only:
        for name in rows:
            print(f"{rows[name]['end']} {name} {rows[name]['seconds']:.2f} s")
    gloo, renamed = rows, rows
    if options.backend != "gloo":
        gloo = by("gloo", options, runner.of(rows, runner.SKIPPED, runner.FAILED))
        failed = [name for name in runner.of(rows, runner.FAILED)
                  if gloo[name]["end"] == runner.PASSED]
        renamed = by(wrapped.NAME, options, failed)
        print(f"of the others gloo passes {len(runner.of(gloo, runner.PASSED))}")
    return judge(rows, gloo, renamed)


if __name__ == "__main__":
    sys.exit(main())
