# ctest: timeout=300
# Black boxes: written of a job that goes on, read by ps and why as the job itself; damaged in 200
# ways.
. "$(dirname "$0")/lib.sh"
export TUTTI_SPAN_BYTES=16M

# look VERB ARGUMENT...: leaves out, err and code.
look() {
  code=0
  timeout 60 "$tutti" "$@" >"$here/out" 2>"$here/err" </dev/null || code=$?
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
same() { grep -vE '^(job|  since)' "$here/out" | sed 's/ for .*//; s/, [0-9]* % CPU.*//'; }
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

# ---- the command line
for wrong in "ps --save" "ps --save a b c"; do
  look $wrong
  exits 64 "for: $wrong"
  [ "$(wc -l <"$here/err")" = 1 ] || fail "not one line for: $wrong"
done
