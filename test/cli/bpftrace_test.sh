# ctest: timeout=200 labels=nosan
# The lines for bpftrace that the manual shows, as they stand there: each finds its probe in a rank,
# and shows what the manual says. Skipped where bpftrace is missing or may not look, and in CI:
# on a busy machine bpftrace takes longer to attach than can be waited for.
. "$(dirname "$0")/lib.sh"
export TUTTI_SPAN_BYTES=16M
library=$TUTTI_BUILD/libtutti.so
[ -n "${TUTTI_PROVE-}" ] || skip "takes its time on a busy machine: set TUTTI_PROVE=1 to run it"
command -v bpftrace >/dev/null || skip "bpftrace is missing"
[ "$(id -u)" = 0 ] || skip "bpftrace is for root"
grep -q 'stapsdt' <(readelf -n "$library") || skip "built without probes"
trap 'kill $(jobs -p) 2>"$here/end"; wait; rm -rf "$here"' EXIT

# Of two, the one that is left finds the other dead.
"$tutti" run --grace 20s -n 2 "$actor" stall 1 meet >"$here/job" 2>&1 </dev/null &
job=$!
ranks() { pgrep -x -P "$job" actor; }
there() { [ "$(ranks | wc -l)" = 2 ] && grep -q stalled "$here/job"; }
eventually there || fail "the job does not start"
pid=$(ranks | head -1)

# What stands behind "# tutti:PROBE " in the manual, for this library and this rank.
line() {
  awk -v probe="# tutti:$1 " '/^# tutti:/ || /^\.fi/ { on = index($0, probe) == 1; next } on' \
    "$TUTTI_SOURCE/src/cli/tutti.1" |
    sed -e 's/\\-/-/g' -e 's/\\e/\\/g' -e "s|libtutti.so|$library|g" -e "s|-p PID|-p $pid|"
}
# Are the probes of that name stops for that rank? The kernel has put a trap in their place.
attached() {
  python3 - "$library" "$pid" "$1" <<'PYTHON'
import re, subprocess, sys
library, pid, probe = sys.argv[1:]
notes = subprocess.run(["readelf", "-n", library], capture_output=True, text=True).stdout
places = re.findall(rf"Name: {probe}\n\s*Location: (0x[0-9a-f]+)", notes)
maps = [line for line in open(f"/proc/{pid}/maps") if "libtutti.so" in line]
base = min(int(line.split("-")[0], 16) for line in maps)
with open(f"/proc/{pid}/mem", "rb", 0) as memory:
    for place in places:
        memory.seek(base + int(place, 16))
        if memory.read(1) != b"\xcc":
            sys.exit(1)
sys.exit(not places)
PYTHON
}
# What rank 0 does, by its line of the JSON.
first() { "$tutti" ps "$pid" --json | grep '"rank":0,'; }
operations() { first | sed 's/.*"operations":\([0-9]*\),.*/\1/'; }
sleeps() { first | grep -q '"state":"sleeping"'; }
tracers=
for probe in op_begin op_end sleep wake death verdict; do
  line $probe >"$here/$probe.sh"
  [ -s "$here/$probe.sh" ] || fail "the manual has no line for $probe"
  env --default-signal=INT bash -c "exec $(cat "$here/$probe.sh")" >"$here/$probe" 2>&1 </dev/null &
  tracers="$tracers $!"
done
not_attached() {
  cp "$here/$1" "$here/out"
  fail "$1 is not attached"
}
looks() {
  ! grep -qE 'not permitted|denied|not supported|No such file' "$here"/op_begin ||
    skip "bpftrace may not look here: $(tail -1 "$here/op_begin")"
  attached "$1"
}
for probe in op_begin op_end sleep wake death verdict; do
  # the kernel's part of it takes seconds where all CPUs are in use
  eventually looks $probe || eventually looks $probe || not_attached $probe
done
goes_on() { [ "$(operations)" -gt $((before + 200)) ]; }
before=$(operations)
eventually goes_on || fail "the job stands still behind its probes"
last=$(ranks | tail -1)
kill -STOP "$last"
eventually sleeps || fail "a rank alone does not sleep"
before=$(operations)
kill -CONT "$last"
eventually goes_on || fail "the job does not go on"
kill -KILL "$last"
found() { grep -q 'is dead' "$here/death" && grep -q '#' "$here/verdict"; }
eventually found || { cat "$here/death" "$here/verdict" >"$here/out"; fail "no death is shown"; }
kill -INT $tracers 2>"$here/end"
wait $tracers
shows() {
  grep -v -e 'detach probe' -e uprobe_events "$here/$1" >"$here/out"
  grep -qE -e "$2" "$here/out" || fail "$1: expected: $2"
}
shows op_begin '^@\[barrier\]: [0-9]+$'
shows op_end '^@ns: '
shows op_end '^\[[0-9]+[KM]?, [0-9]+[KM]?\) +[0-9]+ \|'
shows sleep '^\]: [0-9]+$'                  # a stack; the rank that would name it is gone
shows wake '^\[[0-9]+[KM]?, [0-9]+[KM]?\) +[0-9]+ \|'
shows death "^$pid: rank 1 \(pid $last\) is dead\$"
shows verdict '^world #[0-9]+: -130, rank 1$'
