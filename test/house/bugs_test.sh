# Seeded bugs: each patch in test/<floor>/bugs or mistakes, and each in hooks, applies to today's
# src/ line for line (it may have moved), by `patch` and, to the same result, by
# test/support/seed.awk, which builds it in. Its first line says what is wrong. A bug has its row in
# bugs.txt or mistakes.txt, which says by what it must be found, and a row its bug.
. "$(dirname "${BASH_SOURCE[0]}")/house.sh"
seed=$(dirname "$here")/support/seed.awk

applies() {  # PATCH: silent if it does
  local file copy
  copy=$(mktemp -d) || return
  sed -n 's,^--- a/,,p' "$1" | while read -r file; do
    mkdir -p "$copy/$(dirname "$file")" && cp "$file" "$copy/$file"
  done
  if ! patch -s -p1 -F0 --no-backup-if-mismatch -d "$copy" <"$1" >/dev/null 2>&1; then
    echo "$1:1: does not apply"
  else
    sed -n 's,^--- a/,,p' "$1" | while read -r file; do
      awk -v of="$file" -v to="$copy/seeded" -f "$seed" "$file" always=1 "$1" 2>/dev/null &&
        sed '/^#line /d' "$copy/seeded" | cmp -s - "$copy/$file" ||
        echo "$1:1: seed.awk does not come to what patch does"
    done
  fi
  rm -r "$copy"
}

rule() {
  cd "$1" || exit 1
  local list folder patch name line
  for patch in test/*/bugs/*.patch test/*/mistakes/*.patch test/*/hooks/*.patch; do
    [ -e "$patch" ] || continue
    head -n1 "$patch" | grep -q '^[A-Z].*[.a-z]$' || echo "$patch:1: does not say what is wrong"
    applies "$patch"
    list=$(dirname "$patch").txt
    name=$(basename "$patch" .patch)
    [[ $patch == */hooks/* ]] || grep -qs "^$name " "$list" || echo "$patch:1: is not in $list"
  done
  for list in test/*/bugs.txt test/*/mistakes.txt; do
    [ -e "$list" ] || continue
    folder=${list%.txt}
    grep -n '^[a-z]' "$list" | while IFS=: read -r line name; do
      [ -e "$folder/${name%% *}.patch" ] ||
        echo "$list:$line: there is no $folder/${name%% *}.patch"
    done
  done
}

command -v patch >/dev/null || { echo "patch is missing"; exit 77; }
house
