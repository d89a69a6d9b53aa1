# What the tests of several hosts share; sourced first. Ranks are on hosts that are namespaces of
# this machine (hosts.py).
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
python=$(command -v python3) || skip "no python3"
two=10.77.0.1:2,10.77.0.2:2 three=10.77.0.1:2,10.77.0.2:1,10.77.0.3:1

# launcher MPI HOSTS: how it is started, in start
launcher() {
  local hosts=$2 net=10.77.0.0/24
  case $1 in
    openmpi)
      start=(mpirun.openmpi --allow-run-as-root --bind-to none --enable-recovery
        --mca orte_tmpdir_base "$here/sessions" --mca plm_rsh_agent "$here/agent"
        --mca oob_tcp_if_include $net --mca btl_tcp_if_include $net -H "$hosts") ;;
    openmpi5)
      # its daemons' files have names by pids, which hosts share: each host has a folder (agent)
      mkdir -p "$here/sessions"
      start=(env TMPDIR="$here/sessions" "$mpis_at/openmpi/bin/mpirun" --allow-run-as-root
        --bind-to none --with-ft mpi
        --prtemca plm_ssh_agent "$here/agent"
        --prtemca prte_if_include $net --mca btl_tcp_if_include $net -H "$hosts") ;;
    mpich*)
      start=(mpirun.mpich)
      [ "$1" = mpich ] || start=("$mpis_at/mpich/bin/mpiexec.hydra")
      start+=(-localhost 10.77.0.100 -launcher ssh -launcher-exec "$here/agent"
        -disable-auto-cleanup -hosts "$hosts") ;;
    impi)
      tr , '\n' <<<"$hosts" >"$here/machines"
      local at=$mpis_at/impi
      start=(env LD_LIBRARY_PATH="$at/lib:$at/opt/mpi/libfabric/lib" I_MPI_ROOT="$at"
        FI_PROVIDER_PATH="$at/opt/mpi/libfabric/lib/prov"
        "$at/bin/mpiexec.hydra" -iface bridge -bootstrap ssh -bootstrap-exec "$here/agent"
        -machinefile "$here/machines") ;;
  esac
}

# across TOLD MPI HOSTS PROGRAM ARGUMENT...: four ranks; leaves out, err, code. TOLD: how many are
# told of a failure; 0: none, all end.
across() {
  local told=$1 mpi=$2 hosts=$3 start=() apart=() try
  shift 3
  rm -rf "$here"/[0-9] "$here/cut" "$here/ready" "$here"/said.* "$here/began" "$here/sessions"
  launcher "$mpi" "$hosts"
  # Where a rank dies, the launchers of MPICH and Intel MPI kill the others of its host, whatever
  # they were told: each is in a session that the launcher does not know.
  case $mpi$told in
    openmpi* | *50 | impi0) ;;
    *) apart=(setsid --fork --wait) ;;
  esac
  start+=(-n 4 "${apart[@]}" env LD_PRELOAD="$library" TUTTI_MPI_STATS=1 TUTTI_MPI=all "${more[@]}")
  # the launcher of Open MPI 5 loses a daemon that it has just started, in 1 of 15 starts
  for try in 1 2 3; do
    code=0
    timeout -k 5 "${limit-60}" "$python" "$TUTTI_SOURCE/test/mpi/hosts.py" \
      "$(grep -o 10.77 <<<"$hosts" | wc -l)" "$here" "$told" "${start[@]}" "$@" \
      >"$here/out" 2>"$here/err" </dev/null || code=$?
    grep -q 'daemon failed to report back' "$here/out" && [ ! -e "$here/began" ] || break
  done
  [ "$code" != 77 ] || skip "$(cat "$here/out")"
  cat "$here"/said.[0-9] >>"$here/err" 2>/dev/null
  ! pgrep -f "^mpirun[.a-z]* .*$here/" >"$here/left" ||
    fail "launchers are left: $(cat "$here/left")"
}
# hear RANK...: each has been told, by an error; HOSTS_TIMES=N does these scenes so often, and says
# how long it took
times=${HOSTS_TIMES-1}
hear() {
  local r
  for r; do
    grep -qE 'an error|MPI_ERR' "$here/$r" 2>/dev/null ||
      fail "rank $r was not told: $(cat "$here/$r" 2>&1)"
  done
  [ "$times" = 1 ] || grep -h after "$here"/[0-9] | sort | tail -1
}

said() { grep -qE -e "$1" "$here/said.0" || fail "rank 0 has not said $1 $2"; }

