# A floor may use the floors under it, never one above; folders on one floor do not know each other.
# The floors stand in src/FLOORS. The public headers stand alone.
. "$(dirname "${BASH_SOURCE[0]}")/house.sh"

rule() {
  cd "$1" || exit 1
  for dir in src/*/; do
    dir=$(basename "$dir")
    grep -Eq "^[0-9]+ (.* )?$dir( |\$)" src/FLOORS ||
      echo "src/$dir:0: a folder that is not in src/FLOORS"
  done
  mapfile -t files < <(c_files src include)
  lines '
    function complain(what) { print FILENAME ":" FNR ": " what }
    BEGIN {
        while ((getline line < "src/FLOORS") > 0) {
            n = split(line, word, " ")
            for (i = 2; i <= n; i++) floor[word[i]] = word[1] + 0
        }
    }
    CODE !~ /^[ \t]*#[ \t]*include/ { next }
    CODE ~ /\.\.\// { complain("an include path with ../"); next }
    CODE ~ /</ {
        name = CODE; sub(/^[^<]*</, "", name); sub(/>.*/, "", name); split(name, part, "/")
        if (part[1] in floor && name ~ /\/.*\.h$/ && FILENAME ~ /^include/)
            complain("a public header includes a room")
        next
    }
    {
        name = CODE; sub(/^[^"]*"/, "", name); sub(/".*/, "", name)
        split(FILENAME, at, "/"); mine = at[2]
        if (at[1] == "include") {
            if (name !~ /^tutti[a-z_]*\.h$/) complain("a public header includes \"" name "\"")
            next
        }
        if (name ~ /^tutti[a-z_]*\.h$/) next
        if (!split(name, to, "/") || !(to[1] in floor)) {
            complain("\"" name "\": write \"folder/room.h\", the folder as in src/FLOORS")
            next
        }
        if (to[1] == mine) next
        if (floor[to[1]] > floor[mine])
            complain(mine "/ (floor " floor[mine] ") includes " \
                     to[1] "/ (floor " floor[to[1]] ") above it")
        if (floor[to[1]] == floor[mine]) complain(mine "/ includes " to[1] "/ on the same floor")
    }' "${files[@]}"
}

house
