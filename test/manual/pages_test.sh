# ctest: labels=nosan
# The manual has a page for every public function and type, and none for what is not public; what
# the pages refer to exists; mandoc finds nothing wrong with them; they fit into 80 columns,
# and the guides and verbs can be found from the first page. What a page says of a field is about
# that field; its one line can be read alone.
set -u
pages=$TUTTI_BUILD/man
[ -d "$pages/man3" ] || { echo "python3 was not found: no pages of section 3"; exit 77; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0
wrong() { echo "$*"; failed=1; }

# a name in a declaration or a macro of the headers; _at forms are for bindings
cat "$TUTTI_SOURCE"/include/*.h >"$scratch/headers"
${CC:-cc} -E -P -DTUTTI_NO_SITES -I"$TUTTI_SOURCE/include" - >"$scratch/code" <<'C'
#include <tutti.h>
#include <tutti_cuda.h>
#include <tutti_uring.h>
C
{ grep -o 'tutti_[a-z0-9_]*(' "$scratch/code" | tr -d '(' | grep -v '_at$'
  grep -o '^} tutti_[a-z_]*;' "$scratch/code" | tr -d '} ;'
} | sort -u >"$scratch/public"
(cd "$pages/man3" && ls) | sed 's/[.]3$//' | grep -v '^tutti$' | sort -u >"$scratch/pages"
for name in $(comm -23 "$scratch/public" "$scratch/pages"); do
  wrong "tutti: $name is public and has no page"
done
for name in $(comm -13 "$scratch/public" "$scratch/pages"); do
  wrong "$name.3: is about nothing that is public"
done

for page in "$pages"/man3/*.3 "$TUTTI_SOURCE"/src/cli/*.1 "$TUTTI_SOURCE"/src/manual/*.7; do
  [ -e "$page" ] || continue
  sed -nE -e 's/^[.]([A-Z][a-z] )*Xr ([a-z_0-9-]+) ([0-9]).*/\2 \3/p' \
    -e 's/\\-/-/g; s/^[.]BR (tutti[a-z_0-9-]*) \(([0-9])\).*/\1 \2/p' "$page" |
    while read -r name section; do
    [ -e "$pages/man3/$name.$section" ] || [ -e "$TUTTI_SOURCE/src/cli/$name.$section" ] ||
      [ -e "$TUTTI_SOURCE/src/manual/$name.$section" ] || echo "$page: refers to $name($section)"
  done
done >"$scratch/lost"
[ ! -s "$scratch/lost" ] || wrong "$(cat "$scratch/lost")"

# who is at the guide finds every other page of its section; at the command's, every verb's
for page in "$TUTTI_SOURCE"/src/{manual/*.7,cli/tutti-*.1}; do
  name=${page##*/} from=$TUTTI_SOURCE/src/cli/tutti.1
  case $name in tutti.7) continue ;; *.7) from=$TUTTI_SOURCE/src/manual/tutti.7 ;; esac
  sed 's/\\-/-/g' "$from" | grep -qE "^[.](Xr|BR) ${name%.*} [(]?${name##*.}" ||
    wrong "${from##*/}: does not lead to $name"
done

# What a structure says of a field, above it or beside it, stands under that field's name.
awk '/^typedef struct/ { inside = 1; said = ""; n = 0 }
  !inside { next }
  /^ +\/\*/ { said = $2 }
  /^ +[^ *\/][^;]*;/ {
    code = $0; sub(/;.*/, "", code); sub(/,.*/, "", code)
    if (code ~ /\(\*/) sub(/.*\(\*/, "", code)
    sub(/\).*/, "", code); gsub(/\[[^]]*\]/, "", code); sub(/.*[ *]/, "", code)
    beside = $0
    if (sub(/.*;.*\/\* */, "", beside)) { sub(/ .*/, "", beside); said = beside }
    if (said != "") told[n++] = code " " said
    said = ""
  }
  /^} tutti_/ { sub(/;/, "", $2); for (i = 0; i < n; i++) print $2, told[i]; inside = 0 }' \
  "$TUTTI_SOURCE"/include/*.h >"$scratch/fields"
[ "$(wc -l <"$scratch/fields")" -ge 15 ] || wrong "the fields of structures were not found"
while read -r type field word; do
  awk -v field="$field" '$1 == ".It" && $2 == "Fa" { here = $3 == field; next }
    here { print; exit }' "$pages/man3/$type.3" | sed 's/^[.]Dv //; s/\\-/-/g; s/^\\&//' |
    grep -qF -e "${word%[,.:;]}" || wrong "$type.3: of $field it does not say \"$word …\""
done <"$scratch/fields"

# A page's one line is read alone, in a list; errors are those of functions of that page.
grep -nE '^[.]Nd ([a-z]+ it|the same|of|a field)\b' "$pages"/man3/*.3 >"$scratch/alone" &&
  wrong "what is meant is said elsewhere: $(cat "$scratch/alone")"
for page in "$pages"/man3/*.3; do
  ! grep -q '^[.]Sh ERRORS' "$page" || grep -q '^[.]Ft int$\|^[.]Ft .*[*]$' "$page" ||
    [ "${page##*/}" = tutti.3 ] || wrong "${page##*/}: has errors and no function that returns one"
  awk '/^Of [a-z, ]+:$/ { exit 1 }' "$page" || wrong "${page##*/}: \"Of …:\", of what?"
done

if command -v mandoc >/dev/null; then
  for page in "$pages"/man3/*.3 "$TUTTI_SOURCE"/src/{manual/*.7,cli/*.1}; do
    [ -e "$page" ] || continue
    mandoc -T lint -W warning "$page" 2>&1 | grep -v 'referenced manual not found\|missing date'
  done >"$scratch/lint"
  [ ! -s "$scratch/lint" ] || wrong "$(cat "$scratch/lint")"
  for page in "$pages"/man3/*.3 "$TUTTI_SOURCE"/src/{manual/*.7,cli/*.1}; do
    [ -e "$page" ] || continue
    mandoc -T ascii -O width=78 "$page" | sed 's/.\x08//g' |
      awk -v page="${page##*/}" 'length($0) > 80 { print page ": " length($0) " columns: " $0 }'
  done >"$scratch/wide"
  [ ! -s "$scratch/wide" ] || wrong "$(cat "$scratch/wide")"
else
  echo "mandoc is missing: the pages are not judged"
fi
exit $failed
