/* SPDX-License-Identifier: MIT */
/* Shows: "one rank prepares, the others use it", in three forms. The one is whichever rank comes
 * first. None of them is a barrier: a rank that never comes is not waited for.
 *
 *     tutti run -n 4 zero_first */
#include <inttypes.h>
#include <stdio.h>
#include <tutti.h>

static int stop(const tutti_comm *comm)
{
    fprintf(stderr, "zero_first: %s\n", tutti_explain(comm));
    return 1;
}

/* Stands for the work: a download, a cache file. 0, or an error: then the next rank would try. */
static int prepare(void *times)
{
    ++*(int64_t *)times;
    return 0;
}

static int first_prepares(const char *key, int64_t *times, tutti_comm *world)
{
    int first = tutti_first_begin(key, world, NULL);
    if (first == 1) return tutti_first_end(key, prepare(times), world);
    return first;       /* 0: it has been prepared by another rank; or an error */
}

int main(void)
{
    tutti_comm *world;
    if (tutti_init(&world, NULL) < 0) return stop(NULL);
    int rank = tutti_rank(world);
    int64_t times[3] = { 0 };

    /* Every rank comes here: the first one prepares, the others wait for its end. */
    if (first_prepares("everybody", &times[0], world) < 0) return stop(world);

    /* Only rank 0 comes here. Made of barriers, "rank 0 first" would hang for ever in
     * this place. */
    if (rank == 0 && first_prepares("rank 0 alone", &times[1], world) < 0) return stop(world);

    /* The same for a function: once in the life of the comm. */
    if (tutti_once("a function", prepare, &times[2], world, NULL) < 0) return stop(world);

    /* So each was prepared on exactly one rank. */
    if (tutti_all_reduce(times, times, 3, TUTTI_I64, TUTTI_SUM, world, NULL) < 0)
        return stop(world);
    if (rank == 0)
        printf("prepared: by everybody's call %" PRId64 " time, by rank 0's alone %" PRId64
               ", by tutti_once %" PRId64 "\n",
               times[0], times[1], times[2]);
    int right = times[0] == 1 && times[1] == 1 && times[2] == 1;
    if (tutti_finalize(world) < 0) return 1;
    return right ? 0 : 1;
}
