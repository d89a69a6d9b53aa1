# ctest: timeout=600
# The extension compiles, without a warning, against the headers of the other torch that it is for.
# They are taken from the package of that torch where it lies on this machine: TUTTI_TEST_TORCH
# names it, a wheel or an unpacked folder torch/, or pip has it in a folder of its own settings.
# Nothing is downloaded.
import glob
import os
import re
import subprocess
import sys
import tempfile
import types
import zipfile

from support import skip

os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
from tutti.torch import _build  # noqa: E402  (needs torch only when it loads)

OTHER = "2.14.1"


def of_pip():
    """The wheel, where it lies in one of pip's folders of wheels or is linked from an index that is
    a folder."""
    said = subprocess.run([sys.executable, "-m", "pip", "config", "list"], capture_output=True,
                          text=True).stdout
    name = f"torch-{OTHER}-cp{sys.version_info[0]}{sys.version_info[1]}-"
    for place in re.findall(r"(?:file://)?(/[^\s']+)", said):
        for found in glob.glob(f"{place}/{name}*.whl"):
            return found
        for page in glob.glob(f"{place}/torch/index.html"):
            with open(page) as file:
                links = re.findall(rf'href="([^"#]*{re.escape(name)}[^"#]*\.whl)', file.read())
            for link in links:
                path = os.path.normpath(os.path.join(os.path.dirname(page),
                                                     re.sub("^file://", "", link)))
                if os.path.exists(path):
                    return path
    return ""


def unpacked(path, folder):
    """The folder torch/ with its headers."""
    if os.path.isdir(path):
        return path
    with zipfile.ZipFile(path) as wheel:
        wheel.extractall(folder,
                         [name for name in wheel.namelist() if name.startswith("torch/include/")])
    return os.path.join(folder, "torch")


def compiles(folder, scratch):
    """What the compiler says; empty: nothing."""
    torch = types.SimpleNamespace(__file__=os.path.join(folder, "__init__.py"),
                                  compiled_with_cxx11_abi=lambda: True)
    _build._library = lambda: ""
    real, log = _build._run, os.path.join(scratch, "log")

    def compile_only(commands, log):
        if "-c" in commands[0]:
            real([[*command[:command.index("-o")], "-fsyntax-only"] for command in commands], log)
    _build._run = compile_only
    _build._compile(torch, _build._source(), "test", scratch, log, ["-Werror"])
    with open(log) as file:
        return "\n".join(line for line in file.read().splitlines() if "warning" in line)


def run():
    path = os.environ.get("TUTTI_TEST_TORCH") or of_pip()
    if not path:
        skip(f"the headers of torch {OTHER} are not on this machine: TUTTI_TEST_TORCH can name its "
             "wheel")
    with tempfile.TemporaryDirectory() as scratch:
        folder = unpacked(path, scratch)
        with open(os.path.join(folder, "include/torch/csrc/distributed/c10d/Backend.hpp")) as file:
            macros = sorted(set(re.findall(r"#define (C10D_BACKEND_HAS_\w+)", file.read())))
        said = compiles(folder, scratch)
        assert not said, said
    print(f"{os.path.basename(path)}: compiled, with {' and '.join(macros) or 'no feature macro'}")


if __name__ == "__main__":
    run()
