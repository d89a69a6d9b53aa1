#!/usr/bin/env bash
# What `order` prints: A before the Bs after a barrier, and all in rank order by turns.
set -euo pipefail

fail() { printf 'order: %s; it printed:\n%s\n' "$1" "$printed" >&2; exit 1; }

for _ in 1 2 3 4 5; do
  printed=$("$TUTTI_BUILD/tutti" run -n 4 "$TUTTI_BUILD/examples/order")
  [ "$(sed -n 1p <<<"$printed")" = "barrier: A on rank 0" ] || fail "A is not first"
  [ "$(sed -n 2,4p <<<"$printed" | sort)" = "$(printf 'barrier: B on rank %d\n' 1 2 3)" ] ||
    fail "not every B followed"
  [ "$(sed -n '5,$p' <<<"$printed")" = "turns: A on rank 0
$(printf 'turns: B on rank %d\n' 1 2 3)" ] || fail "the turns are not in rank order"
done
