/* SPDX-License-Identifier: MIT */
/* Shows: a data set that is built once and seen by all ranks, without a copy. Rank 0 builds it in
 * memory that the others can reach, and leaves its handle under a name in the job's store; each
 * rank sums a part of its own; the parts' places come from an exscan.
 *
 *     tutti run -n 4 share */
#include <stdio.h>
#include <tutti.h>

enum { COUNT = 1000000 };

static int stop(const tutti_comm *comm)
{
    fprintf(stderr, "share: %s\n", tutti_explain(comm));
    return 1;
}

static int build(tutti_comm *world)
{
    uint64_t handle;
    float *data = tutti_alloc(COUNT * sizeof *data, world);
    if (!data) return -1;
    for (int i = 0; i < COUNT; i++) data[i] = (float)(i % 7);
    if (tutti_handle(data, &handle, world) < 0) return -1;
    return tutti_set("data set", &handle, sizeof handle, world);
}

int main(void)
{
    tutti_comm *world;
    if (tutti_init(&world, NULL) < 0) return stop(NULL);
    int rank = tutti_rank(world), size = tutti_size(world);
    if (rank == 0 && build(world) < 0) return stop(world);

    /* Waits until rank 0 has set it. Writing through this view would be SIGSEGV, so no rank can
     * spoil it for the others. */
    uint64_t handle;
    size_t bytes = sizeof handle;
    if (tutti_get("data set", &handle, &bytes, world, NULL) < 0) return stop(world);
    const float *data = tutti_view_readonly(handle, world);
    if (!data) return stop(world);

    /* Parts of different lengths: where mine begins is the sum of those before it. */
    uint64_t mine = COUNT / (uint64_t)size + (rank == 0 ? COUNT % (uint64_t)size : 0), first = 0;
    if (tutti_exscan(&mine, &first, 1, TUTTI_U64, TUTTI_SUM, world, NULL) < 0) return stop(world);
    double sum = 0;
    for (uint64_t i = first; i < first + mine; i++) sum += data[i];
    if (tutti_all_reduce(&sum, &sum, 1, TUTTI_F64, TUTTI_SUM, world, NULL) < 0) return stop(world);
    if (rank == 0)
        printf("%d ranks, one data set of %d floats: the sum is %.0f\n", size, COUNT, sum);
    if (tutti_finalize(world) < 0) return 1;
    return sum == 2999997 ? 0 : 1;
}
