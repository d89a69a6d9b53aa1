# ctest: timeout=200
# tutti late of a rank that comes when all others wait for it, always the same one and each in its
# turn; of a job and of a box; what programs read; what it refuses.
. "$(dirname "$0")/lib.sh"
export TUTTI_SPAN_BYTES=16M TUTTI_BOX=none

look() {
  code=0
  timeout 60 "$tutti" "$@" >"$here/out" 2>"$here/err" </dev/null || code=$?
}
shows() { grep -qE -e "$1" "$here/out" || fail "expected on stdout: $1"; }
end() { kill "$job" $(pgrep -P "$job"); wait "$job"; job=; } 2>"$here/end"
trap '[ -z "${job-}" ] || end; rm -rf "$here"' EXIT

ranks=3
# tardy RANK N: such a job of three ranks, once all is done; leaves job, pid.
tardy() {
  : >"$here/job"
  env --default-signal=INT,TERM "$tutti" run -n $ranks "$actor" tardy "$1" "$2" \
    >"$here/job" 2>&1 </dev/null &
  job=$!
  eventually grep -q tardy "$here/job" || fail "the job does not get there"
  pid=$(pgrep -x -P "$job" actor | head -1)
}
narrow() { [ -z "$(awk 'length > 80' "$here/out")" ] || fail "wider than 80 columns"; }

# ---- always the same one
tardy 1 30
look late "$pid"
exits 0 "of a job"
quiet
narrow
shows '^job .*: 3 ranks, fine'
shows '^world: 30 collectives compared, in 30 of them ranks waited for the last one$'
shows '^  last        how often       median late   99 % late     cost the others$'
shows '^  rank 1      30 \(100 %\)  .* (ns|us|ms|s)$'
shows '^  rank 1 every time, most often in barrier at cli/actor.c:[0-9]+$'
[ "$(wc -l <"$here/out")" = 5 ] || fail "not five lines"
look ps --save "$pid" "$here/one.box"
exits 0 "to save a box"
look late "$pid" --for 100ms
exits 0 "of a job, for a while"
shows '^world: 30 collectives compared, in 30 '
look late "$pid" --json
exits 0 "for programs"
python3 - "$here/out" <<'PYTHON' || fail "the JSON is not as promised"
import json, sys
late = json.load(open(sys.argv[1]))
assert late["version"] == 1 and late["uncertain_ns"] == 100
(world,) = late["comms"]
assert (world["comm"], world["compared"], world["together"]) == ("world", 30, 0)
assert [r["last"] for r in world["ranks"]] == [0, 30, 0]
tardy = world["ranks"][1]
assert 100 < tardy["median_ns"] <= tardy["p99_ns"] <= tardy["cost_ns"]
assert tardy["kind"] == "barrier" and "actor.c:" in tardy["site"]
assert world["ranks"][0]["cost_ns"] == 0 and "site" not in world["ranks"][0]
PYTHON
"$tutti" late "$pid" >"$here/live"
end
look late "$here/one.box"
exits 0 "of a box"
# Each look measures anew how long a tick is, so a last digit may differ.
untimed() { tail -n +2 "$1" | sed -E 's/[0-9.]+ (ns|us|ms|s)\b *//g'; }
[ "$(untimed "$here/live")" = "$(untimed "$here/out")" ] ||
  { cat "$here/live"; fail "the box shows something else"; }

# ---- each in its turn; more than a journal holds
tardy -1 300
look late "$pid"
exits 0 "of a job"
narrow
shows '^world: [0-9]+ collectives compared'
shows '^  rank 0      [0-9]+ \(3[2-4] %\)'
shows '^  not the same rank every time$'
end

# ---- one measure: of four ranks the middle one of the others is not the second-last
ranks=4
tardy 2 1
look late "$pid"
exits 0 "of four ranks"
late=$(sed -n 's/^  rank 2  *1 (100 %)  *\([0-9.]* [a-z]*\) .*/\1/p' "$here/out")
[ "$late" ] || fail "rank 2 was not late"
look trace "$pid" --text
exits 0 "to trace it"
tr -s '\n ' ' ' <"$here/out" | grep -qE "barrier #1 at [^;]*; last: rank 2, by $late " ||
  fail "late has $late"
end

# ---- what it refuses
look late
exits 64 "without a job"
look late 1 2
exits 64 "of two jobs"
look late --for never 1
exits 64 "with a time that is none"
look late no-such-job
exits 65 "of no job"
echo "no box" >"$here/broken.box"
look late "$here/broken.box"
exits 66 "of a broken box"
