# ctest: timeout=180 needs=forks
# The switch TUTTI_TEST_CUDA=real, with the tests' driver in the part of the real one: the programs
# leave LD_LIBRARY_PATH alone, see and fill devices by copies alone, and what needs more of a driver
# is skipped by a line that says what.
set -u
export TUTTI_TEST_CUDA=real LD_LIBRARY_PATH="$TUTTI_BUILD/fake_cuda" FAKE_CUDA_MISUSE=report
export FAKE_CUDA_END=lax
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT

fail() {
  echo "$1"
  cat "$here/out"
  exit 1
}

for name in stream_order ipc_close failure deadline; do
  "$TUTTI_BUILD/test/test_gpu_$name" >"$here/out" 2>&1 || fail "$name"
  grep -q 'PASSED  ] [1-9]' "$here/out" || fail "$name: no test was run"
done
grep -q '^skipped: needs a driver that fails at a chosen call$' "$here/out" && fail "deadline skips"

"$TUTTI_BUILD/test/test_gpu_driver" >"$here/out" 2>&1
[ $? = 77 ] || fail "driver: not skipped"
grep -q '^skipped: needs a driver that counts' "$here/out" || fail "driver: no reason"

LD_LIBRARY_PATH=/nowhere "$TUTTI_BUILD/test/test_gpu_stream_order" >"$here/out" 2>&1 &&
  fail "the tests' driver was chosen all the same"
exit 0
