/* Job: read the private memory of another process (process_vm_readv, "CMA").
 * Owns: nothing.
 * Never: checks that the memory stays valid: the caller knows that. */
#ifndef TUTTI_OS_VM_READ_H
#define TUTTI_OS_VM_READ_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Reads all of it: 0. -ESRCH: that process has no memory (any more). -EPERM: we may not read it
   (Yama, another user, a filter). -EFAULT: a part is not there, or is no ordinary memory. -ENOSYS.
   Cost: 0.5 us, and 0.1 us a page beside the copy. */
int vm_read(pid_t pid, void *to, uint64_t at, size_t bytes);
/* The same, if the process has the bytes `known` at address known.at, read in the same call.
 * -ESRCH: it has not: another process has that pid now. */
struct vm_known { const void *known; size_t bytes; uint64_t at; };        /* up to VM_KNOWN bytes */
enum { VM_KNOWN = 64 };
int vm_read_known(pid_t pid, struct vm_known known, void *to, uint64_t at, size_t bytes);

/* A number for this process's rights to read and to be read: unchanged as long as they are. Some
 * 0.5 us. */
uint64_t vm_rights(void);

/* 0: this memory of our own can be read so, by its first and last byte. Else -errno. */
int vm_own(const void *at, size_t bytes);

#endif
