/* SPDX-License-Identifier: MIT */
/* Shows: A on rank 0 before B on the others, in two ways. With a barrier between them, the Bs come
 * in any order among themselves; with turns, everything goes in rank order.
 *
 *     tutti run -n 4 order */
#include <stdio.h>
#include <tutti.h>

static int stop(const tutti_comm *comm)
{
    fprintf(stderr, "order: %s\n", tutti_explain(comm));
    return 1;
}

static void say(const char *how, int rank)
{
    printf("%s: %c on rank %d\n", how, rank == 0 ? 'A' : 'B', rank);
    fflush(stdout);     /* here and now; what waits in a buffer would come out of order */
}

int main(void)
{
    tutti_comm *world;
    if (tutti_init(&world, NULL) < 0) return stop(NULL);
    int rank = tutti_rank(world);

    /* All ranks call the barrier, rank 0 after its A, the others before their B. */
    if (rank == 0) say("barrier", rank);
    if (tutti_barrier(world, NULL) < 0) return stop(world);
    if (rank != 0) say("barrier", rank);

    /* All Bs of the first part before the A of the second. */
    if (tutti_barrier(world, NULL) < 0) return stop(world);

    /* What stands between begin and end runs on rank 0, then on rank 1, and so on. */
    if (tutti_turn_begin(world, NULL) < 0) return stop(world);
    say("turns", rank);
    if (tutti_turn_end(world) < 0) return stop(world);

    return tutti_finalize(world) < 0 ? 1 : 0;
}
