/* Job: an operation in which each rank says two words to all others: what makers of comms tell
 *      each other by.
 * Owns: nothing of its own; seq, journal and arrival of the comm.
 * Never: what the words mean. */
#ifndef TUTTI_GROUP_EXCHANGE_H
#define TUTTI_GROUP_EXCHANGE_H

#include "group/comm.h"

/* 0, or why it failed: the report is written. *seq: the number by which peers' words are found,
 * until this rank arrives at the next operation. */
int comm_exchange(struct tutti_comm *comm, enum kind kind, uint32_t site, uint64_t first,
                  uint64_t second, uint64_t *seq);
static inline uint64_t exchanged(const struct tutti_comm *comm, uint64_t seq, uint32_t p, int word)
{
    /* relaxed: after E1, in the exchange */
    return load_relaxed64(&watch_arrival(&comm->watch, p, seq)->payload[word]);
}

#endif
