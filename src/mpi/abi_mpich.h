/* Job: the ABI of MPICH 3 to 5, of Intel MPI and their like, libmpi.so.12 (Debian: libmpich.so.12):
 *      handles are numbers.
 * Owns: nothing.
 * Never: is included but by abi.h. */
#ifndef TUTTI_MPI_ABI_MPICH_H
#define TUTTI_MPI_ABI_MPICH_H

typedef int MPI_Comm;
typedef int MPI_Datatype;
typedef int MPI_Op;
typedef int MPI_Group;
typedef int MPI_Info;
typedef int MPI_Request;
typedef int MPI_Win;
typedef int MPI_Errhandler;

#define MPI_IN_PLACE ((void *)-1)
#define MPI_STATUSES_IGNORE ((MPI_Status *)1)
enum { MPI_ANY_SOURCE = -2, MPI_ROOT = -3 };
enum { MPI_COMM_TYPE_SHARED = 1 };
enum { MPI_ERR_ARG = 12, MPI_ERR_TRUNCATE = 14, MPI_ERR_OTHER = 15,
       MPI_ERR_INTERN = 16, MPI_ERR_NO_MEM = 34 };
enum { MPI_THREAD_MULTIPLE = 3 };
enum { STATUS_SOURCE = 2 };         /* in a status, as an array of int */

#endif
