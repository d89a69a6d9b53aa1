/* SPDX-License-Identifier: MIT */
/* A net of one hidden layer, and the five steps of learning; train_cuda/gpu.c has them as kernels,
 * train_cuda/cpu.c as loops, with the same arithmetic in the same order: the same bits come out.
 * Pointers are to floats on the device or of the host. */
#ifndef TRAIN_CUDA_NET_H
#define TRAIN_CUDA_NET_H

#include <stddef.h>
#include <tutti.h>

enum { INPUTS = 5, HIDDEN = 32 };       /* the last input is always 1: the hidden layer's bias */
enum { WEIGHTS = INPUTS * HIDDEN + HIDDEN };         /* into the hidden layer, and out of it */
/* behind the gradient stands the loss, so that one all_reduce does both */
enum { GRADIENT = WEIGHTS + 1 };

struct net {
    int rows;                         /* examples of this rank */
    float *x, *y;                     /* rows × INPUTS, rows: what is given, what is to come out */
    float *hidden, *error;            /* rows × HIDDEN, rows: scratch */
    float *weights, *gradient;
};

/* Where a net lives. 0, or a negative errno and the reason in why. */
enum { WHY = 200 };
struct place {
    const char *name;
    void *stream;                                    /* for tutti_call */
    tutti_comm *world;                               /* for tutti_cuda_alloc */
    int (*room)(struct place *place, float **at, size_t count, char *why);
    int (*put)(struct place *place, float *to, const float *from, size_t count, char *why);
    int (*get)(struct place *place, float *to, const float *from, size_t count, char *why);
    /* fills gradient and loss: means over the rows */
    int (*learn)(struct place *place, const struct net *net, char *why);
    /* weights -= rate * gradient */
    int (*step)(struct place *place, const struct net *net, float rate, char *why);
    void (*close)(struct place *place);
};

/* rank r is on device r modulo their number. NULL: why there is none */
struct place *gpu_open(tutti_comm *world, char *why);
struct place *cpu_open(void);

#endif
