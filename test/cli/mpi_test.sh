# ctest: timeout=200
# The same program under other launchers: mpirun of Open MPI and MPICH for real, srun and torchrun
# by their variables.
. "$(dirname "$0")/lib.sh"

met() {  # WHO RANKS
  exits 0 "under $1"
  [ "$(sort -u "$here/out" | grep -c "^rank [0-9]* of $2 met$")" = "$2" ] ||
    fail "not $2 ranks met under $1"
}
# RANKS VARIABLES...: that many ranks in the background, each with what the words VARIABLE=VALUE
# say; @ is the rank
others() {
  local n=$1 rank word pids=() settings
  shift
  code=0
  : >"$here/out" >"$here/err"
  for ((rank = 0; rank < n; rank++)); do
    settings=()
    for word in "$@"; do settings+=("${word//@/$rank}"); done
    env "${settings[@]}" timeout 60 "$actor" barrier >>"$here/out" 2>>"$here/err" &
    pids+=($!)
  done
  for word in "${pids[@]}"; do wait "$word" || code=$?; done
}

others 3 RANK=@ WORLD_SIZE=3 LOCAL_RANK=@ LOCAL_WORLD_SIZE=3 MASTER_ADDR=127.0.0.1 \
  MASTER_PORT=$((20000 + $$ % 20000)) TORCHELASTIC_RUN_ID=t$$ TORCHELASTIC_RESTART_COUNT=0
met torchrun 3
others 3 SLURM_PROCID=@ SLURM_NTASKS=3 SLURM_LOCALID=@ SLURM_NNODES=1 SLURM_JOB_NUM_NODES=1 \
  SLURM_TASKS_PER_NODE=3 SLURM_STEP_TASKS_PER_NODE=3 SLURM_JOB_ID=$$ SLURM_STEP_ID=0
met srun 3

missing=
for name in openmpi mpich; do
  if ! command -v mpirun.$name >/dev/null; then
    missing="$missing mpirun.$name"
    continue
  fi
  flags=
  [ $name = openmpi ] && flags="--allow-run-as-root --oversubscribe"
  for n in 2 4; do
    code=0
    timeout -k 5 100 mpirun.$name $flags -n $n "$actor" \
      barrier >"$here/out" 2>"$here/err" </dev/null || code=$?
    met "mpirun.$name" $n
  done
  # tutti run may also be what mpirun starts.
  code=0
  timeout -k 5 100 mpirun.$name $flags -n 1 "$tutti" run \
    -n 2 "$actor" barrier >"$here/out" 2>"$here/err" </dev/null || code=$?
  met "tutti run under mpirun.$name" 2
done
[ -z "$missing" ] || skip "not installed:$missing (torchrun's and srun's variables work)"
