/* Job: compute the reference for collectives: what each rank gives, what each must get, and which
 *      cases are worth running.
 * Owns: nothing shared; a board is the caller's.
 * Never: uses kernels of fold/ or algorithms. It uses only their thresholds, to test sizes right
 *        beside them.
 *
 * A rank's data is a tile of PERIOD elements, repeated. PERIOD is a prime. So no piece, round or
 * slot is a multiple of it, and data in a wrong place differs. The expected result is the fold of
 * the tiles, repeated: it costs the same for any size. */
#ifndef TUTTI_TEST_SUPPORT_ORACLE_H
#define TUTTI_TEST_SUPPORT_ORACLE_H

#include "base/atomic.h"
#include "support/pieces.h"
#include "watch/fingerprint.h"

#include <stddef.h>
#include <stdint.h>
#include <tutti.h>

enum {
    ORACLE_PERIOD = 1021,
    ORACLE_RANKS = 8,
    ORACLE_WIDTH = 16,
    ORACLE_DEVICES = 4,
    ORACLE_TYPES = TUTTI_F8E5M2 + 1
};

enum oracle_dim {
    DIM_RANKS, DIM_RULE, DIM_GATE, DIM_TYPE, DIM_OP, DIM_PLACE, DIM_SIZE, DIM_SEND_AT, DIM_RECV_AT,
    DIM_ROOT, DIM_PATTERN, DIM_MODES, DIM_MEMORY, DIM_LIST, DIM_HOW, DIM_ROAD, DIM_DEVICES,
    DIM_WHERE, DIM_SOURCE, DIM_STREAM, DIMS
};
enum oracle_rule { RULE_LINE, RULE_EAGER, RULE_RING, RULE_PULL, RULE_DEFAULT, RULES };
enum oracle_place { PLACE_APART, PLACE_IN_PLACE, PLACES };
/* TUTTI_SUM … TUTTI_PREMUL_SUM, then two of the user's. Neither is commutative: "the right one if
 * the left is odd", and the composition of affine maps. */
enum oracle_op { OP_TAKE = TUTTI_PREMUL_SUM + 1, OP_AFFINE, OPS };
/* SOME: buffers of every other rank */
enum oracle_memory {
    MEMORY_PRIVATE, MEMORY_ARENA, MEMORY_SOME, MEMORY_SEND, MEMORY_RECV, MEMORIES
};
/* the counts of uneven kinds */
enum oracle_list { LIST_EVEN, LIST_ANY, LIST_ZERO, LIST_ONE, LIST_MOSTLY, LISTS };
enum oracle_how { HOW_BLOCKING, HOW_WORK, HOWS };
/* Sizes around every threshold: of few elements, of inline, of eager (its built-in limit and its
   most), of a piece, of a round, of all slots of a pipeline; odd; large. The first thresholds are
   for all bytes that a rank gives. So for kinds of N blocks the sum of the blocks has this size.
   Rounds are of one block. */
enum oracle_size {
    SIZE_0, SIZE_1, SIZE_2, SIZE_3, SIZE_7, SIZE_LINE_LESS, SIZE_LINE, SIZE_LINE_MORE, SIZE_333,
    SIZE_32K_LESS, SIZE_32K, SIZE_32K_MORE, SIZE_64K_LESS, SIZE_64K, SIZE_64K_MORE, SIZE_PIECE_LESS,
    SIZE_PIECE, SIZE_PIECE_MORE, SIZE_ROUND_LESS, SIZE_ROUND, SIZE_ROUND_MORE, SIZE_RING_LESS,
    SIZE_RING, SIZE_RING_MORE, SIZE_ODD, SIZE_LARGE, HOST_SIZES,
    /* the same for a comm with devices */
    SIZE_DEVICE_PIECE_LESS = HOST_SIZES, SIZE_DEVICE_PIECE, SIZE_DEVICE_PIECE_MORE,
    SIZE_DEVICE_ROUND_LESS, SIZE_DEVICE_ROUND, SIZE_DEVICE_ROUND_MORE, SIZE_DEVICE_RING_LESS,
    SIZE_DEVICE_RING, SIZE_DEVICE_RING_MORE, SIZE_DEVICE_LARGE, SIZES
};
enum oracle_root { ROOT_FIRST, ROOT_LAST, ROOT_MIDDLE, ROOTS };
enum oracle_pattern { PATTERN_ANY, PATTERN_NEAR, PATTERN_SPECIAL, PATTERN_DENORMAL, PATTERNS };
/* which rank runs with flush-to-zero */
enum oracle_modes { MODES_SAME, MODES_FIRST_FLUSHES, MODES_LAST_FLUSHES, MODES };

