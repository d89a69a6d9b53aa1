# What a rank finds: its variables, its arguments, its arena, its CPU.
. "$(dirname "$0")/lib.sh"

run -n 3 sh -c 'echo "$RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE $MASTER_ADDR $TUTTI_RESTART"'
[ "$(sort "$here/out")" = "0/3 0/3 127.0.0.1 0
1/3 1/3 127.0.0.1 0
2/3 2/3 127.0.0.1 0" ] || fail "rank, size or address"

run -n 2 sh -c 'echo "$MASTER_PORT $TUTTI_RUN_ID"'
[ "$(sort -u "$here/out" | wc -l)" = 1 ] || fail "the ranks do not agree on port and job"
read -r port name <"$here/out"
[ "$port" -ge 1024 ] && [ "$port" -le 65535 ] || fail "no port"
[[ $name =~ ^run-[0-9]+-[0-9]+-0$ ]] || fail "no name of the job"
run -n 2 sh -c 'echo $TUTTI_RUN_ID'
[ "$(head -n 1 "$here/out")" != "$name" ] || fail "two jobs have the same name"

# Another launcher's words, or an outer job's, do not shine through; everything else does.
RANK=7 WORLD_SIZE=9 LOCAL_RANK=7 MASTER_PORT=1 TUTTI_RANK=5 TUTTI_SIZE=8 ROLE_NAME=x \
  TORCHELASTIC_ERROR_FILE=x TORCHELASTIC_USE_AGENT_STORE=True MINE='a  b' \
  run -n 1 sh -c '
    echo "$RANK $WORLD_SIZE $LOCAL_RANK ${TUTTI_RANK-} ${TUTTI_SIZE-}" \
      "$ROLE_NAME ${TORCHELASTIC_ERROR_FILE-}" \
      "${TORCHELASTIC_USE_AGENT_STORE-} $MINE"; [ $MASTER_PORT != 1 ]'
exits 0 "(MASTER_PORT)"
prints "0 1 0   default   a  b"

# What torchrun sets besides, by which programs know it.
run -n 2 --restart 3 sh -c '[ $TORCHELASTIC_RUN_ID = $TUTTI_RUN_ID ] || exit 1
  echo "$TORCHELASTIC_RESTART_COUNT/$TORCHELASTIC_MAX_RESTARTS $GROUP_RANK/$GROUP_WORLD_SIZE" \
    "$ROLE_RANK/$ROLE_WORLD_SIZE"'
exits 0 "(TORCHELASTIC_RUN_ID)"
[ "$(sort "$here/out")" = "0/3 0/1 0/2
0/3 0/1 1/2" ] || fail "torchrun's variables"
run -n 1 --rdzv_id=night-7 --master-port 12345 sh -c 'echo $TORCHELASTIC_RUN_ID $MASTER_PORT'
prints "night-7 12345"
run -n 2 --shutdown-timeout 1 --role trainer --monitor-interval 0.1 -v true
says "^tutti run: --role has no effect: the ranks meet in memory$"

# Threads of OpenMP: one a rank, as torchrun has it, unless it is set or there is one rank. It is
# said with -v, or at a terminal.
unset OMP_NUM_THREADS
run -n 2 sh -c 'echo "${OMP_NUM_THREADS-none}"'
[ "$(sort -u "$here/out")" = 1 ] || fail "OMP_NUM_THREADS of two ranks"
quiet
run -n 2 -v true
says "^tutti run: OMP_NUM_THREADS=1 for each rank, as torchrun has it; set it to choose otherwise$"
OMP_NUM_THREADS=3 run -v -n 2 sh -c 'echo "${OMP_NUM_THREADS-none}"'
[ "$(sort -u "$here/out")" = 3 ] || fail "OMP_NUM_THREADS that is set"
quiet
run -n 1 -v sh -c 'echo "${OMP_NUM_THREADS-none}"'
prints none
quiet
if command -v script >/dev/null; then
  script -qec "'$tutti' run -n 2 true" /dev/null >"$here/out" </dev/null
  printed "OMP_NUM_THREADS=1 for each rank" 1 || fail "not said at a terminal"
fi
run -n 1 sh -c 'env | sort | grep -c ^RANK='
prints 1

run -n 3 --local-rank-arg sh -c 'echo "$0 $*"' --local_rank=9 'x y'
[ "$(sort "$here/out")" = "--local_rank=9 x y --local_rank=0
--local_rank=9 x y --local_rank=1
--local_rank=9 x y --local_rank=2" ] || fail "--local-rank-arg"
run -n 2 --as-gloo sh -c 'echo "as gloo: $TUTTI_AS_GLOO"'
[ "$(sort -u "$here/out")" = "as gloo: 1" ] || fail "--as-gloo"
run -n 1 echo x
prints x

# The arena: an open memfd of that inode, the same for all; no other descriptor of ours.
run -n 2 sh -c 'fd=${TUTTI_ARENA%%:*}
  echo "$(readlink /proc/$$/fd/$fd) $(stat -L -c %i /proc/$$/fd/$fd) ${TUTTI_ARENA#*:}"'
[ "$(sort -u "$here/out" | wc -l)" = 1 ] || fail "the ranks differ"
read -r name deleted inode said <"$here/out"
[[ $name = /memfd:tutti* ]] && [ "$inode" = "$said" ] || fail "TUTTI_ARENA is not the arena"
run -n 2 sh -c 'for fd in /proc/$$/fd/*; do
  [ "$fd" = "/proc/$$/fd/${TUTTI_ARENA%%:*}" ] || echo "${fd##*/}"; done'
wanted=$(sh -c 'for fd in /proc/$$/fd/*; do echo "${fd##*/}"; done' </dev/null)
[ "$(sort -u "$here/out")" = "$(sort -u <<<"$wanted")" ] ||
  fail "stray descriptors; expected $(xargs <<<"$wanted")"

# The limit of descriptors and the signals are ours.
run -n 2 sh -c 'ulimit -n; grep -E "^Sig(Blk|Ign)" /proc/$$/status | xargs'
wanted=$(sh -c 'ulimit -n; grep -E "^Sig(Blk|Ign)" /proc/$$/status | xargs' </dev/null)
[ "$(sort -u "$here/out")" = "$(sort -u <<<"$wanted")" ] ||
  fail "limits or signals differ; expected $wanted"

# Binding: a CPU each, round and round; a node's CPUs; nothing.
allowed=$(grep Cpus_allowed_list /proc/self/status | cut -f2)
count=$(nproc)
run -n $((count + 1)) --bind core --tag sh -c 'grep Cpus_allowed_list /proc/self/status | cut -f2'
exits 0 "of --bind core"
[ "$(grep -vcE '^\[[0-9]+\] [0-9]+$' "$here/out")" = 0 ] || fail "a rank has not exactly one CPU"
[ "$(cut -d' ' -f2 "$here/out" | sort -u | wc -l)" = "$count" ] || fail "not every CPU is used"
cpu_of() { grep "^\[$1\] " "$here/out" | cut -d' ' -f2; }
[ "$(cpu_of 0)" = "$(cpu_of "$count")" ] || fail "not round and round"
run -n 2 --bind none sh -c 'grep Cpus_allowed_list /proc/self/status | cut -f2'
prints "$allowed
$allowed"
run -n 2 --bind numa sh -c 'grep Cpus_allowed_list /proc/self/status | cut -f2'
exits 0 "of --bind numa"
