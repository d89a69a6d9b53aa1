"""pip install from the tree: CMake builds the extension, the library, which lies beside it in the package, and the command. Needs what the library's build needs
(CMake 3.22, a C compiler, libnuma, liburing) and Python.h; nothing is left in the tree."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

HERE = os.path.dirname(os.path.abspath(__file__))
TREE = os.path.dirname(os.path.dirname(HERE))
SCRATCH = tempfile.mkdtemp(prefix="tutti-pip-")
STABLE = sys.version_info >= (3, 11)

with open(os.path.join(TREE, "CMakeLists.txt")) as lists:
    VERSION = re.search(r"project\(tutti VERSION ([0-9.]+)", lists.read()).group(1)


class Build(build_ext):
    def build_extension(self, extension):
        build, prefix = os.path.join(SCRATCH, "cmake"), os.path.join(SCRATCH, "prefix")
        subprocess.run(["cmake", "-S", TREE, "-B", build, "-DTUTTI_TESTS=OFF", "-DTUTTI_PERF=OFF", f"-DTUTTI_PYTHON={sys.executable}",
                        "-DTUTTI_PYTHON_DIR=.", "-DCMAKE_INSTALL_LIBDIR=tutti"], check=True)
        subprocess.run(["cmake", "--build", build, "--parallel", str(os.cpu_count())], check=True)
        subprocess.run(["cmake", "--install", build, "--prefix", prefix], check=True)
        target = self.get_ext_fullpath(extension.name)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        made = [name for name in os.listdir(os.path.join(prefix, "tutti")) if name.startswith("_tutti.") and name.endswith(".so")]
        if not made:
            sys.exit("the extension was not built: Python.h is missing (Debian: python3-dev)")
        shutil.copy(os.path.join(prefix, "tutti", made[0]), target)
        library = "libtutti.so." + VERSION.split(".")[0]
        shutil.copy(os.path.join(prefix, "tutti", library), os.path.join(os.path.dirname(target), library))


try:
    setup(
        name="tutti",
        version=VERSION,
        description="Collectives between the processes of one machine",
        license="MIT",
        python_requires=">=3.10",
        packages=["tutti", "tutti._plain", "tutti.torch"],
        package_data={"tutti": ["py.typed", "*.pyi"]},
        ext_modules=[Extension("tutti._tutti", sources=[], py_limited_api=STABLE)],
        data_files=[("bin", [os.path.join(SCRATCH, "prefix", "bin", "tutti")])],
        cmdclass={"build_ext": Build},
        options={
            "build": {"build_base": os.path.join(SCRATCH, "build")},
            "egg_info": {"egg_base": SCRATCH},
            "bdist_wheel": {"py_limited_api": f"cp{sys.version_info[0]}{sys.version_info[1]}"} if STABLE else {},
        },
    )
finally:
    shutil.rmtree(SCRATCH, ignore_errors=True)
