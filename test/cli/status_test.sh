# ctest: timeout=200
# Exit statuses: which rank failed first, and how; and what cannot be started.
. "$(dirname "$0")/lib.sh"

run -n 4 true
exits 0 "when all end well"
quiet

run -n 3 sh -c 'exit $((RANK == 1 ? 7 : 0))'
exits 7 "of the only rank that failed"
says '^tutti run: rank 1 \(pid [0-9]+\) ended with exit status 7$'

run -n 4 sh -c '[ $RANK = 2 ] && kill -9 $$; exec sleep 60'
exits 137 "of a killed rank"
says '^tutti run: rank 2 \(pid [0-9]+\) was killed by signal 9 \(SIGKILL\); '\
'3 other ranks were ended by tutti run$'

run -n 4 sh -c '[ $RANK = 3 ] && kill -SEGV $$; exec sleep 60'
exits 139 "of a rank with a segmentation fault"
says 'rank 3 .* was killed by signal 11 \(SIGSEGV'

# Whoever starts us may ignore the ends of its children, which we inherit: ours are read all the
# same, and ranks find what we found.
code=0
timeout 60 env --ignore-signal=CHLD "$tutti" run -n 2 sh -c 'exit 5' >"$here/out" 2>"$here/err" ||
  code=$?
exits 5 "where SIGCHLD is ignored"
says 'ended with exit status 5'
timeout 60 env --ignore-signal=CHLD "$tutti" run -n 2 grep -q '^SigIgn:.*[13579bdf][0-9a-f]\{4\}$' \
  /proc/self/status || fail "a rank does not find what we found"
timeout 60 env --ignore-signal=CHLD "$tutti" doctor >"$here/out" 2>&1 </dev/null
"$tutti" doctor >"$here/err" 2>&1 </dev/null
wrong_of() { grep -cE "hangs|reading of peers +no" "$1"; }
[ "$(wrong_of "$here/out")" = "$(wrong_of "$here/err")" ] ||
  fail "doctor is wrong where SIGCHLD is ignored"

# A rank that ends early and well is no failure; the others go on.
run -n 3 sh -c '[ $RANK = 0 ] && exit 0; sleep 0.5; echo done $RANK'
exits 0 "though rank 0 ended early"
[ "$(sort "$here/out")" = "done 1
done 2" ] || fail "the others were not left alone"

# Those that end by themselves within a moment are let, and counted; nobody is blamed for
# what came later.
run -n 4 sh -c '[ $RANK = 1 ] && exit 9; sleep 0.08; exit 1'
exits 9 "of the first one"
says 'rank 1 .* exit status 9; 3 other ranks ended because of it \(exit status 1\)$'

# SIGTERM, then SIGKILL at the end of the grace period; a rank that ends in order on SIGTERM may.
run -n 3 --grace 2s sh \
  -c 'trap "echo rank $RANK cleans up; exit 1" TERM
  [ $RANK = 0 ] && exit 4; [ $RANK = 2 ] && trap "" TERM
  while :; do sleep 0.05; done'
exits 4 "of the first one"
printed 'rank 1 cleans up' 1 || fail "rank 1 had no SIGTERM"
says 'rank 0 .* exit status 4; 2 other ranks were ended by tutti run$'

# A stopped rank is ended, too.
run -n 2 sh -c 'trap "echo in order; exit 1" TERM
  [ $RANK = 1 ] && { sleep 0.2; exit 6; }; kill -STOP $$'
exits 6 "though the other rank is stopped"
prints "in order"

# What cannot be started; nothing runs then.
run -n 2 nosuch-program
exits 127 "for a program that is not there"
[ "$(cat "$here/err")" = "tutti run: cannot start 'nosuch-program': No such file or directory" ] ||
  fail "another message"
run -n 2 ./nosuch/program
exits 127 "for a path that is not there"
run -n 2 ""
exits 127 "for an empty name"
echo 'echo x' >"$here/plain"
run -n 2 "$here/plain"
exits 126 "for a file that is not executable"
says "cannot start '.*/plain': Permission denied"
run -n 2 "$here"
exits 126 "for a folder"
chmod +x "$here/plain"
run -n 2 "$here/plain"
exits 0 "for a script without its first line"
prints "x
x"
printf '#!/nosuch/interpreter\n' >"$here/script"
chmod +x "$here/script"
run -n 3 "$here/script"
exits 127 "for a script whose interpreter is not there"
wanted="tutti run: cannot start '$here/script': No such file or directory"
[ "$(cat "$here/err")" = "$wanted (the interpreter or loader it names)" ] ||
  fail "another message"
printf '\177ELF rubbish' >"$here/rubbish"
chmod +x "$here/rubbish"
run -n 3 "$here/rubbish"
[ "$code" != 0 ] || fail "rubbish was executed"

# PATH is searched as a shell does: a file without permission is passed over.
mkdir "$here/a" "$here/b"
echo no >"$here/a/found-by-path"
printf '#!/bin/sh\necho found\n' >"$here/b/found-by-path"
chmod +x "$here/b/found-by-path"
PATH=$here/a:$here/b:$PATH run -n 1 found-by-path
prints found

# Not more than there are processes or descriptors for: said, and nothing left running.
code=0
(ulimit -n 64 && exec timeout 60 "$tutti" run -n 200 true) >"$here/out" 2>"$here/err" || code=$?
exits 1 "without descriptors"
says 'tutti run: 200 ranks need [0-9]+ file descriptors here, and the limit is 64'

TUTTI_ALGORITHM='all_reduce:0-8=nonsense' run -n 2 true
exits 2 "for wrong rules"
says '^tutti run: TUTTI_ALGORITHM: '
TUTTI_SPAN_BYTES=lots run -n 2 true
exits 2 "for a wrong size"
says '^tutti run: TUTTI_SPAN_BYTES'

# The time of the whole job.
run -n 3 --timeout 300ms sleep 60
exits 124 "when the time is up"
says "^tutti run: the job's time of 300 ms was up; 3 of 3 ranks had to be ended$"
run -n 2 --timeout 300ms --grace 200ms sh -c 'trap "" TERM; while :; do sleep 0.05; done'
exits 124 "when the time is up and SIGTERM is ignored"
says 'not all ranks ended within 200 ms; the rest was killed'
run -n 2 --timeout 60s true
exits 0 "when the time is not up"
run -n 2 --timeout never true
exits 0 "without a time"

# Again from the start, at most so often; not after a wrong start.
run -n 2 --restart 2 sh \
  -c 'echo "attempt $TUTTI_RESTART $TORCHELASTIC_RESTART_COUNT $TUTTI_RUN_ID"
    [ $RANK = 0 ] || exit $((TUTTI_RESTART < 2))'
exits 0 "at the third attempt"
[ "$(cut -d' ' -f2,3 "$here/out" | sort | uniq -c | xargs)" = "2 0 0 2 1 1 2 2 2" ] ||
  fail "not three attempts of two ranks"
[ "$(cut -d' ' -f4 "$here/out" | sort -u | wc -l)" = 3 ] || fail "the attempts have the same name"
says 'starting the job again \(1 of 2\)'
says 'starting the job again \(2 of 2\)'
run -n 2 --restart 1 sh -c 'echo x; exit 3'
exits 3 "of the last attempt"
printed x 4 || fail "not two attempts"
[ "$(grep -c 'rank . .*exit status 3' "$here/err")" = 2 ] || fail "not both failures are said"
run -n 2 --restart 5 nosuch-program
exits 127 "with --restart"
[ "$(wc -l <"$here/err")" = 1 ] || fail "a wrong start was repeated"
