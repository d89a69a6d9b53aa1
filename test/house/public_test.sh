# A public header compiles alone, as C11, with and without call sites, without a warning.
. "$(dirname "${BASH_SOURCE[0]}")/house.sh"

rule() {
  cd "$1" || exit 1
  for header in include/*.h; do
    for sites in '' -DTUTTI_NO_SITES; do
      if ! echo "#include \"$(basename "$header")\"" |
        ${CC:-cc} -x c -std=c11 -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror $sites \
        -Iinclude -fsyntax-only - 2>"$errors"; then
        echo "$header:0: does not compile alone as C11 $sites"
        [ "$1" != "$TUTTI_SOURCE" ] || cat "$errors"
      fi
    done
  done
}

errors=$(mktemp)
trap 'rm -f "$errors"' EXIT
house
