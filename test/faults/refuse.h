/* Job: the n-th call of a function of the C library fails in this process, as by the system.
 * Owns: the counts of these calls.
 * Never: says what must come of it. */
#ifndef TUTTI_TEST_FAULTS_REFUSE_H
#define TUTTI_TEST_FAULTS_REFUSE_H

#include <stdint.h>

enum refuse_call {
    REFUSE_MALLOC, REFUSE_CALLOC, REFUSE_REALLOC, REFUSE_POSIX_MEMALIGN, REFUSE_STRDUP, REFUSE_STRNDUP, REFUSE_ASPRINTF, REFUSE_REALPATH,
    REFUSE_MMAP, REFUSE_MADVISE, REFUSE_MPROTECT, REFUSE_FALLOCATE, REFUSE_POSIX_FALLOCATE, REFUSE_FTRUNCATE, REFUSE_PTHREAD_CREATE,
    REFUSE_OPEN, REFUSE_FSTAT, REFUSE_STAT, REFUSE_FCHMOD, REFUSE_RENAME, REFUSE_FSYNC, REFUSE_PWRITE, REFUSE_PREAD, REFUSE_EVENTFD,
    REFUSE_MEMFD_CREATE, REFUSE_MBIND, REFUSE_URING, REFUSE_PIDFD_OPEN, REFUSE_FUTEX_WAITV, REFUSE_READV_OF, REFUSE_CALLS
};
enum { REFUSE_ERRORS = 4 };
struct refuse_kind { const char *name; int errors[REFUSE_ERRORS]; };
extern const struct refuse_kind refuse_kinds[REFUSE_CALLS];

/* From now on, in any thread: the nth call of it fails; nth 0: they are only counted. */
void refuse_arm(enum refuse_call call, uint32_t nth, int error);
void refuse_disarm(void);
uint32_t refuse_calls(enum refuse_call call);        /* while it was armed */

#endif
