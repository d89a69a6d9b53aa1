/* Job: the memfd under an arena: create, seal, map, populate, give back.
 * Owns: nothing shared; the mapping belongs to the caller.
 * Never: what lies in it. */
#ifndef TUTTI_OS_MEMORY_H
#define TUTTI_OS_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A memfd named "tutti" (/proc/PID/fd shows /memfd:tutti), CLOEXEC, moved to a number of 100 or
   more, of `bytes`, sealed SHRINK|GROW|SEAL. Returns the descriptor or a negative errno;
   RLIMIT_FSIZE is looked at first (-EFBIG, no SIGXFSZ). */
int memory_create(uint64_t bytes);

/* 0 if fd is a memfd of ours: sealed so, and *bytes its size; else -EINVAL. */
int memory_check(int fd, uint64_t *bytes);

/* Maps all of fd shared, 2 MiB-aligned, MAP_NORESERVE; MADV_DONTDUMP on all of it. NULL and
   *error = -errno: -EAGAIN, the program locks all its memory (mlockall) and its limit
   leaves no page. */
void *memory_map(int fd, uint64_t bytes, int *error);
void *memory_map_readonly(int fd, uint64_t bytes, int *error);
void memory_unmap(void *at, uint64_t bytes);
/* nothing to sleep on is in there: memcheck need not read it */
void memory_no_roots(void *at, uint64_t bytes);
/* children that are forked from now on do not have it */
void memory_not_for_forks(void *at, uint64_t bytes);
void memory_dump(void *at, uint64_t bytes);           /* put this stretch back into core dumps */

/* Makes the pages of [at, at + bytes) present and writable now (rounded out to pages). 0 or
   -ENOMEM, -EFAULT … MADV_POPULATE_WRITE; where the kernel lacks it (before 5.14) it exchanges a
   word of each page for itself. */
int memory_populate(void *at, size_t bytes);
/* From how many bytes on huge pages are worth asking for: below, their ends are most of it. */
enum { MEMORY_HUGE_PAGE = 2 << 20, MEMORY_HUGE_FROM = 2 * MEMORY_HUGE_PAGE };
/* The same, the whole 2 MiB in it as huge pages where the system allows; `number` is that of the
   first one where memory lies on the NUMA nodes in turn, else 0. *huge: bytes of which it is known
   that they are (0: none, which is no error). memory_huge: how many bytes of a stretch this process
   has mapped as huge pages now. */
int memory_populate_huge(void *at, size_t bytes, uint64_t number, size_t *huge);
size_t memory_huge(void *at, size_t bytes);
/* What this kernel has of what these use: populating by advice, huge pages on request, telling
 * which pages are huge. */
bool memory_populates(void);
bool memory_collapses(void);
bool memory_scans(void);
/* Gives the pages back to the system (hole punch); the bytes read as zero afterwards. fd < 0: by
 * the mapping alone, of whole pages. */
int memory_release(int fd, void *base, void *at, size_t bytes);

/* Puts whole pages of fd, mapped at base, or fresh private ones, in the place of what is mapped at
   `at`. 0, or -errno and all is as it was. fd < 0: out of the mapping alone. */
int memory_map_over(int fd, void *base, uint64_t offset, void *at, size_t bytes);
int memory_private_over(void *at, size_t bytes);

/* Can the CPU read the byte there? Where the system does not say: yes. Costs a system call. */
bool memory_readable(const void *at);

uint64_t memory_total(void);    /* RAM of this machine, bytes, cgroup limit taken into account */
uint64_t memory_limit(void);                          /* the cgroup's limit; 0: none */
/* what could be had of it now without killing anybody: an estimate */
uint64_t memory_available(void);
size_t memory_page(void);

/* A private anonymous page that a forked child finds zeroed (MADV_WIPEONFORK); its first word is 1.
 * NULL if it cannot be had. */
void *memory_fork_page(void);

#endif
