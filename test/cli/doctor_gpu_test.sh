# tutti doctor --gpu with the tests' driver: which GPU reads which one's memory, as a table and as
# JSON, the exit status, what to change.
. "$(dirname "$0")/lib.sh"
unset CUDA_VISIBLE_DEVICES

plain=(-u TUTTI_BUILD -u TUTTI_SOURCE -u TUTTI_PROVE -u TUTTI_TEST_SANITIZED)
with=LD_LIBRARY_PATH=$TUTTI_BUILD/fake_cuda
doctor() {  # [--json] VARIABLE... : leaves out, err and code
  local json=()
  [ "$1" = --json ] && { json=(--json) && shift; }
  code=0
  env "${plain[@]}" "$@" timeout -k 5 60 "$tutti" doctor --gpu "${json[@]}" >"$here/out" \
    2>"$here/err" </dev/null || code=$?
}
shows() { grep -qE -e "$1" "$here/out" || fail "expected on stdout: $1"; }
says_not() { ! grep -qE -e "$1" "$here/out" || fail "not expected on stdout: $1"; }
verdict() {  # READER OWNER VERDICT
  shows "\"reader\": $1, \"owner\": $2, \"verdict\": \"$3\""
}

# Reads that never end, and a driver that hangs, have their time meanwhile.
env "${plain[@]}" "$with" FAKE_CUDA_DEVICES=2 FAKE_CUDA_LIES="1>0:hang" FAKE_CUDA_DRAIN=0 \
  timeout 60 "$tutti" doctor --gpu --json --timeout 8s >"$here/out.reads" 2>"$here/err.reads" \
  </dev/null &
reads=$!
env "${plain[@]}" "$with" FAKE_CUDA_FAIL=cuMemAlloc:1:hang timeout 60 "$tutti" doctor --gpu --json \
  --timeout 2s >"$here/out.driver" 2>"$here/err.driver" </dev/null &
driver=$!

doctor "$with" FAKE_CUDA_DEVICES=2
exits 0 "with two GPUs"
quiet
shows "^GPU: 2, by a CUDA driver of version 12.8$"
shows "^  1  Fake GPU B, bus 0000:11:00.0"
shows "^  by GPU 0 +[0-9.]+ +[0-9.]+$"
shows "^  by GPU 1 +[0-9.]+ +[0-9.]+$"
says_not "host memory"

doctor --json "$with" FAKE_CUDA_DEVICES=2
exits 0 "as JSON"
for pair in "0 0" "0 1" "1 0" "1 1"; do verdict $pair ok; done
if command -v python3 >/dev/null; then
  python3 -c 'import json, sys
d = json.load(open(sys.argv[1]))
assert len(d["gpus"]) == 2 and len(d["pairs"]) == 4 and d["wrong"] == 0
assert all(p["gb_s"] > 0 for p in d["pairs"])' "$here/out" || fail "this JSON is not right"
fi

# What lies is found in that direction alone, and said with what to change.
for how in copy kernel both; do
  doctor "$with" FAKE_CUDA_DEVICES=2 FAKE_CUDA_LIES=0\>1:$how
  exits 1 "where GPU 0 reads other bytes of GPU 1 ($how)"
  shows "^  by GPU 0 +[0-9.]+ +lies$"
  shows "^  by GPU 1 +[0-9.]+ +[0-9.]+$"
  shows "^0 reads 1: .*other bytes.*goes through host memory$"
  shows "IOMMU or ACS.*turn both off"
  shows "^1 pair of GPUs cannot do what the driver says$"
done
doctor --json "$with" FAKE_CUDA_DEVICES=3 FAKE_CUDA_LIES="0>1:copy,2>0:kernel"
exits 1 "where two of nine pairs lie"
verdict 0 1 other_bytes
verdict 2 0 other_bytes
verdict 1 0 ok
shows '"wrong": 2}'

doctor "$with" FAKE_CUDA_DEVICES=2 FAKE_CUDA_PEER=0
exits 0 "with two GPUs that do not reach each other"
shows "^  by GPU 0 +[0-9.]+ +-$"
shows "^0 reads 1: no access.*goes through host memory$"
shows "topo -p2p r"

doctor "$with" FAKE_CUDA_DEVICES=2 FAKE_CUDA_FAIL=cuIpcOpenMemHandle:2:205
exits 1 "for one that cannot be opened"
shows "closed$"
shows "--ipc=host"
doctor --json "$with" FAKE_CUDA_FAIL=cuIpcOpenMemHandle:*:801
exits 0 "where it is not supported"
verdict 0 0 not_supported
doctor --json "$with" FAKE_CUDA_FAIL=cuModuleLoadData:1:221
exits 1 "without a compiler for kernels"
verdict 0 0 unknown

doctor "$with" FAKE_CUDA_NUMA=0
exits 0 "of a GPU at node 0"
shows "^  0  Fake GPU A, .*, NUMA node 0$"
doctor "$with" FAKE_CUDA_NUMA=1000
exits 0 "of a GPU at a node where no rank can run"
shows "no CPU of that node"
shows "numactl --cpunodebind=1000"

doctor --json "$with" FAKE_CUDA_DEVICES=0
exits 0 "without a GPU"
shows '^\{"gpus": \[\], "pairs": \[\], "reason": "no GPU.*", "wrong": 0\}$'
code=0
env "${plain[@]}" "$tutti" doctor --json >"$here/out" 2>"$here/err" || code=$?
exits 2 "for --json alone"

ended() {  # PID NAME
  code=0
  wait "$1" || code=$?
  mv "$here/out.$2" "$here/out"
  mv "$here/err.$2" "$here/err"
}
ended $reads reads
exits 1 "where a read never ends"
verdict 1 0 never_ends
verdict 0 1 ok
ended $driver driver
exits 1 "for a driver that hangs"
shows '"reason": "the driver hangs: no answer for 2 s, asked for a context on GPU 0"'
