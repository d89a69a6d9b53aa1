# What the command says of GPUs, or of why there is none: with the tests' driver, so that it needs neither a GPU nor its absence.
. "$(dirname "$0")/lib.sh"
unset CUDA_VISIBLE_DEVICES

doctor() {  # VARIABLE... : leaves out, err and code
  code=0
  env "$@" timeout -k 5 60 "$tutti" doctor >"$here/out" 2>"$here/err" </dev/null || code=$?
}
shows() { grep -qE -e "$1" "$here/out" || fail "expected on stdout: $1"; }
with=LD_LIBRARY_PATH=$TUTTI_BUILD/fake_cuda

doctor "$with"
exits 0 "with one GPU"
quiet
prints "GPU: 1, by a CUDA driver of version 12.8
  0  Fake GPU A, compute 9.0, bus 0000:10:00.0
     GPU-fafafafa-fafa-fafa-fafa-fafafafafa00"

doctor "$with" FAKE_CUDA_DEVICES=3 CUDA_VISIBLE_DEVICES=2,0
exits 0 "with two GPUs"
shows "^GPU: 2, "
shows "^  0  Fake GPU C"
shows "^     reaches the memory of 1$"
shows "^     reaches the memory of 0$"

doctor "$with" FAKE_CUDA_DEVICES=2 FAKE_CUDA_PEER=0
exits 0 "with two GPUs that do not reach each other"
printed "^     reaches no other one's memory$" 2 || fail "expected of both that they reach none"

doctor "$with" FAKE_CUDA_DEVICES=2 FAKE_CUDA_FAIL=cuDeviceGetUuid:1:999
exits 1 "with one of two GPUs that answers"
shows "^  0  cannot be asked: cuDeviceGetUuid: CUDA_ERROR_UNKNOWN \(999\)"
shows "^  1  Fake GPU B"

none() {  # STATUS PATTERN VARIABLE...: there need be no GPU; one that fails is a fault
  local status=$1 pattern=$2
  shift 2
  doctor "$@"
  exits "$status" "for: $*"
  quiet
  shows "^GPU: none$"
  shows "^  $pattern"
}
none 0 "no GPU: stub library" "$with" FAKE_CUDA_STUB=1
none 0 "no GPU: there is a CUDA driver, and it sees no device" "$with" FAKE_CUDA_DEVICES=0
none 0 "no GPU: .*CUDA_VISIBLE_DEVICES" "$with" CUDA_VISIBLE_DEVICES=
none 1 "cuInit: CUDA_ERROR_UNKNOWN \(999\)" "$with" FAKE_CUDA_FAIL=cuInit:1:999
none 1 "the CUDA driver is too old: it has no cuDeviceGetUuid_v2" "LD_LIBRARY_PATH=$TUTTI_BUILD/fake_cuda_old"
echo "not a library, whatever it is called, and long enough to be looked at as one, header and all" >"$here/libcuda.so.1"
none 0 "no CUDA driver: libcuda.so.1 cannot be loaded" "LD_LIBRARY_PATH=$here"

# Its help; and nothing else after it.
for how in "doctor --help" "doctor -h" "help doctor"; do
  # shellcheck disable=SC2086 # words
  "$tutti" $how >"$here/out" 2>"$here/err" || fail "failed: tutti $how"
  shows "^usage: tutti doctor$"
  [ "$(awk 'length > 80' "$here/out")" = "" ] || fail "wider than 80 columns: tutti $how"
done
code=0
"$tutti" doctor gpu >"$here/out" 2>"$here/err" || code=$?
exits 2 "for an argument"
says "^tutti doctor: what is 'gpu'\?; try 'tutti doctor --help'$"
grep -qF "tutti doctor" "$TUTTI_SOURCE/src/cli/tutti.1" || fail "it is not in the man page"
