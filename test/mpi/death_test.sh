# ctest: timeout=300
# A rank is killed while the others wait in tutti: they end, or are told.
. "$(dirname "$0")/lib.sh"
for mpi in "${mpis[@]}"; do
  make_program "$mpi" order
  for n in 2 4; do
    began=$SECONDS
    limit=60 under "$mpi" $n "$here/order.$mpi" death
    [ "$code" != 124 ] && [ $((SECONDS - began)) -lt 55 ] ||
      fail "expected that the job of $n ranks under $mpi ends"
    ! grep -q 'was told: nothing' "$here/out" || fail "a barrier with a dead rank succeeded"
  done
done
# where the launcher lets the others live, each is told
for mpi in "${mpis[@]}"; do
  [ "$mpi" = openmpi ] || continue
  more=(--enable-recovery)
  limit=60 under openmpi 4 "$here/order.openmpi" death
  more=()
  [ "$(grep -c '^rank [012] was told: an error$' "$here/out")" = 3 ] ||
    fail "expected that three ranks are told"
  says 'rank 3' "in the reports"
done
finish
