# ctest: timeout=300 labels=nosan,faults
# Ranks on several hosts under the MPIs of PyPI (target perf_mpis), as mpi.hosts does with Debian's:
# each of them carries messages, and meets a rank that is gone, in a way of its own.
wanted="openmpi5 mpich5 impi"
lacking="no MPI of PyPI: cmake --build BUILD --target perf_mpis"
. "$(dirname "$0")/hosts_lib.sh"

# scene TOLD NAME RANK...: these are told; how: an argument more
scene() {
  local told=$1 name=$2
  shift 2
  for ((time = 0; time < times; time++)); do
    across "$told" "$mpi" $two "$here/hosts.$mpi" "$name" "$here" ${how-}
    hear "$@"
  done
}
long() { [ -n "${TUTTI_PROVE-}" ]; }

for mpi in "${mpis[@]}"; do
  home=$mpis_at/${mpi%5}
  compiler="cc -I$home/include"
  libraries="-L$home/lib -lmpi -Wl,-rpath,$home/lib -Wl,--allow-shlib-undefined"
  make_program "$mpi" hosts
  if long; then
    make_program "$mpi" values
    # the Allgather between hosts of both gives wrong values where ranks describe one signature by
    # different types: their other ways are what is compared with
    case $mpi in
      openmpi5) more=(OMPI_MCA_coll=^han) ;;
      impi) more=(I_MPI_ADJUST_ALLGATHER=1) ;;
    esac
    across 0 "$mpi" $two "$here/values.$mpi" few "$here"
    exits 0 "of values under $mpi"
    prints '^[1-9][0-9]{2,} compared, 0 wrong$' "under $mpi"
    counted 4 '[1-9][0-9]+, fell through [0-9]+ .rank [0-9]; ranks of several hosts: [0-9]+.$'
    more=()
  fi
  for hosts in $two $(long && echo $two $three $three); do
    across 0 "$mpi" $hosts "$here/hosts.$mpi" large "$here"
    exits 0 "of large sums on $hosts under $mpi"
    [ "$(cat "$here"/[0-9] | sort -u)" = "right: nothing" ] || fail "wrong sums on $hosts, $mpi"
    counted 4 '[1-9][0-9]+, fell through 0 '
    # of all MPIs the same: tutti folds
    bits=$(grep '^bits' "$here/out")
    before=of_${hosts//[.:,]/_}
    [ "${!before-$bits}" = "$bits" ] || fail "other bits than before on $hosts, $mpi"
    declare "$before=$bits"
  done
  # a part of what may go wrong under each MPI, all of it in the long version
  if [ "$mpi" != impi ] || long; then
    scene 3 leader 0 1 3
    scene 3 follower 0 1 2
    says 'host b: rank 3 died' "of a rank that dies"
  fi
  # who sends to who has died, which it has seen: MPICH itself ends by SIGSEGV
  if [ "$mpi" = mpich5 ]; then
    scene 3 gone 0 1 3
    says 'host b: rank 2 died' "of a leader that died before"
  fi
  if [ "$mpi" = openmpi5 ]; then
    scene 3 pipe 0 1 3
    said '^rank 0 wrote to who had died: Broken pipe' "to a broken pipe"
    how=beside scene 3 pipe 0 1 3
    said '^rank 0 wrote to who had died: Broken pipe' "to a broken pipe in no collective"
    scene 3 full 0 1 3
  fi
  more=(TUTTI_TIMEOUT_MS=1000)
  if [ "$mpi" != openmpi5 ] || long; then
    scene 4 cut 0 1 2 3
  fi
  if [ "$mpi" = impi ] || long; then
    scene 3 stop 0 1 3
    says 'no answer from host b .rank 2. before the deadline' "of a host that stands still"
  fi
  more=()
  if long; then
    scene 4 mismatch 0 1 2 3
    says 'host a: MPI_Allreduce of 1 .*; host b: MPI_Allreduce of 2 ' "of a mismatch"
    scene 4 mismatch_large 0 1 2 3
  fi
done
finish
