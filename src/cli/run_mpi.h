/* Job: start an MPI program by the mpirun of the MPI that it loads, with libtutti-mpi.so preloaded.
 * Owns: nothing.
 * Never: runs the program to find out; returns where mpirun could be started. */
#ifndef TUTTI_CLI_RUN_MPI_H
#define TUTTI_CLI_RUN_MPI_H

#include <stdbool.h>

/* argv: the program and its arguments. The exit status if it could not be started. */
int run_mpi(int size, bool verbose, char **argv);

#endif
