# SPDX-License-Identifier: MIT
"""Builds and finds the extension of the backend: tutti.torch._c10d, C++ over the headers of torch.
These headers may change from one release to the next. So a file fits one torch only, whose KEY is
in its name: _c10d-KEY.so. load() takes the file that was made when the package was built or
installed, else the one in the cache folder. If there is none, it makes it there. The cache folder
is TUTTI_CACHE, or $XDG_CACHE_HOME/tutti, or ~/.cache/tutti; if none of them can be written, a
private folder below the temporary one.

As a program, for CMake: python3 _build.py --into FOLDER [--werror | --try] builds there what is
missing, and removes what is stale. --try: a failed build is not an error."""
import contextlib
import errno
import fcntl
import glob
import hashlib
import importlib.machinery
import importlib.util
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
import sysconfig
import tempfile
import time
import warnings
from types import ModuleType
from typing import Any, Iterator, List, NamedTuple, Tuple

OLDEST, NEWEST = (2, 13), (2, 14)
NAME = "tutti.torch._c10d"
HERE = os.path.dirname(os.path.abspath(__file__))
# in a build tree the files are links into the source tree
TREE = os.path.abspath(os.path.join(os.path.realpath(__file__), "../../../../.."))


class Source(NamedTuple):
    folder: str   # of the extension's sources; its name is torch: they include "torch/<room>.h"
    include: str  # the folder of tutti.h

    def files(self, *endings: str) -> List[str]:
        return sorted(path for ending in endings
                      for path in glob.glob(os.path.join(self.folder, "*" + ending)))


def _source() -> Source:
    for found in (Source(os.path.join(HERE, "csrc", "torch"),
                         os.path.join(os.path.dirname(HERE), "include")),
                  Source(os.path.join(TREE, "src", "torch"), os.path.join(TREE, "include"))):
        if found.files(".cc"):
            return found
    raise ImportError(f"tutti.torch: the sources of its extension are missing, {HERE}/csrc/torch: "
                      "install tutti anew")


def _torch() -> Any:
    """torch, if the sources fit it."""
    import torch
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        name = f"python{sys.version_info[0]}.{sys.version_info[1]}"
        raise ImportError("tutti.torch is not made for free-threaded Python; this is "
                          f"{sys.version.split()[0]} without its lock: "
                          f"take the Python with it ({name}, not {name}t)")
    version = re.match(r"(\d+)\.(\d+)", torch.__version__)
    number = (int(version[1]), int(version[2])) if version else OLDEST
    if number < OLDEST:
        raise ImportError(f"tutti.torch needs torch 2.13 or newer; this is {torch.__version__}: "
                          "pip install 'torch>=2.13'")
    if number > NEWEST:
        warnings.warn("tutti.torch has not been run with a torch newer than 2.14; this is "
                      f"{torch.__version__}", RuntimeWarning, stacklevel=3)
    return torch


def _key(torch: Any, source: Source) -> str:
    from tutti import __version__
    digest = hashlib.sha256("\n".join(str(part) for part in (
        torch.__version__, torch.version.git_version, torch.compiled_with_cxx11_abi(),
        sysconfig.get_config_var("SOABI"), __version__,
    )).encode())
    for path in source.files(".cc", ".c", ".h") + [os.path.join(source.include, "tutti.h"),
                                                   os.path.abspath(__file__)]:
        with open(path, "rb") as file:
            digest.update(hashlib.sha256(file.read()).digest())
    return digest.hexdigest()[:16]


# ---- building --------------------------------------------------------------------------------


def _compiler(variable: str, names: Tuple[str, ...]) -> List[str]:
    words = shlex.split(os.environ.get(variable, "")) or [next((name for name in names
                                                                if shutil.which(name)), "")]
    if not words[0] or not shutil.which(words[0]):
        said = (f"{variable}={os.environ[variable]} is not there" if words[0]
                else f"there is no {' or '.join(names)}")
        raise ImportError("tutti.torch: the extension is built once for each torch, and that "
                          "needs a C++ compiler and Python.h, "
                          f"but {said}: install them (Debian: apt-get install g++ python3-dev)")
    return words


def _library() -> str:
    """The libtutti.so that this process has loaded."""
    with open("/proc/self/maps") as maps:
        for line in maps:
            path = (line.rstrip("\n").split(None, 5) + [""])[5]
            if os.path.basename(path).startswith("libtutti.so") and os.path.exists(path):
                return path
    raise ImportError("tutti.torch: the libtutti.so of this process is not there any more: start "
                      "anew")


