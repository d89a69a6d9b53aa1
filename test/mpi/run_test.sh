# ctest: timeout=200
# tutti run --mpi: finds the mpirun of the program's MPI, preloads libtutti-mpi.so, says so with -v.
. "$(dirname "$0")/lib.sh"
tutti=$TUTTI_BUILD/tutti
run() {
  code=0
  TUTTI_MPI=all TUTTI_MPI_STATS=1 timeout -k 5 60 "$tutti" run "$@" >"$here/out" \
    2>"$here/err" </dev/null || code=$?
}
for mpi in "${mpis[@]}"; do
  make_program "$mpi" order
  for n in 2 3; do
    run --mpi -v -n $n "$here/order.$mpi" nonblocking
    exits 0 "of $n ranks of $mpi"
    prints '^ok$' "of $mpi"
    counted $n '150, fell through 0 '
    says "^tutti run: .*/order.$mpi loads /.*/libmpi.*; its launcher is /.*mpirun" "with -v"
    says "^tutti run: LD_PRELOAD=/.*/libtutti-mpi.so /.* -n $n .*order.$mpi nonblocking$" "with -v"
  done
  run --mpi -n 2 "$here/order.$mpi" falls
  ! grep -q '^tutti run:' "$here/err" || fail "it says something without -v"
  # its exit status, and arguments that look like options
  run --mpi -n 2 sh -c 'exit 7' -v
  [ "$code" != 0 ] || fail "the failure of a rank is lost"
done
# a program that is static could not be preloaded into; it is not run
echo 'int main(void) { return 0; }' >"$here/static.c"
if ${CC:-cc} -static -o "$here/static" "$here/static.c" 2>/dev/null; then
  run --mpi -n 2 "$here/static"
  exits 1 "of a static program"
  says 'static is linked statically: nothing can stand in front'
fi
run --mpi -n 2 "$here/none"
exits 127 "of no program"
run --mpi --tag -n 2 true
exits 2 "with another option"
says '^tutti run: with --mpi there are only -n and -v'
finish
