# ctest: labels=nosan
# README, as a newcomer types it: every ```sh block, in order, in one shell, in a clean folder with
# a home of its own; first.c and first.py are what stands in README. Only `./bootstrap test` is left
# out: this is part of it. What is built already is not built again (TUTTI_BUILT).
set -u
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
lost() { echo "$*" >&2; exit 1; }
unset LD_LIBRARY_PATH PKG_CONFIG_PATH MANPATH "${!PYTHON@}" "${!TUTTI_AS_@}"
python=$(sed -n 's/^TUTTI_PYTHON:[A-Z]*=//p' "$TUTTI_BUILD/CMakeCache.txt")
[ -n "$python" ] && "$python" -c 'import numpy' 2>/dev/null ||
  { echo "the Python of this build (${python:-none}) has no NumPy"; exit 77; }

tree=$scratch/tree home=$scratch/home
mkdir -p "$tree/test" "$home"
cp -r "$TUTTI_SOURCE"/{bootstrap,README.md,include,src} "$tree"
cp -r "$TUTTI_SOURCE"/test/{examples,python} "$tree/test"

# blocks of README: LANGUAGE NUMBER on a line of its own, then the block
block() {  # LANGUAGE: the first block of it
  awk -v start="\`\`\`$1" '$0 == start { inside = 1; next } /^```$/ && inside { exit } inside' \
    "$tree/README.md"
}
block c >"$tree/first.c"
block python >"$tree/first.py"
awk '/^```sh$/ { inside = 1; next } /^```$/ { inside = 0 } inside' "$tree/README.md" |
  grep -v '^./bootstrap test' >"$scratch/typed"
grep -q first.c "$scratch/typed" && grep -q first.py "$scratch/typed" ||
  lost "the blocks of README were not found"

# the programs of the Python of this build first: python3, torchrun
{ echo "cd '$tree'; export PATH='$(dirname "$python")':\$PATH"
  while IFS= read -r line; do
    printf 'printf "> %%s\\n" %q\n%s\n' "$line" "$line"
    printf '[ $? = 0 ] || { echo "README: this line failed"; exit 1; }\n'
  done <"$scratch/typed"
} >"$scratch/script"
HOME=$home XDG_CONFIG_HOME= XDG_CACHE_HOME= TUTTI_BUILT=$TUTTI_BUILD TUTTI_CACHE=$scratch/cache \
  bash "$scratch/script" >"$scratch/said" 2>&1 || { cat "$scratch/said"; exit 1; }

says() {
  grep -q "$1" "$scratch/said" || { cat "$scratch/said"; lost "README did not print: $1"; }
}
says 'rank 3 of 4: the mean rank is 1.5'
says 'rank 3 of 4: \[1.5 1.5 1.5 1.5\]'
says 'the ranks called different things as operation #1'
[ -s "$tree/out.html" ] || lost "tutti perf made no page"
# what is made in the tree, git does not show
git -C "$TUTTI_SOURCE" rev-parse 2>/dev/null && (cd "$tree" && find . -type f) |
  while IFS= read -r file; do
    [ -e "$TUTTI_SOURCE/$file" ] || git -C "$TUTTI_SOURCE" check-ignore -q "$file" || echo "$file"
  done >"$scratch/shown"
[ ! -s "$scratch/shown" ] || lost "git shows what README makes:" $(<"$scratch/shown")
MANPATH=$home/.local/share/man: man -w tutti 2>/dev/null | grep -q "$home" ||
  ! command -v man >/dev/null || lost "man does not find the page of tutti"

# and away again
(cd "$tree" && HOME=$home ./bootstrap uninstall "$home/.local") >"$scratch/said" 2>&1 ||
  { cat "$scratch/said"; exit 1; }
left=$(find "$home/.local" -name '*tutti*' 2>/dev/null)
[ -z "$left" ] || lost "uninstall leaves $left"
