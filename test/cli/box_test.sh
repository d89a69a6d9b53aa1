# ctest: timeout=300
# Black boxes: written of a job that goes on, and of one that fails or is killed; read by ps and why
# as the job itself; damaged in 200 ways.
. "$(dirname "$0")/lib.sh"
export TUTTI_SPAN_BYTES=16M

# look VERB ARGUMENT...: leaves out, err and code.
look() {
  code=0
  timeout 60 "$tutti" "$@" >"$here/out" 2>"$here/err" </dev/null || code=$?
  [ "$1" = why ] || return 0
  fits "$here/out"
  whole "$here/out" >"$here/whole"
  cp "$here/whole" "$here/out"
}
shows() { grep -qE -e "$1" "$here/out" || fail "expected on stdout: $1"; }
ranks() { pgrep -x -P "$job" actor; }
end() { kill -CONT $(ranks); kill "$job" $(pgrep -P "$job"); wait "$job"; job=; } 2>"$here/end"
trap '[ -z "${job-}" ] || end; rm -rf "$here"' EXIT
mkdir "$here/boxes"

# ---- of a job that goes on
: >"$here/job"
"$tutti" run --grace 500ms -n 8 "$actor" stall 7 spin >"$here/job" 2>&1 </dev/null &
job=$!
eventually grep -q stalled "$here/job" || fail "the job does not start"
pid=$(ranks | head -1)
waits() { [ "$("$tutti" ps "$pid" --json | grep -c '"waits":true.*"kind":"barrier"')" = 7 ]; }
eventually waits || fail "the others do not wait"
box=$here/boxes/one.box
look ps --save "$pid" "$box"
exits 0 "of --save"
prints "$box"
quiet
[ "$(stat -c %a "$box")" = 600 ] || fail "a box that others may read"
look ps "$pid"
# Where a line is folded depends on how many digits its times have: each is where it must be, and
# what it says is compared.
same() {
  sed ':all; N; $!b all; s/\n  */ /g' "$here/out" >"$here/lines"
  awk '{
    line = $1
    for (i = 2; i <= NF; i++)
      if (length(line " " $i) > 80) { print line; line = "  " $i } else line = line " " $i
    print line
  }' "$here/lines" | diff - "$here/out" >&2 || fail "not folded at 80 columns"
  grep -v '^job' "$here/lines" |
    sed -E 's/ for [^,]*//; s/, [0-9]* % CPU.*//; s/, [^:]*(asleep|spinning).*//'
}
same >"$here/live"
look ps "$box"
exits 0 "of a box of a job that is well"
shows '^job .* \(black box of 20[0-9-]+ [0-9:]+ UTC\): 8 ranks, fine,'
shows '^ranks 0-6: barrier #3 at cli/actor.c:[0-9]+ for .*(asleep|spinning)'
shows '^rank 7: in its own code for .*, last: all_reduce f32 sum 1 #2 at'
same >"$here/boxed"
diff "$here/live" "$here/boxed" >"$here/out" || fail "not as of the job itself"
look ps "$box" --stuck 1ms
exits 1 "of a box of a stuck job"
look why "$box"
exits 0 "of why on a box"
shows '^  waiting: ranks 0-6: barrier #3 at '
shows '^  kept by: rank 7: in its own code for .*, last: all_reduce f32 sum 1 #2 at '
[ "$(wc -l <"$here/out")" -le 5 ] || fail "more than five lines"
! grep -q 'gdb' "$here/out" || fail "a process of a box is to be looked at"
look ps "$box" --json
shows '^ \{"pid":.*"size":8,'
(cd "$here/boxes" && look ps --save "$pid" && exits 0 "of --save without a file" &&
  [ -s "$here/boxes/$(cat "$here/out")" ]) || fail "no box here"
TUTTI_BOX=$here/boxes/asked look ps --save "$pid"
ls "$here/boxes/asked" | grep -qE '^tutti-run-[0-9a-z-]+-20[0-9]{6}T[0-9]{6}Z\.box$' ||
  fail "no box in the folder TUTTI_BOX"
