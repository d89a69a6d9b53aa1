/* SPDX-License-Identifier: MIT */
/* Shows: data-parallel training on GPUs. Weights, gradients and examples stay on the devices; tutti
 * takes the device's pointers as it takes any others. Any number of ranks on any number of GPUs:
 * rank r takes GPU r modulo their number.
 *
 *     tutti run -n 2 train_cuda                  on the GPUs
 *     tutti run -n 2 train_cuda --cpu            the same on the CPU: the same losses and
 *                                                weights, to the bit
 *     tutti run -n 4 train_cuda --steps 500 --rows 4096
 *
 * Read run() first. Of tutti it shows tutti_broadcast (rank 0's weights to all), tutti_all_reduce
 * with TUTTI_AVG (gradients and loss, in place, on the device, behind the kernels that are still
 * under way in the stream; the result is in place when the call returns), and tutti_cuda_alloc.
 *
 * The kernels (train_cuda/kernels.h) are a page of PTX text, compiled by the driver; nothing of
 * CUDA is needed to build this.
 *
 * Exit code: 0 the net has learnt, 1 it has not or something failed, 2 usage, 77 there
 * is no GPU. */
#include "train_cuda/net.h"

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti.h>

struct job {
    tutti_comm *world;
    int rank, size, steps, rows, on_cpu;
    struct place *place;
    struct net net;
    float first, loss;
    char why[WHY];
};

/* ---- what is to be learnt -------------------------------------------------------------------- */

/* -1 to 1, in steps that a float has exactly. */
static float draw(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (float)(int)(*state >> 16) / 32768.0f - 1.0f;
}

/* Every rank has examples of its own, of the same function. */
static int make_examples(struct job *job)
{
    size_t rows = (size_t)job->rows;
    uint32_t random = 7u + 1000u * (uint32_t)job->rank;
    float *x = malloc(rows * INPUTS * sizeof *x), *y = malloc(rows * sizeof *y);
    for (size_t i = 0; i < rows && x && y; i++) {
        float *in = x + i * INPUTS;
        for (int k = 0; k < INPUTS - 1; k++) in[k] = draw(&random);
        in[INPUTS - 1] = 1;
        float bent = in[0] > in[1] ? in[0] - in[1] : 0;
        y[i] = bent + 0.5f * in[2];
        y[i] -= 0.25f * in[3];
    }
    int error = x && y ? 0 : -ENOMEM;
    if (!error) error = job->place->put(job->place, job->net.x, x, rows * INPUTS, job->why);
    if (!error) error = job->place->put(job->place, job->net.y, y, rows, job->why);
    free(x);
    free(y);
    return error;
}

/* Only rank 0 knows where to begin. */
static int make_weights(struct job *job)
{
    float weights[WEIGHTS];
    uint32_t random = 1;
    if (job->rank != 0) return 0;
    for (int i = 0; i < WEIGHTS; i++)
        weights[i] = draw(&random) * (i < INPUTS * HIDDEN ? 0.5f : 0.125f);
    return job->place->put(job->place, job->net.weights, weights, WEIGHTS, job->why);
}

static int make_net(struct job *job)
{
    struct net *net = &job->net;
    size_t rows = (size_t)job->rows;
    net->rows = job->rows;
    const struct { float **at; size_t count; } all[] = {
        { &net->x, rows * INPUTS }, { &net->y, rows }, { &net->hidden, rows * HIDDEN },
        { &net->error, rows }, { &net->weights, WEIGHTS }, { &net->gradient, GRADIENT },
    };
    int error = 0;
    for (size_t i = 0; i < sizeof all / sizeof all[0] && !error; i++)
        error = job->place->room(job->place, all[i].at, all[i].count, job->why);
    if (!error) error = make_examples(job);
    if (!error) error = make_weights(job);
    return error;
}

/* ---- the story ------------------------------------------------------------------------------- */

