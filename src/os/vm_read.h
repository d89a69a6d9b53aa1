/* Job: read the private memory of another process (process_vm_readv, "CMA").
 * Owns: nothing.
 * Never: whose memory it is, and whether it stays: whoever asks knows. */
#ifndef TUTTI_OS_VM_READ_H
#define TUTTI_OS_VM_READ_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* All of it, or -errno: -ESRCH that process has no memory (any more), -EPERM it is not ours to read
   (Yama, another user, a filter), -EFAULT some of it is not there, or is no ordinary memory,
   -ENOSYS. Some 0.5 us, and 0.1 us a page beside the copy. */
int vm_read(pid_t pid, void *to, uint64_t at, size_t bytes);
/* The same out of the process that has `known` at known_at, at the moment of the reading: -ESRCH,
 * another process has that number by now. */
struct vm_known { const void *known; size_t bytes; uint64_t at; };        /* up to VM_KNOWN bytes */
enum { VM_KNOWN = 64 };
int vm_read_known(pid_t pid, struct vm_known known, void *to, uint64_t at, size_t bytes);

/* What the rights to read, and to be read, go by in this process, as a number: the same as long as
 * nothing of it changes. Some 0.5 us. */
uint64_t vm_rights(void);

/* Can it be read like that by those who may? Asked of this process's own: its first and
 * last byte. */
int vm_own(const void *at, size_t bytes);

#endif
