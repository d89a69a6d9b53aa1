# ctest: timeout=200 needs=ignored
# Signals: passed on, once; the end by request; the end of the launcher itself.
. "$(dirname "$0")/lib.sh"

ranks() { pgrep -P "$job" | xargs; }

# Every one that is passed on reaches every rank, whoever sends it to the launcher alone.
for signal in HUP INT TERM USR1 USR2 WINCH; do
  begin -n 3 sh -c "trap 'echo got; kill \$!; exit 0' $signal; sleep 60 & echo ready; wait"
  eventually printed ready 3 || fail "no start ($signal)"
  kill -"$signal" "$job"
  finish
  printed got 3 || fail "SIG$signal did not reach all ranks"
  case $signal in
    HUP | INT | TERM)
      exits $((128 + $(kill -l $signal))) "after SIG$signal"
      says "told to end by signal [0-9]+ \(SIG$signal\)" ;;
    *) exits 0 "after SIG$signal"; quiet ;;
  esac
done

# Ranks that do not end on request are killed after the grace period.
begin -n 2 --grace 300ms sh -c 'trap "" TERM; echo ready; while :; do sleep 0.05; done'
eventually printed ready 2 || fail "no start"
pids=$(ranks)
kill -TERM "$job"
finish
exits 143 "after SIGTERM"
says 'not all ranks ended within 300 ms; the rest was killed'
gone $pids || fail "ranks survive"

# Ctrl-C at a terminal: from the terminal to every rank, exactly once.
"$actor" terminal ready 3 3 "$tutti" run -n 3 "$actor" count 2 >"$here/out" 2>&1
code=$?
[ "$code" = 77 ] && skip "no pseudo terminals here"
exits 130 "after Ctrl-C"
grep -q 'told to end by signal 2 (SIGINT)' "$here/out" || fail "nothing said after Ctrl-C"
[ "$(grep -c 'got 1' "$here/out")" = 3 ] || fail "Ctrl-C did not reach each rank exactly once"
begin -n 3 "$actor" count 28             # SIGWINCH, sent to the launcher alone
eventually printed ready 3 || fail "no start"
kill -WINCH "$job"
finish
exits 0 "after SIGWINCH"
printed 'got 1' 3 || fail "SIGWINCH did not reach each rank exactly once"

# SIGQUIT asks why the ranks wait, and ends nobody; so does Ctrl-\ at a terminal.
begin -n 3 "$actor" stall 2 pause
eventually printed stalled 1 || fail "no start"
asked() {
  kill -QUIT "$job"
  grep -q '^  waiting: ranks 0, 1: barrier #3 at cli/actor.c:' "$here/err" &&
    grep -q '^  kept by: rank 2: in its own code for .*, last: all_reduce f32 sum 1 #2' "$here/err"
}
eventually asked || fail "no answer to SIGQUIT"
says '^tutti run: SIGQUIT asks why the ranks wait$'
[ "$(ranks | wc -w)" = 3 ] || fail "SIGQUIT has ended a rank"
kill -TERM "$job"
finish
exits 143 "after SIGTERM behind SIGQUIT"
begin -n 2 sh -c 'echo ready; until [ -e "$0" ]; do sleep 0.02; done' "$here/go"
eventually printed ready 2 || fail "no start"
kill -QUIT "$job"
eventually grep -q '^  kept by: ranks 0, 1: has not joined' "$here/err" ||
  fail "no answer of ranks that have not joined"
touch "$here/go"
finish
exits 0 "after SIGQUIT"
: >"$here/out"
"$actor" terminal ready 2 28 "$tutti" run -n 2 sh \
  -c 'echo ready; until grep -q asks "$0"; do sleep 0.02; done; echo alive' "$here/out" \
  >"$here/out" 2>&1 || fail "at a terminal"
printed alive 2 || fail "a key has ended ranks"

# A rank without a handler is not ended by SIGUSR1; one line says that it did not get it.
# They do not fork: a shell blocks all signals for a moment where it does, and what is blocked may
# have somebody who waits for it.
mkfifo "$here/over"
exec 4<>"$here/over"
begin -n 3 sh -c '[ $RANK != 1 ] || trap "echo got" USR1
  echo ready; until read -r line; do :; done <"$0"' "$here/over"
eventually printed ready 3 || fail "no start"
kill -USR1 "$job"
eventually printed got 1 || fail "SIGUSR1 did not reach its handler"
says '^tutti run: SIGUSR1 was not passed on to ranks 0, 2: it would end what has no handler for it$'
printf '\n\n\n' >&4
finish
exits 0 "after SIGUSR1"
[ "$(wc -l <"$here/err")" = 1 ] || fail "more than one line about SIGUSR1"
exec 4<&-

# What we were told to ignore (nohup) is ignored, here and in the ranks.
mkfifo "$here/hold"
(trap '' HUP; exec "$tutti" run -n 2 \
  sh -c 'echo ready; kill -HUP $$; read -r x <"$0"; echo went on' \
  "$here/hold") >"$here/out" 2>"$here/err" &
job=$!
eventually printed ready 2 || fail "no start under nohup"
kill -HUP "$job"
exec 9<>"$here/hold"
printf 'x\nx\n' >&9
finish
exec 9>&-
exits 0 "under nohup"
printed 'went on' 2 || fail "ranks ended by an ignored signal"

# The launcher killed: the ranks get SIGTERM. Stopped and continued: nothing happens.
for signal in KILL SEGV; do
  begin -n 4 sh -c 'echo ready; exec sleep 60'
  eventually printed ready 4 || fail "no start"
  pids=$(ranks)
  [ "$(wc -w <<<"$pids")" = 4 ] || fail "not four ranks"
  kill -"$signal" "$job"
  { finish; } 2>/dev/null                # the shell's own word about it
  eventually gone $pids || fail "ranks survive their launcher's SIG$signal"
done
begin -n 2 sh -c 'echo ready; kill -STOP $$; echo on'
eventually printed ready 2 || fail "no start"
all_stopped() { local p; for p in $(ranks); do grep -q '^State:.T' "/proc/$p/status" ||
  return 1; done; }
eventually all_stopped || fail "the ranks are not stopped"
kill -CONT $(ranks)
finish
exits 0 "after stop and continue"
printed on 2 || fail "stopped ranks did not go on"

# A second request does not shorten the first one's grace, nor hurt.
begin -n 2 sh -c 'trap "sleep 0.3; echo saved; exit 0" TERM; sleep 60 & echo ready; wait'
eventually printed ready 2 || fail "no start"
kill -TERM "$job"
kill -TERM "$job"
finish
exits 143 "after two SIGTERM"
printed saved 2 || fail "ranks were not let end"
