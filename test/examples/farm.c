/* SPDX-License-Identifier: MIT */
/* Shows: messages. Rank 0 hands out numbers, one at a time, to whichever rank asks; a rank that is
 * quick gets more of them.
 *
 *     tutti run -n 4 farm */
#include <stdio.h>
#include <tutti.h>

enum { NUMBERS = 200, TAG_RESULT = 1, TAG_WORK = 2, NO_MORE = -1 };

static int stop(const tutti_comm *comm)
{
    fprintf(stderr, "farm: %s\n", tutti_explain(comm));
    return 1;
}

/* Each message from a worker is a result (0 at first) and asks for more. */
static int hand_out(tutti_comm *world, long *sum)
{
    int next = 1;
    for (int busy = tutti_size(world) - 1; busy > 0;) {
        tutti_message from;
        int result, work = next <= NUMBERS ? next++ : NO_MORE;
        if (tutti_recv(&result, 1, TUTTI_I32, TUTTI_ANY, TAG_RESULT, &from, world, NULL) < 0)
            return -1;
        if (tutti_send(&work, 1, TUTTI_I32, from.from, TAG_WORK, world, NULL) < 0) return -1;
        *sum += result;
        busy -= work == NO_MORE;
    }
    return 0;
}

static int do_work(tutti_comm *world, long *done)
{
    for (int work = 0, result = 0;; result = work * work) {
        if (tutti_send(&result, 1, TUTTI_I32, 0, TAG_RESULT, world, NULL) < 0) return -1;
        if (tutti_recv(&work, 1, TUTTI_I32, 0, TAG_WORK, NULL, world, NULL) < 0) return -1;
        if (work == NO_MORE) return 0;
        ++*done;
    }
}

int main(void)
{
    tutti_comm *world;
    if (tutti_init(&world, NULL) < 0) return stop(NULL);
    int rank = tutti_rank(world), size = tutti_size(world);
    long sum = 0, done = 0, all = 0;
    if ((rank == 0 ? hand_out(world, &sum) : do_work(world, &done)) < 0) return stop(world);
    if (tutti_reduce(&done, &all, 1, TUTTI_I64, TUTTI_SUM, 0, world, NULL) < 0) return stop(world);
    if (rank == 0) printf("%d workers squared %ld numbers: the sum is %ld\n", size - 1, all, sum);
    if (tutti_finalize(world) < 0) return 1;
    return rank || size == 1 || (all == NUMBERS && sum == 2686700) ? 0 : 1;
}
