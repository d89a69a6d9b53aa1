# ctest: timeout=900 labels=nosan
# The same on machines of two and of four nodes that qemu plays: memory of every kind, with each way
# of --bind, asked of the kernel page by page. Wants the packages qemu-system-x86 and
# linux-image-cloud-amd64 (17 and 27 MB to fetch); TUTTI_TEST_QEMU, TUTTI_TEST_KERNEL name others,
# TUTTI_TEST_NODES other numbers of nodes.
set -uo pipefail
skip() { echo "numa.guest: skipped: $1"; exit 77; }

[ "$(uname -m)" = x86_64 ] || skip "the guest's machine is an x86_64"
qemu=${TUTTI_TEST_QEMU:-qemu-system-x86_64}
command -v "${qemu%% *}" >/dev/null ||
  skip "no ${qemu%% *}: apt-get install --no-install-recommends qemu-system-x86"
kernel=${TUTTI_TEST_KERNEL:-}
for file in /boot/vmlinuz-*; do
  [ -n "$kernel" ] || [ ! -r "$file" ] || kernel=$file
done
[ -r "$kernel" ] || skip "no kernel that can be read in /boot: apt-get install \
--no-install-recommends linux-image-cloud-amd64"

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
program=$TUTTI_BUILD/test/numa/placement
# the programs themselves among them
mapfile -t files < <(ldd "$program" "$TUTTI_BUILD/tutti" | grep -o '/[^ :]*' | sort -u)
"$TUTTI_BUILD/test/numa/archive" "$program" "${files[@]}" >"$folder/archive" || exit 1

# guest NODES: each of 512 MiB, with one CPU or two.
guest() {
  local nodes=$1 cpus=$(($1 == 2 ? 2 : 1)) i topology=()
  for ((i = 0; i < nodes; i++)); do
    topology+=(-object "memory-backend-ram,size=512M,id=m$i"
      -numa "node,memdev=m$i,cpus=$((i * cpus))-$((i * cpus + cpus - 1))")
  done
  # shellcheck disable=SC2086
  timeout -k 5 400 $qemu -machine pc,accel=tcg -cpu max -smp $((nodes * cpus)) \
    -m $((nodes * 512))M "${topology[@]}" -nodefaults \
    -no-user-config -display none -no-reboot -serial stdio -kernel "$kernel" \
    -initrd "$folder/archive" \
    -append "console=ttyS0 quiet panic=-1 numa_balancing=disable -- $TUTTI_BUILD/tutti" \
    </dev/null >"$folder/out" 2>&1
  tr -d '\r' <"$folder/out" | tail -n 60
  grep -q "^nodes: $nodes" "$folder/out" ||
    { echo "numa.guest: not a machine of $nodes nodes"; return 1; }
  grep -q "^  a rank bound to one node has its memory there" "$folder/out" &&
    [ "$(grep -c "^  NUMA node [0-9]*: CPU" "$folder/out")" = "$nodes" ] ||
    { echo "numa.guest: not what doctor says"; return 1; }
  grep -q "^all memory is where it belongs" "$folder/out" && ! grep -q WRONG "$folder/out"
}

for nodes in ${TUTTI_TEST_NODES:-2 4 ${TUTTI_PROVE:+3}}; do
  started=$SECONDS
  guest $nodes || { echo "numa.guest: $nodes nodes: failed"; exit 1; }
  echo "numa.guest: $nodes nodes: fine, $((SECONDS - started)) s"
done
