# ctest: labels=nosan
# A project takes the sources in by FetchContent: its own settings stay as they were, tests and perf
# are not built, the objects are optimised, and tutti::static brings the libraries it needs. Nothing
# is compiled here.
set -eu
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
lost() { echo "$*" >&2; exit 1; }

cat >"$scratch/CMakeLists.txt" <<TEXT
cmake_minimum_required(VERSION 3.22)
project(outer LANGUAGES C)
include(FetchContent)
FetchContent_Declare(tutti SOURCE_DIR $TUTTI_SOURCE)
FetchContent_MakeAvailable(tutti)
add_executable(by_static $TUTTI_SOURCE/test/install/consumer/small.c)
target_link_libraries(by_static PRIVATE tutti::static)
add_executable(by_shared $TUTTI_SOURCE/test/install/consumer/small.c)
target_link_libraries(by_shared PRIVATE tutti::tutti)
TEXT
cmake -G Ninja -S "$scratch" -B "$scratch/build" >"$scratch/log" 2>&1 ||
  { cat "$scratch/log"; exit 1; }
grep -q '^CMAKE_BUILD_TYPE:[A-Z]*=$' "$scratch/build/CMakeCache.txt" ||
  lost "the outer project's build type: $(grep ^CMAKE_BUILD_TYPE "$scratch/build/CMakeCache.txt")"

commands() { cmake --build "$scratch/build" --target "$1" -- -t commands "$1"; }
commands by_static >"$scratch/static"
commands by_shared >"$scratch/shared"
grep -q 'liburing not found' "$scratch/log" ||
  tail -n1 "$scratch/static" | grep -Eq "liburing[.]|-luring" ||
  lost "tutti::static does not bring liburing: $(tail -n1 "$scratch/static")"
grep -q 'src/api/init.c' "$scratch/static" || lost "the library is not part of the build"
grep ' -c .*src/api/init.c$' "$scratch/static" | grep -q -- ' -O2 ' || lost "compiled without -O2"
grep " -c .*consumer/small.c$" "$scratch/static" | grep -q -- "-O2\|-Wconversion" &&
  lost "the outer project's programs got options of the library" || true

# 32 bits, and a compiler without the kernel's headers, are refused in a sentence, before all else.
refuses() {  # SENTENCE CMAKE-OPTION...
  local sentence=$1
  shift
  rm -rf "$scratch/refused"
  ! cmake -G Ninja -S "$TUTTI_SOURCE" -B "$scratch/refused" "$@" >"$scratch/log" 2>&1 ||
    lost "configured with $*"
  tr -s ' \n' ' ' <"$scratch/log" | grep -q "$sentence" || { cat "$scratch/log"; exit 1; }
}
if case $(uname -m) in x86_64) ;; *) false ;; esac; then
  refuses 'tutti needs a processor of 64 bits' -DCMAKE_C_FLAGS=-m32 \
    -DCMAKE_TRY_COMPILE_TARGET_TYPE=STATIC_LIBRARY
fi
if command -v musl-gcc >/dev/null; then
  refuses 'finds no linux/futex.h: install linux-headers' -DCMAKE_C_COMPILER=musl-gcc
else
  echo "musl-gcc is missing (Debian: musl-tools): that it is refused was not seen"
fi
