# ctest: timeout=300
# tutti trace of jobs and boxes: text, events, the page; what it refuses. That torchfrtrace reads
# its pickles is torch.flight_recorder's affair.
. "$(dirname "$0")/lib.sh"
export TUTTI_SPAN_BYTES=16M TUTTI_BOX=$here/boxes

look() {
  code=0
  timeout 60 "$tutti" "$@" >"$here/out" 2>"$here/err" </dev/null || code=$?
}
# says in one line what is continued in further ones
flat() { awk '/^  [^ ]/ { printf " %s", substr($0, 3); next } { printf "\n%s", $0 }' "$1"; }
tells() { flat "$here/out" | grep -qE -e "$1" || fail "expected on stdout: $1"; }
shows() { grep -qE -e "$1" "$here/out" || fail "expected on stdout: $1"; }
end() { kill "$job" $(pgrep -P "$job"); wait "$job"; job=; } 2>"$here/end"
trap '[ -z "${job-}" ] || end; rm -rf "$here"' EXIT
# boxed ARGUMENT...: of such a job; leaves box.
boxed() {
  rm -rf "$here/boxes"
  run "$@"
  box=$(ls "$here"/boxes/*.box) || fail "no box"
}

# ---- text
boxed -n 3 "$actor" differ 1 kind
look trace "$box" --text
exits 0 "of a box"
quiet
at='^ +[0-9]+\.[0-9]{6}'
tells "$at barrier #1 at cli/actor.c:[0-9]+ by [a-z]+, [0-9.]+ .?s(; last: rank [0-2], .*)?\$"
tells "$at scan f64 sum 8 #2 at cli/actor.c:[0-9]+ by "
tells "$at rank 0: send f32 2 to 1 tag 7 at cli/actor.c:"
tells "$at rank 2: recv f32 2 from any tag 7 at cli/actor.c:"
tells "$at ranks 0, 2: all_reduce f32 sum 32 #4 at .*; rank 1: barrier #4 at .*; EPROTO on"
[ "$(awk 'length > 80' "$here/out")" = "" ] || fail "wider than 80 columns"
look trace "$box" --text -o "$here/file"
exits 0 "into a file"
look trace "$box" --text
cmp -s "$here/out" "$here/file" || fail "a file differs from standard output"

# ---- events: slices of a track lie within each other, arrows lead from slices to slices
events() {
  python3 - "$1" "$2" <<'PYTHON' || fail "the events are not as promised"
import json, sys
trace = json.load(open(sys.argv[1]))
events, tracks = trace["traceEvents"], {}
for e in events:
    if e["ph"] == "X":
        tracks.setdefault(e["tid"], []).append(e)
assert len(tracks) >= 3 and trace["displayTimeUnit"] == "ms"
named = {e["tid"] for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
assert named >= set(tracks)
for slices in tracks.values():
    open_until = []
    for e in sorted(slices, key=lambda e: (e["ts"], -e["dur"])):
        while open_until and open_until[-1] <= e["ts"]:
            open_until.pop()
        assert not open_until or e["ts"] + e["dur"] <= open_until[-1] + .0015, e
        open_until.append(e["ts"] + e["dur"])
begins = {e["id"]: e for e in events if e["ph"] == "s"}
ends = {e["id"]: e for e in events if e["ph"] == "f"}
assert begins.keys() == ends.keys() and begins
for id, b in begins.items():
    assert b["tid"] != ends[id]["tid"] and ends[id]["bp"] == "e"
    for e in b, ends[id]:
        assert any(s["ts"] <= e["ts"] + .0015 and e["ts"] <= s["ts"] + s["dur"] + .0015
                   for s in tracks[e["tid"]]), e
late = [e for e in events if e["ph"] == "X" and e["name"] == "barrier #1"]
last, = {e["args"]["last rank"] for e in late}
assert len(late) == 3 and last in range(3)
# who waited in it did so for that rank, in its own slice
within = [(e, w) for e in late for w in tracks[e["tid"]] if w["name"].startswith("wait")
          and e["ts"] <= w["ts"] and w["ts"] + w["dur"] <= e["ts"] + e["dur"] + .0015]
assert all(w["name"] == f"wait for rank {last}" and e["args"]["rank"] != last for e, w in within)
if sys.argv[2] == "box":
    last = [e for e in events if e["ph"] == "X" and e["name"].endswith("#4")]
    assert {e["name"] for e in last} == {"all_reduce f32 sum 32 #4", "barrier #4"}
PYTHON
}
look trace "$box"
exits 0 "as events"
events "$here/out" box

# ---- the page: whole, loads nothing, and what a job says of itself is data
look trace "$box" --html -o "$here/page.html"
exits 0 "as a page"
python3 - "$here/page.html" <<'PYTHON' || fail "the page is not as promised"
import json, re, sys
page = open(sys.argv[1]).read()
data, = re.findall(r'<script type=application/json id=data>\n(.*?)</script>', page, re.S)
data = json.loads(data)
assert len(data["ranks"]) == 3 and data["comms"] == ["world"] and data["sizes"] == [3]
names = [data["texts"][o[3]] for o in data["ops"] if o[2] == 4]
assert sorted(names) == ["all_reduce f32 sum 32"] * 2 + ["barrier"], names
assert page.rstrip().endswith("</script>") and page.count("<script") == 2
assert not re.search(r'(src|href)=|https?:|@import|url[(]|innerHTML', page)
PYTHON
if command -v node >/dev/null; then                  # its script is one at least
  sed -n '/^'"'use strict'"'$/,/^<\/script>$/p' "$here/page.html" | sed '$d' >"$here/page.js"
  node --check "$here/page.js" 2>"$here/err" || fail "the page's script is none"
fi

# ---- of a job that hangs, and goes on hanging
: >"$here/job"
TUTTI_BOX=none "$tutti" run --grace 500ms -n 3 "$actor" differ 1 missing >"$here/job" 2>&1 \
  </dev/null &
job=$!
hangs() {
  pid=$(pgrep -x -P "$job" actor | head -1)
  [ -n "$pid" ] && [ "$("$tutti" ps "$pid" --json | grep -c '"waits":true.*"all_reduce"')" = 2 ]
}
eventually hangs || fail "the job does not hang"
look trace "$pid" --text
exits 0 "of a job that hangs"
tells "$at all_reduce f32 sum 32 #4 at .* by [a-z]+, under way for .*; not there: rank 1\$"
look trace "$pid"
events "$here/out" job
look trace "$pid" --fr "$here/fr"
exits 0 "as pickles"
shows "^3 files in $here/fr, of 8 calls; look: torchfrtrace $here/fr\$"
shows '^left out, because torchfrtrace does not know them: 3 scan, 3 send, 3 recv$'
[ "$(cd "$here/fr" && echo *)" = "rank_0 rank_1 rank_2" ] || fail "not a file for each rank"
look trace "$pid" --fr "$here/fr"
exits 70 "into a folder with files"
says '^tutti trace: .*/fr: Directory not empty$'
end

# ---- what cannot be
look trace "$pid"
exits 65 "where no job is"
head -c 3000 "$box" >"$here/cut.box"
look trace "$here/cut.box"
exits 66 "of a damaged box"
says '^tutti trace: .*/cut.box: it is damaged: it has been cut off$'
look trace "$box" -o "$here/nowhere/file"
exits 70 "where no file can be"
look trace "$box" -o /dev/full
exits 70 "where nothing can be written"
for wrong in "trace" "trace a b" "trace $box --bogus" "trace $box -o" "trace $box --html --text" \
    "trace $box --fr" "trace $box --fr a -o b"; do
  look $wrong
  exits 64 "for: $wrong"
  [ "$(wc -l <"$here/err")" = 1 ] || fail "not one line for: $wrong"
done
