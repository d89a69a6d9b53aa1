# ctest: labels=nosan
# The installed library is found by pkg-config, also after its folder was moved; shared and static.
set -eu
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cmake --install "$TUTTI_BUILD" --prefix "$scratch/first" >/dev/null
mv "$scratch/first" "$scratch/prefix"

lib=$(dirname "$(find "$scratch/prefix" -name libtutti.a)")
export PKG_CONFIG_PATH=$lib/pkgconfig
version=$(pkg-config --modversion tutti)
small=$TUTTI_SOURCE/test/install/consumer/small.c

${CC:-cc} -std=c11 -o "$scratch/by_shared" "$small" $(pkg-config --cflags --libs tutti)
LD_LIBRARY_PATH=$lib "$scratch/by_shared"
LD_LIBRARY_PATH=$lib "$scratch/by_shared" | grep -F "tutti $version:" >/dev/null

${CC:-cc} -std=c11 -o "$scratch/by_static" "$small" \
  $(pkg-config --static --cflags --libs tutti | sed 's/-ltutti/-l:libtutti.a/')
"$scratch/by_static"

"$scratch/prefix/bin/tutti" run -n 2 true
