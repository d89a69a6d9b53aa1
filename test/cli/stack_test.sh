# ctest: timeout=200 labels=nosan
# tutti why --stack: the stack of the rank that keeps the others, of C and of Python, or why there
# is none; the rank goes on as before.
. "$(dirname "$0")/lib.sh"
export TUTTI_SPAN_BYTES=16M TUTTI_WARN_MS=-1
hang=$TUTTI_BUILD/test/cli/hang

ranks() { pgrep -P "$job"; }
end() {
  kill -KILL $(ranks)
  kill -KILL "$job"
  wait "$job"
  job=
} 2>"$here/end"
trap '[ -z "${job-}" ] || end; rm -rf "$here"' EXIT

# asks PATTERN COMMAND...: a job whose rank 2 keeps the others shows that.
asks() {
  pattern=$1
  shift
  "$tutti" run --grace 1h -n 3 "$@" >"$here/job" 2>&1 </dev/null &
  job=$!
  shown() {
    timeout 60 "$tutti" why "$job" --stack >"$here/out" 2>"$here/err"
    grep -q '^  waiting: ranks 0, 1: barrier' "$here/out" && grep -qE -e "$pattern" "$here/out"
  }
  eventually shown || fail "expected on stdout: $pattern"
}

asks '^    .*/hang\(\+0x' "$hang" missing
grep -qE '^  stack of rank 2, pid [0-9]+:$' "$here/out" || fail "whose stack?"
! grep -q 'libtutti' "$here/out" || fail "the handler itself is shown"
for pid in $(ranks); do kill -URG "$pid"; done
shown || fail "a rank does not answer again"
[ "$(ranks | wc -l)" = 3 ] || fail "the signal has ended a rank"
end
asks '^    .*libc.*nanosleep' "$hang" deadline
end
asks '^  stack of rank 2: no answer: it is stopped$' "$hang" stopped
end
if PYTHONPATH=$TUTTI_BUILD/python python3 -c 'import tutti' 2>"$here/end"; then
  asks '^      File ".*/test/cli/hang.py", line [789]' \
    env PYTHONPATH="$TUTTI_BUILD/python" python3 "$TUTTI_SOURCE/test/cli/hang.py"
  end
fi
