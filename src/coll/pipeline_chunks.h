/* Job: between two ranks of which one gives and the other takes, let pieces be taken in chunks
 *      while they are copied in.
 * Owns: this rank's word early, in operations of the pipeline.
 * Never: waits longer than a short spin; decides that an operation ends.
 *
 * A piece of a round is 64 KiB, and who takes waits for the first one to be whole. Smaller pieces
 * cost more than they save: a round takes some 70 ns near, and a few lines' ways far. So pieces
 * stay, and who gives says in between how much is there (E122). Who takes follows a chunk behind,
 * in a loop of its own, and copies what it keeps for itself where nothing is there.
 *
 * Measured on a Zen 5, cached, 320 KiB, 512 KiB, 1 MiB: broadcast near (40 ns) 7.0 -> 5.8 us, 10.5
 * -> 9.2, 19.2 -> 17.6, far (180 ns) 13.7 -> 11.1, 19.2 -> 16.8, 33.9 -> 32.7; gather near 10.1 ->
 * 9.5, 16.7 -> 15.8, 35.4 -> 32.9, far 17.0 -> 13.8, 25.2 -> 22.4, 48.4 -> 44.7. Out of memory, 1
 * to 16 MiB, 0.97 to 1.01 of the time. Not scatter, where who gives keeps a block, too: 512 KiB
 * 1.07.
 *
 * The words produced and consumed say what they always say. So either rank may go so or not. */
#ifndef TUTTI_COLL_PIPELINE_CHUNKS_H
#define TUTTI_COLL_PIPELINE_CHUNKS_H

#include "coll/pipeline.h"

/* Copies a piece of round c->pipeline.asked into its slot, and says how far. False: not in this
   operation. */
bool chunks_copy_in(struct coll *c, char *slot, const char *from, size_t bytes);
/* After the gate: takes what is there, round by round, as long as there is something. */
void chunks_take(struct coll *c);

#endif
