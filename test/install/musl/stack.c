/* SPDX-License-Identifier: MIT */
/* A rank that is a thread with the stack that the C library gives it, 128 KiB with musl: a large
 * reduction, one of a type that is computed in pieces, a message, an error with its report. */
#include <tutti.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { LARGE = 1 << 20 };

static float in[LARGE], out[LARGE];

static int calls(tutti_comm *world)
{
    int rank = tutti_rank(world), size = tutti_size(world);
    for (int i = 0; i < LARGE; i++)
        in[i] = (float)rank;
    int error = tutti_all_reduce(in, out, LARGE, TUTTI_F32, TUTTI_MAX, world, NULL);
    if (error || out[LARGE - 1] != (float)(size - 1))
        return 2;
    if (tutti_all_reduce(in, out, 1000, TUTTI_F8E4M3, TUTTI_AVG, world, NULL))
        return 3;
    if (tutti_broadcast(rank ? out : in, LARGE, TUTTI_F32, 0, world, NULL) || out[1] < 0)
        return 4;
    if (tutti_barrier(world, NULL))
        return 5;
    error = tutti_all_reduce(in, out, (size_t)(10 + rank), TUTTI_F32, TUTTI_SUM, world, NULL);
    return error == -EPROTO || size == 1 ? 0 : 6;
}

static void *run(void *arg)
{
    tutti_comm *world;
    int *status = arg;
    *status = tutti_init(&world, NULL) ? 1 : calls(world);
    return NULL;
}

int main(void)
{
    pthread_t thread;
    int status = 7;
    if (pthread_create(&thread, NULL, run, &status) || pthread_join(thread, NULL))
        return 8;
    return status;
}
