/* Job: take, fill and leave one rank's seat; say which process has it.
 * Owns: the seat of the rank that calls.
 * Never: counts the other ranks or waits for them. */
#ifndef TUTTI_GROUP_SEAT_H
#define TUTTI_GROUP_SEAT_H

#include "arena/arena.h"

/* A rank's facts about itself, read from the system before it takes the seat: so the time between
 * TAKEN and JOINED is short. */
struct seat_card {
    struct process_id id;
    uint64_t cpu_mask[RANKS_MAX / 64];
    uint32_t quota, several;
    char program[32];
};

void seat_card(struct seat_card *card, int several);

/* EMPTY -> TAKEN -> JOINED, the mark held. -EEXIST: the seat is in use. */
int seat_take(const struct arena *arena, uint32_t rank, const struct seat_card *card,
              struct text *why);

/* Sets LEFT, releases the mark and wakes all sleepers on it. Only by the thread that has the mark.
 * */
void seat_leave(struct arena *arena, int rank);

/* never taken | held by a living process | was held, its rank is gone */
enum seat_use { SEAT_UNUSED, SEAT_LIVE, SEAT_PAST };
enum seat_use seat_use(struct seat *seat);

/* "rank 1 has joined already (pid 1234, prog)" */
void seat_say_taken(const struct arena *arena, uint32_t rank, struct text *why);
/* " (pid 1234, prog)", or nothing if that is unknown */
void seat_add_who(struct seat *seat, struct text *t);

#endif