/* For spaces with devices; other spaces use only the first value. The number of a device is smaller
 * than the case's number of devices. */
enum oracle_road {
    ROAD_BY_RULE_PINNED, ROAD_BY_RULE_LEADER, ROAD_BY_RULE_PEERS, ROAD_BY_DEFAULT, ORACLE_ROADS
};
/* SOME: both buffers of every other rank. MIXED: any buffers. */
enum oracle_where { WHERE_DEVICE, WHERE_SEND, WHERE_RECV, WHERE_SOME, WHERE_MIXED, WHERES };
/* INSIDE: a part of memory that lives as long as the world. SHAREABLE, MAPPED: from cuMemCreate;
 * other processes can or cannot open it. */
enum oracle_source {
    SOURCE_ALLOC, SOURCE_TUTTI, SOURCE_REGISTERED, SOURCE_INSIDE,
    SOURCE_SHAREABLE, SOURCE_MAPPED, SOURCES
};
/* What brings a rank's data into its buffers: nothing, they are there; copies in the NULL stream;
   copies in a stream of the caller, for which the NULL stream waits; copies in the stream that the
   call names, which is of the blocking kind or not. */
enum oracle_stream {
    STREAM_NOTHING, STREAM_NULL, STREAM_BEFORE_NULL, STREAM_BLOCKING, STREAM_OWN, STREAMS
};

enum { ORACLE_OPEN = 255 };
struct oracle_case { enum kind kind; unsigned char v[DIMS]; uint64_t salt; };

/* The values that a run may take. */
struct oracle_space { int ranks_least, ranks_most; size_t bytes_most; bool devices; };

struct oracle_cases { struct oracle_case *at; size_t used, room; };

/* Appends cases of this kind, so that every possible pair of values is in at least one. Returns the
 * number of pairs. */
size_t oracle_pairs(struct oracle_cases *cases, enum kind kind, const struct oracle_space *space,
                    uint64_t *seed);
/* All of kind x ranks x rule x gate x type x op x place x size; the other values are random. With
 * devices: kind x ranks x rule x road x type x op x place. */
void oracle_product(struct oracle_cases *cases, enum kind kind, const struct oracle_space *space,
                    uint64_t *seed);
/* Appends one case: the values that c has, the others random. False: no case fits. */
bool oracle_chance(struct oracle_cases *cases, const struct oracle_case *c,
                   const struct oracle_space *space, uint64_t *seed);
void oracle_free(struct oracle_cases *cases);
/* The number of possible pairs that are in none of the cases. If not 0, the generator is wrong. */
size_t oracle_missing(const struct oracle_cases *cases, enum kind kind,
                      const struct oracle_space *space);

