/* Job: an operation in which each rank gives two words to all others. Makers of comms use it.
 * Owns: nothing of its own; it writes seq, journal and arrival of the comm.
 * Never: knows what the words mean. */
#ifndef TUTTI_GROUP_EXCHANGE_H
#define TUTTI_GROUP_EXCHANGE_H

#include "group/comm.h"

/* 0 or -errno, with the report written. *seq: for exchanged(), which is valid until this rank
 * arrives at the next operation. */
int comm_exchange(struct tutti_comm *comm, enum kind kind, uint32_t site, uint64_t first,
                  uint64_t second, uint64_t *seq);
static inline uint64_t exchanged(const struct tutti_comm *comm, uint64_t seq, uint32_t p, int word)
{
    /* relaxed: after E1, in the exchange */
    return load_relaxed64(&watch_arrival(&comm->watch, p, seq)->payload[word]);
}

#endif
