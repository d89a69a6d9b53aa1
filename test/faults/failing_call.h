/* Job: the n-th call of a function of the C library fails in this process, as by the system.
 * Owns: the counts of these calls.
 * Never: says what must come of it. */
#ifndef TUTTI_TEST_FAULTS_FAILING_CALL_H
#define TUTTI_TEST_FAULTS_FAILING_CALL_H

#include <stdint.h>

enum failing_call {
    FAIL_MALLOC, FAIL_CALLOC, FAIL_REALLOC, FAIL_POSIX_MEMALIGN, FAIL_STRDUP, FAIL_STRNDUP,
    FAIL_ASPRINTF, FAIL_REALPATH, FAIL_MMAP, FAIL_MADVISE, FAIL_MPROTECT, FAIL_FALLOCATE,
    FAIL_POSIX_FALLOCATE, FAIL_FTRUNCATE, FAIL_PTHREAD_CREATE, FAIL_OPEN, FAIL_FSTAT, FAIL_STAT,
    FAIL_FCHMOD, FAIL_RENAME, FAIL_FSYNC, FAIL_PWRITE, FAIL_PREAD, FAIL_EVENTFD, FAIL_MEMFD_CREATE,
    FAIL_MBIND, FAIL_URING, FAIL_PIDFD_OPEN, FAIL_FUTEX_WAITV, FAIL_READV_OF, FAIL_CALLS
};
enum { FAIL_ERRORS = 4 };
struct failing_kind { const char *name; int errors[FAIL_ERRORS]; };
extern const struct failing_kind failing_kinds[FAIL_CALLS];

/* From now on, in any thread: the nth call of it fails; nth 0: they are only counted. */
void failing_arm(enum failing_call call, uint32_t nth, int error);
void failing_disarm(void);
uint32_t failing_calls(enum failing_call call);        /* while it was armed */

#endif
