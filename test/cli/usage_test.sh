# What the command says about itself. What it says to a wrong command line: wrong_test.sh.
. "$(dirname "$0")/lib.sh"

shows() {  # PATTERN ARGUMENT...
  local pattern=$1
  shift
  "$tutti" "$@" >"$here/out" 2>"$here/err" || fail "failed: tutti $*"
  grep -qE -e "$pattern" "$here/out" || fail "expected on stdout: $pattern"
  [ "$(awk 'length > 80' "$here/out")" = "" ] || fail "wider than 80 columns: tutti $*"
  quiet
}

for how in "" help --help -h; do shows '^  run  +start' $how; done
for how in "run --help" "run -h" "help run" "run -n 2 --help"; do
  shows '^usage: tutti run .-n N.' $how
done
for option in -n --nproc_per_node --bind --timeout --grace --restart --tag --tty --local-rank-arg \
    --as-gloo --mpi --verbose; do
  shows "^  .*$option\\b" run --help
  grep -qF -e "${option//-/\\-}" "$TUTTI_SOURCE/src/cli/tutti.1" ||
    fail "$option is not in the man page"
done
for how in "ps --help" "ps -h" "help ps"; do shows '^usage: tutti ps' $how; done
for how in "why --help" "why -h" "help why"; do shows '^usage: tutti why' $how; done
shows '^  --stack\b' why --help
grep -qF -e '\-\-stack' "$TUTTI_SOURCE/src/cli/tutti.1" || fail "--stack is not in the man page"
for option in --all --json --prometheus --watch --stuck; do
  shows "^  $option\\b" ps --help
  grep -qF -e "${option//-/\\-}" "$TUTTI_SOURCE/src/cli/tutti.1" ||
    fail "$option is not in the man page"
done
for how in "perf --help" "perf -h" "help perf"; do shows '^usage: tutti perf' $how; done
# Each measuring program is a word of the verb, but torch's, which needs the build folder.
for file in "$TUTTI_SOURCE"/perf/*.c; do
  program=$(basename "$file" .c)
  [ "$program" = torch ] && continue
  shows "^  $program " perf --help
  sed -n '/^measures how fast/,/^\.SH/p' "$TUTTI_SOURCE/src/cli/tutti.1" |
    grep -E "[ \"]$program[ ,]" >/dev/null ||
    [ "$program" = overview ] || fail "perf $program is not in the man page"
done
shows '^  --rounds FILE ' perf --help
for how in version --version; do shows '^tutti [0-9]+\.[0-9]+\.[0-9]+' $how; done

# The program's own flags are its own; -- ends ours; -n has a longer name.
run -n 1 echo -n x --help --tag
prints "x --help --tag"
run -n 1 -- printf '%s %s' -n 3
prints "-n 3"
for how in "--nproc_per_node 2" --nproc_per_node=2 --nproc-per-node=2 -n2 "-np 2" "--np 2" \
    "-n 3 -n 2" "--standalone --nnodes=1 --nproc_per_node=2" "--no-python -n 2 --nnodes 1:1" \
    "--rdzv-backend=c10d --rdzv_endpoint=localhost:0 -n 2 --max-restarts=3 --node_rank=0"; do
  run $how echo x
  prints "x
x"
done

# Without -n, and by -n auto: a rank for each CPU that may be used, and -v says so.
cpu=$(taskset -cp $$ | sed 's/.*: //; s/[,-].*//')
for how in "" "-n auto" "--nproc-per-node=cpu" "-n 7 -n auto"; do
  taskset -c "$cpu" "$tutti" run -v $how sh -c 'echo $WORLD_SIZE' >"$here/out" 2>"$here/err"
  prints 1
  says "^tutti run: 1 rank, one for each CPU that this process may use$"
done
