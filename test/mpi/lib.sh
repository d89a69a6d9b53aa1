# What the scripts here share; sourced first. Programs of programs/ are compiled by the MPIs that
# are there, and run by their mpirun with libtutti-mpi.so preloaded.
set -uo pipefail
export LC_ALL=C
for name in $(compgen -e); do
  case $name in
    TUTTI_BUILD | TUTTI_TUNED | TUTTI_SOURCE | TUTTI_PROVE) ;;
    TUTTI_* | RANK | WORLD_SIZE | OMPI_* | PMI_* | SLURM_*) unset "$name" ;;
  esac
done

here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT
script=$(basename "$0" _test.sh)
library=$TUTTI_BUILD/libtutti-mpi.so
code=0
: >"$here/out" >"$here/err"

fail() {
  printf 'mpi.%s: %s (exit status %s); stdout and stderr:\n' "$script" "$1" "$code"
  head -c 4000 "$here/out"
  echo ----
  head -c 4000 "$here/err"
  exit 1
} >&2
skip() { echo "mpi.$script: skipped: $1"; exit 77; }

[ -e "$library" ] || skip "libtutti-mpi.so is not built with a sanitizer"

# The MPIs that programs can be made for; what is missing is said at the end. wanted: which.
mpis=() missing=
mpis_at=$(sed -n 's/^PERF_MPIS:PATH=//p' "$TUTTI_BUILD/CMakeCache.txt" 2>/dev/null)   # of PyPI
echo '#include <mpi.h>' >"$here/try.c"
found() {
  case $1 in
    *5 | impi) [ -e "$mpis_at/${1%5}/include/mpi.h" ] && command -v cc >/dev/null ;;
    *) command -v mpirun.$1 && mpicc.$1 -c -o "$here/try.o" "$here/try.c" ;;
  esac >/dev/null 2>&1
}
for mpi in ${wanted-openmpi mpich}; do
  if found $mpi; then mpis+=("$mpi"); else missing="$missing $mpi"; fi
done
[ ${#mpis[@]} -gt 0 ] ||
  skip "${lacking-no MPI with headers: install libopenmpi-dev or libmpich-dev}"
finish() { [ -z "$missing" ] || skip "not there:$missing (${mpis[*]} passed)"; exit 0; }

make_program() {  # MPI NAME: $here/NAME.MPI
  ${compiler-mpicc."$1"} -std=c11 -D_GNU_SOURCE -O1 -g -Wall -Wextra -Werror -o "$here/$2.$1" \
    "$TUTTI_SOURCE/test/mpi/programs/$2.c" -pthread ${libraries-} >"$here/out" 2>"$here/err" ||
    fail "$2.c does not compile for $1"
}

# under MPI RANKS PROGRAM ARGUMENT...: with libtutti-mpi.so; leaves out, err, code. All that can
# goes through it, unless way=try lets the MPI try, too.
under() {
  local mpi=$1 n=$2 flags=() set=()
  shift 2
  code=0
  [ "$mpi" != openmpi ] || flags=(--allow-run-as-root --oversubscribe --bind-to none
    -x LD_PRELOAD -x TUTTI_MPI_STATS -x TUTTI_MPI)
  set=(LD_PRELOAD="${preload-$library}" TUTTI_MPI_STATS="${stats-1}" TUTTI_MPI="${way-all}")
  env "${set[@]}" timeout -k 5 "${limit-100}" mpirun."$mpi" "${flags[@]}" "${more[@]}" -n "$n" \
    "$@" >"$here/out" 2>"$here/err" </dev/null || code=$?
}
more=()

exits() { [ "$code" = "$1" ] || fail "expected exit status $1 $2"; }
prints() { grep -qE -e "$1" "$here/out" || fail "expected on stdout: $1 $2"; }
says() { grep -qE -e "$1" "$here/err" || fail "expected on stderr: $1 $2"; }
# counted RANKS PATTERN: so many lines of statistics, each like this
counted() {
  [ "$(grep -cE "^tutti: calls through $2" "$here/err")" = "$1" ] ||
    fail "expected $1 lines \"tutti: calls through $2\""
}
