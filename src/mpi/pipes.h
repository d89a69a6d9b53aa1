/* Job: what Open MPI writes to a socket whose reader has died does not end this process.
 * Owns: writev and send of this process, in front of libc's.
 * Never: changes a signal, or what code of the program gets. */
#ifndef TUTTI_MPI_PIPES_H
#define TUTTI_MPI_PIPES_H

/* This process has Open MPI. */
void pipes_wanted(void);

#endif
