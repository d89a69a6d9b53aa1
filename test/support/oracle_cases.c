/* Chooses cases: a greedy cover of all possible pairs of values, and the product. The cover takes
 * an open pair. Then it fills the other dimensions one by one, in random order, with the value that
 * closes most open pairs. It keeps the best of a few tries. */
#include "support/oracle.h"

#include <stdlib.h>
#include <string.h>

enum { OPEN = ORACLE_OPEN, TRIES = 6 };

/* True: these two values can occur in one case. Of the other dimensions only type, ranks, rule,
 * size and op matter. */
static bool pair_possible(enum kind kind, const struct oracle_space *space, int d, int x, int e,
                          int y)
{
    static const int say[] = { DIM_TYPE, DIM_RANKS, DIM_RULE, DIM_SIZE, DIM_OP };
    struct oracle_case c = { .kind = kind };
    int at[5] = { 0 };
    memset(c.v, OPEN, sizeof c.v);
    for (;;) {
        for (int i = 0; i < 5; i++)
            c.v[say[i]] = (unsigned char)at[i];
        c.v[d] = (unsigned char)x;
        c.v[e] = (unsigned char)y;
        if (oracle_fits(&c, space))
            return true;
        int i = 0;
        while (i < 5
               && (say[i] == d || say[i] == e || ++at[i] == oracle_values_of(kind, say[i], space)))
            at[i++] = 0;
        if (i == 5)
            return false;
    }
}

struct cover {
    size_t start[DIMS][DIMS], pairs, open;
    unsigned char *done;
    const struct oracle_space *space;
};

static size_t pair_at(const struct cover *cover, enum kind kind, int d, int x, int e, int y)
{
    return d < e ? cover->start[d][e] + (size_t)x * (size_t)oracle_values_of(kind, e, cover->space)
            + (size_t)y
                 : cover->start[e][d] + (size_t)y * (size_t)oracle_values_of(kind, d, cover->space)
            + (size_t)x;
}

static void cover_open(struct cover *cover, enum kind kind, const struct oracle_space *space)
{
    size_t n = 0;
    for (int d = 0; d < DIMS; d++)
        for (int e = d + 1; e < DIMS; e++)
            n += (size_t)oracle_values_of(kind, d, space)
                * (size_t)oracle_values_of(kind, e, space);
    *cover = (struct cover){ .pairs = n, .done = calloc(n, 1), .space = space };
    if (!cover->done)
        abort();
    n = 0;
    for (int d = 0; d < DIMS; d++)
        for (int e = d + 1; e < DIMS; e++) {
            cover->start[d][e] = n;
            for (int x = 0; x < oracle_values_of(kind, d, space); x++)
                for (int y = 0; y < oracle_values_of(kind, e, space); y++) {
                    cover->done[n] = !pair_possible(kind, space, d, x, e, y);
                    cover->open += !cover->done[n++];
                }
        }
}

static size_t cover_gain(const struct cover *cover, const struct oracle_case *c, int d, int x)
{
    size_t gain = 0;
    for (int e = 0; e < DIMS; e++)
        if (e != d && c->v[e] != OPEN)
            gain += !cover->done[pair_at(cover, c->kind, d, x, e, c->v[e])];
    return gain;
}

/* Sets dimension d to the value that closes most open pairs; random among equals. False: none
 * fits. */
static bool cover_choose(const struct cover *cover, struct oracle_case *c,
                         const struct oracle_space *space, int d, uint64_t *seed)
{
    int n = oracle_values_of(c->kind, d, space), best = -1,
        turn = (int)(oracle_any(seed) % (uint64_t)n);
    size_t most = 0;
    for (int i = 0; i < n; i++) {
        int x = (i + turn) % n;
        c->v[d] = (unsigned char)x;
        bool fit = oracle_fits(c, space);
        c->v[d] = OPEN;
        size_t gain = fit ? cover_gain(cover, c, d, x) : 0;
        if (fit && (best < 0 || gain > most)) {
            best = x;
            most = gain;
        }
    }
    c->v[d] = (unsigned char)(best < 0 ? OPEN : best);
    return best >= 0;
}

static bool cover_fill(const struct cover *cover, struct oracle_case *c,
                       const struct oracle_space *space, uint64_t *seed)
{
    int order[DIMS];
    for (int i = 0; i < DIMS; i++) {
        int j = (int)(oracle_any(seed) % (uint64_t)(i + 1));
        order[i] = order[j];
        order[j] = i;
    }
    for (int i = 0; i < DIMS; i++)
        if (c->v[order[i]] == OPEN && !cover_choose(cover, c, space, order[i], seed))
            return false;
    return true;
}

static size_t cover_close(struct cover *cover, const struct oracle_case *c, bool count_only)
{
    size_t closed = 0;
    for (int d = 0; d < DIMS; d++)
        for (int e = d + 1; e < DIMS; e++) {
            unsigned char *done = &cover->done[pair_at(cover, c->kind, d, c->v[d], e, c->v[e])];
            closed += !*done;
            if (!count_only)
                *done = 1;
        }
    if (!count_only)
        cover->open -= closed;
    return closed;
}

