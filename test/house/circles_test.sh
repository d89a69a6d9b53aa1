# What FLOORS keeps between folders holds among the rooms of one folder, too: their includes make no
# circle. A room is a header, a .c, or both under one name; each include on a circle is an offence.
. "$(dirname "${BASH_SOURCE[0]}")/house.sh"

rule() {
  cd "$1" || exit 1
  mapfile -t files < <(c_files src)
  lines '
    function room(path) { sub(/\.[a-z]*$/, "", path); return path }
    CODE ~ /^[ \t]*#[ \t]*include[ \t]*"/ {
        to = CODE; sub(/^[^"]*"/, "", to); sub(/".*/, "", to)
        from = room(FILENAME); to = room("src/" to)
        folder = to; sub(/\/[^\/]*$/, "/", folder)
        if (from == to || index(from, folder) != 1) next
        at[++n] = FILENAME ":" FNR; head[n] = from; tail[n] = to
        if (!((from, to) in edge)) { edge[from, to] = 1; next_of[from] = next_of[from] " " to }
    }
    # The way from a to b by includes, "" if there is none: breadth first, so the shortest.
    function way(a, b,    queue, first, last, i, k, here, to, came, path) {
        delete came
        queue[first = last = 1] = a
        came[a] = a
        for (; first <= last; first++) {
            here = queue[first]
            k = split(next_of[here], to, " ")
            for (i = 1; i <= k; i++) {
                if (to[i] in came) continue
                came[to[i]] = here
                queue[++last] = to[i]
            }
        }
        if (!(b in came)) return ""
        for (path = short(b); b != a; path = short(b) " -> " path) b = came[b]
        return path
    }
    function short(path) { sub(/.*\//, "", path); return path }
    END {
        for (i = 1; i <= n; i++)
            if ((path = way(tail[i], head[i])) != "")
                print at[i] ": a circle of rooms: " short(head[i]) " -> " path
    }' "${files[@]}"
}

house
