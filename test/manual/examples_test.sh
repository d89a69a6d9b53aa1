# ctest: labels=nosan
# The examples of the manual's pages compile with all warnings and run on two ranks.
set -u
pages=$TUTTI_BUILD/man/man3
[ -d "$pages" ] || { echo "python3 was not found: no pages of section 3"; exit 77; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# What the examples take for given; then each example as a function. Functions of the
# example's own begin with "static" at the edge.
{ cat <<'C'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti.h>
#include <tutti_cuda.h>

static tutti_comm *world, *comm;
static int rank;
static size_t n = 100;
static char mine[] = "here";
static int done;

static float compute(void) { return 1; }
static int save(void) { return 0; }
static int prepare(void) { return 0; }
static void use(void) { done++; }
static void remove_the_old_one(void) { done++; }
C
  for page in "$pages"/*.3; do
    [ ! -L "$page" ] || continue
    awk '/^[.]Sh/ { inside = $2 == "EXAMPLES" } inside && !/^[.]/' "$page" |
      sed 's/\\&[.][.][.]/.../g; s/\\e/\\/g; s/\\-/-/g; s/^\\&//; s/\\(dq/"/g' >"$scratch/example"
    [ -s "$scratch/example" ] || continue
    name=$(basename "$page" .3)
    echo "$name" >>"$scratch/names"
    awk '/^static/ { inside = 1 } inside; /^}/ { inside = 0 }' "$scratch/example"
    printf 'static void example_of_%s(void)\n{\n' "$name"
    awk '/^static/ { inside = 1 } !inside { print "    " $0 } /^}/ { inside = 0 }' \
      "$scratch/example"
    printf '}\n\n'
  done
  cat <<'C'
int main(void)
{
    if (tutti_init(&world, NULL) < 0) {
        fprintf(stderr, "%s\n", tutti_explain(NULL));
        return 1;
    }
    comm = world;
    rank = tutti_rank(world);
C
  while read -r name; do
    [ "$name" = tutti_recv ] &&
      echo '    tutti_send((float[100]){ 0 }, 100, TUTTI_F32, rank, 0, world, NULL);'
    [ "$name" = tutti_spawn ] || printf '    example_of_%s();\n' "$name"
    printf '    tutti_barrier(world, NULL);\n'
  done <"$scratch/names"
  cat <<'C'
    int error = tutti_finalize(world);
    if (rank == 0)
        example_of_tutti_spawn();
    return error < 0 || done < 2;
}
C
} >"$scratch/all.c"
[ "$(wc -l <"$scratch/names")" -ge 8 ] ||
  { echo "only $(wc -l <"$scratch/names") examples"; exit 1; }
# an example may show a variable that it does not use
${CC:-cc} -std=c11 -Wall -Wextra -Werror -Wno-unused-variable -Wno-unused-but-set-variable \
  -Wno-unused-parameter \
  -o "$scratch/all" -I"$TUTTI_SOURCE/include" "$scratch/all.c" "$TUTTI_BUILD/libtutti.so" ||
  { cat -n "$scratch/all.c"; exit 1; }
LD_LIBRARY_PATH=$TUTTI_BUILD "$TUTTI_BUILD/tutti" run -n 2 --timeout 60s "$scratch/all"
