/* SPDX-License-Identifier: MIT */
/* Examples are worked on in tiles of TILE: a weight fetched from the cache then serves several of
 * them, and the innermost loops run over consecutive floats without a dependency, which compilers
 * turn into vector code. */
#include "model.h"

#include "file.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TILE = 16, INPUT = CONTEXT * EMBED, LANES = 8, VOCABULARY_MAX = 256 };

struct model_tile {
    float input[TILE][INPUT], hidden[TILE][HIDDEN], output[TILE][VOCABULARY_MAX];
    float input_gradient[TILE][INPUT], hidden_gradient[TILE][HIDDEN];
};

/* Where each part lies in a flat buffer: weights, gradient, mean and square alike. */
struct parts { float *embedding, *input, *input_bias, *output, *output_bias; };

static size_t count_of(size_t vocabulary)
{
    return vocabulary * EMBED + (size_t)INPUT * HIDDEN + HIDDEN + HIDDEN * vocabulary + vocabulary;
}

static struct parts parts_of(const struct model *model, float *flat)
{
    size_t vocabulary = (size_t)model->vocabulary;
    struct parts parts;
    parts.embedding = flat;                                        /* [vocabulary][EMBED] */
    parts.input = parts.embedding + vocabulary * EMBED;             /* [INPUT][HIDDEN] */
    parts.input_bias = parts.input + (size_t)INPUT * HIDDEN;        /* [HIDDEN] */
    parts.output = parts.input_bias + HIDDEN;                       /* [HIDDEN][vocabulary] */
    parts.output_bias = parts.output + HIDDEN * vocabulary;         /* [vocabulary] */
    return parts;
}

/* ---- the three products of a layer; from is a multiple of 4, rows have strides of
 * their own ---- */

/* out[r][j] += sum over i of in[r][i] * weights[i][j] */
static inline void layer_forward(float *restrict out, int out_stride, const float *restrict in,
                                 int in_stride, const float *restrict weights, int from, int to)
{
    for (int i = 0; i < from; i += 4) {
        const float *w0 = weights + i * to, *w1 = w0 + to, *w2 = w1 + to, *w3 = w2 + to;
        for (int r = 0; r < TILE; r++) {
            const float *x = in + r * in_stride + i;
            float x0 = x[0], x1 = x[1], x2 = x[2], x3 = x[3];
            float *y = out + r * out_stride;
            for (int j = 0; j < to; j++) y[j] += x0 * w0[j] + x1 * w1[j] + x2 * w2[j] + x3 * w3[j];
        }
    }
}

/* gradient[i][j] += sum over r of in[r][i] * back[r][j] */
static inline void layer_gradient(float *restrict gradient, const float *restrict in, int in_stride,
                                  const float *restrict back, int back_stride, int from, int to)
{
    for (int i = 0; i < from; i++) {
        float *g = gradient + i * to;
        for (int r = 0; r < TILE; r += 4) {
            const float *x = in + r * in_stride + i;
            float x0 = x[0], x1 = x[in_stride], x2 = x[2 * in_stride], x3 = x[3 * in_stride];
            const float *b0 = back + r * back_stride, *b1 = b0 + back_stride,
                        *b2 = b1 + back_stride, *b3 = b2 + back_stride;
            for (int j = 0; j < to; j++) g[j] += x0 * b0[j] + x1 * b1[j] + x2 * b2[j] + x3 * b3[j];
        }
    }
}

/* A sum in LANES parts: compilers may not reorder a plain one, so they could not vectorise it. */
static inline float dot(const float *a, const float *b, int count)
{
    float lane[LANES] = { 0 }, sum = 0;
    int j = 0;
    for (; j + LANES <= count; j += LANES)
        for (int l = 0; l < LANES; l++) lane[l] += a[j + l] * b[j + l];
    for (; j < count; j++) sum += a[j] * b[j];
    for (int l = 0; l < LANES; l++) sum += lane[l];
    return sum;
}

/* in[r][i] = sum over j of weights[i][j] * back[r][j] */
static inline void layer_backward(float *restrict in, int in_stride, const float *restrict back,
                                  int back_stride, const float *restrict weights, int from, int to)
{
    for (int i = 0; i < from; i++)
        for (int r = 0; r < TILE; r++)
            in[r * in_stride + i] = dot(weights + i * to, back + r * back_stride, to);
}

static inline void add_rows(float *sum, const float *rows, int stride, int count)
{
    for (int r = 0; r < TILE; r++)
        for (int j = 0; j < count; j++) sum[j] += rows[r * stride + j];
}

/* ---- a tile forth and back ---- */

