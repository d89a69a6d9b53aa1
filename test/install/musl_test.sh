# ctest: timeout=900 labels=nosan
# With musl, whose mutexes, forks and stacks are others: a death is seen, static and dynamic, and
# with glibc the same program says the same. In the long tests (TUTTI_PROVE=1) the whole library and
# the command are built by musl-gcc and used: ranks, a killed one, small stacks, the doctor.
set -u
command -v musl-gcc >/dev/null || { echo "musl-gcc is missing (Debian: musl-tools)"; exit 77; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
lost() { echo "$*" >&2; exit 1; }
cd "$TUTTI_SOURCE" || exit 1

# The kernel's headers, which musl-gcc finds nowhere.
mkdir "$scratch/kernel"
ln -s /usr/include/linux /usr/include/asm-generic "$scratch/kernel"
ln -s "/usr/include/$(uname -m)-linux-gnu/asm" "$scratch/kernel"
sources="test/install/musl/marks.c src/os/process_mark.c src/os/futex.c src/os/thread.c
  src/arena/robust.c src/base/clock.c"
built() {  # PROGRAM COMPILER OPTION...
  # shellcheck disable=SC2086 # a list of files
  "${@:2}" -std=c11 -D_GNU_SOURCE -O1 -Wall -Wextra -Werror -Iinclude -Isrc -o "$scratch/$1" \
    $sources -pthread || lost "$1 was not built"
}
built static musl-gcc -isystem "$scratch/kernel" -static &
built dynamic musl-gcc -isystem "$scratch/kernel" &
built glibc cc &
wait
for program in static dynamic glibc; do
  "$scratch/$program" || lost "$program: exit status $?"
done

[ "${TUTTI_PROVE:-}" = 1 ] || { echo "the whole library: TUTTI_PROVE=1"; exit 0; }
built=${TUTTI_MUSL_BUILD:-$scratch/build}
CFLAGS="-isystem $scratch/kernel" cmake -G Ninja -B "$built" -DCMAKE_C_COMPILER=musl-gcc \
  -DTUTTI_TESTS=OFF -DTUTTI_PERF=OFF -DTUTTI_PYTHON= >"$scratch/log" 2>&1 &&
  cmake --build "$built" >"$scratch/log" 2>&1 || { tail -n 30 "$scratch/log"; lost "not built"; }
awk '/^```c$/ { inside = 1; next } /^```$/ && inside { exit } inside' README.md >"$scratch/first.c"
link() {  # PROGRAM SOURCE OPTION...
  musl-gcc -D_GNU_SOURCE -Iinclude -o "$scratch/$1" "$2" "${@:3}" || lost "$1 was not linked"
}
link first_static "$scratch/first.c" -static "$built/libtutti.a"
link first_dynamic "$scratch/first.c" -L"$built" -ltutti
link stack_static test/install/musl/stack.c -static "$built/libtutti.a"
export LD_LIBRARY_PATH=$built
for program in first_static first_dynamic; do
  "$built/tutti" run -n 4 "$scratch/$program" >"$scratch/said" 2>&1 ||
    { cat "$scratch/said"; lost "$program"; }
  grep -q 'rank 3 of 4: the mean rank is 1.5' "$scratch/said" || lost "$(cat "$scratch/said")"
done
"$built/tutti" run -n 2 "$scratch/stack_static" >"$scratch/said" 2>&1 ||
  { cat "$scratch/said"; lost "on a small stack"; }
"$built/tutti" run -n 3 sh -c '[ "$RANK" != 1 ] || kill -9 $$; exec "$0"' \
  "$scratch/first_static" >"$scratch/said" 2>&1 && lost "a killed rank was not seen"
grep -q 'rank 1.*killed by signal 9 (SIGKILL)' "$scratch/said" || lost "$(cat "$scratch/said")"
env -i PATH="$PATH" "$built/tutti" doctor >"$scratch/said" 2>&1 ||
  { cat "$scratch/said"; lost "doctor"; }
