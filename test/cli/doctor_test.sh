# ctest: needs=robust
# What the command says of GPUs, or of why there is none: with the tests' driver, so that it needs
# neither a GPU nor its absence.
. "$(dirname "$0")/lib.sh"
unset CUDA_VISIBLE_DEVICES

# to the command they would be wrong settings
plain=(-u TUTTI_BUILD -u TUTTI_SOURCE -u TUTTI_PROVE -u TUTTI_TEST_SANITIZED)
gpu_part() {
  awk '/^(nothing is|1 thing is|[0-9]+ things are) wrong here$/ { on = 0 }
    /^GPU/ { on = 1 } on' "$1"
}
doctor() {  # VARIABLE... : leaves out, err and code
  code=0
  env "${plain[@]}" "$@" timeout -k 5 60 "$tutti" doctor >"$here/all" 2>"$here/err" </dev/null ||
    code=$?
  gpu_part "$here/all" >"$here/out"
}
shows() { grep -qE -e "$1" "$here/out" || fail "expected on stdout: $1"; }
with=LD_LIBRARY_PATH=$TUTTI_BUILD/fake_cuda

doctor "$with" TUTTI_URING=0
exits 0 "with files by threads"
grep -qx "files: read and written by threads: TUTTI_URING=0" "$here/all" ||
  fail "expected that files go through threads, and why"
doctor "$with"
grep -qxE "files: read and written by (io_uring|threads: io_uring cannot be had: .*)" "$here/all" ||
  fail "expected how files are read"

doctor "$with"
exits 0 "with one GPU"
quiet
prints "GPU: 1, by a CUDA driver of version 12.8
  0  Fake GPU A, compute 9.0, bus 0000:10:00.0
     GPU-fafafafa-fafa-fafa-fafa-fafafafafa00
     pinned   yes
     kernels  yes
     leader   yes
     peers    no: there is no other GPU"

doctor "$with" FAKE_CUDA_DEVICES=3 CUDA_VISIBLE_DEVICES=2,0
exits 0 "with two GPUs"
shows "^GPU: 2, "
shows "^  0  Fake GPU C"
shows "^     peers    yes: with 1$"
shows "^     peers    yes: with 0$"
printed "^     (pinned|kernels|leader)   ?yes$" 6 || fail "expected all roads of both GPUs open"

doctor "$with" FAKE_CUDA_DEVICES=2 FAKE_CUDA_PEER=0
exits 0 "with two GPUs that do not reach each other"
printed "^     peers    no: it reaches no other one's memory$" 2 ||
  fail "expected of both that they reach none"
printed "^              not [01]: no access" 2 || fail "expected of both why"

doctor "$with" FAKE_CUDA_DEVICES=2 FAKE_CUDA_FAIL=cuDeviceGetUuid:1:999
exits 1 "with one of two GPUs that answers"
shows "^  0  cannot be asked: device 0: cuDeviceGetUuid: CUDA_ERROR_UNKNOWN \(999\)"
shows "^  1  Fake GPU B"

# What fails of one GPU's roads: which stay open, the reason, what can be done; and whether
# that is a fault.
road() {  # STATUS FAULT PATTERN...
  local status=$1 fault=$2
  shift 2
  doctor "$with" FAKE_CUDA_FAIL="$fault"
  exits "$status" "for: $fault"
  quiet
  for pattern; do shows "$pattern"; done
}
road 0 "cuIpcGetMemHandle:*:801" "^     pinned   yes$" "^     kernels  yes$" \
  "^     leader   no: cuIpcGetMemHandle: .*\(801\)" "--ipc=host"
road 0 "cuIpcOpenMemHandle:*:801" "^     pinned   yes$" \
  "^     leader   no: cuIpcOpenMemHandle: .*\(801\)" "--ipc=host"
road 1 "cuIpcOpenMemHandle:*:999" "^     pinned   yes$" \
  "^     leader   no: cuIpcOpenMemHandle: .*\(999\)" "--ipc=host"
road 1 "cuModuleLoadData:1:221" "^     pinned   yes$" \
  "^     kernels  no: cuModuleLoadData: .*\(221\)" "libnvidia-ptxjitcompiler" \
  "^     leader   no: it needs kernels$"
road 1 "cuModuleLoadData:1:218" "^     kernels  no: .*\(218\)" "compute capability 7.0"
road 1 "cuModuleGetFunction:1:500" "^     kernels  no: cuModuleGetFunction: .*\(500\)"
road 1 "cuLaunchKernel:1:700a" "^     pinned   yes$" "^     kernels  no: .*\(700\)" \
  "^     nothing more was tried"
road 1 "cuMemHostRegister:1:1" "^     pinned   no: cuMemHostRegister: .*\(1\)" \
  "lets the driver pin" "^     leader   yes$"
