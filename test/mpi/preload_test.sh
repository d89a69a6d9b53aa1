# libtutti-mpi.so holds no symbol of an MPI, and can be preloaded into anything: a shell, Python, a
# launcher. It shows the names of MPI's functions that it stands in front of, two of libc's
# (mpi/pipes), one of UCX's (mpi/unsent), and no other.
. "$(dirname "$0")/lib.sh"
command -v nm >/dev/null || skip "nm is not there"
wanted=$(nm -D --undefined-only "$library" | grep -iE 'mpi_|ompi' || true)
[ -z "$wanted" ] || fail "it needs $wanted"
for f in "$TUTTI_BUILD"/libtutti-mpi-*.so; do
  wanted=$(nm -D --undefined-only "$f" | grep -E ' P?MPI_|ompi' || true)
  [ -z "$wanted" ] || fail "${f##*/} needs $wanted"
  shown=$(nm -D --defined-only "$f" | awk '{ print $3 }' | sort | tr '\n' ' ')
  [ "$shown" = "tutti_mpi_open " ] || fail "${f##*/} shows $shown"
done
odd=$(nm -D --defined-only "$library" | awk '{ print $3 }' |
  grep -vE '^(MPI_|mpi_|ompi_|writev$|send$|ucp_tag_send_nbx$)' || true)
[ -z "$odd" ] || fail "it shows $odd"
LD_PRELOAD=$library bash -c 'echo hello | cat' >"$here/out" 2>"$here/err" || fail "a shell"
[ "$(cat "$here/out")" = hello ] && [ ! -s "$here/err" ] || fail "a shell says something else"
LD_PRELOAD=$library env ls / >"$here/out" 2>"$here/err" || fail "ls"
finish
