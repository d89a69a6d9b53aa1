# What the command says about itself, and to a wrong command line: one clear line, exit status 2.
. "$(dirname "$0")/lib.sh"

refuses() {  # PATTERN ARGUMENT...
  local pattern=$1
  shift
  code=0
  timeout 20 "$tutti" "$@" >"$here/out" 2>"$here/err" </dev/null || code=$?
  exits 2 "for: tutti $*"
  [ ! -s "$here/out" ] || fail "stdout for: tutti $*"
  [ "$(wc -l <"$here/err")" = 1 ] || fail "not one line for: tutti $*"
  says "^tutti( run| version| perf)?: .*$pattern.*; try 'tutti (run |version |perf )?--help'$"
}

refuses "-n is missing" run
refuses "-n is missing" run true
refuses "-n wants a value" run -n
refuses "-n wants a number from 1 to 1024, not '0'" run -n 0 true
refuses "not '-1'" run -n -1 true
refuses "not '100000'" run -n 100000 true
refuses "not '1025'" run -n 1025 true
refuses "not 'two'" run -n two true
refuses "not '2x'" run -n 2x true
refuses "not ''" run --nproc_per_node= true
refuses "no program" run -n 2
refuses "no program" run -n 2 --
refuses "--bogus is no option" run -n 2 --bogus true
refuses "-x is no option" run -n 2 -x true
refuses "--tag=3 is no option|--tag" run -n 2 --tag=3 true
refuses "--bind wants core, numa or none, not 'socket'" run -n 2 --bind socket true
refuses "--timeout wants .* not '30'" run -n 2 --timeout 30 true
refuses "--timeout wants .* not '0'" run -n 2 --timeout 0 true
refuses "--timeout wants .* not 'soon'" run -n 2 --timeout soon true
refuses "--grace wants .* not '5 s'" run -n 2 --grace '5 s' true
refuses "--restart wants .* not '-1'" run -n 2 --restart -1 true
refuses "no verb 'rnu'; did you mean 'run'\?" rnu
refuses "no verb 'versoin'; did you mean 'version'\?" versoin
refuses "no verb 'conduct'" conduct
refuses "what is 'x'" version x
refuses "nothing called 'barier'; did you mean 'barrier'\?" perf barier
refuses "nothing called 'everything'" perf everything
refuses "no help for 'conduct'" help conduct

grep -q "did you mean" "$here/err" && fail "a guess where nothing is near"

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
  shows '^usage: tutti run -n N' $how
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
for how in "--nproc_per_node 2" --nproc_per_node=2 --nproc-per-node=2 -n2; do
  run $how echo x
  prints "x
x"
done
