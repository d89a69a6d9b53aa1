/* Job: choose between two ways of which single operations cannot be compared, since the first ones
 *      of a way find the lines where the other way has left them. So a try is an epoch, of which
 *      the beginning does not count (base/tuner.h chooses). The first epoch, of the way that wins
 *      mostly, is a longer one: a comm that does two hundred operations pays for no try.
 * Owns: nothing: each user has one of these, or one for each class of sizes.
 * Never: changes anything that a peer could notice: who learns tells its peers. */
#ifndef TUTTI_BASE_EPOCHS_H
#define TUTTI_BASE_EPOCHS_H

#include "base/tuner.h"

enum { EPOCH = 32, EPOCH_FIRST = 256, EPOCH_BEGINNING = 8 };

/* All zeros: nothing has been tried. */
struct epochs {
    struct tuner ways;                 /* the way without it, the way with it */
    uint64_t ticks, bytes;             /* of this epoch's operations that count */
    uint32_t n;                        /* its operations */
    bool off;                          /* this epoch goes without it */
};

/* True: nothing has been tried yet. */
static inline bool epochs_new(const struct epochs *e) { return e->ways.n == 0 && e->n == 0; }

/* Operations of this epoch. */
static inline uint32_t epochs_length(const struct epochs *e)
{
    return e->ways.n == 0 ? EPOCH_FIRST : EPOCH;
}

/* An operation more. True: it counts. */
static inline bool epochs_count(struct epochs *e) { return ++e->n > EPOCH_BEGINNING; }

/* After each operation, counted or not. */
static inline void epochs_turn(struct epochs *e)
{
    if (e->n < epochs_length(e))
        return;
    if (e->bytes)
        tuner_learn_mean(&e->ways, !e->off, e->ticks, e->bytes);
    e->off = !tuner_choose(&e->ways, 1);
    e->n = 0;
    e->ticks = e->bytes = 0;
}

/* An operation has ended: both of the above; the sum of all that count. */
static inline void epochs_learn(struct epochs *e, uint64_t ticks, size_t bytes)
{
    if (epochs_count(e)) {
        e->ticks += ticks;
        e->bytes += bytes;
    }
    epochs_turn(e);
}

#endif
