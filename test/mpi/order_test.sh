# ctest: timeout=600
# Correct programs end, whatever they do around their collectives: what waits in tutti turns the
# MPI's progress; communicators come and go; threads; errors are the communicator's handler's.
# Freed memory is kept as the manual says.
. "$(dirname "$0")/lib.sh"
for mpi in "${mpis[@]}"; do
  make_program "$mpi" order
  for scene in progress rooted rooted_progress nonblocking comms threads finalize falls errors; do
    for n in 2 4; do
      under "$mpi" $n "$here/order.$mpi" $scene
      exits 0 "of $scene, $n ranks under $mpi"
      prints '^ok$' "of $scene under $mpi"
      case $scene in
        falls)
          counted $n '0, fell through 5 .rank [0-9]; inter-communicator: 2; type or operation: 3.$'
          ;;
        finalize) counted $n '2, fell through 0 ' ;;
        *) counted $n '[1-9][0-9]*, fell through ' ;;
      esac
    done
  done
  # with many threads allowed each communicator has a world of its own
  for scene in progress comms rooted; do
    under "$mpi" 2 "$here/order.$mpi" $scene threads
    exits 0 "of $scene with threads under $mpi"
    prints '^ok$' "of $scene with threads under $mpi"
  done
  # a freed end of the heap stays the program's where it goes again and again, unless the user
  # sets the bound
  for scene in heap heap_once heap_holes; do
    under "$mpi" 2 "$here/order.$mpi" $scene
    prints '^ok$' "of $scene under $mpi"
  done
  under "$mpi" 2 env MALLOC_TRIM_THRESHOLD_=131072 "$here/order.$mpi" heap_bounded
  prints '^ok$' "of heap_bounded under $mpi"
  # the MPI has its turns, of 40 calls of a kind and size at least three
  way=try under "$mpi" 2 "$here/order.$mpi" contest
  exits 0 "of contest under $mpi"
  prints '^ok$' "of contest under $mpi"
  counted 2 '[1-9][0-9]+, fell through [0-9]+ .rank [0-9]; the MPI tried, or faster: [1-9][0-9]+.$'
  [ "$(grep -o 'faster: [0-9]*' "$here/err" | sort -u | wc -l)" = 1 ] || fail "the ranks differ"
  under "$mpi" 2 "$here/order.$mpi" contest
  counted 2 '720, fell through 0 '
  # nothing goes through where one rank says so
  under "$mpi" 2 bash -c '[ "${OMPI_COMM_WORLD_RANK-}${PMI_RANK-}" = 0 ] || export TUTTI_MPI=0
    exec "$@"' - "$here/order.$mpi" nonblocking
  prints '^ok$' "with TUTTI_MPI=0 under $mpi"
  counted 2 '0, fell through 150 .rank [0-9]; not used in this job: 150.$'
  under "$mpi" 2 "$here/order.$mpi" mismatch
  prints '^ok$' "of mismatch under $mpi"
  says 'MPI_Bcast on rank [01] of 2: the ranks called different things' "of mismatch"
  way=try under "$mpi" 2 "$here/order.$mpi" trial_mismatch
  prints '^ok$' "of trial_mismatch under $mpi"
  says '^the ranks called different things as operation' "of trial_mismatch"
  for scene in longer shorter other; do
    under "$mpi" 3 "$here/order.$mpi" mismatch_$scene
    prints '^ok$' "of mismatch_$scene under $mpi"
    says "what rank 0 sent to rank [12] is (of an)?$scene" "of mismatch_$scene"
  done
done
finish
