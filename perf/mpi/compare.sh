#!/usr/bin/env bash
# How many times as fast MPI's collectives are with libtutti-mpi.so: the same program with it and
# without, in turns (without, with, with, without, …), all in one run. For each line the median of
# the turns' ratios, and their spread; and the ratio of the least times of both, which neighbours
# touch least. Then the median of all lines, the worst, and how many are slower by more than 5 %.
#   perf/mpi/compare.sh BUILD MPICC MPIRUN [RANKS [TURNS [MOST-BYTES [SECONDS-PER-LINE]]]]
# A line has as many calls as OSU's, but ends after SECONDS-PER-LINE, if they are said. MPIRUN may
# have options, as "mpirun.openmpi --oversubscribe"; MPI_LIBS: what MPICC lacks.
set -euo pipefail
build=$(cd "$1" && pwd) mpicc=$2 ranks=${4:-2} turns=${5:-4} most=${6:-1048576} seconds=${7:-0}
read -ra mpirun <<<"$3"
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT
$mpicc -O2 -o "$here/program" "$(dirname "${BASH_SOURCE[0]}")/collectives.c" ${MPI_LIBS-}
for ((turn = 0; turn < turns; turn++)); do
  order="0 1"
  [ $((turn % 2)) = 0 ] || order="1 0"
  for with in $order; do
    preload=()
    [ $with = 0 ] || preload=(env "LD_PRELOAD=$build/libtutti-mpi.so")
    "${mpirun[@]}" -n "$ranks" "${preload[@]}" "$here/program" "$most" "$seconds" \
      >"$here/$with.$turn" </dev/null
  done
  paste -d' ' "$here/0.$turn" "$here/1.$turn"
done | awk '
  { key = $1 " " $2; if (!(key in n)) order[++keys] = key
    a[key, ++n[key]] = $3; b[key, n[key]] = $6; r[key, n[key]] = $3 / $6 }
  function sorted(v, key, count,   i, j, t) {
    for (i = 1; i <= count; i++) s[i] = v[key, i]
    for (i = 2; i <= count; i++) for (j = i; j > 1 && s[j] < s[j - 1]; j--) {
      t = s[j]; s[j] = s[j - 1]; s[j - 1] = t }
  }
  function summary(which, name,   k, slow) {
    sorted(all, which, keys)
    for (k = 1; k <= keys; k++) slow += s[k] < 0.95
    printf "%s: median %.2f, worst %.2f, best %.2f of %d lines, %d slower by more than 5 %%\n",
      name, median(keys), s[1], s[keys], keys, slow
  }
  function median(count) { return (s[int((count + 1) / 2)] + s[int(count / 2) + 1]) / 2 }
  END {
    printf "%-22s %9s %12s %12s %7s  %-11s %10s %10s %7s\n", "", "bytes", "MPI us", "tutti us",
      "ratio", "spread", "least, MPI", "tutti", "ratio"
    for (k = 1; k <= keys; k++) {
      key = order[k]; split(key, part, " ")
      sorted(a, key, n[key]); mpi = median(n[key]); mpi_least = s[1]
      sorted(b, key, n[key]); tutti = median(n[key]); tutti_least = s[1]
      sorted(r, key, n[key]); all["all", k] = median(n[key])
      all["least", k] = mpi_least / tutti_least
      printf "%-22s %9d %12.2f %12.2f %7.2f  %5.2f-%-5.2f %10.2f %10.2f %7.2f\n", part[1], part[2],
        mpi, tutti, all["all", k], s[1], s[n[key]], mpi_least, tutti_least, all["least", k]
    }
    summary("all", "all")
    summary("least", "of the least times")
  }'
