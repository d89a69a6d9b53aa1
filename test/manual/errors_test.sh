# ctest: labels=nosan
# tutti-errors(7) has every error that has words of its own, and every headline of a report; and
# what it shows in quotes is what the sources say. tutti(7) has every setting, and its sizes are
# those of the contract.
set -u
page=$TUTTI_SOURCE/src/manual/tutti-errors.7
guide=$TUTTI_SOURCE/src/manual/tutti.7
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0
wrong() { echo "$*"; failed=1; }
plain() { sed 's/\\-/-/g; s/\\f[BRI]//g; s/\\e/\\/g; s/\\&//g' "$1"; }

# The strings of the sources; those that a compiler joins are joined.
cat "$TUTTI_SOURCE"/src/*/*.c | tr '\n' ' ' | sed -E 's/" +"//g' | grep -oE '"([^"\\]|\\.)*"' \
  >"$scratch/strings"
plain "$page" | sed -n 's/^[.]It \\(lq\(.*\)\\(rq.*/\1/p' >"$scratch/quoted"
[ "$(wc -l <"$scratch/quoted")" -ge 30 ] || wrong "tutti-errors.7: hardly any report is quoted"
while IFS= read -r text; do
  grep -qF -e "$text" "$scratch/strings" || wrong "tutti-errors.7: no source says \"$text\""
done <"$scratch/quoted"

# Every error of the table of words, and every one that the contract lists.
{ sed -nE 's/^ +\{ E[A-Z]+, "(E[A-Z]+)".*/\1/p' "$TUTTI_SOURCE/src/base/error.c"
  sed -nE 's/^ \* +-(E[A-Z]+) .*/\1/p' "$TUTTI_SOURCE/include/tutti.h"
} | sort -u >"$scratch/errors"
[ "$(wc -l <"$scratch/errors")" -ge 15 ] || wrong "the errors were not found"
plain "$page" | sed -nE 's/^[.]It (E[A-Z]+).*/\1/p' | sort -u >"$scratch/told"
for error in $(comm -23 "$scratch/errors" "$scratch/told"); do
  wrong "tutti-errors.7: $error is missing"
done

# Every headline: the first words of each case of the function that writes them.
awk '/^static void rollcall_headline/ { inside = 1 } inside && /^}/ { exit }
  inside && /case WHY_/ { fresh = 1 }
  inside && fresh && /text_add\(t, "/ { print; fresh = 0 }
  inside && /without it no rank/ { print }' "$TUTTI_SOURCE/src/watch/rollcall.c" |
  sed -E 's/.*text_add\(t, "(\\n *)?([^"]*)".*/\2/; s/\\n.*//' |
  awk -F '%[^ ,]*' '{ longest = ""; for (i = 1; i <= NF; i++)
    if (length($i) > length(longest)) longest = $i
    gsub(/^[ ]+|[ ]+$/, "", longest); if (longest ~ / /) print longest }' >"$scratch/headlines"
[ "$(wc -l <"$scratch/headlines")" -ge 5 ] || wrong "the headlines were not found"
while IFS= read -r text; do
  plain "$page" | grep -qF -e "$text" || wrong "tutti-errors.7: \"$text\" is missing"
done <"$scratch/headlines"

# Settings, but for those of tests and of single functions.
for name in $(grep -oE '"TUTTI_[A-Z_]+"' "$TUTTI_SOURCE/src/base/knob.c" | tr -d '"' | sort -u); do
  case $name in
    TUTTI_ISA|TUTTI_FIRST_SEQ|TUTTI_JOB|TUTTI_RANK|TUTTI_SIZE|TUTTI_ARENA) continue ;;
  esac
  plain "$guide" | grep -q "^[.]It .*$name" || wrong "tutti.7: the setting $name is missing"
done

# A size that the guide gives is one that the contract gives, or that a test measures.
plain "$guide" | grep -oE '[0-9]+ [KMG]iB' | sort -u >"$scratch/sizes"
[ -s "$scratch/sizes" ] || wrong "the guide's sizes were not found"
while read -r size; do
  grep -qrwF -e "$size" "$TUTTI_SOURCE/include" "$TUTTI_SOURCE/test/api/stack_test.c" ||
    wrong "tutti.7: $size is said nowhere else"
done <"$scratch/sizes"
exit $failed
