# ctest: labels=nosan
# The program of tutti-servers(7) runs, and prints what the page says.
set -eu
PYTHONPATH=$TUTTI_BUILD/python python3 -c 'import tutti' 2>/dev/null ||
  { echo "the package tutti is not in reach of python3"; exit 77; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/app"
# the blocks of EXAMPLES: the program, then what it prints
awk -v to="$scratch/" '/^[.]SH/ { examples = $2 == "EXAMPLES" } /^[.]fi/ { block = 0 }
  block { print > (to n) } examples && /^[.]nf/ { block = 1; n++ }' \
  "$TUTTI_SOURCE/src/manual/tutti-servers.7"
cp "$scratch/1" "$scratch/app/server.py"
# Two workers that end at the same time may say so in either order; each line is written at once.
unset PYTHONUNBUFFERED
PYTHONPATH=$TUTTI_BUILD/python timeout 60 python3 "$scratch/app/server.py" >>"$scratch/said"
# a get that need not wait leaves no record, so what was the last call is chance
plain() { sed 's/, last: .*//' "$1" | sort; }
# the page breaks a line that is too long for it, and goes on behind four spaces
sed -i -e ':all' -e 'N; $!b all' -e 's/\n    / /g' "$scratch/2"
diff <(plain "$scratch/2") <(plain "$scratch/said")
