# What the house rules share; sourced by test/house/<rule>_test.sh, each of which defines
#
#   rule ROOT    prints "path:line: what is wrong" for every offence in the tree ROOT
#
# and then calls `house`. A rule must first find exactly the offences that stand in
# bad/<rule>/expected (a rule that cannot fail proves nothing); then it must find none in
# the real tree.

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
TUTTI_SOURCE=${TUTTI_SOURCE:-$(dirname "$(dirname "$here")")}
export LC_ALL=C

house() {
  local name sample got
  name=$(basename "$0" _test.sh)
  sample=$here/bad/$name
  if ! diff <(sort -u "$sample/expected") <(rule "$sample" | cut -d: -f1,2 | sort -u); then
    echo "house.$name: in test/house/bad/$name it does not find what is expected there (<)," \
      "or more (>)"
    exit 1
  fi
  got=$(rule "$TUTTI_SOURCE") || got="house.$name: the rule itself failed. $got"
  if [ -n "$got" ]; then
    printf '%s\n' "$got"
    exit 1
  fi
}

# The C and C++ files below the given folders of the current tree; one a line, none is no error.
c_files() { find "$@" \( -name '*.[ch]' -o -name '*.cc' \) 2>/dev/null | sort; }

# lines PROGRAM FILES...: runs an awk program that finds, on each line, its code in CODE and its
# comments in NOTE (delimiters included); a string's contents count as code.
lines() {
  local program=$1
  shift
  [ $# = 0 ] || awk -f "$here/lines.awk" -f <(printf '%s\n' "$program") "$@"
}
