/* Job: one rank's seat: take it, fill it, leave it, say who sits there.
 * Owns: the seat of the rank that calls.
 * Never: how many others sit, or how long one waits for them. */
#ifndef TUTTI_GROUP_SEAT_H
#define TUTTI_GROUP_SEAT_H

#include "arena/arena.h"

/* What a rank says of itself, read from the system before the seat is taken: the stretch between
 * TAKEN and JOINED is then short. */
struct seat_card {
    struct process_id id;
    uint64_t cpu_mask[RANKS_MAX / 64];
    uint32_t quota, several;
    char program[32];
};

void seat_card(struct seat_card *card, int several);

/* EMPTY -> TAKEN -> JOINED, the mark held. -EEXIST: somebody has the seat. */
int seat_take(const struct arena *arena, uint32_t rank, const struct seat_card *card,
              struct text *why);

/* Leaves: seat LEFT, the mark let go and everybody on it woken. Only by the thread that holds
 * the mark. */
void seat_leave(struct arena *arena, int rank);

/* nobody yet | held by a living process | it was held, its rank is gone */
enum seat_use { SEAT_UNUSED, SEAT_LIVE, SEAT_PAST };
enum seat_use seat_use(struct seat *seat);

/* "rank 1 has joined already (pid 1234, prog)" */
void seat_say_taken(const struct arena *arena, uint32_t rank, struct text *why);
/* " (pid 1234, prog)", or nothing if that is unknown */
void seat_add_who(struct seat *seat, struct text *t);

#endif