road 1 "cuMemcpyDtoHAsync:1:1" "^     pinned   no: cuMemcpyDtoHAsync: .*\(1\)" "^     kernels  yes$"
road 1 "cuMemcpyHtoDAsync:1:700" "^     pinned   no: .*\(700\)" "^     nothing more was tried"
road 1 "cuMemcpyHtoDAsync:1:700a" "^     pinned   no: .*\(700\)" "^     nothing more was tried"
road 1 "cuDevicePrimaryCtxRetain:1:46" "^     cannot be used: cuDevicePrimaryCtxRetain: .*\(46\)"
road 1 "cuMemAlloc:1:2" "^     cannot be used: cuMemAlloc: .*\(2\)"
doctor "$with" FAKE_CUDA_DEVICES=2 FAKE_CUDA_FAIL=cuIpcOpenMemHandle:2:205
exits 1 "for one of two that cannot be opened"
shows "^              not 1: cuIpcOpenMemHandle: .*\(205\)"

# Compute mode exclusive: one rank a GPU can work so, so that it is no fault while the GPU is free;
# the remedy is said in both cases.
seat="FAKE_CUDA_EXCLUSIVE=$here/seat"
doctor "$with" "$seat"
exits 0 "with a free GPU in exclusive mode"
quiet
shows "^     pinned   yes$"
shows "^     leader   no: a second process cannot use the GPU: cuDevicePrimaryCtxRetain: .*\(46\)"
shows "^              only one process may use it \(compute mode exclusive\): nvidia-smi -c DEFAULT"
exec 9>"$here/seat.0"
flock -n 9 || fail "the seat is taken"
doctor "$with" "$seat" FAKE_CUDA_DEVICES=2
exec 9>&-
exits 1 "with a GPU in exclusive mode that another process has"
quiet
shows "^     cannot be used: cuDevicePrimaryCtxRetain: .*\(46\)"
shows "^     one process at a time \(compute mode exclusive\), and another one has it;"\
" nvidia-smi -c DEFAULT"
shows "^  1  Fake GPU B"
shows "^     pinned   yes$"

# A driver that hangs, wherever: one line that says in what, and no process stays. All at once, so
# that each may have its time.
hangs=("cuInit:its beginning" "cuDevicePrimaryCtxRetain:a context on GPU 0" \
  "cuMemHostRegister:host memory" \
  "cuModuleLoadData:a kernel to be compiled" "cuStreamSynchronize:a handle" \
  "cuIpcOpenMemHandle:a second process")
no_child() {  # grep's status tells of processes that went meanwhile, too
  grep -lsz "^HERE=$here$" /proc/[0-9]*/environ >"$here/children"
  [ ! -s "$here/children" ]
}
jobs=()
for i in "${!hangs[@]}"; do
  env "${plain[@]}" "$with" HERE="$here" FAKE_CUDA_FAIL="${hangs[i]%%:*}:1:hang" timeout 60 \
    "$tutti" doctor --timeout 4s >"$here/out.$i" 2>"$here/err.$i" &
  jobs+=($!)
done
for i in "${!hangs[@]}"; do
  code=0
  wait "${jobs[i]}" || code=$?
  gpu_part "$here/out.$i" >"$here/out"
  mv "$here/err.$i" "$here/err"
  exits 1 "for a driver that hangs in ${hangs[i]%%:*}"
  quiet
  shows "^GPU: the driver hangs: no answer for 4 s, asked for ${hangs[i]#*:}"
  # what was known before
  case ${hangs[i]} in cuModule* | cuIpc*) shows "^     pinned   yes$" ;; esac
done
eventually no_child || fail "left behind: $(cat "$here/children")"

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
none 1 "the CUDA driver is too old: it has no cuDeviceGetUuid_v2" \
  "LD_LIBRARY_PATH=$TUTTI_BUILD/fake_cuda_old"
echo "not a library, whatever it is called, and long enough to be looked at as one, header" \
  "and all" >"$here/libcuda.so.1"
none 0 "no CUDA driver: libcuda.so.1 cannot be loaded" "LD_LIBRARY_PATH=$here"

# Its help; and nothing else after it.
for how in "doctor --help" "doctor -h" "help doctor"; do
  # shellcheck disable=SC2086 # words
  "$tutti" $how >"$here/out" 2>"$here/err" || fail "failed: tutti $how"
  shows "^usage: tutti doctor \[--timeout TIME\]$"
  shows "^       tutti doctor --tune \[--dry-run\] \[--seconds N\]$"
  [ "$(awk 'length > 80' "$here/out")" = "" ] || fail "wider than 80 columns: tutti $how"
done
code=0
"$tutti" doctor gpu >"$here/out" 2>"$here/err" || code=$?
exits 2 "for an argument"
says "^tutti doctor: it takes no arguments, as 'gpu'; try 'tutti doctor --help'$"
for wrong in "--timeout" "--timeout 30" "--timeout 0" "--timeout soon" "--timeout="; do
  code=0
  # shellcheck disable=SC2086 # words
  "$tutti" doctor $wrong >"$here/out" 2>"$here/err" || code=$?
  exits 2 "for: $wrong"
  says "^tutti doctor: --timeout wants a "
done
