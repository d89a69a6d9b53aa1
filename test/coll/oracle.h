/* Job: the reference oracle of the collectives: what each rank gives, what each must get, and which cases are worth running.
 * Owns: nothing shared; a board is the caller's.
 * Never: kernels of fold/, algorithms; it knows their thresholds only, so as to stand right beside them.
 *
 * A rank's data is a tile of PERIOD elements, repeated. PERIOD is a prime, so no piece, round or slot is a multiple of it: data that
 * ends up in the wrong place differs. The fold of the tiles, repeated, is the expected result; it costs the same for any size. */
#ifndef TUTTI_TEST_COLL_ORACLE_H
#define TUTTI_TEST_COLL_ORACLE_H

#include "base/atomic.h"
#include "watch/stamp.h"

#include <stddef.h>
#include <stdint.h>
#include <tutti.h>

enum { ORACLE_PERIOD = 1021, ORACLE_RANKS = 8 };

enum oracle_dim { DIM_RANKS, DIM_RULE, DIM_GATE, DIM_TYPE, DIM_OP, DIM_PLACE, DIM_SIZE, DIM_SEND_AT, DIM_RECV_AT, DIM_ROOT, DIM_PATTERN, DIM_MODES, DIMS };
enum oracle_rule { RULE_LINE, RULE_FLAT, RULE_RING, RULE_DEFAULT, RULES };
enum oracle_place { PLACE_APART, PLACE_IN_PLACE, PLACES };
/* Around every threshold: of elements, the line, flat as chosen and at most, a piece, a round, all slots of a ring; odd; large. */
enum oracle_size {
    SIZE_0, SIZE_1, SIZE_2, SIZE_3, SIZE_7, SIZE_LINE_LESS, SIZE_LINE, SIZE_LINE_MORE, SIZE_333,
    SIZE_32K_LESS, SIZE_32K, SIZE_32K_MORE, SIZE_64K_LESS, SIZE_64K, SIZE_64K_MORE, SIZE_PIECE_LESS, SIZE_PIECE, SIZE_PIECE_MORE,
    SIZE_ROUND_LESS, SIZE_ROUND, SIZE_ROUND_MORE, SIZE_RING_LESS, SIZE_RING, SIZE_RING_MORE, SIZE_ODD, SIZE_LARGE, SIZES
};
enum oracle_root { ROOT_FIRST, ROOT_LAST, ROOT_MIDDLE, ROOTS };
enum oracle_pattern { PATTERN_ANY, PATTERN_NEAR, PATTERN_SPECIAL, PATTERN_DENORMAL, PATTERNS };
enum oracle_modes { MODES_SAME, MODES_FIRST_FLUSHES, MODES_LAST_FLUSHES, MODES };       /* which rank runs with flush-to-zero */

struct oracle_case { enum kind kind; unsigned char v[DIMS]; uint64_t salt; };

/* Which values a run may take. */
struct oracle_space { int ranks_least, ranks_most; size_t bytes_most; };

struct oracle_cases { struct oracle_case *at; size_t used, room; };

/* Appends cases of this kind so that every pair of values that can go together is in at least one. Returns how many pairs there are. */
size_t oracle_pairs(struct oracle_cases *cases, enum kind kind, const struct oracle_space *space, uint64_t *seed);
/* All of kind x ranks x rule x gate x type x op x place x size; the other values by chance. */
void oracle_product(struct oracle_cases *cases, enum kind kind, const struct oracle_space *space, uint64_t *seed);
void oracle_free(struct oracle_cases *cases);
/* How many possible pairs of values are in none of the cases: 0, or the generator is wrong. */
size_t oracle_missing(const struct oracle_cases *cases, enum kind kind, const struct oracle_space *space);

int         oracle_ranks(const struct oracle_case *c);
int         oracle_root(const struct oracle_case *c);
size_t      oracle_width(int type);
size_t      oracle_count(const struct oracle_case *c);
bool        oracle_allowed(int type, int op);
void        oracle_describe(const struct oracle_case *c, struct text *t);
const char *oracle_rules(enum oracle_rule rule, int gate, char room[256]);      /* for TUTTI_ALGORITHM */

/* Tiles: PERIOD elements. */
void oracle_values(void *tile, const struct oracle_case *c, int rank);
void oracle_expect(void *tile, const struct oracle_case *c);                    /* the serial fold of all ranks' values */
void oracle_fill(void *to, size_t bytes, const void *tile, size_t width);
size_t oracle_differs(const void *is, size_t bytes, const void *tile, size_t width);     /* first byte that differs; SIZE_MAX: none */

/* Where ranks leave what went wrong: in memory that all of them and the judge share. */
enum { ORACLE_COMPLAINTS = 8 };
struct oracle_board { shared32 used; char said[ORACLE_COMPLAINTS][600]; };

/* Runs the cases on this rank, one after another, without meeting the others between them. 0, or 1 with a complaint on the board. */
int oracle_run(tutti_comm *comm, const struct oracle_case *cases, size_t n, struct oracle_board *board);

uint64_t oracle_seed(void);                          /* TUTTI_TEST_SEED, or by the clock; printed */
uint64_t oracle_any(uint64_t *seed);                 /* splitmix64 */
bool     oracle_prove(void);

#endif