/* Picks an open pair at random. */
static void cover_pick(const struct cover *cover, struct oracle_case *c, uint64_t *seed)
{
    size_t at = oracle_any(seed) % cover->pairs;
    while (cover->done[at])
        at = (at + 1) % cover->pairs;
    for (int d = 0; d < DIMS; d++)
        for (int e = d + 1; e < DIMS; e++) {
            size_t n = (size_t)oracle_values_of(c->kind, e, cover->space),
                   from = cover->start[d][e];
            if (at < from || at >= from + n * (size_t)oracle_values_of(c->kind, d, cover->space))
                continue;
            c->v[d] = (unsigned char)((at - from) / n);
            c->v[e] = (unsigned char)((at - from) % n);
        }
}

static void append(struct oracle_cases *cases, const struct oracle_case *c, uint64_t *seed)
{
    if (cases->used == cases->room) {
        cases->room = cases->room ? 2 * cases->room : 1024;
        cases->at = realloc(cases->at, cases->room * sizeof *cases->at);
        if (!cases->at)
            abort();
    }
    cases->at[cases->used] = *c;
    cases->at[cases->used++].salt = oracle_any(seed);
}

size_t oracle_pairs(struct oracle_cases *cases, enum kind kind, const struct oracle_space *space,
                    uint64_t *seed)
{
    struct cover cover;
    cover_open(&cover, kind, space);
    size_t pairs = cover.open;
    while (cover.open) {
        struct oracle_case best = { 0 };
        size_t most = 0;
        for (int i = 0; i < TRIES; i++) {
            struct oracle_case c = { .kind = kind };
            memset(c.v, OPEN, sizeof c.v);
            cover_pick(&cover, &c, seed);
            size_t gain = cover_fill(&cover, &c, space, seed) ? cover_close(&cover, &c, true) : 0;
            if (gain > most) {
                most = gain;
                best = c;
            }
        }
        if (most == 0)
            continue;
        cover_close(&cover, &best, false);
        append(cases, &best, seed);
    }
    free(cover.done);
    return pairs;
}

size_t oracle_missing(const struct oracle_cases *cases, enum kind kind,
                      const struct oracle_space *space)
{
    struct cover cover;
    cover_open(&cover, kind, space);
    for (size_t i = 0; i < cases->used; i++)
        if (cases->at[i].kind == kind)
            cover_close(&cover, &cases->at[i], false);
    free(cover.done);
    return cover.open;
}

bool oracle_chance(struct oracle_cases *cases, const struct oracle_case *of,
                   const struct oracle_space *space, uint64_t *seed)
{
    for (int i = 0; i < 1000; i++) {
        struct oracle_case c = *of;
        for (int d = 0; d < DIMS; d++)
            if (c.v[d] == OPEN)
                c.v[d] = (unsigned char)(oracle_any(seed)
                                         % (uint64_t)oracle_values_of(c.kind, d, space));
        if (!oracle_fits(&c, space))
            continue;
        append(cases, &c, seed);
        return true;
    }
    return false;
}

/* True: the product has this dimension. */
static bool in_product(int d, bool devices)
{
    return d == DIM_RANKS || d == DIM_RULE || d == DIM_GATE || d == DIM_TYPE || d == DIM_OP
        || d == DIM_PLACE || d == (devices ? DIM_ROAD : DIM_SIZE);
}

void oracle_product(struct oracle_cases *cases, enum kind kind, const struct oracle_space *space,
                    uint64_t *seed)
{
    struct oracle_case c = { .kind = kind };
    for (;;) {
        struct oracle_case some = c;
        for (int d = 0; d < DIMS; d++)
            if (!in_product(d, space->devices))
                some.v[d] = OPEN;
        if (oracle_fits(&some, space))
            oracle_chance(cases, &some, space, seed);
        int d = 0;
        while (d < DIMS
               && (!in_product(d, space->devices) || ++c.v[d] == oracle_values_of(kind, d, space)))
            c.v[d++] = 0;
        if (d == DIMS)
            return;
    }
}

void oracle_free(struct oracle_cases *cases)
{
    free(cases->at);
    *cases = (struct oracle_cases){ 0 };
}

static int world_of(const struct oracle_case *c)
{
    return ((c->v[DIM_RANKS] * RULES + c->v[DIM_RULE]) * 2 + c->v[DIM_GATE]) * ORACLE_ROADS
        + c->v[DIM_ROAD];
}

static int by_world(const void *a, const void *b)
{
    const struct oracle_case *x = a, *y = b;
    if (world_of(x) != world_of(y))
        return world_of(x) - world_of(y);
    /* random order within a world: any kind and size may follow any other */
    return x->salt < y->salt ? -1 : x->salt > y->salt;
}

void oracle_sort(struct oracle_cases *cases)
{
    qsort(cases->at, cases->used, sizeof *cases->at, by_world);
}

size_t oracle_world(const struct oracle_case *c, size_t most)
{
    size_t n = 1;
    while (n < most && world_of(c) == world_of(c + n))
        n++;
    return n;
}
