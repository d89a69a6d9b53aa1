# One word, one thing: no struct tag is defined twice in src, and no two rooms have one name.
# The folders that show the rooms below them (api, cli, python, torch) may name a file after
# what it shows.
. "$(dirname "${BASH_SOURCE[0]}")/house.sh"

# Rooms that may share a name, and why:
#   cma            the same way to a peer's memory, in collectives and in messages
#   create         each makes what its folder is about
#   kernels        the kernels of reductions, for CPUs and for GPUs
may_share=' cma create kernels '

rule() {
  cd "$1" || exit 1
  mapfile -t files < <(c_files src)
  lines '
    CODE ~ /^(static |const |typedef |__thread )*(struct|union) [a-z][a-z0-9_]* *\{/ {
        tag = CODE; sub(/^(static |const |typedef |__thread )*(struct|union) /, "", tag)
        sub(/ *\{.*/, "", tag)
        if (FILENAME ~ /\.cc$/) next
        if (tag in first) print FILENAME ":" FNR ": struct " tag " is also defined in " first[tag]
        else first[tag] = FILENAME
    }' "${files[@]}"
  printf '%s\n' "${files[@]}" | awk -v may="$may_share" '
    /^src\/(api|cli|python|torch)\// { next }
    {
        room = $0; sub(/\.[a-z]*$/, "", room); name = room; sub(/.*\//, "", name)
        if (index(may, " " name " ")) next
        if (name in first && first[name] != room)
            print $0 ":1: another room is called " name ": " first[name]
        else first[name] = room
    }'
}

house
