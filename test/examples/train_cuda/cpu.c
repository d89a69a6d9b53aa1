/* SPDX-License-Identifier: MIT */
/* The same on the host, for comparison. Every product that is added is fmaf, as every one on the
 * device is fma.rn: one rounding, in the same order. */
#include "train_cuda/net.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUFFERS = 6 };
struct cpu { struct place place; void *buffer[BUFFERS]; int buffers; };

static int cpu_room(struct place *place, float **at, size_t count, char *why)
{
    struct cpu *cpu = (struct cpu *)place;
    *at = cpu->buffers < BUFFERS ? calloc(count, sizeof **at) : NULL;
    if (*at) cpu->buffer[cpu->buffers++] = *at;
    else snprintf(why, WHY, "out of memory");
    return *at ? 0 : -ENOMEM;
}

static int cpu_copy(struct place *place, float *to, const float *from, size_t count, char *why)
{
    (void)place, (void)why;
    memcpy(to, from, count * sizeof *to);
    return 0;
}

static int cpu_learn(struct place *place, const struct net *net, char *why)
{
    const float *in = net->weights, *out = net->weights + INPUTS * HIDDEN;
    const float scale = 2.0f / (float)net->rows;
    (void)place, (void)why;
    for (int i = 0; i < net->rows * HIDDEN; i++) {
        float sum = 0;
        for (int k = 0; k < INPUTS; k++)
            sum = fmaf(net->x[i / HIDDEN * INPUTS + k], in[k * HIDDEN + i % HIDDEN], sum);
        net->hidden[i] = sum > 0 ? sum : 0;
    }
    for (int i = 0; i < net->rows; i++) {
        float sum = -net->y[i];
        for (int j = 0; j < HIDDEN; j++) sum = fmaf(net->hidden[i * HIDDEN + j], out[j], sum);
        net->error[i] = sum;
    }
    for (int p = 0; p < INPUTS * HIDDEN; p++) {
        int k = p / HIDDEN, j = p % HIDDEN;
        float sum = 0;
        for (int i = 0; i < net->rows; i++) {
            float back = net->error[i] * out[j];
            if (!(net->hidden[i * HIDDEN + j] > 0)) back = 0;
            sum = fmaf(back, net->x[i * INPUTS + k], sum);
        }
        net->gradient[p] = sum * scale;
    }
    for (int j = 0; j < HIDDEN; j++) {
        float sum = 0;
        for (int i = 0; i < net->rows; i++)
            sum = fmaf(net->error[i], net->hidden[i * HIDDEN + j], sum);
        net->gradient[INPUTS * HIDDEN + j] = sum * scale;
    }
    float loss = 0;
    for (int i = 0; i < net->rows; i++) loss = fmaf(net->error[i], net->error[i], loss);
    net->gradient[WEIGHTS] = loss * (0.5f * scale);
    return 0;
}

static int cpu_step(struct place *place, const struct net *net, float rate, char *why)
{
    (void)place, (void)why;
    for (int p = 0; p < WEIGHTS; p++)
        net->weights[p] = fmaf(-rate, net->gradient[p], net->weights[p]);
    return 0;
}

static void cpu_close(struct place *place)
{
    struct cpu *cpu = (struct cpu *)place;
    for (int i = 0; i < cpu->buffers; i++) free(cpu->buffer[i]);
}

struct place *cpu_open(void)
{
    static struct cpu cpu = {
        .place = { "the CPU", NULL, NULL, cpu_room, cpu_copy, cpu_copy, cpu_learn,
                   cpu_step, cpu_close }
    };
    return &cpu.place;
}
