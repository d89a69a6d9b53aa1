# ctest: timeout=300 labels=nosan
# Under gVisor, which plays the kernel (runsc, Debian's package of that name): doctor finds nothing
# that tutti cannot do without, ranks meet and reduce, and a cancelled rank is told. What gVisor
# lacks is tried everywhere, by filters: faults.environment_filter.
set -u
lost() { echo "$*" >&2; exit 1; }
skip() { echo "skipped: $*"; exit 77; }
command -v runsc >/dev/null || skip "no runsc: apt-get install runsc"
[ "$(id -u)" = 0 ] || skip "runsc needs root here"
inside() {  # COMMAND...: stdout and stderr by a pipe, which they share with nobody
  local status
  runsc --network=none --ignore-cgroups --platform=ptrace do env -i PATH="$PATH" TUTTI_TUNED=none \
    TUTTI_BOX=none "$@" 2>&1 | cat
  status=${PIPESTATUS[0]}
  return "$status"
}
inside true || skip "runsc does not run here"
tests=$TUTTI_BUILD/test
said=$(inside "$TUTTI_BUILD/tutti" doctor) || lost "doctor: $said"
grep -q 'MADV_WIPEONFORK *no' <<<"$said" && grep -q 'robust mutexes *yes' <<<"$said" ||
  lost "this is another gVisor: $said"
said=$(inside "$TUTTI_BUILD/tutti" run -n 2 "$TUTTI_BUILD/examples/mean") || lost "mean: $said"
grep -q 'rank 1: .* -> sum' <<<"$said" || lost "mean: $said"
for test in ${TUTTI_TEST_GVISOR:-api_caller os_futex os_process_mark}; do
  [ -x "$tests/test_$test" ] || continue
  said=$(inside "$tests/test_$test")
  case $? in
    0) echo "$test: passed" ;;
    77) echo "$test: skipped" ;;
    *) lost "$test: $said" ;;
  esac
done
