# ctest: timeout=120
# The threads that complete futures, without PyTorch: src/torch/later.cc alone, under the sanitizers
# of addresses and of threads. Jobs of all kinds, lines kept in order, and an end that has to be
# asked for twice because a job is late.
import os
import shutil
import subprocess
import sys
import tempfile

from support import skip

TREE = os.path.abspath(os.path.join(os.path.dirname(os.path.realpath(__file__)), "../.."))
DRIVER = r"""
#include "torch/later.h"
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <vector>
using namespace tutti;
static void failed(int line, const char *what)
{
    fprintf(stderr, "line %d: %s\n", line, what);
    exit(1);
}
#define CHECK(x) do { if (!(x)) failed(__LINE__, #x); } while (0)

struct Gate {
    std::mutex lock;
    std::condition_variable changed;
    int passed = 0;
    bool open = false;
    void pass() { std::unique_lock<std::mutex> hold(lock); passed++; changed.notify_all(); }
    void pass_when_open()
    {
        std::unique_lock<std::mutex> hold(lock);
        changed.wait(hold, [this] { return open; });
        passed++;
        changed.notify_all();
    }
    void lift() { std::unique_lock<std::mutex> hold(lock); open = true; changed.notify_all(); }
    void await(int n)
    {
        std::unique_lock<std::mutex> hold(lock);
        changed.wait(hold, [this, n] { return passed >= n; });
    }
};

int main()
{
    for (int turn = 0; turn < 20; turn++) {         /* many threads at once, used again */
        Gate gate;
        for (int i = 0; i < 16; i++)
            later_run([&] { gate.pass_when_open(); });
        gate.lift();
        gate.await(16);
    }
    std::vector<int> order;
    Gate after;
    auto line = std::make_shared<Line>();
    for (int i = 0; i < 500; i++)
        line->add({ [&order, i] { order.push_back(i); }, [&after] { after.pass(); } });
    after.await(500);
    for (int i = 0; i < 500; i++)
        CHECK(order[i] == i);

    Gate late;
    std::atomic<bool> done{ false };
    later_run([&] { late.pass_when_open(); done = true; });
    CHECK(!later_stop(0.05));                       /* the idle ones end, this one does not */
    late.lift();
    CHECK(later_stop(20));
    CHECK(done);
    later_run([] { abort(); });                     /* nothing is run any more */
    CHECK(later_stop(0));
    puts("done");
}
"""


def tried(folder, sanitizer):
    """The program under one sanitizer; None: the compiler has none."""
    source, made = os.path.join(folder, "driver.cc"), os.path.join(folder, sanitizer)
    with open(source, "w") as file:
        file.write(DRIVER)
    command = [*os.environ.get("CXX", "c++").split(), "-std=c++20", "-O1", "-g",
               f"-fsanitize={sanitizer}", "-Wall", "-Wextra", "-Werror", "-pthread", "-iquote",
               os.path.join(TREE, "src"), source, os.path.join(TREE, "src/torch/later.cc"), "-o",
               made]
    built = subprocess.run(command, capture_output=True, text=True)
    if built.returncode:
        assert "error: " not in built.stderr or "cannot find" in built.stderr, built.stderr
        return None
    return subprocess.run([made], capture_output=True, text=True, timeout=60)


if not shutil.which(os.environ.get("CXX", "c++").split()[0]):
    skip("a C++ compiler is missing: install g++")
with tempfile.TemporaryDirectory() as scratch:
    ends = {name: tried(scratch, name) for name in ("address", "thread")}
if not any(ends.values()):
    skip("the compiler has no sanitizers: install libasan and libtsan")
for name, end in ends.items():
    if end and (end.returncode or end.stdout != "done\n"):
        sys.exit(f"{name}: exit {end.returncode}\n{end.stdout}{end.stderr[:4000]}")
    print(name, "ok" if end else "skipped: the compiler has no such sanitizer")
