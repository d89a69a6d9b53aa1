#!/usr/bin/env python3
"""The tests of build/aarch64 under qemu-user, one by one, and what became of each.

    bash test/install/aarch64.sh && cmake --build build/aarch64 --target each_source
    python3 test/install/aarch64_user.py run [-j N] [-t SECONDS] [-b SECONDS] [REGEX [NOT_REGEX]]
    python3 test/install/aarch64_user.py table | write

`run` leaves out what has a result in build/aarch64/results already (remove what shall run again):
it can be cut off and goes on. -j: so many at once; -t: the most a test may take (default: its own
limit); -b: how long tests are begun. `table` prints all results: how many passed, each skip with
its reason, each failure with its first words; `write` puts that into test/README.md.
Ranks are programs, so the kernel must begin those of aarch64 by qemu: where binfmt_misc has no
such entry, root gets one in a user namespace of its own (Linux 6.7). Needs qemu-user-static."""
import concurrent.futures
import ctypes
import json
import os
import re
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as xml

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(TOP, "build", "aarch64")
RESULTS = os.path.join(BUILD, "results")
FORMATS = "/proc/sys/fs/binfmt_misc"
CLONE_NEWUSER, CLONE_NEWNS = 0x10000000, 0x20000


def enter():
    """Where programs of aarch64 are begun; returns in a child if it must be made."""
    if os.path.exists(f"{FORMATS}/qemu-aarch64"):
        return
    libc = ctypes.CDLL(None, use_errno=True)
    there, mapped = os.pipe(), os.pipe()
    pid = os.fork()
    if pid:
        os.read(there[0], 1)
        for name in "uid_map", "gid_map":
            with open(f"/proc/{pid}/{name}", "w") as file:
                file.write("0 0 65536\n")
        os.write(mapped[1], b"x")
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    if libc.unshare(CLONE_NEWUSER | CLONE_NEWNS):
        sys.exit(f"no namespace of its own: {os.strerror(ctypes.get_errno())}")
    os.write(there[1], b"x")
    os.read(mapped[0], 1)
    os.setgid(0)
    os.setuid(0)
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    subprocess.run(["mount", "-t", "binfmt_misc", "none", FORMATS], check=True)
    with open("/usr/lib/binfmt.d/qemu-aarch64.conf") as file:
        entry = file.read().strip()
    with open(f"{FORMATS}/register", "w") as file:
        file.write(entry)


def tests():
    shown = subprocess.run(["ctest", "--test-dir", BUILD, "--show-only=json-v1"],
                           capture_output=True, text=True, check=True).stdout
    for test in json.loads(shown)["tests"]:
        properties = {p["name"]: p["value"] for p in test["properties"]}
        # a script is in no build, and what it asks for may be there or not
        if all(os.path.exists(word) or not word.startswith(BUILD + "/")
               for word in test.get("command", [BUILD + "/"])):
            yield test["name"], properties.get("RUN_SERIAL", False)


def run_one(name, most, last):
    into, began = os.path.join(RESULTS, name + ".xml"), time.monotonic()
    if os.path.exists(into) or began > last:
        return
    command = ["ctest", "--test-dir", BUILD, "-R", f"^{re.escape(name)}$", "--output-junit", into]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True) as ctest:
        try:
            ctest.wait(most)
        except subprocess.TimeoutExpired:
            os.killpg(ctest.pid, signal.SIGKILL)
    if not os.path.exists(into):
        with open(into, "w") as file:
            file.write(f'<testsuite><testcase name="{name}" status="fail" '
                       f'time="{time.monotonic() - began}"><system-out>not done in the time '
                       'that it was given</system-out></testcase></testsuite>')
    print(*result(name)[:3], flush=True)


def run(words):
    options = {"-j": 2.0, "-t": None, "-b": float("inf")}
    while words and words[0] in options:
        options[words[0]], words = float(words[1]), words[2:]
    wanted, unwanted = (words + [".", "^$"][len(words):])[:2]
    enter()
    os.makedirs(RESULTS, exist_ok=True)
    os.environ.setdefault("QEMU_LD_PREFIX", os.path.join(TOP, "build", "aarch64-root"))
    os.environ.setdefault("TUTTI_SPAN_BYTES", "32M")
    chosen = [(name, alone) for name, alone in tests()
              if re.search(wanted, name) and not re.search(unwanted, name)]
    most, last = options["-t"], time.monotonic() + options["-b"]
    with concurrent.futures.ThreadPoolExecutor(int(options["-j"])) as pool:
        for name in [name for name, alone in chosen if not alone]:
            pool.submit(run_one, name, most, last)
    for name in [name for name, alone in chosen if alone]:
        run_one(name, most, last)


def result(name):
    case = xml.parse(os.path.join(RESULTS, name + ".xml")).getroot().find("testcase")
    status = {"run": "passed", "notrun": "skipped"}.get(case.get("status"), "failed")
    return name, status, f"{float(case.get('time')):.0f} s", case.findtext("system-out") or ""


def why(status, said):
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    if status == "skipped":
        lines = [line for line in lines if "skip" in line.lower()] or lines
        return re.sub(r"^skipped: ", "", lines[0] if lines else "no reason")
    wrong = [line for line in lines if re.search(r"error|fail|lost|limit|: \d+: ", line, re.I)]
    return (wrong or lines or ["nothing said"])[0][:160]


def gathered():
    """(status, how many, of how many, {reason: names}) of all results."""
    results = [result(file[:-4]) for file in sorted(os.listdir(RESULTS))]
    for status in "passed", "skipped", "failed":
        of_it = [r for r in results if r[1] == status]
        reasons = {}
        for name, _, seconds, said in of_it:
            key = "" if status == "passed" else why(status, said)
            shown = f"{name} ({seconds})" if status == "failed" else name
            reasons.setdefault(key, []).append(shown)
        yield (status, len(of_it), len(results),
               dict(sorted(reasons.items(), key=lambda item: -len(item[1]))))


def table():
    for status, count, most, reasons in gathered():
        print(f"{status}: {count} of {most}")
        for reason, names in reasons.items():
            print(f"  {reason + ': ' if reason else ''}{', '.join(names)}")


def write():
    """The same as a part of test/README.md, between two marks there."""
    first, last = (time.strftime("%-d %B %Y", time.localtime(day(
        os.path.getmtime(os.path.join(RESULTS, file)) for file in os.listdir(RESULTS))))
        for day in (min, max))
    (_, passed, most, _), (_, skipped, _, reasons), (_, failed, _, failures) = gathered()
    days = last if first == last else f"{first} to {last}"
    said = [f"{most} tests ran ({days}): {passed} passed, {skipped} were skipped, {failed} failed.",
            "", "| what became of it | tests |", "| --- | --- |"]
    for kind, of_it in ("skipped", reasons), ("failed", failures):
        said += [f"| {kind}: {reason.replace('|', ' ')} | {', '.join(f'`{n}`' for n in names)} |"
                 for reason, names in of_it.items()]
    path = os.path.join(TOP, "test", "README.md")
    with open(path) as file:
        text = file.read()
    begin, end = "<!-- aarch64_user.py write -->\n", "<!-- end of it -->\n"
    before, rest = text.split(begin)
    with open(path, "w") as file:
        file.write(before + begin + "\n".join(said) + "\n" + end + rest.split(end)[1])


if __name__ == "__main__":
    if sys.argv[1:2] == ["run"]:
        run(sys.argv[2:])
    elif sys.argv[1:] == ["table"]:
        table()
    elif sys.argv[1:] == ["write"]:
        write()
    else:
        sys.exit(__doc__)
