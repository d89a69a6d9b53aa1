# ctest: needs=robust
# What the command says of the system, the environment and the rules: each section is there; what is
# missing has its way around it, what is wrong a remedy, a count and exit status 1; and jobs start
# by the rules that are shown.
. "$(dirname "$0")/lib.sh"

plain=(-u TUTTI_BUILD -u TUTTI_SOURCE -u TUTTI_PROVE -u TUTTI_TEST_SANITIZED
  LD_LIBRARY_PATH="$TUTTI_BUILD/fake_cuda")
doctor() {  # VARIABLE... [-- PROGRAM...]: leaves out, err and code
  local set=()
  while [ $# -gt 0 ] && [ "$1" != -- ]; do
    set+=("$1")
    shift
  done
  [ $# = 0 ] || shift
  code=0
  env "${plain[@]}" "${set[@]}" "$@" timeout -k 5 60 "$tutti" \
    doctor >"$here/out" 2>"$here/err" </dev/null || code=$?
}
shows() { grep -qE -e "$1" "$here/out" || fail "expected on stdout: $1"; }
hides() { ! grep -qE -e "$1" "$here/out" || fail "expected not on stdout: $1"; }
last() { [ "$(tail -n 1 "$here/out")" = "$1" ] || fail "expected as the last line: $1"; }
# A complaint and its remedy, one below the other; lines are joined, for they break at 80 columns.
wrong() {  # COMPLAINT REMEDY
  tr -s ' \n' '  ' <"$here/out" | grep -qE -e "  ?wrong: $1 $2" ||
    fail "expected the complaint: $1, and the remedy: $2"
}

# Every section, in this order, and nothing wider than a terminal before the GPUs.
doctor
exits 0 "where nothing is wrong"
quiet
sections='^(kernel|CPUs|memory|files|launcher|settings|rules|GPU):'
[ "$(grep -oE "$sections" "$here/out" | tr -d '\n')" = \
  "kernel:CPUs:memory:files:launcher:settings:rules:GPU:" ] ||
  fail "expected all sections in their order"
[ "$(awk 'length > 80' "$here/out")" = "" ] || fail "wider than 80 columns"
last "nothing is wrong here"
shows "^kernel: Linux [0-9]+\."
for name in "memfd" "seals of a memfd" "robust mutexes" "futex_waitv" "pidfd_open" "MADV_COLLAPSE" \
    "cachestat"; do
  shows "^  $name +(yes|no \(Linux .*\): )"
done
shows "^CPUs: [0-9]+, "
shows "^  affinity: [0-9]+; quota of the control group: "
shows "^  caches of CPU 0: "
shows "^memory: .* to be had now"
shows "^  huge pages of shared memory: shmem_enabled is "
shows "^  limits: descriptors \(ulimit -n\) "
shows "^  ranks: these limits allow [0-9]+ "
shows "^launcher: none; "
shows "^  barrier +any +flags +one line a rank"
shows "^  all_reduce +to 88 B +inline +"
shows "^ +to 64 KiB +eager +"
shows "^ +above +pipelined +"
shows "^  device +to 1 MiB +pinned"

# One CPU fewer is one fewer; a limit that allows fewer ranks than CPUs is wrong.
(taskset -c "$(taskset -cp $$ | sed 's/.*[:,-] *//')" true) 2>/dev/null && {
  doctor -- taskset -c "$(taskset -cp $$ | sed 's/.*[:,-] *//')"
  exits 0 "on one CPU"
  shows "^CPUs: 1, "
  shows "^  up to 1 rank: "
}
doctor -- bash -c 'ulimit -n 160; exec "$@"' -
exits 1 "with few descriptors"
wrong "the limit on descriptors allows tutti run 0 ranks, and there are [0-9]+ CPUs" \
  "raise the hard limit"
last "1 thing is wrong here"

# Calls that a filter refuses: what goes on without, and what cannot.
if "$TUTTI_BUILD/test/cli/forbid" cachestat true; then
  doctor -- "$TUTTI_BUILD/test/cli/forbid" io_uring_setup,futex_waitv,pidfd_open,cachestat
  exits 0 "without what there is a way around"
  shows "^  futex_waitv +no \(Linux 5.16\): a wait for several words sleeps on one,"
  shows "^  futex in io_uring +no \(Linux 6.7\): "
  shows "^  pidfd_open +no \(Linux 5.3\): "
  shows "^  cachestat +no \(Linux 6.5\): "
  shows "^files: read and written by threads: io_uring cannot be had: Operation not permitted$"
  last "nothing is wrong here"
  doctor FAKE_CUDA_STUB=1 -- "$TUTTI_BUILD/test/cli/forbid" memfd_create
  exits 1 "without memfd_create"
  wrong "memfd \(Linux 3.17\): no arena can be made" \
    "let the seccomp profile allow memfd_create"
  wrong "no arena could be made: memfd_create: Operation not permitted .*" "see the limits above"
  last "2 things are wrong here"
  doctor -- "$TUTTI_BUILD/test/cli/forbid" seal
  exits 0 "where no memfd can be sealed"
  shows "^  memfd +yes"
  shows "^  seals of a memfd +no \(Linux 3.17\): a rank that cuts "
  last "nothing is wrong here"
else
  echo "cli.$script: not tried: this system lets nobody filter system calls"
fi

# The launcher whose rank this is; half of one is wrong.
doctor RANK=1 WORLD_SIZE=4
exits 0 "under torchrun"
shows "^launcher: torchrun; this is rank 1 of 4, job torch"
doctor OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2
shows "^launcher: Open MPI; this is rank 0 of 2, "
doctor RANK=1
exits 1 "with half a launcher"
wrong "RANK is set, but WORLD_SIZE is not" "start the program by one launcher"

doctor TUTTI_RANK=1 TUTTI_SIZE=2 TUTTI_JOB=mine
exits 0 "with a rank by settings"
shows "^launcher: TUTTI_RANK and TUTTI_SIZE; this is rank 1 of 2, job mine$"
doctor TUTTI_SIZE=2
exits 1 "with a job without a name"
wrong "TUTTI_SIZE is set, and nothing names the job the ranks meet under" "set TUTTI_JOB"

# Settings: what is in force, what is wrong, what nobody reads.
doctor TUTTI_WARN_MS=5s TUTTI_FLAGS=bind_core TUTTI_FAULT=0:barrier#3:kill
exits 0 "with settings that are fine"
shows "^  TUTTI_WARN_MS=5s \("
shows "^  TUTTI_FLAGS=bind_core \("
shows "^  TUTTI_FAULT=0:barrier#3:kill \("
doctor TUTTI_ISA=plain
exits 0 "with plain folds"
shows "^  reductions are folded by plain instructions$"
doctor TUTTI_TIMEOUT_MS=soon
exits 1 "with a wrong time"
wrong "TUTTI_TIMEOUT_MS=soon: expected a duration such as 30s, 500ms or 500, .*, or never" \
  "deadline of every operation; -1: none; unset it for the default: 30min"
last "1 thing is wrong here"
doctor TUTTI_FLAGS=bind_cores TUTTI_FAULT=0:barriers#3:kill TUTTI_URING=no
exits 1 "with three wrong settings"
wrong "TUTTI_FLAGS=bind_cores: expected bind_core, bind_numa, no_spin, local, ahead, leave,\
 separated by commas" \
  "comma list"
wrong "TUTTI_FAULT: \"barriers\": no operation; give a function.s name without tutti_, or \*" \
  "for tests"
wrong "TUTTI_URING=no: expected an integer between 0 and 1" "0: files"
last "3 things are wrong here"
doctor TUTTI_TIMOUT_MS=5s TUTTI_ELEPHANT=1
exits 1 "with names that nobody reads"
wrong "TUTTI_TIMOUT_MS is no setting of tutti: nobody reads it" "did you mean TUTTI_TIMEOUT_MS\?"
wrong "TUTTI_ELEPHANT is no setting of tutti: nobody reads it" "unset it"
last "2 things are wrong here"

# Rules: those of the environment; a file of this machine, of another, damaged, none; and what the
# ranks of a job make of each.
chooses() {  # ALGORITHM VARIABLE...: what two ranks say, under `tutti run` and by a name
  local expected=$1
  shift
  code=0
  env "$@" timeout 60 "$tutti" run -n 2 "$TUTTI_BUILD/test/cli/chooses" reduce \
    8192 >"$here/out" 2>"$here/err" || code=$?
  exits 0 "of ranks, with: $*"
  prints "$expected
$expected"
  for rank in 0 1; do
    env "$@" TUTTI_JOB="doctor.$$" TUTTI_RANK=$rank TUTTI_SIZE=2 timeout 60 \
      "$TUTTI_BUILD/test/cli/chooses" reduce 8192 >"$here/out.$rank" 2>>"$here/err" &
  done
  wait
  cat "$here/out.0" "$here/out.1" >"$here/out"
  prints "$expected
$expected"
  quiet
}
doctor TUTTI_ALGORITHM=reduce:-inf=pipelined
exits 0 "with rules"
shows "^  TUTTI_ALGORITHM: reduce:-inf=pipelined$"
shows "^  reduce +any +pipelined +"
doctor "TUTTI_ALGORITHM=reduce/crowded:-inf=pipelined"
shows "^  reduce +to 88 B +inline +"
shows "^  reduce/crowded +any +pipelined +"
doctor TUTTI_ALGORITHM=reduce:-inf=rings
exits 1 "with wrong rules"
wrong "TUTTI_ALGORITHM: .rings. is no algorithm of reduce; there are: inline eager pipelined d.*" \
  "put it right, or unset it"

rules=$here/config/tutti/rules
unset TUTTI_TUNED
export XDG_CONFIG_HOME=$here/config
doctor
exits 0 "without a file"
shows "^  not measured here; tutti doctor --tune would write"
chooses eager
mkdir -p "$here/config/tutti"
echo "# tutti rules for: a machine that computes with steam, 1 CPU
reduce:-inf=pipelined" >"$rules"
doctor
exits 0 "with another machine's file"
tr -s ' \n' '  ' <"$here/out" |
  grep -q "is of another machine, and not used: it is for a machine that computes with steam,"\
" 1 CPU" ||
    fail "expected whose file it is"
chooses eager
for damaged in "" "reduce:-inf=pipelined" "# tutti rules for: "; do
  printf %s "$damaged" >"$rules"
  doctor
  exits 1 "with a damaged file"
  wrong "[^ ]*/tutti/rules is damaged, and not used: .*" \
  "tutti doctor --tune writes it anew; or delete it"
  last "1 thing is wrong here"
  chooses eager
done
rm "$rules"
mkdir "$rules"
doctor
exits 1 "with a directory in its place"
chooses eager
