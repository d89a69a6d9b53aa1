/* Three rows of the table of distances are enough for words of a command line; neighbours that
 * changed places look two rows back. Cost: the product of two lengths, at a mistake only. */
#include "base/guess.h"

#include <string.h>

enum { NEAR = 2 };

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

size_t guess_distance(const char *a, const char *b)
{
    size_t rows[3][GUESS_MOST + 1], n = strlen(a), m = strlen(b);
    if (n > GUESS_MOST || m > GUESS_MOST)
        return GUESS_MOST;
    for (size_t j = 0; j <= m; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t *row = rows[i % 3], *above = rows[(i + 2) % 3], *two = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            row[j] = least(above[j - 1] + (a[i - 1] != b[j - 1]), least(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = least(row[j], two[j - 2] + 1);
        }
    }
    return rows[n % 3][m];
}

void guess_begin(struct guess *g, const char *typed)
{
    *g = (struct guess){ .typed = typed, .distance = NEAR + 1 };
}

void guess_add(struct guess *g, const char *word)
{
    size_t d = guess_distance(g->typed, word);
    if (d < g->distance && 2 * d < strlen(word)) {
        g->distance = d;
        g->best = word;
    }
}
