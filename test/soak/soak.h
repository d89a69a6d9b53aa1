/* Job: random programs of operations over random groups: what each is, what each rank gives in it,
 *      and what it must get.
 * Owns: nothing shared but the board, which is the caller's.
 * Never: code of src/coll or src/fold: what is expected is computed here, serially.
 *
 * Every rank makes the whole program from one seed, step by step, and plays the steps that concern
 * it. All play them in the same order, so a call that waits for others waits for ranks that are at
 * an earlier step, and the earliest of all waits for nobody: no program can deadlock. What a rank
 * decides for itself (in place, where its memory lies, blocking or by work, when to wait, delays)
 * comes from a second stream, of the seed and its rank. */
#ifndef TUTTI_TEST_SOAK_SOAK_H
#define TUTTI_TEST_SOAK_SOAK_H

#include "base/atomic.h"
#include "watch/fingerprint.h"

#include <stddef.h>
#include <stdint.h>
#include <tutti.h>

enum {
    SOAK_RANKS = 12,
    SOAK_GROUPS = 24,
    SOAK_OPS = 3,
    SOAK_PERIOD = 251,
    SOAK_KEYS = 4,
    SOAK_MANY = 6,
    SOAK_BLOCKS = SOAK_RANKS
};
enum { SOAK_BIRTHS = 4096 };

enum doing {
    DO_COLLECTIVE, DO_SPLIT, DO_CREATE, DO_FREE, DO_OP_CREATE, DO_OP_FREE,
    DO_ONCE, DO_FIRST, DO_TURN, DOINGS
};

/* A group of ranks, as all of them know it; comm and ops are this rank's own. */
struct group {
    bool used;
    int size, member[SOAK_RANKS];                    /* ranks of the world */
    bool op_made[SOAK_OPS];
    uint64_t once_done;                              /* a bit a key */
    int me;                                          /* -1: not a member */
    tutti_comm *comm;
    tutti_op op[SOAK_OPS];
    int under_way;                                   /* operations left as work by this rank */
};

struct step {
    enum doing doing;
    int group;                                       /* of the operation, or the parent */
    uint64_t salt;
    /* DO_COLLECTIVE */
    enum kind kind;
    tutti_type type;
    int op;                                         /* tutti_op; -1 - i: operation i of the group */
    int root, buffers;                              /* all_reduce_many: how many */
    size_t count;                                   /* of a block; of uneven ones: the base */
    int uneven;                                     /* in which manner */
    bool alike;                                     /* same: are they? */
    /* DO_SPLIT: color and key by parent's rank; the new groups, by color. DO_CREATE: in to[0] */
    int color[SOAK_RANKS], key[SOAK_RANKS], to[SOAK_RANKS];
    int size, list[SOAK_RANKS];                      /* DO_CREATE: ranks in the parent */
    int which;                                       /* of op or key */
};

struct soak_board {
    shared32 used;
    /* runs: how often the function of a once, or the part of a first, ran */
    shared64 operations, runs, runs_due;
    shared64 by_doing[DOINGS], by_work, in_arena, in_place;
    shared32 inside[SOAK_BIRTHS];                    /* a comm's turn, by its birth */
    char said[4][8192];
    uint64_t total[4 + DOINGS];                      /* the judge's, over all worlds; not cleared */
};

struct program {
    uint64_t seed;
    struct group groups[SOAK_GROUPS];
    int ranks;
    size_t steps_made;
    uint64_t runs;
};

uint64_t soak_any(uint64_t *seed);                   /* splitmix64 */
static inline size_t soak_below(uint64_t *seed, size_t n) { return (size_t)(soak_any(seed) % n); }

void program_open(struct program *p, uint64_t seed, int ranks, int me, tutti_comm *world);
/* the next one; the table of groups is as after it, but for a freed one */
struct step program_step(struct program *p, int me);
void step_describe(const struct step *s, const struct program *p, struct text *t);

/* What travels. Tiles hold SOAK_PERIOD elements, repeated. */
size_t model_width(tutti_type type);
bool   model_each(enum kind kind);                   /* a block of its own to each rank? */
bool   model_folds(enum kind kind);
bool   model_uneven(enum kind kind);
/* Elements that rank `from` of the group gives to `to`. all_reduce_many: of buffer `to`. */
size_t model_count(const struct step *s, const struct group *g, int from, int to);
void   model_give(void *tile, const struct step *s, int from, int to);
/* Block `from` of what rank `me` of the group gets. */
void   model_get(void *tile, const struct step *s, const struct group *g, int me, int from);
uint64_t model_factor(const struct step *s, int rank);       /* TUTTI_PREMUL_SUM: bits */
/* the groups' operation: not commutative */
void   model_user(const void *in, void *inout, size_t count, tutti_type type);

/* Plays `steps` steps as this rank. 0, or 1 with what went wrong on the board. */
int soak_play(tutti_comm *world, uint64_t seed, size_t steps, struct soak_board *board);

#endif
