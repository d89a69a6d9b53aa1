# ctest: labels=nosan
# The installed package finds its library by itself, also after its folder was moved, with no other
# path than its own; with its extension, where the extension is missing, and where it is not wanted.
set -eu
[ -d "$TUTTI_BUILD/python/tutti" ] ||
  { echo "the package was not built: Python 3.10 or later is missing (python3)"; exit 77; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cmake --install "$TUTTI_BUILD" --prefix "$scratch/first" >/dev/null
mv "$scratch/first" "$scratch/prefix"

python=$(sed -n 's/^TUTTI_PYTHON:[A-Z]*=//p' "$TUTTI_BUILD/CMakeCache.txt")
cat >"$scratch/first.py" <<'PYTHON'
import sys
import tutti
import tutti._core
assert tutti.__file__.startswith(sys.argv[1]), tutti.__file__
assert tutti._core.core.__name__ == sys.argv[2], tutti._core.core
x = bytearray([1])
world = tutti.init()
world.all_reduce(x)
assert x == bytearray([world.size]), x
maps = open("/proc/self/maps")
assert any(sys.argv[1] in line and "libtutti.so" in line for line in maps), "another library"
PYTHON
package=$(dirname "$(find "$scratch/prefix" -path '*/tutti/__init__.py')")
run() {
  PYTHONPATH=$(dirname "$package") "$scratch/prefix/bin/tutti" run -n 2 "$python" \
    "$scratch/first.py" "$scratch/prefix" "$1"
}
ls "$package"/_tutti.*.so >/dev/null 2>&1 && run tutti._tutti
TUTTI_PYTHON_PLAIN=1 run tutti._plain
rm -f "$package"/_tutti.*.so
run tutti._plain
