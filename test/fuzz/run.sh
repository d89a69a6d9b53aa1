# run.sh PROGRAM CORPUS SCRATCH: a fuzz target for TUTTI_FUZZ_SECONDS (10; in the long version 600),
# from the corpus that is kept. Inputs that reach something new are put into SCRATCH/new, what fails
# into SCRATCH.
program=$1 corpus=$2 scratch=$3 name=$(basename "$1")
seconds=${TUTTI_FUZZ_SECONDS:-10}
[ -z "${TUTTI_PROVE:-}" ] || seconds=${TUTTI_FUZZ_SECONDS:-600}
mkdir -p "$scratch/new" || exit 1

# The sanitizers of older compilers cannot live with the address randomisation of newer kernels.
steady=()
if command -v setarch >/dev/null && setarch -R true 2>/dev/null; then steady=(setarch -R); fi
quiet=()
# it prints its help and what is wrong, millions of times
[ "$name" != fuzz_command ] || quiet=(-close_fd_mask=3)

log=$scratch/log
"${steady[@]}" "$program" -max_total_time="$seconds" -max_len=4096 -timeout=30 -rss_limit_mb=2048 \
  -print_final_stats=1 -verbosity=1 \
  -artifact_prefix="$scratch/" "${quiet[@]}" "$scratch/new" "$corpus" >"$log" 2>&1
status=$?
if [ $status != 0 ]; then
  grep -v '^#[0-9]*.*\(NEW\|REDUCE\|pulse\)' "$log" | grep -v ': Usage\|try .tutti' | tail -n 60
  echo "$name failed; the input is in $scratch, and repeated by: $program FILE"
  exit 1
fi
grep '^INFO: Seed' "$log"
awk '/^#[0-9]+.*cov:/ { last = $0 } END { print last }' "$log"
grep '^stat::number_of_executed_units\|^stat::average_exec_per_sec\|^stat::new_units_added' "$log"
