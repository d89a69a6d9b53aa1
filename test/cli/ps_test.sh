# ctest: timeout=300 needs=proc
# tutti ps and tutti why on jobs that wait, each for another reason; what another user sees; what
# programs read.
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
lines() { [ "$(wc -l <"$here/out")" -le "$1" ] || fail "more than $1 lines"; }
ranks() { pgrep -x -P "$job" actor; }

# stall RANKS RANK HOW [GRACE]: such a job, once all others wait in the barrier; leaves job, pid.
stall() {
  : >"$here/job"
  env --default-signal=INT,TERM "$tutti" run --grace "${4:-500ms}" -n "$1" \
    "$actor" stall "$2" "$3" >"$here/job" 2>&1 </dev/null &
  job=$!
  eventually grep -q stalled "$here/job" || fail "the job does not start"
  pid=$(ranks | head -1)
  [ "$3" = meet ] || eventually waits "$(($1 - 1))" || fail "the others do not wait"
}
waits() { [ "$(ranks_in barrier)" = "$1" ]; }
# How many ranks stand in a KIND, by the JSON.
ranks_in() {
  "$tutti" ps "$pid" --json | grep -c "\"waits\":true.*\"kind\":\"$1\""
}
end() { kill -CONT $(ranks); kill "$job" $(pgrep -P "$job"); wait "$job"; job=; } 2>"$here/end"
trap '[ -z "${job-}" ] || end; rm -rf "$here"' EXIT
# watches PATTERN: a line of tutti ps --watch.
watches() {
  local watch
  : >"$here/out"
  "$tutti" ps "$pid" --watch=0.1 >"$here/out" 2>"$here/err" &
  watch=$!
  eventually grep -qE -e "$1" "$here/out" || fail "expected on stdout: $1"
  kill "$watch"
  wait "$watch"
}

# ---- one computes, the others wait
stall 8 7 spin
look ps "$pid"
exits 0 "of a wait that is young"
shows '^job .*: 8 ranks, fine, since '
shows '^ranks 0-6: barrier #3 at cli/actor.c:[0-9]+ for .*(asleep|spinning)'
shows '^rank 7: in its own code for .*, last: all_reduce f32 sum 1 #2 at'
quiet
fits "$here/out"
look ps "$pid" --stuck 0.001
exits 1 "of a stuck job"
shows ', stuck, since'
look ps
shows "^job .*\(pid $pid\): 8 ranks, fine: ranks 0-6: barrier #3 .*; rank 7: in its own code"
name=$(sed -n "s/^job \(.*\) (pid $pid).*/\1/p" "$here/out")
look ps "$name" --all
exits 0 "by name"
[ "$(grep -cE '^  [0-7] ' "$here/out")" = 8 ] || fail "not a line for each rank"
look why "$pid" --stuck 1ms
exits 1 "of a stuck job"
lines 5
shows '^  waiting: ranks 0-6: barrier #3 at '
shows '^  kept by: rank 7: in its own code for .*, last: all_reduce f32 sum 1 #2 at .*running'
shows '^  there: actor, pid [0-9]+, .*; no rank makes progress now$'
shows "^  look further: gdb -p $(ranks | tail -1)\$"
quiet
look ps "$pid" --json
python3 - "$here/out" <<'PYTHON' || fail "the JSON is not as promised"
import json, sys
look = json.load(open(sys.argv[1]))
assert look["schema"] == "tutti-ps" and look["version"] == 1 and look["status"] == 0
job, = look["jobs"]
assert job["size"] == 8 and job["state"] == "fine"
assert [r["rank"] for r in job["ranks"]] == list(range(8))
waiting = job["ranks"][0]
assert waiting["waits"] and waiting["operation"]["kind"] == "barrier"
last = job["ranks"][7]
assert not last["waits"] and last["operation"]["bytes"] == 4 and last["operation"]["number"] == 2
PYTHON
look ps "$pid" --prometheus
shows '^# TYPE tutti_rank_operations_total counter$'
shows "^tutti_rank_waiting_seconds\{job=\"$name\",inode=\"[0-9]+\",rank=\"0\"\} [0-9]"
shows "^tutti_job_state\{job=\"$name\",inode=\"[0-9]+\"\} 0\$"
[ "$(grep -vcE '^(#|tutti_[a-z_]+(\{.*\})? [0-9.e+-]+$)' "$here/out")" = 0 ] ||
  fail "a line that is no metric"
watches '^frozen: no rank has made progress within'

# ---- all stopped
kill -STOP $(ranks)
stopped() {
  look ps "$pid" --stuck 1ms
  grep -q '^ranks 0-6: stopped, barrier #3 at' "$here/out" &&
    grep -q '^rank 7: stopped, in its own' "$here/out"
}
eventually stopped || fail "no stopped ranks are shown"
exits 1 "of stopped ranks"
look why "$pid"
lines 5
shows '^  kept by: rank 7: stopped, in its own code for'
shows '^  to go on: kill -CONT [0-9]+$'
kill -CONT $(ranks)

# ---- another user
if [ "$(id -u)" = 0 ]; then
  cp "$tutti" "$here/tutti"
  chmod 755 "$here" "$here/tutti"
  for verb in ps why; do
    code=0
    setpriv --reuid=65534 --regid=65534 --clear-groups "$here/tutti" $verb >"$here/out" \
      2>"$here/err" || code=$?
    exits 0 "as another user"
    lines 1
    shows '^no job of nobody is running here'
    quiet
  done
fi
end
look ps "$pid"
exits 65 "where no job is"
shows "^no job of the name or pid $pid can be seen here"

