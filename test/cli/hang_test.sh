# ctest: timeout=300 labels=nosan needs=proc
# What tutti why says of jobs that stand still, each for another reason, is what the manual shows.
#
#   TUTTI_BUILD=build/release TUTTI_SOURCE=. bash test/cli/hang_test.sh --write
#
# writes these texts into the manual. Pids, names of jobs, times and loads are put in their place.
. "$(dirname "$0")/lib.sh"
export TUTTI_SPAN_BYTES=16M TUTTI_WARN_MS=-1
hang=$TUTTI_BUILD/test/cli/hang
manual=$TUTTI_SOURCE/src/cli/tutti-why.1
script=hang
mkfifo "$here/fifo"
export HANG_FIFO=$here/fifo

ranks() { pgrep -P "$job" -f 'cli/hang'; }
end() {
  kill -KILL $(ranks)
  kill -KILL "$job"
  wait "$job"
  job=
} 2>"$here/end"
trap '[ -z "${job-}" ] || end; rm -rf "$here"' EXIT

# Are that many ranks in a wait, and are all others where they will be?
stands() {
  "$tutti" ps "$1" --json >"$here/json" 2>"$here/err"
  [ "$(grep -o '"waits":true' "$here/json" | wc -l)" = "$2" ] && grep -qE "$3" "$here/json"
}

plain() {
  sed -E -e 's/run-[0-9]+-[0-9]+-[0-9]+/run-4700-81723-0/' -e 's/job hang-[0-9]+/job night/' \
    -e 's/pid [0-9]+/pid 4703/g' \
    -e 's/(-CONT|-p) [0-9]+/\1 4703/g' -e 's/python3[.0-9]*/python3/g' \
    -e 's/for [0-9.]+ (us|ms|s)\b/for 40 s/g' \
    -e 's/deadline in ([12][0-9] min [0-9]+ s|30 min)/deadline in 29 min 20 s/' \
    -e 's/deadline in ([345][0-9] min [0-9]+ s|1 h)/deadline in 59 min 20 s/' \
    -e 's/[0-9]+ spinning, [0-9]+ asleep/asleep/; s/spinning/asleep/' \
    -e 's/asleep, [0-9]+ % CPU/asleep, 0 % CPU/g' \
    -e 's/(running|kernel), [0-9]+ % CPU/\1, 98 % CPU/g' \
    -e 's/\(anon_pipe_read\)/(pipe_read)/; s/\(do_nanosleep\)/(hrtimer_nanosleep)/'
}

# Lines of a screen of 80 columns behind the manual's margin.
narrow() {
  awk '{
    indent = match($0, /[^ ]/) - 1; line = sprintf("%" indent "s", ""); used = 0
    for (i = 1; i <= NF; i++) {
      if (used && length(line) + 1 + length($i) > 72) {
        print line; line = sprintf("%" (indent + 4) "s", ""); used = 0
      }
      line = line (used++ ? " " : "") $i
    }
    print line
  }'
}

# shown TITLE PID WAITERS REST: what tutti why says of a job that stands still. FIRST/WAITERS: one
# comes when FIRST wait: so it is known which wait is the oldest.
shown() {
  if [ "${3%/*}" != "$3" ]; then
    eventually stands "$2" "${3%/*}" . || fail "the others do not wait: $1"
    echo x >"$here/fifo"
  fi
  eventually stands "$2" "${3#*/}" "$4" || {
    cp "$here/json" "$here/out"
    fail "not all stand still: $1"
  }
  code=0
  "$tutti" why "$2" --stuck 1ms >"$here/out" 2>"$here/err" || code=$?
  quiet
  fits "$here/out"
  whole "$here/out" >"$here/whole"
  [ "$(wc -l <"$here/whole")" -le 5 ] || fail "more than five lines: $1"
  {
    printf '.SS %s\n.nf\n' "$1"
    plain <"$here/whole" | narrow | sed -e 's/\\/\\e/g' -e 's/-/\\-/g'
    printf '.fi\n'
  } >>"$here/texts"
}

# way TITLE RANKS WAITERS REST COMMAND...: a job of tutti run.
way() {
  local title=$1 size=$2 waiters=$3 rest=$4
  shift 4
  "$tutti" run --grace 1h -n "$size" "$@" >"$here/job" 2>&1 </dev/null &
  job=$!
  eventually ranks >"$here/pids" || fail "no job: $title"
  shown "$title" "$(head -1 "$here/pids")" "$waiters" "$rest"
  end
}

way "A rank has not joined" 3 0 '"state":"not there yet"' "$hang" join
way "A rank stays in code of C" 3 2 '"state":"running"' "$hang" missing
python=no
if PYTHONPATH=$TUTTI_BUILD/python python3 -c 'import tutti' 2>"$here/end"; then
  python=yes
  way "A rank stays in code of Python" 3 2 '"state":"running"' \
    env PYTHONPATH="$TUTTI_BUILD/python" python3 "$TUTTI_SOURCE/test/cli/hang.py"
fi
way "A rank is in another call" 3 2/3 '"kind":"recv"' "$hang" call
way "A rank is in another comm" 4 2/3 '"kind":"barrier"' "$hang" comm
way "Two comms are waited for crosswise" 2 1/2 '"kind":"barrier"' "$hang" crossed
way "A rank is stopped" 3 2 '"state":"stopped"' "$hang" stopped
way "A rank reads, and nothing comes" 3 2 '"kind":"barrier"' "$hang" read
way "A message has no receiver" 3 1 '"kind":"send"' "$hang" message
way "A turn is not taken" 3 2 '"kind":"turn_begin"' "$hang" turn
way "A key of the store is never set" 3 1 '"kind":"get"' "$hang" key
way "A deadline is far away" 3 2 '"kind":"barrier"' "$hang" deadline
way "A rank is dead, under tutti run" 3 0 '"state":"dead"' "$hang" dead

# Without a launcher the parent alone knows how it ended; this one does not ask.
TUTTI_JOB=hang-$$ TUTTI_SIZE=3 bash -c '
  for rank in 0 1 2; do TUTTI_RANK=$rank "$0" dead & done
  exec sleep 3600' "$hang" >"$here/job" 2>&1 </dev/null &
job=$!
eventually ranks >"$here/pids" || fail "no job without a launcher"
shown "A rank is dead, without a launcher" "$(head -1 "$here/pids")" 0 '"state":"dead"'
end

from='.\" The rest of this section is written by: bash test/cli/hang_test.sh --write'
to='.\" end of what it writes'
between() { awk -v from="${from//\\/\\\\}" -v to="${to//\\/\\\\}" '
  $0 == to { on = 0 } on { print } $0 == from { on = 1 }' "$1"; }
if [ "${1-}" = --write ]; then
  [ $python = yes ] || fail "this needs a python3 that can import tutti"
  awk -v texts="$here/texts" -v from="${from//\\/\\\\}" -v to="${to//\\/\\\\}" '
    $0 == to { on = 0; while ((getline line < texts) > 0) print line }
    !on { print }
    $0 == from { on = 1 }' "$manual" >"$here/manual"
  cat "$here/manual" >"$manual"
  exit
fi
between "$manual" >"$here/want"
if [ $python = no ]; then
  echo "cli.hang: no python3 can import tutti: that way is left out"
  awk '/^\.SS/ { skip = /Python/ } !skip' "$here/want" >"$here/less"
  cp "$here/less" "$here/want"
fi
diff -u "$here/want" "$here/texts" >"$here/out" || fail "not what the manual shows"