/* Leaves the logits in output. Rows of the tile beyond rows repeat the first example. */
static void tile_forward(struct model *model, const unsigned char *tokens, const size_t at[],
                         int rows)
{
    struct model_tile *tile = model->tile;
    struct parts w = parts_of(model, model->weights);
    int vocabulary = model->vocabulary;
    for (int r = 0; r < TILE; r++) {
        const unsigned char *context = tokens + at[r < rows ? r : 0] - CONTEXT;
        for (int k = 0; k < CONTEXT; k++)
            memcpy(tile->input[r] + k * EMBED, w.embedding + context[k] * EMBED,
                   EMBED * sizeof(float));
        memcpy(tile->hidden[r], w.input_bias, sizeof tile->hidden[r]);
        memcpy(tile->output[r], w.output_bias, (size_t)vocabulary * sizeof(float));
    }
    layer_forward(tile->hidden[0], HIDDEN, tile->input[0], INPUT, w.input, INPUT, HIDDEN);
    for (int r = 0; r < TILE; r++)
        for (int j = 0; j < HIDDEN; j++) tile->hidden[r][j] = tanhf(tile->hidden[r][j]);
    layer_forward(tile->output[0], VOCABULARY_MAX, tile->hidden[0], HIDDEN, w.output, HIDDEN,
                  vocabulary);
}

/* Logits become probabilities; returns the loss: minus the logarithm of that of the right one. */
static float softmax(float *logits, int count, int right)
{
    float top = logits[0], sum = 0;
    for (int j = 1; j < count; j++) top = logits[j] > top ? logits[j] : top;
    float loss = top - logits[right];
    for (int j = 0; j < count; j++) {
        logits[j] = expf(logits[j] - top);
        sum += logits[j];
    }
    for (int j = 0; j < count; j++) logits[j] /= sum;
    return loss + logf(sum);
}

/* Output holds the gradient by the logits, 0 in rows without an example. */
static void tile_backward(struct model *model, const unsigned char *tokens, const size_t at[],
                          int rows)
{
    struct model_tile *tile = model->tile;
    struct parts w = parts_of(model, model->weights), g = parts_of(model, model->gradient);
    int vocabulary = model->vocabulary;
    layer_gradient(g.output, tile->hidden[0], HIDDEN, tile->output[0], VOCABULARY_MAX, HIDDEN,
                   vocabulary);
    add_rows(g.output_bias, tile->output[0], VOCABULARY_MAX, vocabulary);
    layer_backward(tile->hidden_gradient[0], HIDDEN, tile->output[0], VOCABULARY_MAX, w.output,
                   HIDDEN, vocabulary);
    for (int r = 0; r < TILE; r++)
        for (int j = 0; j < HIDDEN; j++)
            tile->hidden_gradient[r][j] *= 1 - tile->hidden[r][j] * tile->hidden[r][j];
    layer_gradient(g.input, tile->input[0], INPUT, tile->hidden_gradient[0], HIDDEN, INPUT, HIDDEN);
    add_rows(g.input_bias, tile->hidden_gradient[0], HIDDEN, HIDDEN);
    layer_backward(tile->input_gradient[0], INPUT, tile->hidden_gradient[0], HIDDEN, w.input, INPUT,
                   HIDDEN);
    for (int r = 0; r < rows; r++) {
        const unsigned char *context = tokens + at[r] - CONTEXT;
        for (int k = 0; k < CONTEXT; k++) {
            float *row = g.embedding + context[k] * EMBED;
            for (int e = 0; e < EMBED; e++) row[e] += tile->input_gradient[r][k * EMBED + e];
        }
    }
}

float model_learn(struct model *model, const unsigned char *tokens, const size_t at[], int count)
{
    struct model_tile *tile = model->tile;
    float share = 1.0f / (float)count;
    double loss = 0;
    memset(model->gradient, 0, model->count * sizeof(float));
    for (int begin = 0; begin < count; begin += TILE) {
        int rows = count - begin < TILE ? count - begin : TILE;
        tile_forward(model, tokens, at + begin, rows);
        for (int r = 0; r < rows; r++) {
            int right = tokens[at[begin + r]];
            loss += (double)softmax(tile->output[r], model->vocabulary, right);
            tile->output[r][right] -= 1;
            for (int j = 0; j < model->vocabulary; j++) tile->output[r][j] *= share;
        }
        for (int r = rows; r < TILE; r++) memset(tile->output[r], 0, sizeof tile->output[r]);
        tile_backward(model, tokens, at + begin, rows);
    }
    return (float)(loss / count);
}

