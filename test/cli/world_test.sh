# ctest: timeout=300
# Ranks that use the library: they meet, they are blamed rightly, what they print has the order of
# what they did.
. "$(dirname "$0")/lib.sh"

for n in 1 2 3 8; do
  run -n $n "$actor" barrier
  exits 0 "of $n ranks"
  [ "$(sort -u "$here/out" | grep -c "^rank [0-9]* of $n met$")" = "$n" ] || fail "not $n ranks met"
  quiet
done
run -n 3 "$actor" twice
exits 0 "of two worlds in turn"
[ "$(grep -c 'of 3 met' "$here/out")" = 6 ] || fail "not two worlds"
run -n 2 sh -c '"$0" barrier && "$0" barrier' "$actor"
exits 0 "of two programs in turn"
[ "$(grep -c 'of 2 met' "$here/out")" = 4 ] || fail "not two programs"
run -n 2 --bind core "$actor" barrier
exits 0 "of bound ranks"
run -n 2 "$tutti" run -n 2 "$actor" barrier
exits 0 "of a job in each rank of a job"
[ "$(grep -c 'of 2 met' "$here/out")" = 4 ] || fail "inner jobs"

# The one that died is blamed, never those that failed because of it, in whatever order their
# ends are seen.
for round in 1 2 3 4 5; do
  for rank in 0 1 3; do
    run -n 4 "$actor" lose $rank kill
    exits 137 "of rank $rank killed"
    says "^tutti run: rank $rank \(pid [0-9]+\) was killed by signal 9 \(SIGKILL\); "
    others 3
  done
done
# A report is shown once, with the numbers of the others that had the same.
run -n 4 "$actor" lose 1 exit
[ "$(grep -c '^  without it no rank can finish barrier #2' "$here/err")" = 1 ] ||
  fail "one report of three survivors"
says '^tutti run: (2 other|1 other|1 more) ranks? said the same as rank [023]: [023]'
for how in exit _exit; do
  run -n 4 "$actor" lose 1 $how
  exits 3 "of rank 1 by $how"
  says '^tutti run: rank 1 .* ended with exit status 3; '
done
run -n 4 "$actor" lose 2 abort
exits 134 "of rank 2 by abort"
says '^tutti run: rank 2 .* was killed by signal 6 \(SIGABRT\)'
run -n 3 "$actor" fat 1
exits 137 "of a rank with much memory"
says '^tutti run: rank 1 .* was killed by signal 9'
run -n 3 "$actor" early 1
exits 5 "of a rank that never joined"
says '^tutti run: rank 1 .* ended with exit status 5'

# The survivors' report may know how the dead one ended; the job is not started again without
# being asked.
run -n 2 --restart 1 "$actor" lose 0 kill
exits 137 "at the second attempt"
[ "$(grep -c 'rank 0 (pid [0-9]*) was killed' "$here/err")" = 2 ] || fail "not two attempts"

# Output has the order of the ranks' turns.
ordered() {  # RANKS ROUNDS
  awk -v n="$1" -v rounds="$2" '
    $1 != int((NR - 1) / n) || $2 != (NR - 1) % n { print "line " NR ": " $0; bad = 1; exit }
    END { if (!bad && NR != n * rounds) print NR " lines" }' "$here/out"
}
for n in 2 4 7; do
  run -n $n "$actor" turns 300
  exits 0 "of turns"
  wrong=$(ordered $n 300)
  [ -z "$wrong" ] || fail "output of $n ranks out of order: $wrong"
done
"$tutti" run -n 4 "$actor" turns 300 2>"$here/err" | { sleep 0.2; cat; } >"$here/out"
wrong=$(ordered 4 300)
[ -z "$wrong" ] || fail "output to a slow reader out of order: $wrong"
# Even where the launcher was not there to see it happen.
for n in 2 3 4; do
  run -n $n "$actor" scatter 5000        # more than the pipes hold
  exits 0 "of scattered lines"
  prints "$(seq 0 4999)"
done
