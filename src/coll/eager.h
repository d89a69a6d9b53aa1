/* Job: carry a contribution by eager transport: the rank copies it into its staging slot before it
 *      arrives; peers read it there. They read a caller's buffer in the arena in place.
 * Owns: the slot, one for each parity of the operation's number.
 * Never: carries more than EAGER_TWO_BYTES, or EAGER_EACH_BYTES. */
#ifndef TUTTI_COLL_EAGER_H
#define TUTTI_COLL_EAGER_H

#include "coll/coll.h"

/* This rank's slot of this operation. 0 or -errno. */
int eager_slot(struct coll *c, char **slot);
/* Before the gate: copies into the slot, or lends the buffer (coll.h), and publishes it. 0 or
   -errno. */
int eager_put(struct coll *c);                /* c->bytes of c->send */
int eager_put_parts(struct coll *c);          /* all blocks that this rank gives, as c->even says */
int eager_put_lists(struct coll *c);          /* the same by lists, packed */
int eager_put_nothing(struct coll *c);
int eager_put_to_root(struct coll *c);               /* eager_put; at c->root nothing */
/* After the gate. 0, or DAMAGED: a peer's slot is outside the arena. */
int eager_fold(struct coll *c);                      /* the slots of all into c->recv */
int eager_fold_at_root(struct coll *c);              /* the same at c->root; nothing elsewhere */
int eager_take(struct coll *c);     /* the blocks for this rank, as c->even says */
int eager_take_folded(struct coll *c);               /* the same of a kind that folds, into one */
int eager_take_lists(struct coll *c);       /* the blocks for this rank, by lists */

/* Prefetches, all of them hints: what is fetched too early or in vain is read anew.
   A slot of a parity is where the last one was. So between two ranks it can be fetched together
   with its owner's arrival: both take the time of one transfer, 240 ns where CPUs are far apart.
   Lines that are fetched before they are written have to go back to their owner, which costs more
   than is gained. So the look for the arrival is put off by a part of the time that it takes: with
   PREFETCH_DELAY the least of five was lost. Nothing is fetched while one waits for the other:
   the writer is the late one then. Measured, 256 bytes, far: 0.79 to 0.92 of the time. 1 KiB took
   up to 1.9 times as long where both write and read. */
enum { PREFETCH_READ = 512, PREFETCH_OWN = 1024, PREFETCH_CALM = 4, PREFETCH_SOON = 4,
       PREFETCH_WAY = 1024 };
#define PREFETCH_DELAY(way) ((way) * 5 / 8)

/* The other's slot of operation seq, if up to PREFETCH_READ bytes are to be fetched. NULL: not. */
static inline const char *eager_peer_slot(const struct tutti_comm *comm, uint64_t seq)
{
    const struct prefetch *p = &comm->coll.prefetch;
    return p->calm >= PREFETCH_CALM ? p->theirs[seq & 1] : NULL;
}

/* soon: the other came within a few looks. */
static inline void eager_met(struct tutti_comm *comm, bool soon)
{
    struct prefetch *p = &comm->coll.prefetch;
    p->calm = soon ? p->calm + (p->calm < PREFETCH_CALM) : 0;
}

/* A look has taken so many ticks. The shortest counts, and slowly gives way: the system moves
   ranks. */
static inline void eager_measured(struct tutti_comm *comm, uint64_t ticks)
{
    struct prefetch *p = &comm->coll.prefetch;
    uint64_t most = p->way ? p->way + p->way / 16 + 1 : PREFETCH_WAY;
    most = most < PREFETCH_WAY ? most : PREFETCH_WAY;
    p->way = (uint32_t)(ticks < most ? ticks : most);
}

static inline void eager_wrote(struct tutti_comm *comm, uint64_t seq, size_t first, size_t bytes)
{
    comm->coll.prefetch.first[seq & 1] = first;
    comm->coll.prefetch.written[seq & 1] = bytes <= PREFETCH_OWN ? bytes : 0;
}

/* After the gate no rank reads the slot of the next operation any more. So its lines, as far as the
   last one wrote them, are fetched for writing, also behind a barrier or what goes by lines.
   Measured: 1 KiB takes 0.86 of the time; from 4 KiB on it slows the reads. Of a rank's blocks for
   each rank its own is not written: a scatter, all_to_all, reduce_scatter of 1 KiB a rank on a Zen
   5, far (210 ns), 0.76, 0.75, 0.77. */
void eager_own_lines(struct tutti_comm *comm, uint64_t next);
static inline void eager_own(struct tutti_comm *comm, uint64_t seq)
{
    if (__builtin_expect(comm->coll.prefetch.written[(seq + 1) & 1] != 0, 0))
        eager_own_lines(comm, (seq + 1) & 1);
}

/* The same for the fast path, without struct coll: `bytes` bytes, for operation seq. */
/* True: there is a slot, so eager_store cannot fail. */
bool eager_ready(const struct tutti_comm *comm, uint64_t seq, size_t bytes);
void eager_store(struct tutti_comm *comm, uint64_t seq, const void *send, size_t bytes);
/* False: DAMAGED. */
bool eager_sources(struct tutti_comm *comm, uint64_t seq, const void *send, size_t bytes,
                   const void **from);

#endif
