#!/usr/bin/env bash
# What `train` prints, says when its input is bad, and leaves behind.
set -euo pipefail

here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT
export TMPDIR=$here/tmp
mkdir "$TMPDIR"
small=(--quiet --steps 60 --batch 64)  # quick; need not learn

fail() { printf 'train: %s; it printed:\n' "$1" >&2; cat "$here/out" "$here/err" >&2; exit 1; }

train() {  # RANKS ARGUMENT...: leaves out, err and code
  local ranks=$1
  shift
  code=0
  timeout 100 "$TUTTI_BUILD/tutti" run -n "$ranks" "$TUTTI_BUILD/examples/train" \
    "$@" >"$here/out" 2>"$here/err" || code=$?
}

# Some text that is the same everywhere, regular enough to be learnt in few steps.
for i in {1..800}; do echo "$i bottles of beer on the wall, $i bottles of beer"; done >"$here/text"

weights() {  # ARGUMENT...: the checksum of the weights after training on two ranks
  train 2 "${small[@]}" "$@" "$here/text"
  [ "$code" = 0 ] || fail "exit code $code"
  sed -n 's/^weights *\([0-9a-f]\{16\}\) .*/\1/p' "$here/out"
}

first=$(weights --seed 5)
[ -n "$first" ] || fail "no checksum"
[ "$(weights --seed 5)" = "$first" ] || fail "the same seed gave other weights"
[ "$(weights --seed 6)" != "$first" ] || fail "another seed gave the same weights"
[ "$(weights --seed 5 --cache "$here/cache")" = "$first" ] || fail "a kept cache gave other weights"
[ "$(weights --seed 5 --cache "$here/cache")" = "$first" ] ||
  fail "the data set from the cache gave other weights"
for kept in dataset checkpoint; do
  [ -s "$here/cache/$kept" ] || fail "no $kept kept in the cache directory"
done

# CODE TEXT ARGUMENT...: that exit code, and one line of its own that contains the text
complaint() {
  local wanted=$1 text=$2
  shift 2
  train 3 "$@"
  [ "$code" = "$wanted" ] || fail "exit code $code instead of $wanted for: $*"
  [ "$(grep -c '^train: ' "$here/err")" = 1 ] || fail "not one line of complaint for: $*"
  grep -q "^train: .*$text" "$here/err" || fail "no word of '$text' for: $*"
}

: >"$here/empty"
complaint 1 "No such file" "$here/missing"
complaint 1 "too little text" "$here/empty"
complaint 1 "Is a directory\|No such file\|Not a directory" --cache "$here/empty" "$here/text"
complaint 1 "No such file" "${small[@]}" --checkpoint "$here/missing/checkpoint" "$here/text"
complaint 2 "not a number" --steps 0

# A rank that is killed on the way ends all others, and they say which it was.
for victim in 0 1; do
  TUTTI_FAULT="$victim:all_reduce#20:kill" train 3 "${small[@]}" "$here/text"
  [ "$code" != 0 ] || fail "exit code 0 although rank $victim was killed"
  grep -q "^train: rank [^$victim]: .*rank $victim" "$here/err" ||
    fail "no survivor named rank $victim"
done

left=$(ls -A "$TMPDIR")
[ -z "$left" ] || fail "left behind: $left"