def _run(commands: List[List[str]], log: str) -> None:
    """Runs all commands at once. Their output is written to the log; that of a failed one is in the
    error, too."""
    from tutti._children import Kept
    outputs = [tempfile.TemporaryFile("w+", errors="replace") for _ in commands]
    with Kept():
        running = [subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output,
                                    stderr=subprocess.STDOUT, env={**os.environ, "LC_ALL": "C"})
                   for command, output in zip(commands, outputs)]
        try:
            ends: List[Any] = [process.wait() for process in running]
        except BaseException:
            for process in running:
                process.kill()
                process.wait()
            raise
    texts = []
    with open(log, "a") as file:
        for command, output in zip(commands, outputs):
            output.seek(0)
            texts.append(output.read())
            output.close()
            file.write(shlex.join(command) + "\n" + texts[-1])
    for command, end, text in zip(commands, ends, texts):
        if not end and "-o" in command and not os.path.exists(command[command.index("-o") + 1]):
            end = "a status that something else in this process was told"
        if end:
            lines = [line for line in text.splitlines()
                     if "error" in line][:8] or text.splitlines()[-8:]
            raise ImportError("\n  ".join(["tutti.torch: the extension could not be built, "
                                           f"{command[0]} ended with {end}:", *lines,
                                           f"all it said is in {log}"]))


def _compile(torch: Any, source: Source, key: str, folder: str, log: str, extra: List[str]) -> str:
    """Builds the extension in this folder."""
    cxx, cc = _compiler("CXX", ("c++", "g++", "clang++")), _compiler("CC", ("cc", "gcc", "clang"))
    python = sysconfig.get_path("include")
    if not os.path.exists(os.path.join(python, "Python.h")):
        raise ImportError("tutti.torch: the extension is built once for each torch, and that "
                          f"needs {python}/Python.h, which is missing: "
                          f"install it (Debian: apt-get install python3-dev)")
    of_torch = os.path.join(os.path.dirname(torch.__file__), "include")
    common = ["-O2", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra", *extra, "-iquote",
              os.path.dirname(source.folder), "-I", source.include, "-isystem", python, "-isystem",
              of_torch, "-isystem", os.path.join(of_torch, "torch/csrc/api/include"),
              "-DTORCH_EXTENSION_NAME=_c10d", f'-DTUTTI_C10D_KEY="{key}"',
              f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}"]
    # All C++ is one unit: most of a compiler's time is spent on torch's headers and what they
    # instantiate, which each file would repeat. Two halves side by side take as long, with twice
    # the work.
    unit = os.path.join(folder, "all.cc")
    with open(unit, "w") as file:
        file.writelines(f'#include "{path}"\n' for path in source.files(".cc"))
    objects = [unit + ".o"]
    commands = [[*cxx, "-std=c++20", *common, "-c", unit, "-o", objects[0]]]
    for path in source.files(".c"):
        objects.append(os.path.join(folder, os.path.basename(path) + ".o"))
        commands.append([*cc, "-std=c11", "-D_GNU_SOURCE", *common, "-c", path, "-o", objects[-1]])
    _run(commands, log)
    made = os.path.join(folder, "_c10d.so")
    _run([[*cxx, "-shared", "-o", made, *objects, _library(), "-L",
           os.path.join(os.path.dirname(torch.__file__), "lib"), "-lc10", "-ltorch", "-ltorch_cpu",
           "-ltorch_python"]], log)
    return made


@contextlib.contextmanager
def _locked(path: str) -> Iterator[None]:
    """A lock by flock: it ends with its process, however that ends."""
    with open(path, "w") as file:
        begun: float = time.monotonic()
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError as error:
                if error.errno in (errno.ENOLCK, errno.EOPNOTSUPP):
                    # a file system without locks: two may build, and the last file stays
                    break
                if error.errno not in (errno.EAGAIN, errno.EACCES, errno.EINTR):
                    raise
            if time.monotonic() > begun + 120:
                print(f"tutti: waiting for the process that builds the extension; it holds {path}",
                      file=sys.stderr, flush=True)
                begun = float("inf")
            time.sleep(0.1)
        yield


