/* Job: in a collective of ranks of several hosts, the MPI below must not end this process before
 *      it has said why: an end by the MPI itself has a last word.
 * Owns: which such call each thread is in, from up to down.
 * Never: touches a signal (pipes.h). */
#ifndef TUTTI_MPI_SHIELD_H
#define TUTTI_MPI_SHIELD_H

#include "mpi/link.h"

/* The calling thread is in this collective; again before shield_down: nothing. */
void shield_up(struct link *link, const char *function);
void shield_down(void);

/* What the calling thread sends to another host cannot go. True: its collective will tell it. */
bool shield_unsent(void);

/* The MPI is about to end the process, by this thread. */
void shield_last_word(void);

#endif
