# ctest: labels=nosan
# Two hundred wrong invocations: each ends at once in one line on stderr that begins with the verb's
# name and says what is meant, and in the exit status that the manual gives it; nothing is printed
# on stdout, and nothing is left. The table: wrong.txt.
. "$(dirname "$0")/lib.sh"

mkdir -p "$here/in"
trap 'rm -rf "$here"' EXIT
out=$here/out err=$here/err
here=$here/in
cd "$here"
: >plain >script.py
before=$(ls -A)

mapfile -t rows < <(grep -v '^#' "$(dirname "${BASH_SOURCE[0]}")/wrong.txt" | grep .)
# A build without the measuring programs has the others.
if [ ! -x "$TUTTI_BUILD/perf/barrier" ]; then
  echo "perf is not built: its rows are left out"
  mapfile -t rows < <(printf '%s\n' "${rows[@]}" | grep -v '[|] perf ')
fi

wrong() {  # WHAT
  printf 'cli.wrong: %s: tutti %s\nexpected: %s | %s\ngot: %s\n' "$1" "$words" "$status" "$text" \
    "$code" >&2
  cat "$err" >&2
  failed=1
}

failed=0
for row in "${rows[@]}"; do
  status=${row%% | *} words=${row##* | }
  text=${row#* | } text=${text% | *} text=${text//'$here'/$here}
  eval "set -- $words"
  code=0
  "$tutti" "$@" >"$out" 2>"$err" </dev/null || code=$?
  mapfile -t said <"$err"
  [ "$code" = "$status" ] || { wrong "exit status"; continue; }
  [ ! -s "$out" ] || wrong "something on stdout"
  [ ${#said[@]} = 1 ] || { wrong "not one line"; continue; }
  [[ ${said[0]} == tutti*:\ * ]] || wrong "does not begin with our name"
  [[ ${said[0]} == *"$text"* ]] || wrong "another text"
  [ ${#said[0]} -le 300 ] || wrong "a line of ${#said[0]} letters"
  # how to go on: the help of the verb that was meant, unless the command line was right
  case $status in
    2|64) [[ ${said[0]} == *"; try 'tutti"*" --help'" || ${said[0]} == *"try 'tutti --help'" ]] ||
      wrong "names no help" ;;
  esac
done
[ ${#rows[@]} -ge 150 ] || { echo "cli.wrong: only ${#rows[@]} rows" >&2; failed=1; }
[ "$(ls -A)" = "$before" ] || { echo "cli.wrong: left behind: $(ls -A)" >&2; failed=1; }

# A machine on which others compute is no mistake, and is said before anything is measured. While a
# busy loop has the CPU that perf may use, others have all of its time.
if [ -x "$TUTTI_BUILD/perf/floor" ]; then
  cpu=$(taskset -cp $$ | sed 's/.*: //; s/[,-].*//')
  taskset -c "$cpu" sh -c 'while :; do :; done' &
  loop=$!
  taskset -c "$cpu" "$TUTTI_BUILD/perf/floor" -n 1 >"$out" 2>"$err" </dev/null &
  perf=$!
  eventually grep -q '^floor: this machine is busy: others have [0-9]* % of' "$err" ||
    { echo "cli.wrong: a busy machine is not said" >&2; cat "$err" >&2; failed=1; }
  kill $loop $perf
fi
[ $failed = 0 ] || exit 1
echo "${#rows[@]} wrong invocations, a line each"
