/* Which cases: dimensions, what goes together, a greedy cover of all pairs, and the product. The cover takes an open pair, then fills
 * the other dimensions one by one, in any order, with the value that closes most open pairs; the best of a few tries is kept. */
#include "oracle.h"

#include "coll/ring.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { OPEN = 255, TRIES = 6 };

static const int values_all[DIMS] = {
    [DIM_RANKS] = ORACLE_RANKS, [DIM_RULE] = RULES, [DIM_GATE] = 2, [DIM_TYPE] = TUTTI_BOOL + 1, [DIM_OP] = TUTTI_LXOR + 1,
    [DIM_PLACE] = PLACES, [DIM_SIZE] = SIZES, [DIM_SEND_AT] = 3, [DIM_RECV_AT] = 3, [DIM_ROOT] = ROOTS, [DIM_PATTERN] = PATTERNS,
    [DIM_MODES] = MODES
};

static const unsigned dims_of[KIND_COUNT] = {
    [KIND_BARRIER] = 1u << DIM_RANKS | 1u << DIM_RULE | 1u << DIM_GATE,
    [KIND_BROADCAST] = 1u << DIM_RANKS | 1u << DIM_RULE | 1u << DIM_GATE | 1u << DIM_TYPE | 1u << DIM_SIZE | 1u << DIM_RECV_AT | 1u << DIM_ROOT |
                       1u << DIM_PATTERN,
    [KIND_REDUCE] = (1u << DIMS) - 1,
    [KIND_ALL_REDUCE] = ((1u << DIMS) - 1) & ~(1u << DIM_ROOT),
};

static int values_of(enum kind kind, int dim)
{
#if !defined(__x86_64__)
    if (dim == DIM_MODES)                            /* elsewhere nobody sets flush-to-zero by a flag of a program's start */
        return 1;
#endif
    return dims_of[kind] >> dim & 1 ? values_all[dim] : 1;
}

int oracle_ranks(const struct oracle_case *c) { return c->v[DIM_RANKS] + 1; }

int oracle_root(const struct oracle_case *c)
{
    int n = oracle_ranks(c);
    return c->v[DIM_ROOT] == ROOT_FIRST ? 0 : c->v[DIM_ROOT] == ROOT_LAST ? n - 1 : n / 2;
}

size_t oracle_count(const struct oracle_case *c)
{
    static const struct { size_t few; int more; } sizes[SIZES] = {
        [SIZE_0] = { 0, 0 }, [SIZE_1] = { 1, 0 }, [SIZE_2] = { 2, 0 }, [SIZE_3] = { 3, 0 }, [SIZE_7] = { 7, 0 }, [SIZE_333] = { 333, 0 },
        [SIZE_LINE_LESS] = { 0, -1 }, [SIZE_LINE_MORE] = { 0, 1 }, [SIZE_32K_LESS] = { 0, -1 }, [SIZE_32K_MORE] = { 0, 1 },
        [SIZE_64K_LESS] = { 0, -1 }, [SIZE_64K_MORE] = { 0, 1 }, [SIZE_PIECE_LESS] = { 0, -1 }, [SIZE_PIECE_MORE] = { 0, 1 },
        [SIZE_ROUND_LESS] = { 0, -1 }, [SIZE_ROUND_MORE] = { 0, 1 }, [SIZE_RING_LESS] = { 0, -1 }, [SIZE_RING_MORE] = { 0, 1 },
    };
    size_t ranks = (size_t)oracle_ranks(c), piece = ring_piece_bytes((uint32_t)ranks), bytes = 0;
    size_t round = c->kind == KIND_BROADCAST ? piece * (ranks + 1) / 2 : piece * ranks;
    if (c->kind == KIND_BARRIER)
        return 0;
    switch (c->v[DIM_SIZE]) {
    case SIZE_LINE_LESS: case SIZE_LINE: case SIZE_LINE_MORE: bytes = LINE_BYTES; break;
    case SIZE_32K_LESS: case SIZE_32K: case SIZE_32K_MORE: bytes = 32768; break;
    case SIZE_64K_LESS: case SIZE_64K: case SIZE_64K_MORE: bytes = FLAT_BYTES; break;
    case SIZE_PIECE_LESS: case SIZE_PIECE: case SIZE_PIECE_MORE: bytes = piece; break;
    case SIZE_ROUND_LESS: case SIZE_ROUND: case SIZE_ROUND_MORE: bytes = round; break;
    case SIZE_RING_LESS: case SIZE_RING: case SIZE_RING_MORE: bytes = round * RING_DEPTH; break;
    case SIZE_ODD: bytes = 100003; break;
    case SIZE_LARGE: bytes = 1500007; break;
    default: return sizes[c->v[DIM_SIZE]].few;
    }
    return bytes / oracle_width(c->v[DIM_TYPE]) + (size_t)sizes[c->v[DIM_SIZE]].more;
}

