# Every test that test/README.md names as a proof is there: test/<floor>/<room>_test.c or .sh, or perf/<name>. A line that says
# *in work* may be ahead of its tests. Tests that a CMakeLists.txt names (examples.*) and patterns (floor.*) are not looked at.
. "$(dirname "${BASH_SOURCE[0]}")/house.sh"

rule() {
  cd "$1" || exit 1
  [ -f test/README.md ] || { echo "test/README.md:0: is not there"; return; }
  grep -n '' test/README.md | grep -v '\*in work\*' | grep -E '^[0-9]+:\|' | while IFS= read -r line; do
    printf '%s\n' "$line" | grep -oE '`[a-z0-9_]+[.][a-z0-9_]+`' | tr -d '`' | while IFS=. read -r floor room; do
      case $floor in
        examples) continue ;;
        perf) [ -e "perf/$room.c" ] || [ -d "perf/$room" ] && continue ;;
        *) [ -d "test/$floor" ] || continue
           [ -e "test/$floor/${room}_test.c" ] || [ -e "test/$floor/${room}_test.sh" ] && continue
           grep -qsE "NAME $floor\.($room( |\)|\$)|\\$)" "test/$floor/CMakeLists.txt" && continue ;;
      esac
      echo "test/README.md:${line%%:*}: $floor.$room is no test"
    done
  done
}

house
