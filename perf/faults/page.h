/* Job: what the driver and the ranks of one cell (a fault, done to a system) tell each other: a
 *      page they share, with a slot per rank.
 * Owns: the page. Each slot is written by its rank alone, the words at the top by the driver.
 * Never: knows a system. Plain C that C++ can read, and atomics of the compilers' own: MPI's and
 *        Gloo's compilers take it as it is. */
#ifndef FAULTS_PAGE_H
#define FAULTS_PAGE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum fault {
    KILL_BARRIER, KILL_REDUCE, LEAVE, DEADLINE, STOP, CYCLE, CALLS,
    COUNTS, TYPES, ROOT, WIPE, FAULTS
};
enum ending { UNDER_WAY, RETURNED, FAILED };
enum { FAULT_RANKS_MAX = 16, BROKE_EXIT = 255 };

/* What one rank has come to. */
/* the error's type, and all that the system says of it */
struct failure { char kind[40], text[2000]; };
struct slot {
    uint32_t pid;        /* the rank has warmed up; release */
    uint32_t inside;     /* +1 before each call under test, +1 after it: odd is inside; release */
    uint32_t ending;     /* an ending: all below is there; release */
    /* the signal this process brought on itself, or BROKE_EXIT: the system ended it */
    uint32_t broke;
    uint32_t wrong, of;  /* elements of the result that are not what they must be */
    int64_t began, ended;                        /* CLOCK_MONOTONIC, ns; of the last call */
    struct failure failure;
};

struct page {
    uint32_t fault, ranks;
    /* the deadline to ask the system for, where it can be asked; 0: its default */
    uint32_t timeout_ms;
    uint32_t fatal;       /* MPI: leave the default error handler */
    uint32_t grace_ms;    /* so long a rank with an error waits for the others, before it exits */
    uint32_t over;        /* all is known: go; release */
    struct slot slot[FAULT_RANKS_MAX];
};

/* The rank at fault. */
static inline int page_culprit(const struct page *p) { return (int)p->ranks - 1; }

static inline uint32_t page_load(const uint32_t *word)
{
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static inline void page_store(uint32_t *word, uint32_t value)
{
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
}

/* Maps the page in the file; makes it first. NULL: errno. */
struct page *page_map(const char *path, int create);
int64_t page_now(void);
void page_nap(double ms);

#ifdef __cplusplus
}
#endif
#endif
