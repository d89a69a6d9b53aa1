# ctest: labels=nosan
# The installed package finds its library by itself, also after its folder was moved, with no other path than its own.
set -eu
[ -d "$TUTTI_BUILD/python/tutti" ] || { echo "the package was not built: Python.h is missing (python3-dev)"; exit 77; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cmake --install "$TUTTI_BUILD" --prefix "$scratch/first" >/dev/null
mv "$scratch/first" "$scratch/prefix"

python=$(sed -n 's/^TUTTI_PYTHON:[A-Z]*=//p' "$TUTTI_BUILD/CMakeCache.txt")
cat >"$scratch/first.py" <<'PYTHON'
import sys
import tutti
assert tutti.__file__.startswith(sys.argv[1]), tutti.__file__
x = bytearray([1])
world = tutti.init()
world.all_reduce(x)
assert x == bytearray([world.size]), x
assert any(sys.argv[1] in line and "libtutti.so" in line for line in open("/proc/self/maps")), "another library"
PYTHON
package=$(dirname "$(find "$scratch/prefix" -path '*/tutti/__init__.py')")
PYTHONPATH=$(dirname "$package") "$scratch/prefix/bin/tutti" run -n 2 "$python" "$scratch/first.py" "$scratch/prefix"