/* False only where the values that are set already cannot go together. */
static bool fits(const struct oracle_case *c, const struct oracle_space *space)
{
    const unsigned char *v = c->v;
    if (v[DIM_TYPE] != OPEN && v[DIM_OP] != OPEN && !oracle_allowed(v[DIM_TYPE], v[DIM_OP]))
        return false;
    if (v[DIM_RANKS] != OPEN && (oracle_ranks(c) < space->ranks_least || oracle_ranks(c) > space->ranks_most))
        return false;
    if (v[DIM_RULE] == OPEN || v[DIM_SIZE] == OPEN || v[DIM_TYPE] == OPEN || v[DIM_RANKS] == OPEN)
        return true;
    size_t bytes = oracle_count(c) * oracle_width(v[DIM_TYPE]);
    size_t most = v[DIM_RULE] == RULE_LINE ? LINE_BYTES : v[DIM_RULE] == RULE_FLAT ? FLAT_BYTES : SIZE_MAX;
    return bytes <= most && bytes <= space->bytes_most;
}

/* Can these two values occur in one case? Of the others only type, ranks, rule and size have a say. */
static bool pair_possible(enum kind kind, const struct oracle_space *space, int d, int x, int e, int y)
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
        if (fits(&c, space))
            return true;
        int i = 0;
        while (i < 5 && (say[i] == d || say[i] == e || ++at[i] == values_of(kind, say[i])))
            at[i++] = 0;
        if (i == 5)
            return false;
    }
}

struct cover { size_t start[DIMS][DIMS], pairs, open; unsigned char *done; };

static size_t pair_at(const struct cover *cover, enum kind kind, int d, int x, int e, int y)
{
    return d < e ? cover->start[d][e] + (size_t)x * (size_t)values_of(kind, e) + (size_t)y
                 : cover->start[e][d] + (size_t)y * (size_t)values_of(kind, d) + (size_t)x;
}