static int run(struct job *job)
{
    struct place *place = job->place;
    struct net *net = &job->net;
    const float rate = 0.1f;
    tutti_call call = { .stream = place->stream };  /* tutti begins behind what is in this stream */
    int error = tutti_broadcast(net->weights, WEIGHTS, TUTTI_F32, 0, job->world, &call);
    for (int done = 0; done < job->steps && !error; done++) {
        error = place->learn(place, net, job->why);
        if (!error)
            error = tutti_all_reduce(net->gradient, net->gradient, GRADIENT, TUTTI_F32, TUTTI_AVG,
                                     job->world, &call);
        if (!error) error = place->step(place, net, rate, job->why);
        if (!error && (done % ((job->steps + 9) / 10) == 0 || done == job->steps - 1)) {
            error = place->get(place, &job->loss, net->gradient + WEIGHTS, 1, job->why);
            if (done == 0) job->first = job->loss;
            if (!error && job->rank == 0) printf("step %5d   loss %.9f\n", done, (double)job->loss);
        }
    }
    return error;
}

/* The weights are the same on all ranks, to the bit. */
static int check(struct job *job)
{
    float weights[WEIGHTS];
    uint64_t sum = 14695981039346656037u, least, most;
    int error = job->place->get(job->place, weights, job->net.weights, WEIGHTS, job->why);
    if (error) return error;
    for (size_t i = 0; i < sizeof weights; i++)
        sum = (sum ^ ((const unsigned char *)weights)[i]) * 1099511628211u;
    error = tutti_all_reduce(&sum, &least, 1, TUTTI_U64, TUTTI_MIN, job->world, NULL);
    if (!error) error = tutti_all_reduce(&sum, &most, 1, TUTTI_U64, TUTTI_MAX, job->world, NULL);
    if (error) return error;
    if (job->rank == 0)
        printf("weights %016" PRIx64 " on %s\n", sum, least == most ? "all ranks" : "rank 0 only");
    return least == most ? 0 : -EPROTO;
}

/* ---- around it ------------------------------------------------------------------------------- */

static int usage(int rank)
{
    if (rank == 0) fputs("usage: train_cuda [--cpu] [--steps N] [--rows N]\n", stderr);
    return 2;
}

static int read_options(struct job *job, int argc, char **argv)
{
    job->steps = 200;
    job->rows = 1024;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--cpu")) job->on_cpu = 1;
        else if (!strcmp(argv[i], "--steps") && i + 1 < argc) job->steps = atoi(argv[++i]);
        else if (!strcmp(argv[i], "--rows") && i + 1 < argc) job->rows = atoi(argv[++i]);
        else return usage(job->rank);
    }
    return job->steps < 1 || job->rows < 1 || job->rows > 1 << 20 ? usage(job->rank) : 0;
}

/* All ranks have a GPU, or none trains. */
static int open_place(struct job *job)
{
    job->place = job->on_cpu ? cpu_open() : gpu_open(job->world, job->why);
    int has = job->place != NULL, all;
    int error = tutti_all_reduce(&has, &all, 1, TUTTI_I32, TUTTI_MIN, job->world, NULL);
    if (error || all) return error;
    if (job->rank == 0)
        fprintf(stderr, "train_cuda: skipped: %s\n", has ? "another rank has no GPU" : job->why);
    return 77;
}

static int work(struct job *job)
{
    int error = open_place(job);
    if (error) return error == 77 ? 77 : 1;
    if (job->rank == 0)
        fprintf(stderr, "train_cuda: %d ranks, rank 0 on %s\n", job->size, job->place->name);
    error = make_net(job);
    if (error) tutti_comm_abort(job->world, job->why);   /* the others are about to wait for us */
    if (!error) error = run(job);
    if (!error) error = check(job);
    if (error) {
        fprintf(stderr, "train_cuda: rank %d: %s\n", job->rank,
                job->why[0] ? job->why : tutti_explain(job->world));
        tutti_comm_abort(job->world, job->why);
        return 1;
    }
    if (job->loss < 0.5f * job->first) return 0;     /* not so for a NaN either */
    if (job->rank == 0)
        fprintf(stderr, "train_cuda: not learnt: the loss fell from %g to %g only\n",
                (double)job->first, (double)job->loss);
    return 1;
}

int main(int argc, char **argv)
{
    static struct job job;
    if (tutti_init(&job.world, NULL) < 0) {
        fprintf(stderr, "train_cuda: %s\n", tutti_explain(NULL));
        return 1;
    }
    job.rank = tutti_rank(job.world);
    job.size = tutti_size(job.world);
    int status = read_options(&job, argc, argv);
    if (!status) status = work(&job);
    if (job.place) job.place->close(job.place);
    tutti_finalize(job.world);
    return status;
}