def _made(torch: Any, source: Source, key: str, folder: str, extra: List[str]) -> str:
    """The path of the file in this folder. The process that gets the lock first builds it."""
    path = os.path.join(folder, f"_c10d-{key}.so")
    with _locked(os.path.join(folder, f".{key}.lock")):
        if os.path.exists(path):
            return path
        # left by a builder that was killed
        for left in glob.glob(os.path.join(glob.escape(folder), f".{key}.build-*")):
            shutil.rmtree(left, ignore_errors=True)
        print(f"tutti: building the extension for torch {torch.__version__}, once, about half a "
              "minute ...", file=sys.stderr, flush=True)
        begun = time.monotonic()
        log = os.path.join(folder, f"_c10d-{key}.log")
        with contextlib.suppress(FileNotFoundError):
            os.remove(log)
        scratch = tempfile.mkdtemp(prefix=f".{key}.build-", dir=folder)
        try:
            os.replace(_compile(torch, source, key, scratch, log, extra), path)
            os.remove(log)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        print(f"tutti: built it in {time.monotonic() - begun:.0f} s: {path}", file=sys.stderr,
              flush=True)
    return path


# ---- finding ---------------------------------------------------------------------------------


def _caches() -> List[str]:
    """The folders where built files may be, best first."""
    places = [os.environ.get("TUTTI_CACHE", "")]
    if os.environ.get("XDG_CACHE_HOME"):
        places.append(os.path.join(os.environ["XDG_CACHE_HOME"], "tutti"))
    places.append(os.path.join(os.path.expanduser("~"), ".cache", "tutti"))
    return [os.path.abspath(place) for place in places if place and place[0] != "~"]


def _private() -> str:
    """A folder that any user could have made. It is used only if nobody else can write there."""
    folder = os.path.join(tempfile.gettempdir(), f"tutti-{os.getuid()}")
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder, 0o700)
    made = os.lstat(folder)
    if not stat.S_ISDIR(made.st_mode) or made.st_uid != os.getuid() or made.st_mode & 0o077:
        raise ImportError(f"tutti.torch: there is no place for the extension: {folder} is not this "
                          "user's alone, and neither "
                          f"{' nor '.join(_caches())} can be written: set TUTTI_CACHE to a folder "
                          "that can")
    return folder


def _writable(places: List[str]) -> str:
    for place in places:
        try:
            os.makedirs(place, mode=0o700, exist_ok=True)
            with tempfile.TemporaryFile(dir=place):
                return place
        except OSError:
            continue
    return _private()


def _loaded(path: str) -> ModuleType:
    loader = importlib.machinery.ExtensionFileLoader(NAME, path)
    spec = importlib.util.spec_from_file_location(NAME, path, loader=loader)
    assert spec is not None
    try:
        module = importlib.util.module_from_spec(spec)
        loader.exec_module(module)
    except ImportError as error:
        raise ImportError(f"tutti.torch: {path} cannot be loaded: {error}; remove it, and it is "
                          "built anew") from None
    sys.modules[NAME] = module
    return module


def load() -> ModuleType:
    """The module tutti.torch._c10d for the imported torch. Builds it first if it is missing."""
    if NAME in sys.modules:
        return sys.modules[NAME]
    torch, source = _torch(), _source()
    key = _key(torch, source)
    for folder in [HERE, *_caches()]:
        path = os.path.join(folder, f"_c10d-{key}.so")
        if os.path.exists(path):
            return _loaded(path)
    return _loaded(_made(torch, source, key, _writable(_caches()), []))


def main() -> None:
    how = sys.argv[3:]
    if len(sys.argv) < 3 or sys.argv[1] != "--into" or how not in ([], ["--werror"], ["--try"]):
        sys.exit("usage: python3 _build.py --into FOLDER [--werror | --try]")
    folder = os.path.abspath(sys.argv[2])
    # with our own entry point torch would import what is not built yet
    os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
    # the package's folder, not this one: files here have names of torch's modules
    sys.path[0] = os.path.dirname(os.path.dirname(HERE))
    logs = os.path.join(glob.escape(folder), "_c10d-*.log")
    for log in glob.glob(logs):
        os.remove(log)
    try:
        torch, source = _torch(), _source()
        key = _key(torch, source)
        path = _made(torch, source, key, folder, ["-Werror"] if how == ["--werror"] else [])
    except ImportError as error:
        print(error, file=sys.stderr)
        for log in glob.glob(logs):  # a developer of the sources needs all of it
            with open(log) as file:
                print(file.read(), file=sys.stderr)
        sys.exit(how != ["--try"])
    for stale in glob.glob(os.path.join(glob.escape(folder), "_c10d-*.so")):
        if stale != path:
            os.remove(stale)


if __name__ == "__main__":
    main()