# ---- a message that nobody sends
stall 3 2 recv
look why "$pid"
lines 5
shows '^  (waiting|for): ranks? [01].*: barrier #3'      # the one that waits longer comes first
shows '^  (waiting|for): rank 2: recv f32 1 from 0 tag 7 at '
shows '^  a circle: that waits in its turn for rank [02]$'
end

# ---- a rank asleep in the kernel
stall 2 1 pause
look why "$pid"
shows '^  there: actor, pid [0-9]+, in (the kernel \(.*nanosleep|clock_nanosleep)'
end

# ---- a rank without descriptors
stall 3 2 close
look ps "$pid" --all
shows '^  2 +[0-9]+ +sleeping .* in its own code for'
end

# ---- a dead rank, while the others are stopped and cannot end
stall 3 2 pause 60s
last=$(ranks | tail -1)
kill -STOP $(ranks | head -2)
kill -KILL "$last"
dies() {
  look ps "$pid"
  grep -q '^rank 2: died, killed by signal 9' "$here/out" &&
    grep -q '^ranks 0, 1: stopped, barrier #3 at' "$here/out"
}
eventually dies || fail "no dead rank is shown"
exits 2 "with a dead rank"
look why "$pid"
exits 2 "with a dead rank"
shows '^  kept by: rank 2: died, killed by signal 9 \(SIGKILL\), last: all_reduce'
end

# ---- a comm that has failed, under ranks that live on
fails() {  # WAY PATTERN
  : >"$here/job"
  "$tutti" run --grace 1h -n 3 "$TUTTI_BUILD/test/cli/hang" "$1" >"$here/job" 2>&1 </dev/null &
  job=$!
  met() {
    pid=$(pgrep -x -P "$job" hang | head -1)
    [ -n "$pid" ] && look ps "$pid" && false
    [ "$code" = 3 ]
  }
  code=0
  eventually met || fail "no failed comm is shown: $1"
  look ps "$pid" --all
  exits 3 "of each rank of: $1"
  shows "3 ranks, failed \($2\)\$"
  look ps "$pid" --json
  shows '"status":3'
  shows "\"failure\":\"$2\""
  look why "$pid"
  exits 3 "of a comm that has failed: $1"
  lines 5
  shows "3 ranks, failed \($2\): nobody waits\$"
  end 2>"$here/end"
}
ranks() { pgrep -P "$job"; }
fails mismatch 'world has failed: the ranks called different things \(rank 2\)'
fails aborted 'comm [0-9]+ has failed: a rank aborted \(rank 2\)'
# ---- one that has failed, and the program has met it: all have agreed
"$tutti" run --grace 1h -n 3 "$TUTTI_BUILD/test/cli/hang" agreed >"$here/job" 2>&1 </dev/null &
job=$!
agrees() {
  pid=$(pgrep -x -P "$job" hang | head -1)
  [ -n "$pid" ] && look ps "$pid" --json &&
    [ "$(grep -c '"waits":false.*"kind":"comm_agree".*"under_way":false' "$here/out")" = 3 ]
}
eventually agrees || fail "the ranks do not agree"
exits 0 "of a failure that the ranks have agreed on"
shows '"state":"fine","failure":""'
end 2>"$here/end"
ranks() { pgrep -x -P "$job" actor; }

# ---- a wait for a handle, as PyTorch's are
stall 4 3 work
look why "$pid" --stuck 1ms
exits 1 "of a job whose ranks wait for handles"
shows '^  waiting: ranks 0-2: barrier #3 at '
shows '^  kept by: rank 3: in its own code'
end

# ---- all is well
stall 2 1 meet
look ps "$pid"
exits 0 "of a job that goes on"
watches '^2 of 2 ranks have made progress within'
end

# ---- a rank that does not join
: >"$here/job"
"$tutti" run --grace 500ms -n 3 sh -c '[ $RANK = 2 ] && exec sleep 100; exec "$0" barrier' \
  "$actor" >"$here/job" 2>&1 </dev/null &
job=$!
gathers() {
  pid=$(ranks | head -1)
  [ -n "$pid" ] && look ps "$pid" &&
    grep -q '^ranks 0, 1: has joined, waits for the others' "$here/out"
}
eventually gathers || fail "no ranks that meet are shown"
shows '^rank 2: has not joined$'
look why "$pid" --stuck 1ms
exits 1 "of ranks that wait for another to join"
shows ', stuck: ranks wait in tutti_init for others to join, for '
shows '^  kept by: rank 2: has not joined$'
shows '^  there: sleep, pid [0-9]+, in .*nanosleep'
end

# ---- another pid namespace: a rank is its process by the pid that it has there
if unshare --pid --fork true 2>"$here/err"; then
  : >"$here/job"
  unshare --pid --fork --kill-child "$tutti" run -n 2 "$actor" stall 1 pause >"$here/job" 2>&1 &
  job=$!
  eventually grep -q stalled "$here/job" || fail "no job in another pid namespace"
  for pid in $(pgrep -x actor); do
    [ "$(readlink "/proc/$pid/ns/pid")" = "$(readlink "/proc/self/ns/pid")" ] || break
  done
  look ps "$pid" --all
  shows '^  1 +[0-9]+ +sleeping .* in its own code for'
  end
fi

# ---- the command line
for wrong in "ps --bogus" "ps a b" "ps --stuck" "ps --stuck soon" "ps --json --prometheus" \
    "ps --watch=0" "ps --watch=0.04" "ps --watch=.1" "ps --watch=1." "ps --watch=0.1.2" \
    "ps --stuck 1.0000000001" "ps --stuck -0.5" "why --bogus" "why a b" "why --stuck -1"; do
  look $wrong
  exits 64 "for: $wrong"
  [ "$(wc -l <"$here/err")" = 1 ] || fail "not one line for: $wrong"
done
