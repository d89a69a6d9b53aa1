# src/EDGES.md lists every synchronisation edge as the sources have it: id, name, where it is
# defined, who stores, who loads.
#   bash test/house/index_test.sh --write    writes it anew
. "$(dirname "${BASH_SOURCE[0]}")/house.sh"

# Rows "id name | defined in | released in | acquired in" of the current tree, by number.
rows() {
  mapfile -t files < <(c_files src)
  lines '
    NOTE == "" { next }
    {
        text = NOTE; begins = text ~ /^(\/\*|\/\/)/; file = FILENAME; sub(/^src\//, "", file)
        sub(/^(\/\*+|\/\/+)/, "", text); sub(/^[ \t]*(\*+[ \t]+)?(Edges?:[ \t]*)?/, "", text)
        sub(/[ \t]*\*\/.*$/, "", text)
        is_end = begins && text ~ /^E[0-9]+ (release|acquire|fence|rmw):/
        if (CODE ~ /^[ \t]*$/ && text ~ /^E[0-9]+ [a-z][a-z -]*:/ && !is_end) {
            id = text; sub(/ .*/, "", id)
            name = text; sub(/^E[0-9]+ /, "", name); sub(/:.*/, "", name)
            print "D\t" substr(id, 2) "\t" name "\t" file
            next
        }
        if (!begins || text !~ /^E[0-9]/) next
        sub(/:.*/, "", text); gsub(/ and /, ", ", text)
        n = split(text, part, /[,;&+\/] */); role = ""
        for (i = n; i >= 1; i--) {
            if (part[i] !~ /^E[0-9]+( |$)/) continue
            id = part[i]; sub(/ .*/, "", id)
            if (part[i] ~ / (release|fence|rmw)/) role = "R"
            else if (part[i] ~ / acquire/) role = "A"
            if (role != "") print role "\t" substr(id, 2) "\t\t" file
        }
    }' "${files[@]}" | LC_ALL=C sort -u -t "$(printf '\t')" -k2,2n -k1,1 -k4,4 | awk -F '\t' '
    function flush() {
        if (id == "") return
        printf "| E%s %s | `%s` | %s | %s |\n", id, name, at, r == "" ? "-" : r, a == "" ? "-" : a
    }
    $2 != id { flush(); id = $2; name = at = r = a = "" }
    $1 == "D" { name = $3; at = $4 }
    $1 == "R" { r = r (r == "" ? "" : " ") $4 }
    $1 == "A" { a = a (a == "" ? "" : " ") $4 }
    END { flush() }'
}

page() {
  printf '%s\n' '# The synchronisation edges' '' \
    'What each is for stands where it is defined. '\
'Written by `bash test/house/index_test.sh --write`; `house.index` compares.' '' \
    '| edge | defined in | released, or fenced, in | acquired in |' '| --- | --- | --- | --- |'
  rows
}

rule() {
  cd "$1" || exit 1
  [ -f src/EDGES.md ] || { echo "src/EDGES.md:1: is not there"; return; }
  diff <(page) src/EDGES.md |
    sed -n 's/^[0-9,]*[acd]\([0-9]*\).*/\1/p' | while read -r line; do
      echo "src/EDGES.md:$line: is not what the sources have; bash test/house/index_test.sh --write"
    done
}

if [ "${1:-}" = --write ]; then
  cd "$TUTTI_SOURCE" && page >src/EDGES.md
else
  house
fi
