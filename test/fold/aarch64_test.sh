# ctest: labels=nosan
# Cross-built for aarch64 and run by qemu-aarch64: NEON's kernels give the bits of the plain ones,
# whatever the program has set in FPCR. On that processor itself the tests beside this one show it.
# An emulator on x86 keeps x86's order of memory: it proves nothing about barriers.
set -u
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
lost() { echo "$*" >&2; exit 1; }
skip() { echo "$*"; exit 77; }
cc=aarch64-linux-gnu-gcc
qemu=$(command -v qemu-aarch64-static || command -v qemu-aarch64) ||
  skip "qemu-aarch64 is missing (Debian: qemu-user-static)"
command -v $cc >/dev/null || skip "$cc is missing (Debian: gcc-aarch64-linux-gnu)"
echo 'int main(void) { return 0; }' >"$scratch/try.c"
$cc -static -o "$scratch/try" "$scratch/try.c" 2>"$scratch/said" ||
  skip "$cc finds no C library (Debian: libc6-dev-arm64-cross): $(head -n1 "$scratch/said")"

cd "$TUTTI_SOURCE" || exit 1
made=()
for file in src/fold/{fold,neon,plain,scalar,avx2,avx512}.c test/fold/aarch64/bits.c; do
  object=$scratch/$(basename "$file" .c).o
  made+=("$object")
  $cc -std=c11 -D_GNU_SOURCE -O0 -ffp-contract=off -Wall -Wextra -Werror -Iinclude -Isrc \
    -c "$file" -o "$object" &
done
wait
$cc -static -o "$scratch/bits" "${made[@]}" || lost "it was not built"
"$qemu" "$scratch/bits" || lost "bits: exit status $?"
! BITS_BREAK=1 "$qemu" "$scratch/bits" >/dev/null 2>&1 || lost "a broken bit was not seen"