/* The dimensions, and which values can go together. */
int         oracle_values_of(enum kind kind, int dim, const struct oracle_space *space);
/* False only if the values that are set already cannot go together. ORACLE_OPEN: not set yet. */
bool        oracle_fits(const struct oracle_case *c, const struct oracle_space *space);
int         oracle_ranks(const struct oracle_case *c);
int         oracle_root(const struct oracle_case *c);
size_t      oracle_width(int type);
/* elements of a block; of uneven kinds, the base of its sizes */
size_t      oracle_count(const struct oracle_case *c);
/* elements of this block; all_reduce_many: of buffer `to` */
size_t      oracle_block(const struct oracle_case *c, int from, int to);
int         oracle_buffers(const struct oracle_case *c);       /* of all_reduce_many */
bool        oracle_each(enum kind kind);            /* true: a rank has a block for each rank */
bool        oracle_folds(enum kind kind);
bool        oracle_uneven(enum kind kind);
bool        oracle_allowed(int type, int op);
void        oracle_describe(const struct oracle_case *c, struct text *t);
const char *oracle_rules(const struct oracle_case *c, char room[1024]);    /* for TUTTI_ALGORITHM */

/* Tiles: PERIOD elements. */
/* what `rank` gives in its block for `to` */
void oracle_values(void *tile, const struct oracle_case *c, int rank, int to);
/* the fold of the blocks for `to` of ranks 0 … ranks - 1 */
void oracle_fold(void *tile, const struct oracle_case *c, int ranks, int to);
/* TUTTI_PREMUL_SUM: one element */
void oracle_factor(void *factor, const struct oracle_case *c, int rank);
void oracle_user_take(const void *in, void *inout, size_t count, tutti_type type);
void oracle_user_affine(const void *in, void *inout, size_t count, tutti_type type);

/* One rank's part of a case: its buffers, filled, then judged. */
struct oracle_part {
    const struct oracle_case *c;
    int me, give_n, get_n;
    bool in_place;
    size_t count;
    struct pieces send, recv;
    /* as arguments of the call; the CPU reads them through pieces_see */
    void *give[ORACLE_RANKS], *get[ORACLE_RANKS];
    size_t gives[ORACLE_RANKS], gets[ORACLE_RANKS];
    uint64_t factor[2];
};
/* Memory that is not the host's. take: false if this side of this rank is in host memory, or there
 * is no memory. */
struct oracle_device {
    void *arg;
    bool (*on)(void *arg, const struct oracle_part *part, bool send);
    bool (*take)(void *arg, const struct oracle_part *part, struct pieces *pieces, bool send,
                 size_t offset);
    void (*give)(void *arg, struct pieces *pieces);
    /* after the buffers are filled, before the call */
    bool (*ready)(void *arg, struct oracle_part *part, tutti_call *call);
    /* after the call; false: it failed, with the reason in why */
    bool (*done)(void *arg, struct oracle_part *part, struct text *why);
    /* between one case and the next; false: the ranks could not meet */
    bool (*left)(void *arg, const struct oracle_part *part, tutti_comm *comm);
};
/* false: no memory. device NULL: host memory. */
bool oracle_take(struct oracle_part *part, const struct oracle_case *c, int me, tutti_comm *comm,
                 const struct oracle_device *device);
bool oracle_judge(const struct oracle_part *part, struct text *why);
void oracle_give(struct oracle_part *part, tutti_comm *comm, const struct oracle_device *device);

/* Where ranks write their complaints: memory that all of them and the judge share. */
enum { ORACLE_COMPLAINTS = 8 };
struct oracle_board { shared32 used; char said[ORACLE_COMPLAINTS][1000]; };

/* Runs the cases on this rank, one after another. It meets the other ranks between them only where
 * the device's `left` does. 0, or 1 with a complaint on the board. */
int oracle_run(tutti_comm *comm, const struct oracle_case *cases, size_t n,
               struct oracle_board *board, const struct oracle_device *device);
/* Sorts cases so that those of one world are together, and within a world in random order. The
 * second function: how many cases belong to the first one's world. */
void   oracle_sort(struct oracle_cases *cases);
size_t oracle_world(const struct oracle_case *c, size_t most);

uint64_t oracle_seed(void);                          /* TUTTI_TEST_SEED, or the clock; printed */
uint64_t oracle_any(uint64_t *seed);                 /* splitmix64 */
bool     oracle_prove(void);

#endif
