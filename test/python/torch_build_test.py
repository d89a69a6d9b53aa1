# ctest: timeout=300
# How the extension of tutti.torch is built and found. The package here is a copy whose extension is
# a few lines, and torch is a folder with its names: what is asked of a compiler takes a second
# then, and no torch is needed. python.pip builds the real one.
import glob
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from support import main, skip

import tutti

if tutti._core.core.__name__.endswith("_plain"):
    skip("the extension of the package is missing: install python3-dev")
if not shutil.which("g++") and not shutil.which("c++"):
    skip("a C++ compiler is missing: install g++")

PACKAGE = os.path.dirname(os.path.abspath(tutti.__file__))
MODULE = """#include <Python.h>
#include "torch/other.h"
static PyObject *key(PyObject *, PyObject *) { return PyUnicode_FromString(TUTTI_C10D_KEY); }
static PyObject *number(PyObject *, PyObject *)
{
    return PyLong_FromLong(other() + tutti_strerror(0)[0] * 0);
}
static PyMethodDef calls[] = {{"key", key, METH_NOARGS, nullptr},
                              {"number", number, METH_NOARGS, nullptr}, {}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "_c10d", nullptr, -1, calls,
                             nullptr, nullptr, nullptr, nullptr};
PyMODINIT_FUNC PyInit__c10d() { return PyModule_Create(&module); }
"""
OTHER = '#include "torch/other.h"\nint other() { return in_c(); }\n'
LINE = "int in_c(void);\nint in_c(void) { return 42; }\n"
HEADER = '#include <tutti.h>\nextern "C" int in_c(void);\nint other();\n'
USE = ("from tutti.torch import _build; m = _build.load(); "
       "print(m.__name__, m.number(), m.key(), m.__file__)")


def write(text, *parts, mode=0o644):
    path = os.path.join(*parts)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(text)
    os.chmod(path, mode)
    return path


