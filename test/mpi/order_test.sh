# ctest: timeout=600
# Correct programs end, whatever they do around their collectives: what waits in tutti turns the
# MPI's progress; communicators come and go; threads; errors are the communicator's handler's.
. "$(dirname "$0")/lib.sh"
for mpi in "${mpis[@]}"; do
  make_program "$mpi" order
  for scene in progress nonblocking comms threads finalize falls errors; do
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
  for scene in progress comms; do
    under "$mpi" 2 "$here/order.$mpi" $scene threads
    exits 0 "of $scene with threads under $mpi"
    prints '^ok$' "of $scene with threads under $mpi"
  done
  # nothing goes through where one rank says so
  under "$mpi" 2 bash -c '[ "${OMPI_COMM_WORLD_RANK-}${PMI_RANK-}" = 0 ] || export TUTTI_MPI=0
    exec "$@"' - "$here/order.$mpi" nonblocking
  prints '^ok$' "with TUTTI_MPI=0 under $mpi"
  counted 2 '0, fell through 150 .rank [0-9]; not used in this job: 150.$'
  under "$mpi" 2 "$here/order.$mpi" mismatch
  prints '^ok$' "of mismatch under $mpi"
  says 'MPI_Bcast on rank [01] of 2: the ranks called different things' "of mismatch"
done
finish
