# A correct program under valgrind's memcheck ends with 0, one that leaves its world open does so by
# the suppressions that are installed, and what memcheck finds in a wrong one is still an error.
. "$(dirname "$0")/lib.sh"
[ -z "${TUTTI_TEST_SANITIZED-}" ] || skip "a sanitizer and memcheck are not for one program"
valgrind -q "$tutti" version >/dev/null 2>&1 || skip "no valgrind that runs here"
export TUTTI_SPAN_BYTES=16M

# checked STATUS RANKS OPTION... -- ARGUMENT...
checked() {
  local status=$1 ranks=$2 options=()
  shift 2
  while [ "$1" != -- ]; do options+=("$1"); shift; done
  shift
  run -n "$ranks" valgrind -q --error-exitcode=99 --leak-check=full "${options[@]}" \
    "$TUTTI_BUILD/test/cli/checked" "$here/file" "$@"
  exits "$status" "of: checked $*"
}
ours=--suppressions=$TUTTI_SOURCE/src/tutti.supp

checked 0 2 "$ours" -- leave
! grep -q 'syscall: 449' "$here/err" || fail "memcheck does not know futex_waitv"
checked 99 2 "$ours" -- wrong
grep -q 'uninitialised' "$here/err" || fail "no complaint of what was never written"
[ "${TUTTI_PROVE-}" = 1 ] || exit 0
checked 0 4 --
checked 99 2 -- leave
TUTTI_URING=0 checked 0 2 --
TUTTI_ALGORITHM=all_gather:16k-inf=direct checked 0 2 --
