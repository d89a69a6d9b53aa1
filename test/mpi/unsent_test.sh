# A message that UCX cannot send counts as sent where a collective of several hosts will tell it.
# Any other gets what UCX says, however UCX was loaded. (In mpi.hosts_newest is the MPI for it.)
. "$(dirname "$0")/lib.sh"
at=$TUTTI_SOURCE/test/mpi/programs
made() {
  "${CC-cc}" -D_GNU_SOURCE -Wl,--no-as-needed -I "$TUTTI_SOURCE/src" "$@" 2>"$here/err" ||
    fail "no $*"
}
made -shared -fPIC -o "$here/libucp.so.0" -Wl,-soname,libucp.so.0 "$at/ucp.c"
made -o "$here/linked" "$at/unsent.c" "$here/libucp.so.0" -Wl,-rpath,"$here"
made -o "$here/told" -DTOLD "$at/unsent.c" "$TUTTI_SOURCE/src/mpi/unsent.c" "$here/libucp.so.0" \
  -Wl,-rpath,"$here"
made -shared -fPIC -o "$here/libmpi.so" -DFRONT "$at/ucp.c" "$here/libucp.so.0" -Wl,-rpath,"$here"
made -o "$here/opened" "$at/unsent.c"

gets() {  # WORDS LIBRARY-TO-PRELOAD PROGRAM ARGUMENT...
  local words=$1 preload=$2
  shift 2
  LD_PRELOAD=$preload "$@" >"$here/out" 2>"$here/err" || fail "$*"
  [ "$(cat "$here/out")" = "$words" ] || fail "expected of ${*##*/}: $words"
}
asis='0 1 4096 -1 -80 -100 -101 asked'
gets "$asis 0" '' "$here/linked" linked
gets "$asis 0" "$library" "$here/linked" linked
gets "$asis 0" "$library" "$here/opened" opened "$here/libmpi.so"
gets "$asis 3" '' "$here/told" told 0
gets '0 1 4096 0 0 0 -101 asked 3' '' "$here/told" told 1
finish
