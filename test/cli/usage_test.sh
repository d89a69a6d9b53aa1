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
for how in "ps --help" "ps -h" "help ps"; do shows '^usage: tutti ps' $how; done
for how in "why --help" "why -h" "help why"; do shows '^usage: tutti why' $how; done
for how in "perf --help" "perf -h" "help perf"; do shows '^usage: tutti perf' $how; done

# Each verb has a page in the manual; page and help have the same options, --help apart.
options() {  # a verb's, of its help
  sed -n 's/^  *\(-[^ ].*\)/\1/p' | sed 's/   .*//' | grep -oE -- '(^|[ ,])--?[a-z][a-z_-]*' |
    tr -d ' ,' | grep -vxE -- '-h|--help' | sort -u
}
# how a page begins a description: .B --all, .BI --stuck " SECONDS", \fB-n\fR \fIN\fR, \fB--np\fR
described() {
  sed -e 's/\\f[BIRP]//g' -e 's/\\-/-/g' "$1" | awk '
    tagged && /^(\.B|-)/ { sub(/^\.[BIR]+ /, ""); print } { tagged = /^\.TP/ }' | tr -d '"' |
    grep -oE -- '(^|[ ,])--?[a-z][a-z_-]*' | tr -d ' ,' | sort -u
}
verbs=$("$tutti" help | sed -n 's/^  \([a-z]*\)  .*/\1/p')
[ "$(wc -w <<<"$verbs")" -ge 9 ] || fail "verbs of help: $verbs"
for verb in $verbs; do
  page=$TUTTI_SOURCE/src/cli/tutti-$verb.1
  [ -f "$page" ] || fail "there is no page of tutti $verb: $page"
  grep -q "^tutti.-$verb ...." "$page" || fail "$page does not name what it is about"
  grep -q "^.BR tutti.-$verb (1)" "$TUTTI_SOURCE/src/cli/tutti.1" ||
    fail "tutti(1) does not lead to tutti-$verb(1)"
  "$tutti" help "$verb" | options >"$here/help"
  described "$page" >"$here/page"
  for option in $(comm -23 "$here/help" "$here/page"); do
    fail "tutti $verb: $option is not in $page"
  done
  for option in $(comm -13 "$here/help" "$here/page"); do
    "$tutti" help "$verb" | grep -qE -e "(^|[ (,])$option([ ,.)]|$)" ||
      fail "tutti $verb: only $page knows $option"
  done
done
# Each measuring program is a word of the verb, but torch's, which needs the build folder.
for file in "$TUTTI_SOURCE"/perf/*.c; do
  program=$(basename "$file" .c)
  [ "$program" = torch ] && continue
  shows "^  $program " perf --help
  grep -qx ".B $program" "$TUTTI_SOURCE/src/cli/tutti-perf.1" ||
    fail "perf $program is not in the man page"
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
