# ctest: labels=nosan
# Header, library and command have one version; every symbol of the library has the node of its
# SONAME; the command says of which commit it is.
set -eu
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
lost() { echo "$*" >&2; exit 1; }

cat >"$scratch/said.c" <<'C'
#include <stdio.h>
#include <tutti.h>

int main(void)
{
    printf("%d.%d.%d %s %s\n", TUTTI_VERSION_MAJOR, TUTTI_VERSION_MINOR, TUTTI_VERSION_PATCH,
           TUTTI_VERSION, tutti_version());
    return 0;
}
C
library=$TUTTI_BUILD/libtutti.so
${CC:-cc} -o "$scratch/said" -I"$TUTTI_SOURCE/include" "$scratch/said.c" "$library"
read -r numbers header running < <(LD_LIBRARY_PATH=$TUTTI_BUILD "$scratch/said")
[ "$numbers" = "$header" ] || lost "tutti.h: $numbers in numbers, $header in words"
[ "$running" = "$header" ] || lost "the header is of $header, the library of $running"

major=${numbers%%.*}
readelf -dW "$library" | grep -q "SONAME.*\[libtutti[.]so[.]$major\]" ||
  lost "the library's SONAME is not libtutti.so.$major"
readelf --dyn-syms -W "$library" |
  awk -v node="@@TUTTI_$major" '$7 ~ /^[0-9]+$/ && $8 !~ node "$" && $8 !~ /^TUTTI_/ { print $8 }' \
  >"$scratch/bare"
[ ! -s "$scratch/bare" ] || lost "without the node TUTTI_$major: $(cat "$scratch/bare")"
readelf --dyn-syms -W "$library" | grep -q "tutti_barrier_at@@TUTTI_$major" ||
  lost "tutti_barrier_at is not there"

said=$("$TUTTI_BUILD/tutti" version)
case $said in
  "tutti $header") [ ! -e "$TUTTI_SOURCE/.git" ] || lost "tutti version says no commit" ;;
  "tutti $header (commit "*)
    commit=${said#*commit } commit=${commit%)}
    [ ! -e "$TUTTI_SOURCE/.git" ] ||
      git -c safe.directory='*' -C "$TUTTI_SOURCE" cat-file -e "$commit^{commit}" ||
      lost "tutti version says commit $commit, which git does not know" ;;
  *) lost "tutti version says '$said', the header is of $header" ;;
esac

# The names that Debian's package promises are those that the library has.
readelf --dyn-syms -W "$library" | awk '$8 ~ /^tutti_.*@@/ { sub(/@@.*/, "", $8); print $8 }' |
  sort >"$scratch/has"
sed -n 's/^ \(tutti_[^@]*\)@.*/\1/p' "$TUTTI_SOURCE/src/packaging/debian/libtutti0.symbols" |
  sort >"$scratch/promised"
cmp -s "$scratch/has" "$scratch/promised" ||
  lost "src/packaging/debian/libtutti0.symbols: < promised, > there
$(diff "$scratch/promised" "$scratch/has")"
