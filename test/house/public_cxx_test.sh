# A public header compiles alone as C++17, without a warning.
. "$(dirname "${BASH_SOURCE[0]}")/house.sh"

rule() {
  cd "$1" || exit 1
  for header in include/*.h; do
    if ! echo "#include \"$(basename "$header")\"" |
      ${CXX:-c++} -x c++ -std=c++17 -Wall -Wextra -Wpedantic -Werror -Iinclude -fsyntax-only \
      - 2>"$errors"; then
      echo "$header:0: does not compile alone as C++17"
      [ "$1" != "$TUTTI_SOURCE" ] || cat "$errors"
    fi
  done
}

if ! command -v "${CXX:-c++}" >/dev/null; then
  echo "skipped: there is no C++ compiler (${CXX:-c++})"
  exit 77
fi
errors=$(mktemp)
trap 'rm -f "$errors"' EXIT
house
