/* A UCX that answers what it is asked to; FRONT: an MPI over it, for a program that opens it. */
#include <stddef.h>
#include <stdint.h>

void *ucp_tag_send_nbx(void *to, const void *at, size_t n, uint64_t tag, const void *how);

#ifdef FRONT
void *mpi_send(void *answer);
void *mpi_send(void *answer) { return ucp_tag_send_nbx(answer, NULL, 0, 0, NULL); }
#else
void *ucp_tag_send_nbx(void *to, const void *at, size_t n, uint64_t tag, const void *how)
{
    return at || n || tag || how ? NULL : to;
}
#endif
