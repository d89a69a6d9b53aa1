/* Job: the version of an MPI in a word, "4.1.4".
 * Owns: nothing.
 * Never: which MPI it is. */
#ifndef PERF_MPI_VERSION_H
#define PERF_MPI_VERSION_H

#include <mpi.h>
#include <string.h>

/* text: MPI_MAX_LIBRARY_VERSION_STRING bytes; the word lies in it. May be called
 * before MPI_Init. */
static inline const char *mpi_version(char *text)
{
    int length;
    MPI_Get_library_version(text, &length);
    text[strcspn(text, ",\n")] = 0;
    char *number = text + strcspn(text, "0123456789");
    number[strcspn(number, " ")] = 0;
    return number;
}

#endif
