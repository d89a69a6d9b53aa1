# libtutti.so shows exactly the functions that include/*.h declares. Every call-site macro
# tutti_x(...) has both tutti_x and tutti_x_at behind it, and every function that has a tutti_x_at,
# or that takes a tutti_call, has such a macro.
. "$(dirname "${BASH_SOURCE[0]}")/house.sh"

# The functions that the headers in include/ declare: what stands before the first ( of each
# declaration; and "call" after those that take a tutti_call.
declared() {
  for header in include/*.h; do
    ${CC:-cc} -E -DTUTTI_NO_SITES -Iinclude "$header" 2>/dev/null |
      awk '/^# [0-9]+ "/ { ours = $3 ~ /^"include\// ; next } ours' | tr '\n' ' ' |
      awk 'BEGIN { RS = ";" }
           { while (sub(/\{[^{}]*\}/, "")) ; sub(/^.*[{}]/, "") }
           !/(^|[ \t])typedef[ \t]/ && match($0, /tutti_[a-z0-9_]+[ \t]*\(/) {
               name = substr($0, RSTART, RLENGTH - 1); sub(/[ \t]+$/, "", name)
               print name (/tutti_call[ \t]*[*]/ ? " call" : "")
           }'
  done | sort -u
}

rule() {
  local library=${TUTTI_BUILD:-$TUTTI_SOURCE/build/dev}/libtutti.so all declared macros
  cd "$1" || exit 1
  if [ "$1" != "$TUTTI_SOURCE" ]; then
    library=$scratch/libbad.so
    ${CC:-cc} -shared -fPIC -o "$library" lib.c || exit 1
  fi
  all=$(declared)
  declared=$(printf '%s\n' "$all" | sed 's/ call$//' | sort -u)
  [ -f "$library" ] || { echo "$library:0: is not built"; return; }
  comm -3 <(printf '%s\n' "$declared") \
    <(nm -D --defined-only "$library" | grep -v ' A ' | sed 's/.* //; s/@.*//' | sort -u) |
    awk -F '\t' '
      $1 != "" { print "include:" $1 ": is declared, but libtutti.so does not export it" }
                 $1 == "" { print "libtutti.so:" $2 ": is exported, but not declared in include/" }'
  macros=$(sed -n 's/^[ \t]*#[ \t]*define[ \t][ \t]*\(tutti_[a-z0-9_]*\)(.*/\1/p' \
    include/*.h | sort -u)
  printf '%s\n' "$all" | sed -n 's/\(_at\)\{0,1\} call$//p; t; s/_at$//p' | sort -u |
    comm -23 - <(printf '%s\n' "$macros") |
    sed 's/.*/include:&: has a site or a tutti_call, and no macro that gives the site/'
  printf '%s\n' "$macros" | while read -r name; do
    [ -n "$name" ] || continue
    for want in "$name" "${name}_at"; do
      printf '%s\n' "$declared" | grep -qx "$want" ||
        echo "include:$want: is not declared, though the macro $name is there"
    done
  done
}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
house
