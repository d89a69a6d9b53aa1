# Every synchronisation edge (E1, E2, ...) is defined once and named at both of its ends.
#   definition   a comment line that begins with its id, name and a colon:   E1 arrive: the writer
#                stores ... ("Edges:" may stand before the first one)
#   end          a comment that begins with its id, beside the access:
#                /* E1 */  /* E1 release, E2 fence */  /* E1, E4 acquire: ... */
# An edge whose definition speaks of release and acquire has ends of both kinds. Any other mention
# in a comment is prose, but an id that is mentioned must be defined.
. "$(dirname "${BASH_SOURCE[0]}")/house.sh"

rule() {
  cd "$1" || exit 1
  mapfile -t files < <(c_files src)
  lines '
    # The ids that text begins with, one after another, each with its role; what follows the
    # last is in REST.
    function ends_of(text, found, role,    n, id) {
        n = 0; REST = text
        while (match(REST, /^[ ,;\/&+]*(and )?E[0-9]+/)) {
            id = substr(REST, 1, RLENGTH); sub(/^[^E]*/, "", id)
            if (substr(REST, RLENGTH + 1, 1) ~ /[A-Za-z0-9_]/) break
            REST = substr(REST, RLENGTH + 1); found[++n] = id; role[n] = ""
            while (match(REST, /^[ ,\/&+]*(and )?(release|acquire|fence|rmw)/)) {
                role[n] = role[n] substr(REST, 1, RLENGTH); REST = substr(REST, RLENGTH + 1)
            }
        }
        for (i = n - 1; i > 0; i--) if (role[i] == "") role[i] = role[i + 1]
        return n
    }
    NOTE == "" { speaks_of = ""; next }
    {
        text = NOTE
        begins = text ~ /^(\/\*|\/\/)/
        if (begins) speaks_of = ""
        sub(/^(\/\*+|\/\/+)/, "", text); sub(/^[ \t]*(\*+[ \t]+)?(Edges?:[ \t]*)?/, "", text)
        sub(/[ \t]*\*\/.*$/, "", text)
        n = ends_of(text, found, role)
        if (n == 1 && role[1] == "" && CODE ~ /^[ \t]*$/ && REST ~ /^ [a-z][a-z -]*:/) {
            if (found[1] in defined)
                print FILENAME ":" FNR ": " found[1] " is defined a second time, first at " \
                    defined[found[1]]
            else defined[found[1]] = FILENAME ":" FNR
            speaks_of = found[1]
        } else if (begins) {
            for (i = 1; i <= n; i++) {
                ends[found[i]]++
                if (role[i] !~ /acquire/) not_acquire[found[i]]++
                if (role[i] !~ /release/) not_release[found[i]]++
            }
        }
        if (speaks_of != "") said[speaks_of] = said[speaks_of] text
        text = NOTE
        while (match(text, /E[0-9]+/)) {
            before = RSTART > 1 ? substr(text, RSTART - 1, 1) : " "
            after = substr(text, RSTART + RLENGTH, 1)
            id = substr(text, RSTART, RLENGTH); text = substr(text, RSTART + RLENGTH)
            if (before !~ /[A-Za-z0-9_.]/ && after !~ /[A-Za-z0-9_]/ && !(id in seen))
                seen[id] = FILENAME ":" FNR
        }
    }
    END {
        for (id in seen)
            if (!(id in defined)) print seen[id] ": " id " is named here and defined nowhere"
        for (id in defined) {
            if (ends[id] < 2) {
                print defined[id] ": " id " is named at " ends[id] + 0 " of its ends"
                continue
            }
            if (said[id] !~ /release/ || said[id] !~ /acquire/) continue
            if (!not_acquire[id]) print defined[id] ": " id " has acquire ends only"
            if (!not_release[id]) print defined[id] ": " id " has release ends only"
        }
    }' "${files[@]}"
}

house
