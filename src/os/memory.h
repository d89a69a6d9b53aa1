/* Job: create, seal, map, populate and free the memfd under an arena.
 * Owns: nothing shared; the caller owns the mapping.
 * Never: knows its content. */
#ifndef TUTTI_OS_MEMORY_H
#define TUTTI_OS_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A memfd named "tutti" (/proc/PID/fd shows /memfd:tutti), CLOEXEC, moved to a number of 100 or
   more, of `bytes`, sealed SHRINK|GROW|SEAL where the system seals. Returns the descriptor or a
   negative errno; RLIMIT_FSIZE is looked at first (-EFBIG, no SIGXFSZ). */
int memory_create(uint64_t bytes);

/* 0 if fd is a memfd of ours: sealed so, or without a name where nothing can be sealed, and *bytes
   its size; else -EINVAL. */
int memory_check(int fd, uint64_t *bytes);

bool memory_seals(void);                              /* this process can seal a memfd */

/* Maps all of fd shared, 2 MiB-aligned, MAP_NORESERVE, MADV_DONTDUMP. NULL: *error = -errno;
   -EAGAIN: the program locks all its memory (mlockall), and its limit leaves no page. */
void *memory_map(int fd, uint64_t bytes, int *error);
void *memory_map_readonly(int fd, uint64_t bytes, int *error);
void memory_unmap(void *at, uint64_t bytes);
/* Under memcheck only: its leak search does not read this memory. No futex may be in it. */
void memory_no_roots(int fd, void *at, uint64_t bytes, uint64_t offset);
/* Keeps the memory from children forked later. */
void memory_not_for_forks(void *at, uint64_t bytes);
void memory_dump(void *at, uint64_t bytes);           /* puts the memory back into core dumps */

/* Makes the pages of [at, at + bytes) present and writable, rounded out to pages. 0, -ENOMEM,
   -EFAULT … By MADV_POPULATE_WRITE; before Linux 5.14 by an exchange of a word of each page for
   itself. */
int memory_populate(void *at, size_t bytes);
/* Maps for reading those whole pages of [at, at + bytes) that are present, up to 2 MiB of them, and
   makes none: who reads them first has no faults there. A hint: systems without the advice do
   nothing. */
void memory_look(const void *at, size_t bytes);
/* Least bytes for huge pages: a smaller range has few whole ones in it. */
enum { MEMORY_HUGE_PAGE = 2 << 20, MEMORY_HUGE_FROM = 2 * MEMORY_HUGE_PAGE };
/* The same with huge pages for each whole one, if the system allows. number: of the first huge
   page in memory interleaved over NUMA nodes, else 0. *huge: bytes known to be huge (0 is no
   error). memory_huge: bytes that this process has mapped as huge pages now. */
int memory_populate_huge(void *at, size_t bytes, uint64_t number, size_t *huge);
size_t memory_huge(void *at, size_t bytes);
/* True: this kernel populates by advice; makes huge pages on request; says which pages are huge. */
bool memory_populates(void);
bool memory_collapses(void);
bool memory_scans(void);
/* Gives pages back to the system (hole punch): the bytes then read as zero. fd < 0: by the mapping
 * only, whole pages. */
int memory_release(int fd, void *base, void *at, size_t bytes);

/* Replaces the mapping at `at` by whole pages of fd, mapped at base, or by new private ones. fd <
   0: by the mapping only. 0, or -errno with the mapping unchanged. */
int memory_map_over(int fd, void *base, uint64_t offset, void *at, size_t bytes);
int memory_private_over(void *at, size_t bytes);

/* False: the CPU cannot read the byte there. True also if the system does not say. A system call.
 * */
bool memory_readable(const void *at);

uint64_t memory_total(void);    /* RAM of this machine, at most the cgroup's limit; bytes */
uint64_t memory_limit(void);                          /* the cgroup's limit; 0: none */
/* Estimate of the bytes free now without an OOM kill. */
uint64_t memory_available(void);
size_t memory_page(void);

/* A private anonymous page that a forked child finds zeroed (MADV_WIPEONFORK); its first word is 1.
 * Where a kernel lacks that (gVisor), the owner zeroes it in the children that it hears of.
 * NULL: there is no memory. */
void *memory_fork_page(void);

#endif
