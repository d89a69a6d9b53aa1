# ctest: timeout=600
# Every collective gives the same bytes as the MPI alone, on every kind of communicator; counters
# prove that it went through tutti. With one thread of a rank in the MPI at a time, and with many.
. "$(dirname "$0")/lib.sh"
for mpi in "${mpis[@]}"; do
  make_program "$mpi" values
  for how in "2 tried" "4" "3 threads"; do
    read -r n how <<<"$how"
    case $how in
      tried) way=try under "$mpi" "$n" "$here/values.$mpi" tried ;;
      *) under "$mpi" "$n" "$here/values.$mpi" $how ;;
    esac
    exits 0 "of $n ranks under $mpi"
    prints '^[1-9][0-9]{3,} compared, 0 wrong$' "under $mpi"
    # what falls through: one rank, and logical prefixes
    fell='fell through [0-9]+ .rank [0-9]; one rank: [0-9]+; type or operation: [0-9]+'
    [ "$how" != tried ] || fell="$fell; the MPI tried, or faster: [1-9][0-9]*"
    counted "$n" "[1-9][0-9]{2,}, $fell.\$"
  done
done
finish
