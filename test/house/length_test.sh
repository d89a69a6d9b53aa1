# A file has one job; one of src/ with more than 500 lines has several. A test has more cases than
# its room has functions: 700 lines for the files of test/ and perf/. README is for newcomers (220
# lines), CHANGELOG for users (120).
. "$(dirname "${BASH_SOURCE[0]}")/house.sh"

rule() {
  cd "$1" || exit 1
  {
    c_files src
    find test perf -path test/house/bad -prune -o \( -name '*.[ch]' -o -name '*.cc' -o \
      -name '*.py' -o -name '*.sh' \) -print 2>/dev/null
    ls README.md CHANGELOG 2>/dev/null
  } | xargs -r awk '
    FNR == 1 { most = FILENAME ~ /^src\// ? 500 : 700 }
    FNR == 1 && FILENAME == "README.md" { most = 220 }
    FNR == 1 && FILENAME == "CHANGELOG" { most = 120 }
    FNR == most + 1 { print FILENAME ":" FNR ": more than " most " lines" }'
}

house
