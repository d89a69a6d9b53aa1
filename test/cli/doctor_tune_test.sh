# ctest: timeout=300 needs=robust
# Measuring ends in a file that jobs go by, and that doctor takes for this machine's; or in nothing
# at all. What was measured is not judged here, only what becomes of it.
. "$(dirname "$0")/lib.sh"
unset TUTTI_TUNED
export XDG_CONFIG_HOME=$here/config
plain=(-u TUTTI_BUILD -u TUTTI_SOURCE -u TUTTI_PROVE -u TUTTI_TEST_SANITIZED
  FAKE_CUDA_STUB=1 LD_LIBRARY_PATH="$TUTTI_BUILD/fake_cuda")
rules=$here/config/tutti/rules

doctor() {  # ARGUMENT...
  code=0
  env "${plain[@]}" timeout -k 5 200 "$tutti" doctor "$@" >"$here/out" 2>"$here/err" </dev/null ||
    code=$?
}
shows() { grep -qE -e "$1" "$here/out" || fail "expected on stdout: $1"; }

# Nothing is written where nothing shall be.
doctor --tune --dry-run --seconds 1
exits 0 "of a dry run"
quiet
shows "^(rules, not written:|no rules, and nothing written)$"
[ ! -e "$here/config" ] || fail "a dry run has written"
TUTTI_TUNED=none doctor --tune --seconds 1
exits 1 "without a place"
shows "^  wrong: there is no place for a file of rules$"

# The folders are made, the file is whole, nothing lies beside it, and doctor says that it is used.
doctor --tune --seconds 2
exits 0 "of a measurement"
quiet
shows "^measuring with [0-9]+ ranks"
shows "^written to "
[ "$(ls "$here/config/tutti")" = rules ] || fail "expected one file: $(ls "$here/config/tutti")"
head -n 1 "$rules" | grep -q "^# tutti rules for: .*, [0-9]* CPUs\?, caches " ||
  fail "expected whose rules: $(head -n 1 "$rules")"
[ "$(awk 'length > 80' "$here/out" | grep -v "$here")" = "" ] || fail "wider than 80 columns"
doctor
exits 0 "with the file"
shows "^  .*/tutti/rules"
! grep -q "is damaged\|of another machine\|not measured here" "$here/out" ||
  fail "expected the file to be used"

# Jobs go by it, TUTTI_ALGORITHM lies over it; another place.
chosen() {  # ALGORITHM: what the ranks of a job take
  [ "$(timeout 60 "$tutti" run -n 2 "$TUTTI_BUILD/test/cli/chooses" reduce 8192 |
    sort -u)" = "$1" ] ||
    fail "expected the ranks to choose $1"
}
{ head -n 1 "$rules"; echo "reduce:-inf=pipelined"; } >"$here/elsewhere"
export TUTTI_TUNED=$here/elsewhere
chosen pipelined
TUTTI_ALGORITHM=reduce:-inf=eager chosen eager
doctor
exits 0 "with a file of its own"
shows "^  reduce +any +pipelined +"
doctor --tune --seconds 1
exits 0 "of a measurement into a file of its own"
head -n 2 "$here/elsewhere" | tail -n 1 | grep -q "^# measured by" ||
  fail "expected the file to be written anew"

# A place that cannot be written, ranks that cannot start: a complaint, and the file as it was.
mkdir "$here/folder"
TUTTI_TUNED=$here/folder doctor --tune --seconds 1
exits 1 "with a folder in its place"
shows "^  wrong: .*cannot be written"
[ "$(ls "$here")" = "$(ls "$here" | grep -v '\.new$')" ] || fail "left behind: $(ls "$here")"
cp "$here/elsewhere" "$here/before"
TUTTI_ALGORITHM=reduce:-inf=rings doctor --tune --seconds 1
exits 1 "with wrong rules in the environment"
shows "no algorithm of reduce"
cmp -s "$here/elsewhere" "$here/before" || fail "the file is another one"

for wrong in "--dry-run" "--seconds 3" "--tune --seconds" "--tune --seconds 0" \
    "--tune --seconds=soon" "--tune --dryrun"; do
  code=0
  # shellcheck disable=SC2086 # words
  "$tutti" doctor $wrong >"$here/out" 2>"$here/err" || code=$?
  exits 2 "for: $wrong"
  says "^tutti doctor: .*; try 'tutti doctor --help'$"
done
