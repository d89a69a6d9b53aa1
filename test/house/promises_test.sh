# Every test that test/README.md names as a proof is there: test/<floor>/<room>_test.c, .sh or .py,
# <room>_ranks.py, or perf/<name>. A line that says *in work* may be ahead of its tests. Tests that
# a CMakeLists.txt names (examples.*) and patterns (floor.*) are not looked at.
. "$(dirname "${BASH_SOURCE[0]}")/house.sh"

rule() {
  cd "$1" || exit 1
  [ -f test/README.md ] || { echo "test/README.md:0: is not there"; return; }
  awk '/^\|/ && !/\*in work\*/ {
         while (match($0, /`[a-z0-9_]+[.][a-z0-9_]+`/)) {
           name = substr($0, RSTART + 1, RLENGTH - 2); $0 = substr($0, RSTART + RLENGTH)
           sub(/[.]/, " ", name); print FNR, name
         }
       }' test/README.md | while read -r line floor room; do
    case $floor in
      examples) continue ;;
      perf) [ -e "perf/$room.c" ] || [ -d "perf/$room" ] && continue ;;
      *) [ -d "test/$floor" ] || continue
         ls "test/$floor/${room}"_{test.c,test.sh,test.py,ranks.py} 2>/dev/null | grep -q . &&
           continue
         grep -qs "NAME $floor\.\($room\b\|\$\)" "test/$floor/CMakeLists.txt" && continue ;;
    esac
    echo "test/README.md:$line: $floor.$room is no test"
  done
}

house
