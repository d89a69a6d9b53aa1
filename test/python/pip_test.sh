# ctest: timeout=900 labels=nosan
# `pip install .`: what the wheel and the sdist hold, that nothing stays in the tree, that the
# package finds its library, its command and its entry points, and that its extension for torch is
# there, or is built where it is first used. Without a network.
set -eu
python=$(sed -n 's/^TUTTI_PYTHON:[A-Z]*=//p' "$TUTTI_BUILD/CMakeCache.txt")
"$python" -c 'import scikit_build_core, pip' 2>/dev/null ||
  {
    echo "scikit-build-core is missing for $python: ./bootstrap test makes a Python that has it"
    exit 77
  }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
wrong() { echo "$*" >&2; exit 1; }
if "$python" -c 'import importlib.metadata, sys
version = importlib.metadata.version("torch")
sys.exit([int(n) for n in version.split(".")[:2]] < [2, 13])' 2>/dev/null; then
  torch=1
else
  torch=0
fi

# The tree without what is built, its sdist, and a wheel of what that holds. What either leaves
# behind is seen.
export HOME=$scratch TUTTI_CACHE=$scratch/cache
# The extension is built twice, of the same files, half a minute each. Here the compiler is in haste
# (-O0), and a second call with the same flags and key, which tells the sources, gets what the first
# one made. Each is asked for, noted and linked.
export CXX=$scratch/cxx KEPT=$scratch/kept
cat >"$CXX" <<'SH'
#!/bin/bash
case "$*" in *TUTTI_C10D_KEY*' -c '*) ;; *) exec c++ "$@" ;; esac
printf '%s\n' "$@" | grep -v '^/' >"$KEPT.asked"
echo asked >>"$KEPT.times"
cmp -s "$KEPT.asked" "$KEPT.flags" && exec cp "$KEPT.o" "${!#}"
c++ "$@" -O0 || exit
cp "${!#}" "$KEPT.o"
mv "$KEPT.asked" "$KEPT.flags"
SH
chmod +x "$CXX"
made() {  # TREE COMMAND...
  local tree=$1
  shift
  (cd "$tree" && find . | sort) >"$scratch/before"
  (cd "$tree" && "$@") >"$scratch/log" 2>&1 || { cat "$scratch/log"; exit 1; }
  (cd "$tree" && find . | sort) | diff "$scratch/before" - || wrong "$* left something in the tree"
}
mkdir "$scratch/tree"
(cd "$TUTTI_SOURCE" && tar -cf - --exclude=./build --exclude='./build-*' --exclude=./.git \
  --exclude=__pycache__ .) | tar -xf - -C "$scratch/tree"
made "$scratch/tree" "$python" \
  -c "from scikit_build_core.build import build_sdist; build_sdist('$scratch')"
tar -xzf "$scratch"/tutti-*.tar.gz -C "$scratch"
made "$(echo "$scratch"/tutti-*/)" "$python" -m pip --disable-pip-version-check wheel \
  --no-build-isolation --no-deps --no-cache-dir -w "$scratch" \
  --config-settings cmake.define.CMAKE_C_FLAGS_RELWITHDEBINFO=-O0 .

wheel=$(echo "$scratch"/tutti-*.whl)
case $wheel in *-linux_*.whl) ;; *) wrong "no platform in $wheel" ;; esac
"$python" -m zipfile -l "$wheel" | sed 's/  .*//' >"$scratch/held"
for file in _tutti_autoload.py tutti/__init__.py tutti/_tutti.pyi tutti/py.typed \
    tutti/libtutti.so.0 tutti/_plain/__init__.py tutti/torch/_build.py \
    tutti/torch/csrc/torch/site.c tutti/include/tutti.h 'tutti-.*[.]data/scripts/tutti' \
    'tutti-.*[.]dist-info/licenses/LICENSE' 'tutti/_tutti[.].*so'; do
  grep -qx "$file" "$scratch/held" || wrong "the wheel lacks $file: $(cat "$scratch/held")"
