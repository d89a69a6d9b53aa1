/* SPDX-License-Identifier: MIT */
/* Job: a small language model, in plain loops: the last CONTEXT characters -> the next one.
 *     embedding of each character (EMBED) -> one layer of HIDDEN tanh -> softmax over the
 *     vocabulary; learnt by Adam.
 * Never: knows that there are ranks. All weights lie in one flat buffer, all gradients in another:
 *        one all_reduce. */
#ifndef TRAIN_MODEL_H
#define TRAIN_MODEL_H

#include <stddef.h>
#include <stdint.h>

enum { CONTEXT = 12, EMBED = 16, HIDDEN = 128 };

struct model {
    int    vocabulary;
    size_t count;                       /* floats in each of the buffers */
    float *weights, *gradient;
    float *mean, *square;               /* Adam's running means of the gradient and of its square */
    long   updates;
    struct model_tile *tile;            /* activations of the examples at work */
};

/* The same seed gives the same weights. 0 or -ENOMEM. */
int    model_create(struct model *model, int vocabulary, uint64_t seed);
void   model_free(struct model *model);

/* Sets gradient to that of the mean loss of predicting tokens[at[i]] from the CONTEXT tokens before
 * it; at[i] >= CONTEXT. Returns that loss, nats per character. */
float  model_learn(struct model *model, const unsigned char *tokens, const size_t at[], int count);

/* The mean loss of predicting each of tokens[CONTEXT … count-1]. */
double model_judge(struct model *model, const unsigned char *tokens, size_t count);

/* A token to follow these, drawn by its probability. */
int    model_draw(struct model *model, const unsigned char context[CONTEXT], uint64_t *random);

/* One step of Adam along gradient. */
void   model_update(struct model *model, float rate);

/* The weights to a file, and back. 0 or a negative errno; -EBADMSG: not the weights of
 * such a model. */
int    model_save(const struct model *model, const char *path);
int    model_load(struct model *model, const char *path);
uint64_t model_checksum(const struct model *model);

/* The next number of the stream (splitmix64). */
uint64_t random_next(uint64_t *state);

#endif
