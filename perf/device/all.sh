#!/bin/bash
# Everything that is worth asking a machine with a GPU, in order of worth; each step is bounded, and
# what it said is kept, whatever becomes of the next one. --help says how.
set -u

help() {
  cat <<'END'
usage: all.sh [options] FOLDER
       all.sh --pack FOLDER

Measures and tests on the first GPU; results go into FOLDER: a text of each step,
the figures as JSON lines, summary.json, report.html.

  --list           the steps, their bounds in seconds, what each asks
  --only LIST      these steps alone, as facts,costs
  --from STEP      this step and those behind it
  --seconds S      for everything; a step has its bound or what is left; default 2700
  --bin FOLDER     the programs: a build folder, or what --pack made; default:
                   the folder that this script is in, else build/release
  --quick          short, small: shows that it works
  --pack FOLDER    copies the programs of --bin, stripped, and the libraries that
                   they need, so that FOLDER runs where nothing is installed
END
}

own=$(cd "$(dirname "$0")" && pwd)
bin="" only="" from="" seconds=2700 quick="" list="" pack="" out=""
while [ $# -gt 0 ]; do
  case $1 in
    --help | -h) help; exit 0 ;;
    --list) list=1 ;;
    --quick) quick=1 ;;
    --only) only=,${2:?},; shift ;;
    --from) from=${2:?}; shift ;;
    --seconds) seconds=${2:?}; shift ;;
    --bin) bin=${2:?}; shift ;;
    --pack) pack=${2:?}; shift ;;
    -*) echo "all.sh: what is this: '$1'; see all.sh --help" >&2; exit 2 ;;
    *) out=$1 ;;
  esac
  shift
done
if [ -z "$bin" ]; then
  bin=$own
  [ -x "$bin/perf/device" ] || bin=$own/../../build/release
fi
[ -n "$list" ] || [ -x "$bin/perf/device" ] || {
  echo "all.sh: no programs in $bin; see --bin" >&2
  exit 2
}

# those that hold streams back come last
tests="ipc_close kill_random same direct foreign_context capture neighbour oracle kill_at_call \
failure deadline stream_order"

# ---- a folder to take along -------------------------------------------------------------------

