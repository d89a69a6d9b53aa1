# The library has the six probes that the manual lists, and no others, if it was built where
# <sys/sdt.h> is; gdb, where it may run programs, finds their arguments.
set -uo pipefail
export LC_ALL=C TUTTI_BOX=none TUTTI_SPAN_BYTES=16M
library=$TUTTI_BUILD/libtutti.so
skip() { echo "base.probe: skipped: $1"; exit 77; }
fail() { echo "base.probe: $1" >&2; exit 1; }
cache() { sed -n "s/^$1:[A-Z]*=//p" "$TUTTI_BUILD/CMakeCache.txt"; }

[ -n "$(cache TUTTI_HAS_SDT)" ] || skip "built without sys/sdt.h"
[ "$(cache TUTTI_PROBES)" = ON ] || skip "built without probes"
command -v readelf >/dev/null || skip "readelf is missing"
want='death op_begin op_end sleep verdict wake'
have=$(readelf -n "$library" | grep -A1 'Provider: tutti' | sed -n 's/ *Name: //p' | sort -u |
  xargs)
[ "$have" = "$want" ] || fail "expected the probes $want, not: $have"
for probe in $want; do
  grep -q "tutti:$probe" "$TUTTI_SOURCE/src/cli/tutti.1" || fail "$probe is not in the manual"
done

command -v gdb >/dev/null || skip "the probes are there; gdb, which would stop at one, is missing"
of() { readelf -hW "$1" | sed -n 's/ *Machine: *//p'; }
[ "$(of "$library")" = "$(of "$(command -v gdb)")" ] ||
  skip "the probes are there; gdb is of another machine than the library"
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT
timeout 60 gdb -nx -batch -ex 'set breakpoint pending on' -ex 'set debuginfod enabled off' \
  -ex 'break -probe-stap tutti:op_begin' -ex 'run' \
  -ex 'printf "begins %s #%ld %s\n", $_probe_arg0, $_probe_arg1, $_probe_arg2' \
  -ex 'delete' -ex 'break -probe-stap tutti:op_end' -ex 'continue' \
  -ex 'printf "ends %s #%ld %d\n", $_probe_arg0, $_probe_arg1, $_probe_arg2' -ex 'kill' \
  --args "$TUTTI_BUILD/test/cli/checked" "$here/file" >"$here/out" 2>&1 </dev/null
! grep -q 'ptrace\|not supported' "$here/out" ||
  skip "the probes are there; gdb may run nothing here"
grep -q '^begins world #1 barrier$' "$here/out" || fail "at op_begin: $(tail -5 "$here/out")"
grep -q '^ends world #1 0$' "$here/out" || fail "at op_end: $(tail -5 "$here/out")"
