# ctest: timeout=300
# A rank is killed while the others wait in tutti: they end, or are told; also before a call that
# the MPI does in the trial of both.
. "$(dirname "$0")/lib.sh"
for mpi in "${mpis[@]}"; do
  make_program "$mpi" order
  for n in 2 4; do
    for scene in death trial_death; do
      began=$SECONDS
      way= limit=60 under "$mpi" $n "$here/order.$mpi" $scene
      [ "$code" != 124 ] && [ $((SECONDS - began)) -lt 55 ] ||
        fail "expected that $scene of $n ranks under $mpi ends"
      ! grep -q 'was told: nothing' "$here/out" || fail "a call with a dead rank succeeded: $scene"
    done
  done
done
# where the launcher lets the others live, each is told
for mpi in "${mpis[@]}"; do
  [ "$mpi" = openmpi ] || continue
  for scene in death trial_death; do
    more=(--enable-recovery)
    way= limit=60 under openmpi 4 "$here/order.openmpi" $scene
    more=()
    [ "$(grep -c '^rank [012] was told: an error$' "$here/out")" = 3 ] ||
      fail "expected that three ranks are told: $scene"
    says 'rank 3' "in the reports: $scene"
  done
done
finish
