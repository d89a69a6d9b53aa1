# ctest: labels=nosan
# The library's binary interface is the recorded one (src/packaging/abi): no function is gone, no
# parameter, field, type or constant is another. What is added is no change; --write records it:
#
#   TUTTI_BUILD=build/release TUTTI_SOURCE=. bash test/install/abi_test.sh --write
set -eu
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
lost() { echo "$*" >&2; exit 1; }
skip() { echo "$*"; exit 77; }
record=$TUTTI_SOURCE/src/packaging/abi/libtutti.so.0.abi
numbers=$TUTTI_SOURCE/src/packaging/abi/constants
library=$TUTTI_BUILD/libtutti.so
command -v abidiff >/dev/null || skip "abidiff is missing (Debian: abigail-tools)"
machine=$(readelf -hW "$library" | sed -n 's/ *Machine: *//p')
case $machine in *X86-64) ;; *) skip "the record is of x86-64, this library of $machine" ;; esac
readelf -SW "$library" | grep -q ' [.]debug_info ' || skip "$library has no debug information"

# Constants: every name of an enumeration and every number of a macro, with its value.
constants() {
  local header
  { echo '#include <stdio.h>'
    for header in "$TUTTI_SOURCE"/include/*.h; do echo "#include <${header##*/}>"; done
    echo 'int main(void) {'
    cat "$TUTTI_SOURCE"/include/*.h | awk '
      { gsub(/\/\*[^*]*\*\//, "") }
      /^(typedef )?enum/ { inside = 1 }
      inside { while (match($0, /TUTTI_[A-Z0-9_]+/)) {
          print substr($0, RSTART, RLENGTH); $0 = substr($0, RSTART + RLENGTH) } }
      /}/ { inside = 0 }
      /^#define TUTTI_[A-Z0-9_]+ +[(0-9-]/ && !/VERSION/ { print $2 }' | sort -u |
      sed 's/.*/printf("& %lld\\n", (long long)&);/'
    echo 'return 0; }'
  } >"$scratch/constants.c"
  ${CC:-cc} -w -I"$TUTTI_SOURCE/include" -o "$scratch/constants" "$scratch/constants.c"
  "$scratch/constants"
}
constants >"$scratch/numbers"
[ "$(wc -l <"$scratch/numbers")" -ge 30 ] || lost "hardly any constant was found"

abidw --exported-interfaces-only --headers-dir "$TUTTI_SOURCE/include" --drop-private-types \
  --no-corpus-path --no-comp-dir-path --no-show-locs --no-write-default-sizes --no-elf-needed \
  --no-parameter-names --type-id-style hash --out-file "$scratch/now.abi" "$library"
if [ "${1:-}" = --write ]; then
  cp "$scratch/now.abi" "$record"
  { echo "# Written by test/install/abi_test.sh --write."; cat "$scratch/numbers"; } >"$numbers"
  exit 0
fi

# A kernel's structure is not ours.
cat >"$scratch/foreign" <<'INI'
[suppress_type]
name_regexp = ^io_uring_sqe$
INI
differs() {  # RECORD: true if it is not what the library has; said is why
  ! abidiff --suppressions "$scratch/foreign" --no-added-syms "$1" "$scratch/now.abi" \
    >"$scratch/said" 2>&1
}
differs "$record" && lost "$(cat "$scratch/said")

The binary interface is another than the recorded one (src/packaging/abi). Programs that are linked
already would break: keep what there was, and add beside it. If no release has had it, or only
fields in the place of reserved ones are new: bash test/install/abi_test.sh --write"

sed '1d' "$numbers" | sort >"$scratch/recorded"
gone=$(sort "$scratch/numbers" | comm -23 "$scratch/recorded" -)
[ -z "$gone" ] || lost "constants that are gone or have another value: $gone"

# What it is to find, it finds: a function that is gone, a field in another place, a parameter
# of another type.
sed 's/tutti_rank/tutti_place/g' "$record" >"$scratch/gone.abi"
awk '/class-decl name=.tutti_options. size/ { inside = 1 }
  inside && sub(/layout-offset-in-bits=.128./, "layout-offset-in-bits=\047160\047") { inside = 0 }
  { print }' "$record" >"$scratch/field.abi"
awk '/<function-decl/ { inside = /name=.tutti_test. / }
  inside && sub(/<parameter .*/, "<parameter is-variadic=\047yes\047/>") { inside = 0 }
  { print }' "$record" >"$scratch/parameter.abi"
for wrong in gone field parameter; do
  ! cmp -s "$record" "$scratch/$wrong.abi" || lost "the record was not changed: $wrong"
  differs "$scratch/$wrong.abi" || lost "abidiff does not see what is wrong: $wrong"
done
