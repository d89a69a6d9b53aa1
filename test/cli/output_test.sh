# ctest: timeout=200
# What ranks write comes out whole, in order, from the right stream, however it is written or read.
. "$(dirname "$0")/lib.sh"

run -n 3 --tag sh -c 'echo out $RANK; echo err $RANK >&2'
[ "$(sort "$here/out")" = "[0] out 0
[1] out 1
[2] out 2" ] || fail "stdout with tags"
[ "$(sort "$here/err")" = "[0] err 0
[1] err 1
[2] err 2" ] || fail "stderr with tags"
run -n 1 --tag echo x
prints "[0] x"

# Lines written in parts are never mixed with others.
run -n 4 sh -c 'for i in 1 2 3 4 5 6 7 8 9; do
  for part in a b c d; do printf "%s$RANK" $part; done; echo; done'
printed '^a0b0c0d0$|^a1b1c1d1$|^a2b2c2d2$|^a3b3c3d3$' 36 || fail "mixed lines"
[ "$(wc -l <"$here/out")" = 36 ] || fail "lines more or less"

# Both streams to one place: still whole lines, in the order of the writes.
"$tutti" run -n 2 sh -c 'for i in 1 2 3; do
  echo $RANK $i out; echo $RANK $i err >&2; done' >"$here/out" 2>&1
for rank in 0 1; do
  [ "$(grep "^$rank" "$here/out" | xargs)" = \
    "$rank 1 out $rank 1 err $rank 2 out $rank 2 err $rank 3 out $rank 3 err" ] ||
    fail "stdout and stderr of rank $rank out of order"
done

# An unfinished last line stays unfinished, unless another would stick to it.
run -n 2 sh -c '[ $RANK = 1 ] && printf "no end"; :'
[ "$(od -An -c "$here/out" | tr -d ' \n')" = "noend" ] || fail "an unfinished line was changed"
run -n 2 sh -c 'printf "no end $RANK"'
[ "$(sort "$here/out")" = "no end 0
no end 1" ] || fail "unfinished lines stuck together"
"$tutti" run -n 2 sh -c '[ $RANK = 1 ] && printf "oh" && exit 3; :' >"$here/out" 2>&1
[ "$(head -n 1 "$here/out")" = oh ] || fail "our own line stuck to a rank's"

# Carriage returns move on at once; with a tag each.
run -n 2 --tag sh -c '[ $RANK = 0 ] && printf "10%%\r20%%\rdone\r\nend\n"; :'
[ "$(od -An -c "$here/out" | tr -d ' \n')" = '[0]10%\r[0]20%\r[0]done\r\n[0]end\n' ] ||
  fail "carriage returns"

# Binary data of one rank, whatever is in it, byte for byte; and a line of 10 MB.
head -c 3000000 /dev/urandom >"$here/data"
run -n 2 sh -c '[ $RANK = 1 ] && cat "$0"; :' "$here/data"
cmp "$here/data" "$here/out" || fail "binary data"
head -c 10000000 /dev/zero | tr '\0' x >"$here/data"
run -n 2 sh -c '[ $RANK = 0 ] && cat "$0"; :' "$here/data"
cmp "$here/data" "$here/out" || fail "a long line"
# Lines of up to 64 KiB of several ranks, whole.
run -n 4 sh -c 'for i in 1 2 3; do head -c 60000 /dev/zero | tr "\0" $RANK; echo; done'
[ "$(awk 'length == 60000 && /^(0+|1+|2+|3+)$/' "$here/out" | wc -l)" = 12 ] ||
  fail "long lines of several ranks"

# Everything that was written before the end arrives, and before our own line about it.
run -n 8 sh -c 'for i in $(seq 500); do echo "line $i of $RANK"; done; kill -9 $$'
[ "$(sort -u "$here/out" | wc -l)" -ge 500 ] || fail "lines of a rank that ended are lost"
for rank in 0 1 2 3; do
  run -n 4 sh -c "[ \$RANK = $rank ] || exec sleep 60; seq 2000; kill -9 \$\$"
  [ "$(wc -l <"$here/out")" = 2000 ] || fail "lines of rank $rank are lost"
done

# What a program prints by its own buffer arrives while it runs, and is there when it is killed.
begin -n 2 "$actor" print wait
eventually printed 'first|second' 4 || fail "lines of a C program do not arrive"
kill -TERM "$job"
finish
run -n 2 "$actor" print kill
exits 137 "of ranks that kill themselves"
printed 'first|second' 4 || fail "lines of a killed C program are lost"
TUTTI_LINES=0 run -n 2 "$actor" print kill
prints ""
run -n 2 python3 -c 'import os; print("first"); print("second"); os.kill(os.getpid(), 9)'
printed 'first|second' 4 || fail "lines of a killed Python program are lost"
PYTHONUNBUFFERED= run -n 2 python3 -c 'import os; print("first"); os.kill(os.getpid(), 9)'
prints ""

# With --tty each rank has a terminal for both streams, and what goes through it is not changed.
run -n 2 --tty sh -c '[ -t 1 ] && [ -t 2 ] && echo out $RANK && echo err $RANK >&2
  stty size <&2'
exits 0 "at terminals"
quiet
[ "$(sort "$here/out")" = "24 80
24 80
err 0
err 1
out 0
out 1" ] || fail "terminals"
! grep -q "$(printf '\r')" "$here/out" || fail "a terminal has added returns"
run -n 2 --tty --tag sh -c 'seq 2000; kill -9 $$'
[ "$(sort -u "$here/out" | wc -l)" = 4000 ] || fail "lines at terminals are lost"
run -n 1 --tty sh -c '[ -t 1 ] && echo yes'
prints yes

# A reader that goes ends the job, as SIGPIPE ends a program: endless printers, also where they
# ignore it, on either stream.
: >"$here/err"
{ timeout 60 "$tutti" run -n 2 yes 2>"$here/err"; echo $? >"$here/code"; } | head -n 1 >"$here/out"
code=$(cat "$here/code")
exits 141 "when nobody reads stdout"
prints y
says 'nobody reads the output any more; 2 of 2 ranks had to be ended'
{
  timeout 60 "$tutti" run -n 2 --grace 100ms \
    sh -c 'trap "" PIPE TERM; while :; do echo y; done' 2>"$here/err"
  echo $? >"$here/code"
} | head -n 1 >"$here/out"
code=$(cat "$here/code")
exits 141 "when ranks ignore that nobody reads"
{ timeout 60 "$tutti" run -n 2 sh -c 'yes >&2' 2>&1 >/dev/null; echo $? >"$here/code"; } |
  head -n 1 >"$here/out"
code=$(cat "$here/code")
exits 141 "when nobody reads stderr"
# Ranks that have nothing more to write go on to their own end: what was not written is not missed.
mkfifo "$here/gone"
exec 8<>"$here/gone"
env --default-signal=PIPE "$tutti" run -n 2 sh \
  -c 'until [ -e "$0" ]; do sleep 0.02; done; exit 7' "$here/go" >"$here/gone" 2>"$here/err" &
job=$!
eventually pgrep -P "$job" >/dev/null || fail "no ranks"
exec 8<&-
rm "$here/gone"
touch "$here/go"
finish
exits 7 "when nobody reads and nobody writes"
code=0
timeout 60 "$tutti" run -n 2 echo x >&- 2>"$here/err" || code=$?
exits 0 "without a stdout"
if [ -e /dev/full ]; then
  code=0
  timeout 60 "$tutti" run -n 2 echo x >/dev/full 2>"$here/err" || code=$?
  exits 1 "when the output is lost"
  says 'cannot write standard output: No space left on device'
fi

# A reader that takes nothing yet holds the ranks back, and nothing else: a signal still
# ends the job.
mkfifo "$here/pipe"
sleep 60 <"$here/pipe" &
reader=$!
env --default-signal=INT "$tutti" run -n 2 --grace 300ms sh \
  -c 'yes $RANK' >"$here/pipe" 2>"$here/err" &
job=$!
eventually pgrep -P "$job" >/dev/null || fail "no ranks"
sleep 0.3
kill -TERM "$job"
eventually gone $(pgrep -P "$job") || fail "ranks survive behind a slow reader"
kill "$reader"
finish
exits 143 "after SIGTERM behind a slow reader"
# And a slow one gets everything.
"$tutti" run -n 2 sh -c 'seq 20000' | { sleep 0.3; cat; } >"$here/out"
[ "$(sort -n "$here/out" | uniq -c | awk '$1 == 2' | wc -l)" = 20000 ] ||
  fail "a slow reader lost lines"

# Input: rank 0 has ours, the others none.
code=0
echo hello | timeout 20 "$tutti" run -n 3 --tag sh \
  -c 'if read -r x; then echo "got $x"; else echo none; fi' >"$here/out"
[ "$(sort "$here/out")" = "[0] got hello
[1] none
[2] none" ] || fail "input"

# A terminal: one rank alone has it itself; of several, rank 0 may ask.
"$actor" terminal nothing 1 0 "$tutti" run -n 1 sh \
  -c '[ -t 0 ] && [ -t 1 ] && echo a terminal' >"$here/out" || code=$?
[ "$code" = 77 ] && skip "no pseudo terminals here"
grep -q "a terminal" "$here/out" || fail "one rank alone has no terminal"
code=0
"$actor" terminal "how many? " 1 10 timeout 20 "$tutti" run -n 2 sh \
  -c '[ $RANK = 0 ] || exit 0; printf "how many? "; read -r x; echo thanks' >"$here/out" || code=$?
exits 0 "at a prompt"
grep -q "thanks" "$here/out" || fail "no answer to a prompt"