double model_judge(struct model *model, const unsigned char *tokens, size_t count)
{
    double loss = 0;
    for (size_t begin = CONTEXT; begin < count; begin += TILE) {
        size_t at[TILE];
        int rows = count - begin < TILE ? (int)(count - begin) : TILE;
        for (int r = 0; r < rows; r++) at[r] = begin + (size_t)r;
        tile_forward(model, tokens, at, rows);
        for (int r = 0; r < rows; r++)
            loss += (double)softmax(model->tile->output[r], model->vocabulary, tokens[at[r]]);
    }
    return loss / (double)(count - CONTEXT);
}

int model_draw(struct model *model, const unsigned char context[CONTEXT], uint64_t *random)
{
    const size_t at = CONTEXT;
    float *chance = model->tile->output[0],
          left = (float)(random_next(random) >> 40) / (float)(1 << 24);
    tile_forward(model, context, &at, 1);
    softmax(chance, model->vocabulary, 0);
    int token = 0;
    while (token < model->vocabulary - 1 && left >= chance[token]) left -= chance[token++];
    return token;
}

void model_update(struct model *model, float rate)
{
    const float keep_mean = 0.9f, keep_square = 0.99f, tiny = 1e-8f;
    model->updates++;
    /* Both means start at 0; dividing by these makes up for it. */
    float mean_share = 1 - powf(keep_mean, (float)model->updates);
    float square_share = 1 - powf(keep_square, (float)model->updates);
    float *restrict weights = model->weights, *restrict mean = model->mean,
                    *restrict square = model->square;
    const float *restrict gradient = model->gradient;
    for (size_t i = 0; i < model->count; i++) {
        mean[i] = keep_mean * mean[i] + (1 - keep_mean) * gradient[i];
        square[i] = keep_square * square[i] + (1 - keep_square) * gradient[i] * gradient[i];
        weights[i] -= rate * (mean[i] / mean_share) / (sqrtf(square[i] / square_share) + tiny);
    }
}

/* ---- life ---- */

uint64_t random_next(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static void fill(float *weights, size_t count, float most, uint64_t *state)
{
    for (size_t i = 0; i < count; i++)
        /* -most … most */
        weights[i] = most * ((float)(random_next(state) >> 40) / (float)(1 << 23) - 1);
}

int model_create(struct model *model, int vocabulary, uint64_t seed)
{
    *model = (struct model){ .vocabulary = vocabulary, .count = count_of((size_t)vocabulary) };
    model->weights = calloc(model->count, sizeof(float));
    model->gradient = calloc(model->count, sizeof(float));
    model->mean = calloc(model->count, sizeof(float));
    model->square = calloc(model->count, sizeof(float));
    model->tile = calloc(1, sizeof *model->tile);
    if (!model->weights || !model->gradient || !model->mean || !model->square || !model->tile) {
        model_free(model);
        return -ENOMEM;
    }
    struct parts w = parts_of(model, model->weights);
    fill(w.embedding, (size_t)vocabulary * EMBED, 1, &seed);
    fill(w.input, (size_t)INPUT * HIDDEN, 1 / sqrtf(INPUT), &seed);
    fill(w.output, (size_t)HIDDEN * (size_t)vocabulary, 1 / sqrtf(HIDDEN), &seed);
    return 0;
}

void model_free(struct model *model)
{
    free(model->weights);
    free(model->gradient);
    free(model->mean);
    free(model->square);
    free(model->tile);
    *model = (struct model){ 0 };
}

uint64_t model_checksum(const struct model *model)
{
    const unsigned char *byte = (const unsigned char *)model->weights;
    uint64_t hash = 0xcbf29ce484222325u;                            /* FNV-1a */
    for (size_t i = 0; i < model->count * sizeof(float); i++)
        hash = (hash ^ byte[i]) * 0x100000001b3u;
    return hash;
}

/* ---- the checkpoint: the shape, then the weights ---- */

struct shape { char magic[8]; uint32_t vocabulary, context, embed, hidden; };

static struct shape shape_of(const struct model *model)
{
    return (struct shape){ "weights", (uint32_t)model->vocabulary, CONTEXT, EMBED, HIDDEN };
}

int model_save(const struct model *model, const char *path)
{
    struct shape shape = shape_of(model);
    const struct iovec parts[] = { { &shape, sizeof shape },
                                   { model->weights, model->count * sizeof(float) } };
    return file_replace(path, parts, 2);
}

int model_load(struct model *model, const char *path)
{
    struct shape shape = shape_of(model);
    void *data;
    size_t bytes, wanted = model->count * sizeof(float);
    int error = file_read(path, &data, &bytes);
    if (error < 0) return error;
    if (bytes != sizeof shape + wanted || memcmp(data, &shape, sizeof shape) != 0) {
        free(data);
        return -EBADMSG;
    }
    memcpy(model->weights, (char *)data + sizeof shape, wanted);
    free(data);
    return 0;
}
