# ctest: timeout=200
# Programs in Fortran go through tutti, too.
. "$(dirname "$0")/lib.sh"
made=
for mpi in "${mpis[@]}"; do
  mpifort.$mpi -o "$here/fortran.$mpi" "$TUTTI_SOURCE/test/mpi/programs/fortran.f90" -J "$here" \
    >"$here/out" 2>"$here/err" || { missing="$missing mpifort.$mpi"; continue; }
  made=1
  for n in 2 4; do
    under "$mpi" $n "$here/fortran.$mpi"
    exits 0 "of $n ranks under $mpi"
    prints '^ok$' "under $mpi"
    counted $n '6, fell through 0 '
  done
done
[ -n "$made" ] || skip "no compiler of Fortran that works:$missing"
finish
