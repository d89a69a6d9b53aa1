# The type hints: of the package itself, and as a program sees them: every line of
# types_of_a_program.py that ends in "wrong" is, no other is.
set -eu
python=$(sed -n 's/^TUTTI_PYTHON:[A-Z]*=//p' "$TUTTI_BUILD/CMakeCache.txt")
"$python" -c 'import mypy' 2>/dev/null || {
  echo "mypy is missing: ./bootstrap test installs it into build/venv"
  exit 77
}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
check() {
  MYPYPATH=$TUTTI_SOURCE/src/python "$python" -m mypy --cache-dir "$scratch" --no-site-packages \
    --python-version 3.11 --strict --ignore-missing-imports --no-warn-return-any "$@"
}

check --exclude 'tutti/torch' -p tutti >"$scratch/package" || true
if grep -v -e '/torch' -e '^Found' -e '^Success' "$scratch/package"; then
  exit 1
fi

program=$TUTTI_SOURCE/test/python/types_of_a_program.py
check "$program" >"$scratch/program" || true
grep -o 'types_of_a_program.py:[0-9]*: error' "$scratch/program" | cut -d: -f2 |
  sort -nu >"$scratch/found"
grep -n '# wrong$' "$program" | cut -d: -f1 >"$scratch/expected"
diff "$scratch/expected" "$scratch/found" || { cat "$scratch/program"; exit 1; }
