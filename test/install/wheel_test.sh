# ctest: timeout=900 labels=nosan
# A wheel names the oldest glibc that works, and is refused if a binary of it loads what it does not
# hold. In the long tests (TUTTI_PROVE=1) it is built, installed into an empty environment and used:
# three examples, doctor, a measurement.
set -eu
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
lost() { echo "$*" >&2; exit 1; }
command -v python3 >/dev/null || { echo "python3 is missing"; exit 77; }
named() { python3 -B "$TUTTI_SOURCE/src/packaging/wheel.py" "$1" "$scratch/out"; }

# The library of this build, alone and with what it loads.
mkdir "$scratch/out"
cat >"$scratch/make.py" <<'PYTHON'
import sys, zipfile
with zipfile.ZipFile(sys.argv[1], "w") as wheel:
    for path in sys.argv[2:]:
        wheel.write(path, "tutti/" + path.split("/")[-1])
    wheel.writestr("tutti-1.dist-info/WHEEL", "Tag: cp311-abi3-linux_x86_64\n")
    wheel.writestr("tutti-1.dist-info/RECORD", "old\n")
PYTHON
library=$TUTTI_BUILD/libtutti.so.0
wheel=$scratch/tutti-1-cp311-abi3-linux_x86_64.whl
python3 "$scratch/make.py" "$wheel" "$library"
! named "$wheel" 2>"$scratch/said" || lost "a wheel without liburing was taken"
grep -q 'libtutti.so.0 loads liburing.so.2, which the wheel does not hold: ' "$scratch/said" ||
  lost "$(cat "$scratch/said")"
mapfile -t loaded < <(ldd "$library" | awk '/liburing/ { print $3 }')
python3 "$scratch/make.py" "$wheel" "$library" "${loaded[@]}"
newest=$(objdump -T "$library" "${loaded[@]}" | grep -oE 'GLIBC_[0-9]+[.][0-9]+' | sort -uV |
  tail -n 1)
tag=manylinux_$(tr . _ <<<"${newest#GLIBC_}")
[ "$(named "$wheel")" = "tutti-1-cp311-abi3-${tag}_x86_64.whl" ] || lost "not named $tag"
python3 - "$scratch/out/tutti-1-cp311-abi3-${tag}_x86_64.whl" "$tag" <<'PYTHON'
import base64, hashlib, sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as wheel:
    assert sys.argv[2] in wheel.read("tutti-1.dist-info/WHEEL").decode()
    rows = [row.split(",") for row in wheel.read("tutti-1.dist-info/RECORD").decode().split()]
    assert [row[0] for row in rows] == wheel.namelist(), rows
    for name, digest, size in rows[:-1]:
        data = wheel.read(name)
        said = base64.urlsafe_b64decode(digest.split("=", 1)[1] + "=")
        assert hashlib.sha256(data).digest() == said and len(data) == int(size), name
PYTHON

[ "${TUTTI_PROVE:-}" = 1 ] || { echo "built and used with TUTTI_PROVE=1"; exit 0; }
cd "$TUTTI_SOURCE"
packages=${TUTTI_PACKAGES:-$PWD/build/packages}
[ -n "${TUTTI_PACKAGES:-}" ] || ./bootstrap wheel >"$scratch/log" 2>&1 ||
  { cat "$scratch/log"; exit 1; }
glibc=$(sed -n 's/.*glibc \([0-9.]*\) or newer.*/\1/p' README.md)
ls "$packages"/*"manylinux_$(tr . _ <<<"$glibc")_"*.whl >/dev/null ||
  lost "README says glibc $glibc, and the wheels: $(ls "$packages"/*.whl)"
# A Python, and the wheel that it takes: 3.11 and later the one of the stable ABI; 3.10 and those
# without a lock the other.
core_of='import sys, sysconfig
print("tutti._plain" if sysconfig.get_config_var("Py_GIL_DISABLED") or sys.version_info < (3, 11)
      else "tutti._tutti")'
try() {  # PYTHON
  local bin=$scratch/venv/bin example core
  core=$("$1" -c "$core_of")
  rm -rf "$scratch/venv"
  "$1" -m venv "$scratch/venv"
  "$bin/pip" -q --disable-pip-version-check install --only-binary numpy numpy
  "$bin/pip" -q --disable-pip-version-check install --no-index --find-links "$packages" tutti
  cd "$scratch"
  "$bin/python" -c "import tutti; assert tutti._core.core.__name__ == '$core', tutti._core.core" ||
    lost "$1: not by $core"
  for example in zero_first reduce_mean seeds; do
    "$bin/tutti" run -n 2 "$bin/python" "$TUTTI_SOURCE/test/examples/python/$example.py" \
      >"$scratch/log" 2>&1 || { cat "$scratch/log"; lost "$1: $example"; }
  done
  env -i PATH="$PATH" "$bin/tutti" doctor >"$scratch/log" 2>&1 ||
    { cat "$scratch/log"; lost "$1: doctor"; }
  "$bin/tutti" perf barrier -n 2 --quick --without all >"$scratch/log" 2>&1 ||
    { cat "$scratch/log"; lost "$1: perf"; }
  echo "$("$bin/python" -VV | head -n 1): installed, used by $core"
}
# The distribution's, those without a lock, and those that TUTTI_TEST_PYTHONS names.
for python in /usr/bin/python3 $(compgen -c python3 | grep 't$' | sort -u) ${TUTTI_TEST_PYTHONS:-}
do
  try "$(command -v "$python")"
done
