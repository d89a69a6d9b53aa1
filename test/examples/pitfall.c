/* SPDX-License-Identifier: MIT */
/* Shows: what becomes of the best known mistake. Only rank 0 reaches a barrier, the others go on to
 * an all_reduce. Elsewhere that hangs for ever, or adds up garbage; here every rank gets -EPROTO
 * and a report of who called what, and where.
 *
 *     tutti run -n 2 pitfall
 *
 * Exit code: 0 if the mistake was found, as it should be. */
#include <errno.h>
#include <stdio.h>
#include <tutti.h>

static int stop(const tutti_comm *comm)
{
    fprintf(stderr, "pitfall: %s\n", tutti_explain(comm));
    return 1;
}

int main(void)
{
    tutti_comm *world, *work;
    if (tutti_init(&world, NULL) < 0) return stop(NULL);
    int rank = tutti_rank(world);
    if (tutti_size(world) < 2) {
        fprintf(stderr, "usage: tutti run -n 2 pitfall (one rank alone cannot disagree)\n");
        return 2;
    }

    /* The mistake will break a comm of its own. Its parent stays whole, and is needed below. */
    if (tutti_comm_split(world, 0, rank, &work) < 0) return stop(world);

    int error;
    float loss = 1;
    if (rank == 0) error = tutti_barrier(work, NULL);
    else error = tutti_all_reduce(&loss, &loss, 1, TUTTI_F32, TUTTI_SUM, work, NULL);

    if (tutti_turn_begin(world, NULL) < 0) return stop(world);
    printf("---- rank %d: %s\n%s\n", rank, tutti_strerror(error), tutti_explain(work));
    fflush(stdout);
    if (tutti_turn_end(world) < 0) return stop(world);

    if (tutti_finalize(world) < 0) return 1;     /* frees both */
    return error == -EPROTO ? 0 : 1;
}