if [ -n "$pack" ]; then
  mkdir -p "$pack/perf" "$pack/test" "$pack/lib" || exit 1
  cp "$own/all.sh" "$bin/tutti" "$pack/" || exit 1
  cp "$bin"/perf/device "$bin"/perf/device_costs "$pack/perf/" || exit 1
  for name in gpu_facts test_gpu_real_driver test_gpu_real_ptx; do
    cp "$bin/test/$name" "$pack/test/" || exit 1
  done
  for name in $tests; do cp "$bin/test/test_gpu_$name" "$pack/test/" || exit 1; done
  strip "$pack/tutti" "$pack"/perf/* "$pack"/test/*
  # what is not of the C library itself
  ldd "$pack/tutti" "$pack"/perf/* "$pack"/test/* | awk '$2 == "=>" && $3 ~ "^/" { print $3 }' |
    sort -u | grep -vE '/(libc|libm|libdl|libpthread|librt|ld-linux[^/]*)\.so' |
    while read -r file; do cp -L "$file" "$pack/lib/"; done
  du -sm "$pack" | awk '{ print $1 " MiB in " $2; exit $1 > 64 }'
  exit
fi

# ---- the steps --------------------------------------------------------------------------------

step_machine() { # what machine is it
  uname -a
  nproc
  for command in "nvidia-smi -q" "nvidia-smi topo -m" "nvidia-smi -L" \
    "nvidia-smi compute-policy -l" "cat /proc/driver/nvidia/version" \
    "ls /sys/devices/system/node" "python3 -c 'import torch; print(torch.__version__)'"; do
    echo "-- $command"
    timeout 20 bash -c "$command" 2>&1
  done
  return 0
}
step_facts() { "$bin/test/gpu_facts"; }                 # what the driver does beyond its documents
step_costs() { "$bin/perf/device_costs" "$out/costs.jsonl"; } # what its calls cost
step_driver() { "$bin/test/test_gpu_real_driver"; }     # does our table fit it
step_tests() { # the tests of several ranks
  local failed=0 name
  mkdir -p "$out/tests"
  local begin status
  for name in $tests; do # one after the other: processes that share a GPU wait for each other
    begin=$SECONDS
    timeout -k 5 "$test_seconds" "$bin/test/test_gpu_$name" >"$out/tests/$name.txt" 2>&1
    status=$?
    echo "== $name: status $status after $((SECONDS - begin)) s"
    grep -E 'OK \]|FAILED|skipped|Error|ended with|ERROR' "$out/tests/$name.txt" | head -n 40
    [ $status = 0 ] || failed=1
  done
  return $failed
}
step_kernels() { "$bin/test/test_gpu_real_ptx"; }       # all kernels, bit for bit, and how fast
step_doctor() { # what the command says of it, and of pairs of GPUs
  local status=0
  unset TUTTI_TEST_CUDA TUTTI_ORACLE_CASES TUTTI_KILLS TUTTI_KERNEL_MOST
  "$bin/tutti" doctor || status=$?
  "$bin/tutti" doctor --gpu || status=$?
  return $status
}
device() { # NAME OPTION...: a run of perf/device for part of the time
  local name=$1
  shift
  "$bin/perf/device" --out "$out/device-$name.jsonl" ${quick:+--quick} "$@"
}
step_short() { device short --seconds 30 --ranks 2,8 --most 64M; } # the roads, shortly
step_kept() { device kept --seconds 420 --ranks 2,4,8; } # the roads, memory of tutti_cuda_alloc
# the roads once more with memory of cuMemAlloc, of cuMemCreate, beside kernels of the program's own
step_plain() { device plain --memory plain --seconds 90 --ranks 2,8 --most 256M; } # cuMemAlloc
step_vmm() { device vmm --memory vmm --seconds 60 --ranks 2,8 --most 256M; } # cuMemCreate
step_busy() { device busy --busy 5 --seconds 60 --ranks 2,8 --most 64M; } # beside own kernels
steps="machine facts costs short plain driver tests kernels doctor vmm busy kept"
declare -A bound=([machine]=60 [facts]=120 [costs]=150 [driver]=60 [tests]=600 [kernels]=300
  [doctor]=60 [plain]=120 [vmm]=90 [busy]=90 [short]=90 [kept]=480)
test_seconds=90
if [ -n "$quick" ]; then
  export TUTTI_ORACLE_CASES=${TUTTI_ORACLE_CASES:-60} TUTTI_KILLS=${TUTTI_KILLS:-2}
  export TUTTI_KERNEL_MOST=65536
fi

if [ -n "$list" ]; then
  for name in $steps; do
    printf '%-10s %4d s  %s\n' "$name" "${bound[$name]}" \
      "$(sed -n "s/^step_$name() .*[}{;] *# //p" "$0")"
  done
  exit 0
fi
[ -n "$out" ] || { help >&2; exit 2; }
mkdir -p "$out" && out=$(cd "$out" && pwd) || exit 1
if [ -n "$from" ] && [[ " $steps " != *" $from "* ]]; then
  echo "all.sh: no step '$from'; see --list" >&2
  exit 2
fi

# The machine's driver is to be found as anywhere; ours are behind what is there.
[ ! -d "$bin/lib" ] || export LD_LIBRARY_PATH="${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$bin/lib"
export TUTTI_TEST_CUDA=real TUTTI_TUNED=none TUTTI_BOX=none
export -f step_machine step_facts step_costs step_driver step_tests step_kernels step_doctor \
  step_short step_kept step_plain step_vmm step_busy device
export bin out quick tests test_seconds

worst=0 begin=$SECONDS rows=()
for name in $steps; do
  [ "$name" != "$from" ] || from=""
  [ -z "$from" ] || continue
  [ -z "$only" ] || [[ "$only" == *",$name,"* ]] || continue
  left=$((seconds - (SECONDS - begin)))
  limit=${bound[$name]}
  [ "$left" -ge "$limit" ] || limit=$left
  if [ "$limit" -lt 5 ]; then
    status="not begun" took=0
  else
    start=$SECONDS
    timeout -k 10 "$limit" bash -c "step_$name" >"$out/$name.txt" 2>&1 </dev/null
    status=$? took=$((SECONDS - start))
  fi
  case $status in
    0) words=ok ;;
    77) words=skipped ;;
    124 | 137) words="not done in time" worst=1 ;;
    "not begun") words=$status ;;
    *) words="status $status" worst=1 ;;
  esac
  printf '%-10s %-18s %4d s\n' "$name" "$words" "$took" | tee -a "$out/summary.txt"
  rows+=("{\"step\": \"$name\", \"outcome\": \"$words\", \"seconds\": $took}")
done
{
  printf '[\n'
  for ((i = 0; i < ${#rows[@]}; i++)); do
    printf '  %s%s\n' "${rows[i]}" "$([ "$i" = $((${#rows[@]} - 1)) ] || echo ,)"
  done
  printf ']\n'
} >"$out/summary.json"
{
  echo '<!DOCTYPE html><html><head><meta charset="utf-8"><title>tutti on a GPU</title></head><body>'
  for file in summary $steps; do
    [ -f "$out/$file.txt" ] || continue
    echo "<h2 id=\"$file\">$file</h2><pre>"
    sed 's/&/\&amp;/g; s/</\&lt;/g; s/>/\&gt;/g' "$out/$file.txt"
    echo '</pre>'
  done
  echo '</body></html>'
} >"$out/report.html"
exit $worst
