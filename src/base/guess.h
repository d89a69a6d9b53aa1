/* Job: find the word that was meant by a mistyped one.
 * Owns: nothing.
 * Never: guesses far: where no word is near there is none. */
#ifndef TUTTI_BASE_GUESS_H
#define TUTTI_BASE_GUESS_H

#include <stddef.h>

enum { GUESS_MOST = 32 };            /* longer words are not compared */

/* The number of letters to change, add or remove from a to b; two neighbours that changed places
 * count once. GUESS_MOST if a word is longer than that. */
size_t guess_distance(const char *a, const char *b);

struct guess { const char *typed, *best; size_t distance; };

/* guess_begin, guess_add for each word that could be meant; then best, NULL if none is near: at
 * most two letters, and fewer than a half of the word's. Of equals the first. */
void guess_begin(struct guess *g, const char *typed);
void guess_add(struct guess *g, const char *word);

#endif
