# What the scripts here share; sourced first.
set -uo pipefail
export LC_ALL=C
for name in $(compgen -e); do
  case $name in
    TUTTI_BUILD | TUTTI_TUNED | TUTTI_SOURCE | TUTTI_PROVE | TUTTI_SPAN_BYTES) ;;
    TUTTI_TEST_SANITIZED) ;;
    TUTTI_* | RANK | WORLD_SIZE | LOCAL_* | MASTER_* | TORCHELASTIC_*) unset "$name" ;;
    OMPI_* | PMI_* | SLURM_*) unset "$name" ;;
  esac
done

export TUTTI_BOX=none                 # nothing in the home folder of whoever runs this

tutti=$TUTTI_BUILD/tutti
actor=$TUTTI_BUILD/test/cli/actor
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT
script=$(basename "$0" _test.sh)
: >"$here/out" >"$here/err"
code=0

fail() {
  printf 'cli.%s: %s (exit status %s); stdout and stderr:\n' "$script" "$1" "$code"
  head -c 4000 "$here/out"
  echo ----
  head -c 4000 "$here/err"
  exit 1
} >&2

skip() { echo "cli.$script: skipped: $1"; exit 77; }

# run ARGUMENT...: tutti run, to its end; leaves out, err and code.
run() {
  code=0
  timeout -k 5 60 "$tutti" run "$@" >"$here/out" 2>"$here/err" </dev/null || code=$?
}

# begin ARGUMENT...: the same in the background, with plain signals; leaves job.
begin() {
  : >"$here/out" >"$here/err"
  env --default-signal=INT,QUIT,HUP "$tutti" run "$@" >"$here/out" 2>"$here/err" </dev/null &
  job=$!
}

# finish: waits for it; leaves code.
finish() { code=0; wait "$job" || code=$?; }

# eventually COMMAND...: true within 20 s, by looking again and again.
eventually() {
  local end=$((SECONDS + 20))
  until "$@"; do
    [ $SECONDS -lt $end ] || return 1
    sleep 0.02
  done
}

exits() { [ "$code" = "$1" ] || fail "expected exit status $1 $2"; }
says() { grep -qE -e "$1" "$here/err" || fail "expected on stderr: $1"; }
# others N: tutti run tells of N other ranks, be they ended because of it or by tutti run.
others() {
  local count=0 number
  for number in $(sed -n '/^tutti run: rank/s/[^;]*;//p' "$here/err" |
    grep -oE '[0-9]+ (other )?ranks? (ended|was|were)' | cut -d' ' -f1); do
    count=$((count + number))
  done
  [ "$count" = "$1" ] || fail "expected $1 others, not $count"
}
quiet() { [ ! -s "$here/err" ] || fail "expected nothing on stderr"; }
prints() { [ "$(cat "$here/out")" = "$1" ] || fail "expected on stdout: $1"; }
printed() { [ "$(grep -cE -e "$1" "$here/out")" = "$2" ]; }      # PATTERN LINES
gone() { local p; for p in "$@"; do [ ! -e "/proc/$p" ] ||
  grep -q '^State:.Z' "/proc/$p/status" 2>/dev/null || return 1; done; }

# What tutti why says, a line where it continues in further, indented ones.
whole() {
  awk 'NR > 1 && /^      [^ ]/ { printf " %s", substr($0, 7); next }
    NR == 2 && /^    [^ ]/ { printf " %s", substr($0, 5); next }
    NR > 1 { print "" } { printf "%s", $0 } END { if (NR) print "" }' "$1"
}
# fits FILE: a screen of 80 columns.
fits() { [ "$(awk 'length > 80' "$1")" = "" ] || fail "wider than 80 columns"; }
