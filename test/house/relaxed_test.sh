# A relaxed access says why that is enough: "relaxed: <reason>" in a comment on its line, or in the
# comment right above it. One reason may stand above several lines of relaxed accesses.
. "$(dirname "${BASH_SOURCE[0]}")/house.sh"

rule() {
  cd "$1" || exit 1
  mapfile -t files < <(c_files src | grep -v '^src/base/atomic[a-z_]*\.h$')
  lines '
    FNR == 1 { reason = 0 }
    {
        said = NOTE ~ /relaxed:/
        if (CODE ~ /_relaxed[0-9]*[ \t]*\(|memory_order_relaxed/) {
            reason = reason || said
            if (!reason)
                print FILENAME ":" FNR ": a relaxed access without its reason (\"relaxed: ...\")"
        }
        else if (CODE ~ /^[ \t]*$/ && NOTE != "") reason = reason || said
        else reason = 0
    }' "${files[@]}"
}

house
