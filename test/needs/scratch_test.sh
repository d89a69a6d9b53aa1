# What a test leaves in its folder is removed when it ends, however it ends; what a killed one has
# left is removed by the next, and no folder of another making. TMPDIR is the test's own here.
set -u
lost() { echo "$*" >&2; exit 1; }
scratch=$TUTTI_BUILD/test/needs/test_scratch
export TMPDIR="$TMPDIR/here"
mkdir -p "$TMPDIR/kept/a" "$TMPDIR/tutti-scratch.backup"
left() { (cd "$TMPDIR" && ls -A | tr '\n' ' '); }
leave='mkdir -p "$TMPDIR/a/b"; ln -s "$1" "$TMPDIR/a/link"; touch "$TMPDIR/a/b/c"
  [ "$TMPDIR" != "$1" ]'
"$scratch" bash -c "$leave; exit 77" - "$TMPDIR"
[ $? = 77 ] || lost "another exit status"
"$scratch" bash -c "$leave; kill -SEGV \$\$" - "$TMPDIR" 2>/dev/null
[ $? = 139 ] || lost "another signal"
[ "$(left)" = "kept tutti-scratch.backup " ] || lost "left: $(left)"
"$scratch" bash -c "$leave; kill -KILL \$PPID" - "$TMPDIR" 2>/dev/null
[ "$(left | wc -w)" = 3 ] || lost "expected the folder of one that was killed: $(left)"
# one that runs keeps its folder while another comes and goes
"$scratch" bash -c "$leave; \"\$2\" true; [ -e \"\$TMPDIR/a/b/c\" ]
  TMPDIR=\$1 \"\$2\" true; [ -e \"\$TMPDIR/a/b/c\" ] && [ \"\$(ls -A \"\$1\" | wc -w)\" = 3 ]" \
  - "$TMPDIR" "$scratch" || lost "a folder in use was removed, or another one was left: $(left)"
[ "$(left)" = "kept tutti-scratch.backup " ] || lost "left: $(left)"
[ -d "$TMPDIR/kept/a" ] || lost "what a link names was removed"
