/* Job: the ABI of Open MPI 4 and 5, libmpi.so.40: handles are pointers, those that are predefined
 *      point to objects of the library.
 * Owns: nothing.
 * Never: is included but by abi.h. */
#ifndef TUTTI_MPI_ABI_OPENMPI_H
#define TUTTI_MPI_ABI_OPENMPI_H

typedef struct ompi_communicator *MPI_Comm;
typedef struct ompi_datatype *MPI_Datatype;
typedef struct ompi_op *MPI_Op;
typedef struct ompi_group *MPI_Group;
typedef struct ompi_info *MPI_Info;
typedef struct ompi_request *MPI_Request;
typedef struct ompi_win_t *MPI_Win;
typedef struct ompi_errhandler_t *MPI_Errhandler;

#define MPI_IN_PLACE ((void *)1)
#define MPI_STATUSES_IGNORE ((MPI_Status *)0)
enum { MPI_ANY_SOURCE = -1, MPI_ROOT = -4 };
enum { MPI_COMM_TYPE_SHARED = 0 };
enum { MPI_ERR_ARG = 13, MPI_ERR_TRUNCATE = 15, MPI_ERR_OTHER = 16,
       MPI_ERR_INTERN = 17, MPI_ERR_NO_MEM = 39 };
enum { MPI_THREAD_MULTIPLE = 3 };
enum { STATUS_SOURCE = 0 };         /* in a status, as an array of int */

#endif
