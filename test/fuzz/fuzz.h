/* Job: what all fuzz targets share: the entry that libFuzzer (or replay.c) calls, and a way to take
 *      an input apart.
 * Owns: nothing.
 * Never: what is tried; each target is a file. A target checks what must hold for every input by
 *        FUZZ_MUST, and else only has to live. */
#ifndef TUTTI_TEST_FUZZ_H
#define TUTTI_TEST_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_MUST(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition); \
            abort(); \
        } \
    } while (0)

struct feed { const uint8_t *at; size_t left; };

/* The next bytes, zeros where there are no more. */
static inline void feed_bytes(struct feed *f, void *to, size_t n)
{
    size_t there = n < f->left ? n : f->left;
    memset(to, 0, n);
    if (there)
        memcpy(to, f->at, there);
    f->at += there;
    f->left -= there;
}

static inline uint8_t feed_byte(struct feed *f)
{
    uint8_t value;
    feed_bytes(f, &value, sizeof value);
    return value;
}

static inline uint16_t feed_half(struct feed *f)
{
    uint16_t value;
    feed_bytes(f, &value, sizeof value);
    return value;
}

static inline uint64_t feed_word(struct feed *f)
{
    uint64_t value;
    feed_bytes(f, &value, sizeof value);
    return value;
}

/* The next n bytes, or all the rest, as a string that ends where its memory does; to be freed. */
static inline char *feed_text(struct feed *f, size_t n)
{
    n = n < f->left ? n : f->left;
    char *text = malloc(n + 1);
    if (!text)
        abort();
    if (n)
        memcpy(text, f->at, n);
    text[n] = 0;
    f->at += n;
    f->left -= n;
    return text;
}

/* Writes over [base, base + bytes), as a rank might that has gone astray: each record of the input
 * says where, and what. */
static inline void feed_scribble(struct feed *f, void *base, size_t bytes)
{
    for (int records = 0; f->left >= 4 && records < 64; records++) {
        size_t at = (size_t)feed_half(f) * 8 % bytes, n = 1 + feed_byte(f) % 32;
        uint8_t how = feed_byte(f);
        char *to = (char *)base + at;
        n = n < bytes - at ? n : bytes - at;
        if (how == 0)
            memset(to, 0, n);
        else if (how == 1)
            memset(to, 0xff, n);
        else
            feed_bytes(f, to, n);
    }
}

#endif
