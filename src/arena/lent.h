/* Job: the words by which a rank lends device memory to its peers (gpu/ipc_export, gpu/ipc_import):
 *      cards, two for a comm, and loans, for the world. Both lie in the lender's span.
 * Owns: nothing; each word says who writes it, as in layout.h.
 * Never: more than layout. */
#ifndef TUTTI_ARENA_LENT_H
#define TUTTI_ARENA_LENT_H

#include "arena/layout.h"

enum lent_how { LENT_NOT, LENT_LEGACY, LENT_DESCRIPTOR };
struct lent {                       /* one buffer of a call; by its rank, before it arrives | E1 */
    unsigned char device[16], handle[64];       /* the GPU's UUID; cuIpcGetMemHandle's, if LEGACY */
    uint64_t buffer;                  /* CUDA's number of the allocation; never used again */
    uint64_t base, bytes;             /* the whole allocation, at the lender's addresses */
    uint64_t offset, length;          /* the call's part of it */
    uint64_t loan, generation;        /* offset of the loan in the arena; its generation */
    uint32_t how, keep;               /* enum lent_how, enum lent_keep */
};
/* how long it may stay open: one operation; until it is called back; so, and not to make room */
enum lent_keep { KEEP_NOT, KEEP_OPEN, KEEP_STAGING };
/* by parity of the operation's number. ways: what this rank can do, enum card_way. proof, nonce: a
 * page for those on another GPU, and what is in it (gpu/proof); length 0: there is none */
struct card {
    shared64 number;
    uint64_t ways, nonce;
    struct lent send, recv, staging, proof;
};
enum card_way { CARD_PLACE = 1, CARD_STAGING = 2 };
struct loan {
    _Alignas(LINE) shared64 state;    /* generation << 1 | 1: called back; the lender | E72 */
    /* +1 by each borrower that gives back a loan called back | the lender, futex | E73 */
    shared32 returned;
    /* a bit for each rank of the world that has it open; by that rank, or by the lender if that
     * rank is gone | E72, E73 */
    shared32 held[RANKS_MAX / 32];
};

_Static_assert(sizeof(struct lent) == 144 && sizeof(struct loan) == 2 * LINE, "what is lent");

#endif
