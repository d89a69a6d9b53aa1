# ctest: timeout=300 labels=nosan,faults
# Ranks on several hosts, which are namespaces of this machine: each collective gives what the MPI
# alone gives; the same bits in each run; who dies, stands still, is cut off or calls something else
# is told on every rank that is left, by name.
. "$(dirname "$0")/hosts_lib.sh"
last=
for mpi in "${mpis[@]}"; do
  make_program "$mpi" values
  make_program "$mpi" hosts
  # Debian's MPICH does not always come back from its MPI_Finalize here, also by itself: its job is
  # over when all ranks have said so
  all=0
  [ "$mpi" != mpich ] || all=4
  if [ "$mpi" = openmpi ] || [ ${#mpis[@]} = 1 ] || [ -n "${TUTTI_PROVE-}" ]; then
    across $all "$mpi" $two "$here/values.$mpi" few "$here"
    exits 0 "of values under $mpi"
    prints '^[1-9][0-9]{2,} compared, 0 wrong$' "under $mpi"
    [ "$mpi" = mpich ] ||
      counted 4 '[1-9][0-9]+, fell through [0-9]+ .rank [0-9]; ranks of several hosts: [0-9]+.$'
  fi
  runs="$three $three"
  [ "$mpi" = openmpi ] || runs=$two
  [ -z "${TUTTI_PROVE-}" ] || runs="$two $two $three $three"
  for hosts in $runs; do
    across $all "$mpi" $hosts "$here/hosts.$mpi" large "$here"
    exits 0 "of large sums on $hosts under $mpi"
    [ "$(cat "$here"/[0-9] | sort -u)" = "right: nothing" ] || fail "wrong sums on $hosts, $mpi"
    [ "$hosts" != "$last" ] || [ "$bits" = "$(grep '^bits' "$here/out")" ] ||
      fail "other bits than before"
    last=$hosts
    bits=$(grep '^bits' "$here/out")
    [ "$mpi" = mpich ] || counted 4 '[1-9][0-9]+, fell through 0 '
  done
  # a part of what may go wrong under each MPI, all of it in the long version
  if [ "$mpi" = openmpi ] || [ -n "${TUTTI_PROVE-}" ]; then
    for ((time = 0; time < times; time++)); do
      across 3 "$mpi" $two "$here/hosts.$mpi" leader "$here"
      hear 0 1 3
      says 'host b: rank 2 died' "of a leader that dies"
    done
  fi
  # Open MPI writes by writev, which the program stands in front of
  if [ "$mpi" = openmpi ]; then
    across 3 "$mpi" $two "$here/hosts.$mpi" pipe "$here"
    hear 0 1 3
    said '^rank 0 wrote to who had died: Broken pipe' "to a broken pipe"
    says 'host b: rank 2 died' "of a leader that dies before the second write"
    across 3 "$mpi" $two "$here/hosts.$mpi" pipe "$here" thread
    hear 0 1 3
    said '^rank 0 wrote to who had died: Broken pipe' "to a broken pipe in a second thread"
    across 2 "$mpi" $two "$here/hosts.$mpi" pipe "$here" beside
    hear 0 3
    said '^rank 0 wrote to who had died: Broken pipe' "to a broken pipe in no collective"
    across 3 "$mpi" $two "$here/hosts.$mpi" end "$here"
    hear 1 2 3
    said '^host a: rank 0 is ended by the MPI, .* connection to host b' "by another thread"
    # it is ended by the MPI, and has said why before anybody was told
    across 2 "$mpi" $two "$here/hosts.$mpi" full "$here"
    hear 1 3
    said '^host a: rank 0 is ended by the MPI, .* connection to host b' "of its own end"
    says 'aborted: host a: rank 0 is ended by the MPI' "of a leader that its MPI ends"
  fi
  if [ "$mpi" = mpich ] || [ ${#mpis[@]} = 1 ] || [ -n "${TUTTI_PROVE-}" ]; then
    across 4 "$mpi" $two "$here/hosts.$mpi" mismatch "$here"
    hear 0 1 2 3
    says 'host a: MPI_Allreduce of 1 .*; host b: MPI_Allreduce of 2 ' "of a mismatch"
    across 4 "$mpi" $two "$here/hosts.$mpi" mismatch_large "$here"
    hear 0 1 2 3
    says 'host a: MPI_Allreduce of 1000 .*; host b: MPI_Allreduce of 2000 ' "of a large sum"
    more=(TUTTI_TIMEOUT_MS=1000)
    for ((time = 0; time < times; time++)); do
      across 4 "$mpi" $two "$here/hosts.$mpi" cut "$here"
      hear 0 1 2 3
    done
    more=()
  fi
  if [ -n "${TUTTI_PROVE-}" ]; then
    across 3 "$mpi" $two "$here/hosts.$mpi" follower "$here"
    hear 0 1 2
    more=(TUTTI_TIMEOUT_MS=1000)
    across 3 "$mpi" $two "$here/hosts.$mpi" stop "$here"
    hear 0 1 3
    more=()
  fi
done
finish
