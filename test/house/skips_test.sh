# A test that is skipped prints why: tests call skip_because (test/support/skip.h), never skip of
# cmocka.
. "$(dirname "${BASH_SOURCE[0]}")/house.sh"

rule() {
  cd "$1" || exit 1
  mapfile -t files < <(c_files test | grep -v -e "^test/support/skip.h\$" -e ^test/house/bad/)
  lines '
    CODE ~ /(^|[^a-z_])(skip[ \t]*\([ \t]*\)|_skip[ \t]*\()/ {
        print FILENAME ":" FNR ": a test skipped in silence: skip_because(\"...\") says why"
    }' "${files[@]}"
}

house
