/* SPDX-License-Identifier: MIT */
/* Shows: a sum and a mean over ranks, of two numbers each. Rank 0 holds [1, 2] and rank 1 holds [3,
 * 4]; both get the sum [4, 6] and the mean [2, 3].
 *
 *     tutti run -n 2 mean */
#include <inttypes.h>
#include <stdio.h>
#include <tutti.h>

static int stop(const tutti_comm *comm)
{
    fprintf(stderr, "mean: %s\n", tutti_explain(comm));
    return 1;
}

int main(void)
{
    tutti_comm *world;
    if (tutti_init(&world, NULL) < 0) return stop(NULL);
    int rank = tutti_rank(world);
    if (tutti_size(world) != 2) {
        if (rank == 0) fprintf(stderr, "usage: tutti run -n 2 mean\n");
        return 2;
    }

    int64_t mine[2] = { 2 * rank + 1, 2 * rank + 2 }, sum[2], mean[2];
    if (tutti_all_reduce(mine, sum, 2, TUTTI_I64, TUTTI_SUM, world, NULL) < 0) return stop(world);
    if (tutti_all_reduce(mine, mean, 2, TUTTI_I64, TUTTI_AVG, world, NULL) < 0) return stop(world);

    printf("rank %d: [%" PRId64 ", %" PRId64 "] -> sum [%" PRId64 ", %" PRId64 "], mean [%" PRId64
           ", %" PRId64 "]\n",
           rank, mine[0], mine[1], sum[0], sum[1], mean[0], mean[1]);
    int right = sum[0] == 4 && sum[1] == 6 && mean[0] == 2 && mean[1] == 3;
    if (tutti_finalize(world) < 0) return stop(world);
    return right ? 0 : 1;
}