static void cover_open(struct cover *cover, enum kind kind, const struct oracle_space *space)
{
    size_t n = 0;
    for (int d = 0; d < DIMS; d++)
        for (int e = d + 1; e < DIMS; e++)
            n += (size_t)values_of(kind, d) * (size_t)values_of(kind, e);
    *cover = (struct cover){ .pairs = n, .done = calloc(n, 1) };
    if (!cover->done)
        abort();
    n = 0;
    for (int d = 0; d < DIMS; d++)
        for (int e = d + 1; e < DIMS; e++) {
            cover->start[d][e] = n;
            for (int x = 0; x < values_of(kind, d); x++)
                for (int y = 0; y < values_of(kind, e); y++) {
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

/* Sets dimension d to the value that closes most open pairs; by chance among equals. False: none fits. */
static bool cover_choose(const struct cover *cover, struct oracle_case *c, const struct oracle_space *space, int d, uint64_t *seed)
{
    int n = values_of(c->kind, d), best = -1, turn = (int)(oracle_any(seed) % (uint64_t)n);
    size_t most = 0;
    for (int i = 0; i < n; i++) {
        int x = (i + turn) % n;
        c->v[d] = (unsigned char)x;
        bool fit = fits(c, space);
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

static bool cover_fill(const struct cover *cover, struct oracle_case *c, const struct oracle_space *space, uint64_t *seed)
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

/* A pair that is still open, from anywhere. */
static void cover_pick(const struct cover *cover, struct oracle_case *c, uint64_t *seed)
{
    size_t at = oracle_any(seed) % cover->pairs;
    while (cover->done[at])
        at = (at + 1) % cover->pairs;
    for (int d = 0; d < DIMS; d++)
        for (int e = d + 1; e < DIMS; e++) {
            size_t n = (size_t)values_of(c->kind, e), from = cover->start[d][e];
            if (at < from || at >= from + n * (size_t)values_of(c->kind, d))
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

size_t oracle_pairs(struct oracle_cases *cases, enum kind kind, const struct oracle_space *space, uint64_t *seed)
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

size_t oracle_missing(const struct oracle_cases *cases, enum kind kind, const struct oracle_space *space)
{
    struct cover cover;
    cover_open(&cover, kind, space);
    for (size_t i = 0; i < cases->used; i++)
        if (cases->at[i].kind == kind)
            cover_close(&cover, &cases->at[i], false);
    free(cover.done);
    return cover.open;
}

static bool by_chance(int d) { return d == DIM_SEND_AT || d == DIM_RECV_AT || d == DIM_ROOT || d == DIM_PATTERN || d == DIM_MODES; }

void oracle_product(struct oracle_cases *cases, enum kind kind, const struct oracle_space *space, uint64_t *seed)
{
    struct oracle_case c = { .kind = kind };
    for (;;) {
        for (int d = 0; d < DIMS; d++)
            if (by_chance(d))
                c.v[d] = (unsigned char)(oracle_any(seed) % (uint64_t)values_of(kind, d));
        if (fits(&c, space))
            append(cases, &c, seed);
        int d = 0;
        while (d < DIMS && (by_chance(d) || ++c.v[d] == values_of(kind, d)))
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

const char *oracle_rules(enum oracle_rule rule, int gate, char room[256])
{
    static const char *const forced[RULES] = { "-40=line", "-64k=flat", "-inf=ring", NULL };
    int n = snprintf(room, 256, "barrier:-inf=%s", gate ? "central" : "flags");
    for (enum kind kind = KIND_BROADCAST; forced[rule] && kind <= KIND_ALL_REDUCE; kind++)
        n += snprintf(room + n, 256 - (size_t)n, ";%s:%s", kind_name(kind), forced[rule]);
    return room;
}

void oracle_describe(const struct oracle_case *c, struct text *t)
{
    static const char *const rules[] = { "line", "flat", "ring", "default" }, *const patterns[] = { "any", "near 1", "special", "denormal" };
    static const char *const modes[] = { "", ", rank 0 flushes to zero", ", the last rank flushes to zero" };
    stamp_add(t, stamp_make(c->kind, c->v[DIM_TYPE], c->v[DIM_OP], oracle_root(c), oracle_count(c)), oracle_count(c));
    text_add(t, ", %d ranks, %s, gate %s, %s, offsets %d %d, data %s%s", oracle_ranks(c), rules[c->v[DIM_RULE]], c->v[DIM_GATE] ? "central" : "flags",
             c->v[DIM_PLACE] == PLACE_IN_PLACE ? "in place" : "apart", c->v[DIM_SEND_AT], c->v[DIM_RECV_AT], patterns[c->v[DIM_PATTERN]],
             modes[c->v[DIM_MODES]]);
}

uint64_t oracle_any(uint64_t *seed)
{
    uint64_t z = *seed += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

uint64_t oracle_seed(void)
{
    const char *given = getenv("TUTTI_TEST_SEED");
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t seed = given ? strtoull(given, NULL, 0) : (uint64_t)now.tv_sec * 1000000007u ^ (uint64_t)now.tv_nsec;
    printf("seed: TUTTI_TEST_SEED=%llu runs this again\n", (unsigned long long)seed);
    fflush(stdout);
    return seed;
}

bool oracle_prove(void) { return getenv("TUTTI_PROVE") != NULL; }