done
! grep -vE '^(File Name|tutti/|tutti-[0-9.]*(dist-info|data)/|_tutti_autoload[.]py)' \
  "$scratch/held" || wrong "the wheel holds more"
for source in "$TUTTI_SOURCE"/src/torch/*.*; do
  grep -qx "tutti/torch/csrc/torch/$(basename "$source")" "$scratch/held" ||
    wrong "the wheel lacks $source"
done

# A Python that says of itself that it is free-threaded is refused.
mkdir "$scratch/free"
echo 'import sysconfig; sysconfig.get_config_vars()["Py_GIL_DISABLED"] = 1' \
  >"$scratch/free/sitecustomize.py"
! PYTHONPATH=$scratch/free cmake -G Ninja -S "$scratch/tree" -B "$scratch/refused" -DSKBUILD=2 \
  -DPython3_EXECUTABLE="$python" >"$scratch/log" 2>&1 ||
  wrong "a free-threaded Python was taken"
tr -s ' \n' ' ' <"$scratch/log" | grep -q 'not made for free-threaded Python' ||
  { cat "$scratch/log"; exit 1; }

# An environment with this wheel and, from the other one, torch and NumPy.
"$python" -m venv --without-pip "$scratch/venv"
site=$("$scratch/venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
"$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' >"$site/other.pth"
"$scratch/venv/bin/python" -m pip --disable-pip-version-check install -q --no-index \
  --no-deps "$wheel"
installed=$scratch/venv/bin/python
unset PYTHONPATH
cd "$scratch"

cat >first.py <<'PYTHON'
import importlib.metadata
import os
import sys
import tutti
assert tutti.__file__.startswith(sys.prefix), tutti.__file__
assert tutti._core.core.__name__ == "tutti._tutti", tutti._core.core
assert importlib.metadata.version("tutti") == tutti.__version__
x = bytearray([1])
world = tutti.init()
world.all_reduce(x)
assert x == bytearray([world.size]) and world.size == 2, x
libraries = {line.split()[-1] for line in open("/proc/self/maps") if "libtutti.so" in line}
assert libraries == {os.path.join(os.path.dirname(tutti.__file__), "libtutti.so.0")}, libraries
groups = importlib.metadata.entry_points()
named = {(group, e.name, e.value) for group in ("torch.distributed.backends", "torch.backends")
         for e in groups.select(group=group)}
assert named == {("torch.distributed.backends", "tutti", "tutti.torch:register"),
                 ("torch.backends", "tutti", "_tutti_autoload:register")}, named
PYTHON
venv/bin/tutti run -n 2 "$installed" first.py

if [ $torch = 0 ]; then
  echo "without torch 2.13 for $python: its extension was not tried"
  exit 0
fi
cat >extension.py <<'PYTHON'
import sys
import torch
from tutti.torch import _build
print(_build.load().__file__)
PYTHON
"$installed" extension.py >where 2>said || { cat said; exit 1; }
grep -qx "$site/tutti/torch/_c10d-[0-9a-f]*[.]so" where ||
  wrong "the wheel has no extension for torch: $(cat where)"
[ ! -s said ] || wrong "it was not quiet: $(cat said)"
[ ! -e cache ] || wrong "it was built"
rm "$(cat where)"
"$installed" extension.py >where 2>said || { cat said; exit 1; }
grep -qx "$scratch/cache/_c10d-[0-9a-f]*[.]so" where ||
  wrong "it was not built into the cache: $(cat where)"
[ "$(grep -c '^tutti: built it in' said)" = 1 ] || wrong "it did not say so: $(cat said)"
[ "$(wc -l <"$KEPT.times")" = 2 ] || wrong "the compiler was asked $(wc -l <"$KEPT.times") times"
"$installed" extension.py >where 2>said || { cat said; exit 1; }
[ ! -s said ] || wrong "it was built again: $(cat said)"
