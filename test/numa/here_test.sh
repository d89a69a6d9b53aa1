# ctest: timeout=300 labels=nosan
# What --bind does on this machine, read back in the ranks; and, where it has several nodes, where
# all memory of a job lies.
set -uo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$TUTTI_BUILD/test/numa/placement" jobs "$folder/file" >"$folder/out" 2>&1
code=$?
cat "$folder/out"
[ $code = 77 ] && exit 77
[ $code = 0 ] && [ "$(tail -n 1 "$folder/out")" = "all memory is where it belongs" ]
