# A file has one job; one of more than 500 lines has several.
. "$(dirname "${BASH_SOURCE[0]}")/house.sh"

rule() {
  cd "$1" || exit 1
  mapfile -t files < <(c_files src)
  [ ${#files[@]} = 0 ] || awk 'FNR == 501 { print FILENAME ":501: more than 500 lines" }' "${files[@]}"
}

house
