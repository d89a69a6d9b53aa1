/* Job: the ABI that MPI itself defines since version 5, libmpi_abi.so.1: handles are pointers that
 *      hold small numbers where they are predefined.
 * Owns: nothing.
 * Never: is included but by abi.h. */
#ifndef TUTTI_MPI_ABI_MPI5_H
#define TUTTI_MPI_ABI_MPI5_H

typedef struct MPI_ABI_Comm *MPI_Comm;
typedef struct MPI_ABI_Datatype *MPI_Datatype;
typedef struct MPI_ABI_Op *MPI_Op;
typedef struct MPI_ABI_Group *MPI_Group;
typedef struct MPI_ABI_Info *MPI_Info;
typedef struct MPI_ABI_Request *MPI_Request;
typedef struct MPI_ABI_Win *MPI_Win;
typedef struct MPI_ABI_Errhandler *MPI_Errhandler;

#define MPI_IN_PLACE ((void *)1)
#define MPI_STATUSES_IGNORE ((MPI_Status *)0)
enum { MPI_ANY_SOURCE = -1, MPI_ROOT = -4 };
enum { MPI_COMM_TYPE_SHARED = 221 };
enum { MPI_ERR_ARG = 13, MPI_ERR_TRUNCATE = 15, MPI_ERR_OTHER = 16,
       MPI_ERR_INTERN = 17, MPI_ERR_NO_MEM = 39 };
enum { MPI_THREAD_MULTIPLE = 4096 };
enum { STATUS_SOURCE = 0 };         /* in a status, as an array of int */

#endif
