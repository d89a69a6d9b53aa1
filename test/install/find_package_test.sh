# ctest: labels=nosan
# The installed library is found by CMake's find_package, also after its folder was moved;
# shared and static.
set -eu
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cmake --install "$TUTTI_BUILD" --prefix "$scratch/first" >/dev/null
mv "$scratch/first" "$scratch/prefix"

cmake -G Ninja -S "$TUTTI_SOURCE/test/install/consumer" -B "$scratch/build" \
  -DCMAKE_PREFIX_PATH="$scratch/prefix" >"$scratch/log" ||
  { cat "$scratch/log"; exit 1; }
cmake --build "$scratch/build" >"$scratch/log" || { cat "$scratch/log"; exit 1; }
"$scratch/build/by_shared"
"$scratch/build/by_static"
