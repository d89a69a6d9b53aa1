# ctest: timeout=200 serial needs=orphans
# Nothing is left behind: no process, zombie, file, socket; whichever way the job ends.
. "$(dirname "$0")/lib.sh"

mkdir "$here/tmp"
export TMPDIR=$here/tmp
# Other jobs may come and go meanwhile: only what bears our name counts, and of sockets only those
# of a launcher that is gone.
look() {
  local id
  ls -A "$TMPDIR"
  ls -A /dev/shm 2>/dev/null | grep -i tutti
  ls -A /tmp | grep -E 'tutti.*run-[0-9]'
  for id in $(grep -oE 'run-[0-9]+-' /proc/net/unix | cut -d- -f2); do
    [ -e "/proc/$id" ] || echo "socket of run-$id"
  done
}
mark=mark-$$-$RANDOM                  # in the environment of everything that a job here starts
marked() { local MARK=$mark; export MARK; "$@"; }
mine() { grep -lzx "MARK=$mark" /proc/[0-9]*/environ 2>/dev/null | cut -d/ -f3; }
before=$(look)
clean() {
  [ "$(look)" = "$before" ] ||
    fail "files or sockets left behind after $1: $(diff <(echo "$before") <(look))"
  [ -z "$(mine)" ] ||
    fail "processes left behind after $1: $(ps -o pid,stat,args -p "$(mine | xargs | tr ' ' ,)")"
}

marked run -n 64 sh -c 'echo $RANK'
exits 0 "of 64 ranks"
[ "$(sort -n "$here/out")" = "$(seq 0 63)" ] || fail "64 ranks did not all speak"
clean "64 ranks"
marked run -n 64 "$actor" barrier
exits 0 "of 64 ranks in a barrier"
[ "$(grep -c '^rank [0-9]* of 64 met$' "$here/out")" = 64 ] || fail "not 64 ranks met"
clean "a barrier of 64"

marked run -n 4 "$actor" lose 2 kill
exits 137 "of a killed rank"
clean "a killed rank"
marked run -n 3 --timeout 300ms sleep 60
exits 124 "of a timeout"
clean "a timeout"
marked begin -n 3 sh -c 'echo ready; exec sleep 60'
eventually printed ready 3 || fail "no start"
pids=$(pgrep -P "$job")
kill -KILL "$job"
{ finish; } 2>/dev/null                  # the shell's own word about it
eventually gone $pids || fail "ranks survive"
clean "a killed launcher"

# A rank that is reaped leaves no zombie while others go on.
mkfifo "$here/hold"
begin -n 3 sh -c '[ $RANK = 2 ] || exit 0; echo ready; read -r x <"$0"' "$here/hold"
eventually printed ready 1 || fail "no start"
no_zombie() { [ "$(pgrep -P "$job" | wc -l)" = 1 ]; }
eventually no_zombie || fail "zombies: $(ps -o pid,stat,args --ppid "$job")"
echo x >"$here/hold"
finish
exits 0 "with ranks that ended early"

# Children of ranks: those that end by themselves soon after are let; others are ended, also where
# SIGTERM is ignored.
marked run -n 2 sh -c '(sleep 0.05; echo late) & exit 0'
exits 0 "with late children"
printed late 2 || fail "children were not let end"
clean "late children"
marked run -n 2 sh -c 'sleep 60 & exit 0'
exits 0 "with children left behind"
clean "children left behind"
marked run -n 2 --grace 300ms sh \
  -c '(trap "" TERM; while :; do sleep 0.05; done) & (setsid sleep 60 &) ; exit 3'
exits 3 "with stubborn children"
clean "stubborn children"
# A child that is not ours is not touched: the shell that became the launcher had it.
sh -c 'sleep 60 & echo $! >"$0"; exec "$1" run -n 2 true' "$here/child" "$tutti"
kill -0 "$(cat "$here/child")" || fail "somebody else's child was ended"
kill "$(cat "$here/child")"