cmp -s "$here/out" <(ls -d "$here"/boxes/asked/*) || fail "its path is not printed"
look ps --save "$pid" "$here/nowhere/a.box"
exits 70 "where no file can be"
says '^tutti ps: no black box was written: .*/nowhere/a.box: No such file or directory$'
name=$(sed -n 's/^job \(.*\) (black.*/\1/p' <("$tutti" ps "$box"))
look ps --save "$name" "$here/boxes/two.box"
exits 0 "of --save by name"
end
look ps --save "$pid"
exits 65 "of --save where no job is"
look ps "$box"
exits 0 "of a box when the job is over"

# ---- damaged ones: one line, a status of 64 or more
python3 - "$tutti" "$box" "$here/bad.box" <<'PYTHON' >"$here/out" 2>&1 || fail "of a damaged box"
import os, random, subprocess, sys
tutti, good, bad = sys.argv[1:]
seed = int(os.environ.get("TUTTI_TEST_SEED", 0)) or random.randrange(1 << 32)
print("seed", seed)
random.seed(seed)
whole = open(good, "rb").read()
for i in range(200):
    b = bytearray(whole)
    if i % 3 == 0:
        del b[random.randrange(len(b)):]
    elif i % 3 == 1:
        b[16:20] = random.randrange(2, 1 << 32).to_bytes(4, "little")
    else:
        for _ in range(1 << random.randrange(12)):
            b[random.randrange(len(b))] ^= random.randrange(1, 256)
    open(bad, "wb").write(b)
    p = subprocess.run([tutti, ("ps", "why")[i % 2], bad], capture_output=True, timeout=20)
    said = p.stdout + p.stderr
    assert 64 <= p.returncode < 128 and said.count(b"\n") == 1, (i, p)
PYTHON
for wrong in "$here/boxes" "$here/none.box" /dev/null /dev/zero; do
  look ps "$wrong"
  exits 66 "of $wrong"
  [ "$(cat "$here/out" "$here/err" | wc -l)" = 1 ] || fail "not one line for $wrong"
done

# ---- by the launcher: its last line says where
# boxed STATUS: the run before has left one box in the folder; its path is the last line of stderr.
export TUTTI_BOX=$here/left
boxed() {
  exits "$1" "of the job"
  box=$(tail -1 "$here/err" | sed -n 's/^tutti run: black box: //p')
  [ -n "$box" ] && [ "$box" = "$(ls -d "$here"/left/*)" ] || fail "no box, or not the last line"
}
unboxed() {
  [ ! -e "$here/left" ] && ! grep -q 'black box' "$here/err" || fail "a box $1"
}
next() { rm -rf "$here/left"; }
run -n 4 "$actor" lose 2 kill
boxed 137
look ps "$box"
shows '^tutti run: rank 2 \(pid [0-9]+\) was killed by signal 9 \(SIGKILL\)'
shows '^rank 2: died, killed by signal 9 \(SIGKILL\), last: barrier #1 at'
next
run -n 4 "$actor" lose 2 exit
boxed 3
next
run --timeout 500ms --grace 200ms -n 2 "$actor" stall 1 pause
boxed 124
look why "$box" --stuck 1ms
exits 1 "of a job whose time was up"
shows '^  kept by: rank 1: in its own code for .*, last: all_reduce f32 sum 1 #2 at '
next
run -n 3 "$actor" early 1
boxed 5
look ps "$box"
shows '^rank 1: has not joined$'
next
begin --grace 200ms -n 3 "$actor" stall 2 pause
eventually grep -q stalled "$here/out" || fail "the job does not start"
pid=$(ranks | head -1)
two() { [ "$("$tutti" ps "$pid" --json | grep -c '"waits":true.*"kind":"barrier"')" = 2 ]; }
eventually two || fail "the others do not wait"
kill -TERM "$job"
finish
boxed 143
look ps "$box"
shows '^tutti run: told to end by signal 15 \(SIGTERM\)$'
shows '^ranks 0, 1: barrier #3 at .*(asleep|spinning)'
shows '^rank 2: in its own code for .*, sleeping$|^  cli/actor.c:[0-9]+, sleeping$'
next
begin -n 3 "$actor" stall 2 pause
eventually grep -q stalled "$here/out" || fail "the job does not start"
kill -KILL $(ranks)
finish
boxed 137
look ps "$box"
exits 2 "of a job whose ranks were all killed"
shows 'died, killed by signal 9'
next
run -n 2 --restart 1 "$actor" lose 1 kill
[ "$(ls "$here/left" | wc -l)" = 2 ] || fail "not a box for each attempt"
next

# ---- none where nothing failed, where the program handled it, where no rank was there
run -n 3 "$actor" barrier
unboxed "of a job that went well"
run -n 3 "$actor" shrink 1 kill
exits 137 "of a shrunk job"
unboxed "of a job that went on without a rank"
run -n 3 "$actor" shrink 1 exit
unboxed "of a job that went on without a rank that left"
run -n 3 false
exits 1 "of a program without ranks"
unboxed "of a program without ranks"
run -n 2 "$here/no-such-program"
unboxed "of a program that is not there"
TUTTI_BOX=none run -n 2 "$actor" lose 1 kill
exits 137 "without a box"
unboxed "although none is wanted"

# ---- without a launcher: one survivor, if it is asked to
# alone WHAT...: three ranks that meet by a name; leaves err and code, that of rank 0.
alone() {
  local r pids=
  for r in 1 2; do
    TUTTI_JOB=$$-alone TUTTI_RANK=$r TUTTI_SIZE=3 timeout 60 "$actor" "$@" >"$here/out" \
      2>"$here/err$r" </dev/null &
    pids="$pids $!"
  done
  code=0
  TUTTI_JOB=$$-alone TUTTI_RANK=0 TUTTI_SIZE=3 timeout 60 "$actor" "$@" >"$here/out" \
    2>"$here/err0" </dev/null || code=$?
  wait $pids
  cat "$here"/err[012] >"$here/err"
}
alone lose 1 kill
exits 1 "of a survivor"
[ "$(ls "$here/left" | wc -l)" = 1 ] || fail "not one box of all survivors"
box=$(ls -d "$here"/left/*)
[ "$(grep -cxF "tutti: black box: $box" "$here/err")" = 1 ] || fail "its path is not said once"
look ps "$box"
exits 3 "of a box of a failed job"
shows '^rank [02]: rank 1 \(pid [0-9]+, actor\) died'
shows '^rank 1: died(, killed by signal 9 \(SIGKILL\))?, last: barrier #1 at'
next
alone shrink 1 kill
exits 0 "of a survivor that went on"
unboxed "of a job that went on without a rank"
TUTTI_BOX=none alone lose 1 kill
unboxed "although none is wanted"

# ---- where nothing was said: the user's state folder, in which 20 stay; one that cannot be written
unset TUTTI_BOX
HOME=$here/home alone lose 1 kill
[ ! -e "$here/home" ] || fail "a box without a launcher that nobody has asked for"
for i in $(seq 22); do
  HOME=$here/home run -n 2 "$actor" lose 1 kill
done
exits 137 "of the last of many jobs"
says "^tutti run: black box: $here/home/.local/state/tutti/tutti-run-.*\.box\$"
[ "$(ls "$here/home/.local/state/tutti" | wc -l)" = 20 ] || fail "not the last 20 boxes"
XDG_STATE_HOME=$here/state run -n 2 "$actor" lose 1 kill
says "^tutti run: black box: $here/state/tutti/tutti-run-.*\.box\$"
: >"$here/file"
TUTTI_BOX=$here/file run -n 2 "$actor" lose 1 kill
exits 137 "where no box can be"
says "^tutti run: black box: none could be written: $here/file: (Not a directory|File exists)\$"
export TUTTI_BOX=none

# ---- the command line
for wrong in "ps --save" "ps --save a b c"; do
  look $wrong
  exits 64 "for: $wrong"
  [ "$(wc -l <"$here/err")" = 1 ] || fail "not one line for: $wrong"
done