class Build(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.top = tempfile.mkdtemp(prefix="tutti-build-")
        cls.libraries = os.path.join(cls.top, "torch/lib")
        os.makedirs(cls.libraries)
        for name in ("c10", "torch", "torch_cpu", "torch_python"):
            subprocess.run(["cc", "-shared", "-x", "c", "/dev/null", "-o",
                            f"{cls.libraries}/lib{name}.so"], check=True)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.top)

    def setUp(self):
        self.place = tempfile.mkdtemp(dir=self.top)
        self.home, self.cache, self.temporary = (os.path.join(self.place, name)
                                                 for name in ("home", "cache", "tmp"))
        os.makedirs(self.home)
        os.makedirs(self.temporary)
        self.torch = os.path.join(self.place, "tutti/torch")
        for path in glob.glob(os.path.join(PACKAGE, "*")):
            name = os.path.basename(path)
            if name not in ("torch", "__pycache__", "include"):
                os.makedirs(os.path.join(self.place, "tutti"), exist_ok=True)
                os.symlink(path, os.path.join(self.place, "tutti", name))
        self.of_torch()
        write("", self.torch, "__init__.py")
        shutil.copy(os.path.join(PACKAGE, "torch/_build.py"), self.torch)
        for name, text in (("module.cc", MODULE), ("other.cc", OTHER), ("line.c", LINE),
                           ("other.h", HEADER)):
            write(text, self.torch, "csrc/torch", name)
        include = next(path for path in (os.path.join(PACKAGE, "include"),
                                         os.path.join(os.environ.get("TUTTI_SOURCE", ""),
                                                      "include"),
                                         os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                                      "../../include")) if os.path.isdir(path))
        shutil.copytree(include, os.path.join(self.place, "tutti/include"))

    def of_torch(self, version="2.13.0"):
        write(f"__version__ = '{version}'\nfrom . import version\ndef compiled_with_cxx11_abi():\n"
              "    return True\n", self.place, "torch/__init__.py")
        write("git_version = 'abc'\n", self.place, "torch/version.py")
        if not os.path.exists(os.path.join(self.place, "torch/lib")):
            os.symlink(self.libraries, os.path.join(self.place, "torch/lib"))

    def environment(self, **more):
        settings = {"PYTHONPATH": self.place, "HOME": self.home, "TUTTI_CACHE": self.cache,
                    "TMPDIR": self.temporary, "LD_LIBRARY_PATH": self.libraries,
                    "PYTHONDONTWRITEBYTECODE": "1", **more}
        taken = {name: value for name, value in os.environ.items()
                 if name not in ("XDG_CACHE_HOME", "CC", "CXX", "PYTHONWARNINGS")}
        return {name: value for name, value in {**taken, **settings}.items() if value is not None}

    def started(self, program=USE, **more):
        return subprocess.Popen([sys.executable, "-c", program], env=self.environment(**more),
                                cwd=self.home, text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)

    def used(self, program=USE, **more):
        """Its key, its file, and what was said meanwhile."""
        process = self.started(program, **more)
        out, said = process.communicate(timeout=100)
        self.assertEqual(process.returncode, 0, said)
        name, number, key, path = out.split()
        self.assertEqual((name, number, path),
                         ("tutti.torch._c10d", "42", os.path.join(os.path.dirname(path),
                                                                  f"_c10d-{key}.so")))
        return key, path, said

    def refused(self, program=USE, **more):
        process = self.started(program, **more)
        out, said = process.communicate(timeout=100)
        self.assertEqual((process.returncode, out), (1, ""), said)
        return re.search(r"^ImportError: (.*)", said, re.S | re.M)[1].rstrip()

    def made(self, folder=None):
        return sorted(os.listdir(folder or self.cache))

    def test_free_threaded_python_is_refused(self):
        free = "import sysconfig; sysconfig.get_config_vars()['Py_GIL_DISABLED'] = 1\n"
        self.assertIn("not made for free-threaded Python", self.refused(free + USE))

    # ---- where --------------------------------------------------------------------------

    def test_built_once_and_kept(self):
        key, path, said = self.used()
        self.assertEqual(os.path.dirname(path), self.cache)
        first, second = said.splitlines()
        self.assertEqual(first, "tutti: building the extension for torch 2.13.0, once, about half "
                                "a minute ...")
        self.assertRegex(second, rf"^tutti: built it in \d+ s: {path}$")
        self.assertEqual(self.made(), [f".{key}.lock", f"_c10d-{key}.so"])
        self.assertEqual(self.used(PATH=""), (key, path, ""))  # no compiler is asked for

    def test_the_next_place_where_one_cannot_be_written(self):
        no = os.path.join(write("", self.place, "file"), "below")
        self.assertEqual(os.path.dirname(self.used(TUTTI_CACHE=None, XDG_CACHE_HOME=self.place)[1]),
                         os.path.join(self.place, "tutti"))
        self.assertEqual(os.path.dirname(self.used(TUTTI_CACHE=no)[1]),
                         os.path.join(self.home, ".cache/tutti"))
        private = os.path.join(self.temporary, f"tutti-{os.getuid()}")
        self.assertEqual(os.path.dirname(self.used(TUTTI_CACHE=no, HOME=no)[1]), private)
        self.assertEqual(os.stat(private).st_mode & 0o777, 0o700)
        self.assertEqual(self.used(TUTTI_CACHE=no, HOME=no)[2], "")
        os.chmod(private, 0o777)
        self.assertIn("set TUTTI_CACHE to a folder that can", self.refused(TUTTI_CACHE=no, HOME=no))

    def test_beside_the_package_before_the_cache(self):
        self.used()
        done = self.into()
        self.assertEqual(os.path.dirname(self.used()[1]), self.torch, done)

    def test_another_torch_or_source_has_another_file(self):
        keys = {self.used()[0]}
        self.of_torch("2.14.1+cu130")
        keys.add(self.used()[0])
        write(OTHER + "\n", self.torch, "csrc/torch/other.cc")
        keys.add(self.used()[0])
        self.assertEqual(len(keys), 3)
        self.assertLessEqual({f"_c10d-{key}.so" for key in keys}, set(self.made()))

    def test_a_damaged_file_is_named(self):
        path = self.used()[1]
        write("no library", path)
        self.assertRegex(self.refused(), f"^tutti.torch: {path} cannot be loaded: .*; remove it, "
                                         "and it is built anew$")

    # ---- at once ------------------------------------------------------------------------

    def slow(self, seconds):
        return write(f"#!/bin/sh\nsleep {seconds}\nexec c++ \"$@\"\n", self.place,
                     "slow", mode=0o755)

    def test_of_many_at_once_one_builds(self):
        processes = [self.started(CXX=self.slow(1)) for _ in range(5)]
        said = [process.communicate(timeout=100) for process in processes]
        self.assertEqual([process.returncode for process in processes], [0] * 5, said)
        self.assertEqual(len({out for out, _ in said}), 1)
        self.assertEqual(sum("building" in error for _, error in said), 1, said)
        self.assertEqual(sum(error == "" for _, error in said), 4, said)

    def test_a_builder_that_is_killed_holds_nobody_up(self):
        first = self.started(CXX=self.slow(5))
        while not (os.path.isdir(self.cache)
                   and [name for name in self.made() if "build-" in name]):
            self.assertIsNone(first.poll())
            time.sleep(0.02)
        second = self.started()
        first.send_signal(signal.SIGKILL)
        first.wait()
        out, said = second.communicate(timeout=100)
        self.assertIn("tutti: built it", said)
        self.assertEqual([name for name in self.made() if "build-" in name], [])
        first.stdout.close()
        first.stderr.close()

    # ---- what is missing ----------------------------------------------------------------

    def test_no_compiler(self):
        empty = os.path.join(self.place, "empty")
        os.mkdir(empty)
        needs = ("the extension is built once for each torch, and that needs a C++ compiler and "
                 "Python.h, but")
        install = "install them (Debian: apt-get install g++ python3-dev)"
        self.assertEqual(self.refused(PATH=empty), f"tutti.torch: {needs} there is no c++ or g++ "
                                                   f"or clang++: {install}")
        self.assertEqual(self.refused(CXX="nosuch++ -x"), f"tutti.torch: {needs} CXX=nosuch++ -x "
                                                          f"is not there: {install}")
        self.assertEqual([name for name in self.made() if not name.endswith(".lock")], [])

    def test_no_python_h(self):
        hidden = ("import sysconfig; old = sysconfig.get_path\n"
                  "sysconfig.get_path = lambda name: '/nowhere' if name == 'include' else "
                  "old(name)\n")
        self.assertRegex(self.refused(hidden + USE), "/nowhere/Python.h, which is missing: install "
                                                     "it .Debian: apt-get install python3-dev.$")

    def test_a_compilation_that_fails(self):
        write("int broken(\n", self.torch, "csrc/torch/other.cc")
        said = self.refused().splitlines()
        self.assertRegex(said[0], r"^tutti.torch: the extension could not be built, c\+\+ ended "
                                  r"with 1:$")
        self.assertRegex("\n".join(said[1:-1]), r"other.cc:\d+:.* error: ")
        log = re.search("^ *all it said is in (.*)$", said[-1])[1]
        with open(log) as file:
            self.assertIn("-std=c++20", file.read())
        self.assertEqual([name for name in self.made() if name.endswith(".so") or "build-" in name],
                         [])
        ignoring = "import signal, threading; signal.signal(signal.SIGCHLD, signal.SIG_IGN); "
        self.assertIn("c++ ended with 1:", self.refused(ignoring + USE))
        threaded = ignoring + ("said = []\ndef run():\n  try:\n    exec(program)\n"
                               "  except ImportError as error: said.append(error)\n")
        end = "thread = threading.Thread(target=run); thread.start(); thread.join(); raise said[0]"
        self.assertIn("c++ ended with a status that something else",
                      self.refused(f"program = {USE!r}\n" + threaded + end))
        write(OTHER, self.torch, "csrc/torch/other.cc")
        self.used(ignoring + USE)

    def test_versions_of_torch(self):
        self.of_torch("2.6.0")
        self.assertEqual(self.refused(), "tutti.torch needs torch 2.13 or newer; this is 2.6.0: "
                                         "pip install 'torch>=2.13'")
        self.of_torch("1.13.1")
        self.assertIn("this is 1.13.1", self.refused())
        self.of_torch("2.15.0a0+gitabc")
        self.assertIn("tutti.torch has not been run with a torch newer than 2.14; this is "
                      "2.15.0a0+gitabc", self.used()[2])

    # ---- for CMake ----------------------------------------------------------------------

    def into(self, *how, folder=None, status=0):
        done = subprocess.run([sys.executable, os.path.join(self.torch, "_build.py"), "--into",
                               folder or self.torch, *how],
                              env=self.environment(), capture_output=True, text=True, timeout=100)
        self.assertEqual((done.returncode, done.stdout), (status, ""), done.stderr)
        return done.stderr

    def test_into_a_folder(self):
        folder = os.path.join(self.place, "into")
        os.mkdir(folder)
        stale = write("", folder, "_c10d-0123456789abcdef.so")
        other = write("", folder, "other.so")
        self.assertIn("tutti: built it", self.into(folder=folder))
        self.assertFalse(os.path.exists(stale))
        self.assertTrue(os.path.exists(other))
        self.assertEqual(self.into(folder=folder), "")
        write(OTHER + "static int unused() { return 0; }\n", self.torch, "csrc/torch/other.cc")
        self.assertIn("unused", self.into("--werror", folder=folder, status=1))
        self.of_torch("2.6.0")
        self.assertIn("tutti.torch needs torch 2.13", self.into("--try", folder=folder))


if __name__ == "__main__":
    main()
