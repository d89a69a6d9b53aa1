/* SPDX-License-Identifier: MIT */
/* Job: text files become tokens in one cache file, and the cache file becomes a data set in memory.
 * Never: knows that there are ranks. */
#ifndef TRAIN_TEXT_H
#define TRAIN_TEXT_H

#include <stddef.h>

/* A token is the index of a byte among the bytes that occur in the text. The last tenth of every
 * file is held out. */
struct text {
    int                  files, vocabulary;
    size_t               learn, held;   /* characters to learn from, and to be judged by */
    const unsigned char *tokens;        /* [learn + held] */
    const unsigned char *symbols;       /* [vocabulary]: the bytes they stand for */
    double               unigram;       /* entropy of a character, its neighbours unknown; nats */
    void                *memory;
};

enum { TEXT_WHY = 512 };                /* room for the words that go with an error */

/* Makes the cache file from the files named by paths; a directory stands for the regular files in
 * it. A file that is named twice, also by a link, is read once. Returns 1 if it did, 0 if the
 * cache was there already, made from these files as they are now; or a negative errno, with its
 * reason in why[TEXT_WHY]. */
int text_prepare(const char *cache, char *const paths[], int count, char *why);

/* Loads the cache file and checks that it is one. 0, or a negative errno with its reason
 * in why[TEXT_WHY]. */
int text_use(const char *cache, struct text *text, char *why);

void text_free(struct text *text);

#endif
