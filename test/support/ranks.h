/* Job: a body of code run by all ranks of a small job, as processes or as threads, and the
 *      verdict over it.
 * Owns: the job and the memory its ranks share with the test; everything is reaped or joined when
 *       ranks_run returns.
 * Never: waits without a bound. A rank says what it found by CHECK, which prints the place and ends
 *        the rank. */
#ifndef TUTTI_TEST_SUPPORT_RANKS_H
#define TUTTI_TEST_SUPPORT_RANKS_H

#include "base/atomic.h"

#include <stddef.h>
#include <stdio.h>
#include <tutti.h>

enum { RANKS_LIFE_MS = 100000, RANKS_STEPS = 64 };

/* In a rank: ends it with 1 and says where. The others then meet its leaving. */
#define CHECK(condition) \
    do { \
        if (!(condition)) \
            return ranks_wrong(__FILE__, __LINE__, #condition, world); \
    } while (0)
/* As CHECK, and shows both numbers. */
#define CHECK_IS(got, expected) \
    do { \
        long long got_ = (long long)(got), expected_ = (long long)(expected); \
        if (got_ != expected_) \
            return ranks_differ(__FILE__, __LINE__, #got, got_, expected_, world); \
    } while (0)

int ranks_wrong(const char *file, int line, const char *what, tutti_comm *world);
int ranks_differ(const char *file, int line, const char *what, long long got, long long expected,
                 tutti_comm *world);

/* Shared by the ranks and the test, zero when ranks_run begins. */
struct ranks_page {
    shared32 word[RANKS_STEPS];
    shared64 number[RANKS_STEPS];
    char bytes[65536];
};
extern struct ranks_page *page;

typedef int ranks_body(tutti_comm *world, int rank);

/* Processes, by tutti_spawn. 0: all ended with 0, but for those in `doomed` (a bit each), which
 * were ended by SIGKILL. Else it says who not. */
int ranks_run(int size, ranks_body *body, unsigned doomed);
/* Threads of this process, each with a world of its own. */
int ranks_run_threads(int size, ranks_body *body);
/* Whichever the build can check: threads under ThreadSanitizer, processes otherwise. For bodies in
 * which nobody is killed. */
int ranks_run_either(int size, ranks_body *body);

void ranks_say(int word, uint32_t value); /* raises a word of the page and wakes who waits for it */
int  ranks_await(int word, uint32_t value);  /* until it has come to that: 0; -1 patience ran out */
uint32_t ranks_count(int word);                      /* adds one, wakes; the count before */
/* until that rank sleeps for a key: 0, or -1 */
int  ranks_sleeps_for_key(tutti_comm *world, int rank);
void ranks_die(void);                                /* SIGKILL to oneself */
int  ranks_many(int normal, int sanitized);
/* tutti_explain has these words; otherwise it is printed. */
bool ranks_explain(tutti_comm *comm, const char *what);
const char *ranks_job(void);                         /* a job's name that no other test has */

#endif
