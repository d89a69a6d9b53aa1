/* A rank that prints by which algorithm it would reduce so many bytes, each rank a line: chooses
 * KIND BYTES. Looks into the world. */
#include "coll/select.h"
#include "group/comm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti.h>

int main(int argc, char **argv)
{
    tutti_comm *world;
    if (argc != 3 || tutti_init(&world, NULL) < 0) {
        fprintf(stderr, "%s\n", tutti_explain(NULL));
        return 1;
    }
    for (const struct algorithm *a = select_all(); a->name; a++)
        if ((a == select_all() || a[-1].kind != a->kind) && !strcmp(kind_name(a->kind), argv[1]))
            printf("%s\n",
                   select_algorithm(world->world->rules, a->kind, world->crowded,
                                    strtoul(argv[2], NULL, 10))
                       ->name);
    return tutti_finalize(world) == 0 ? 0 : 1;
}
