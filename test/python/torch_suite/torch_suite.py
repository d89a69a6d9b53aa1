# ctest: timeout=900 labels=nosan serial
# PyTorch's own tests of torch.distributed against a backend, and against gloo what the backend did not pass: gloo must not have passed it.
# Both are run here, by the same code: no list of what is expected stands anywhere.
#
#   torch_suite.py suite -n 2                  torch.testing._internal.distributed.distributed_test, with two ranks
#   torch_suite.py upstream                    test/distributed/test_c10d_*.py of an unpacked source tree of PyTorch, TUTTI_TEST_PYTORCH=DIR
#   ... --backend gloo                         another backend
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
import tree
import upstream

BOUND = 60  # seconds for one test, whose own timeouts are 60 s at most


def skip(why):
    print(why)
    sys.exit(77)


def register(backend):
    """torch as it is, and the backend in it; 77 with the reason where one is missing."""
    try:
        import torch
    except ImportError:
        skip(f"torch is missing for {sys.executable}: install python3-torch")
    if not torch.distributed.is_available():
        skip("this torch is built without torch.distributed")
    if not torch.distributed.is_gloo_available():
        skip("this torch is built without gloo, which the tests are written for")
    if not torch.__version__.startswith("1.13"):
        skip(f"torch is {torch.__version__}; the tests are prepared for those of 1.13")
    if backend == "tutti":
        try:
            import tutti  # noqa: F401
        except ImportError as error:
            skip(f"the package tutti is not in reach ({error}): set PYTHONPATH to <build>/python")
        importlib.import_module("tutti.torch")


def by_gloo(options, names):
    """What gloo makes of these, in a process of its own: a test is defined for one backend."""
    if not names:
        return {}
    with tempfile.NamedTemporaryFile("r") as file:
        subprocess.run([sys.executable, __file__, options.what, "-n", str(options.ranks), "--backend", "gloo", "--quiet",
                        "--json", file.name, "--only", ",".join(names)], check=True)
        return json.load(file)


def judge(rows, gloo):
    """Prints what is wrong; 0 if nothing is."""
    apart = [name for name in rows if runner.short(name) in tree.APART and rows[name]["end"] == runner.FAILED]
    wrong = [name for name in runner.of(rows, runner.FAILED) if name not in apart]
    behind = [name for name in runner.of(gloo, runner.PASSED) if rows[name]["end"] == runner.SKIPPED]
    for name in apart:
        print(f"left to gloo: {runner.short(name)}: {tree.APART[runner.short(name)]}")
    for name in behind:
        print(f"BEHIND gloo, which passes it: {runner.short(name)}: {rows[name]['why']}")
    for name in wrong:
        print(f"FAILED {name}\n{runner.tail(rows[name]['why'])}")
    return 1 if wrong or behind else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("suite", "upstream"))
    parser.add_argument("-n", "--ranks", type=int, default=2)
    parser.add_argument("--backend", default="tutti")
    parser.add_argument("--only", default="")
    parser.add_argument("--json")
    parser.add_argument("--quiet", action="store_true")
    options = parser.parse_args()
    root = os.environ.get("TUTTI_TEST_PYTORCH")
    if options.what == "upstream" and not root:
        skip("TUTTI_TEST_PYTORCH is not set: a source tree of PyTorch 1.13, as `apt-get source pytorch` unpacks it")

    register(options.backend)
    common, process = upstream.prepare(BOUND)
    if options.what == "suite":
        cases = upstream.suite(options.backend, options.ranks, common)
    else:
        cases = upstream.cases(tree.classes(root, options.backend))
    only = set(options.only.split(",")) - {""}
    if only:
        cases = [case for case in cases if only & {case._testMethodName, runner.Results.name(case)}]
    rows = runner.run(cases, common.MultiProcessTestCase, process, BOUND)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(rows, file, indent=1)
    if options.quiet:
        return 0
    ranks = f", {options.ranks} ranks" if options.what == "suite" else ""
    runner.summary(f"{options.what}, {options.backend}{ranks}", rows)
    if only:
        for name in rows:
            print(f"{rows[name]['end']} {name} {rows[name]['seconds']:.2f} s")
    gloo = {}
    if options.backend != "gloo":
        gloo = by_gloo(options, runner.of(rows, runner.SKIPPED, runner.FAILED))
        print(f"of the others gloo passes {len(runner.of(gloo, runner.PASSED))}")
    return judge(rows, gloo)


if __name__ == "__main__":
    sys.exit(main())
