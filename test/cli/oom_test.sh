# A rank that the kernel kills for want of memory is named as that, by the launcher and in the
# survivors' reports; one that is killed by hand is not.
. "$(dirname "$0")/lib.sh"
export TUTTI_SPAN_BYTES=16M

# A group of 96 MiB, of version 1 or 2, below our own.
group=
own=$(sed -n 's/^[0-9]*:memory://p' /proc/self/cgroup)
second=$(sed -n 's/^0:://p' /proc/self/cgroup)
try() {  # DIRECTORY FILE SWAP VALUE
  mkdir "$1" || return 1
  echo $((96 << 20)) >"$1/$2" && group=$1 && { echo "$4" >"$1/$3" || true; } && return 0
  rmdir "$1"
  return 1
} 2>>"$here/group"
try "/sys/fs/cgroup/memory${own%/}/tutti-oom-$$" memory.limit_in_bytes \
  memory.memsw.limit_in_bytes $((96 << 20)) ||
  try "/sys/fs/cgroup${second%/}/tutti-oom-$$" memory.max memory.swap.max 0 ||
  skip "no memory cgroup can be made here"
trap 'rmdir "$group"; rm -rf "$here"' EXIT

inside() {
  code=0
  timeout -k 5 60 bash -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" "$tutti" run "$@" \
    >"$here/out" 2>"$here/err" </dev/null || code=$?
}

# The two others end by themselves, however slow: they ignore SIGTERM, and SIGKILL is far off.
inside --grace 50s -n 3 "$actor" fat 1
exits 137 "of a rank with too much memory"
says '^tutti run: rank 1 \(pid [0-9]+\) was killed by signal 9 \(SIGKILL\) by the kernel: out of '\
'memory; '
others 2
[ "$(grep -c 'rank 1 (pid .*) died, killed by signal 9 (SIGKILL) by the kernel: out of memory' \
  "$here/err")" -ge 1 ] || fail "the survivors do not say it"
says '^  1 +[0-9]+ +OOM kill '
inside --grace 50s -n 3 "$actor" lose 1 kill
exits 137 "of a rank that is killed"
says 'killed by signal 9 \(SIGKILL\); '
others 2
! grep -q 'out of memory' "$here/err" || fail "a kill by hand counts as one by the kernel"
