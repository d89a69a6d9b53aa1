/* Job: run a body of code on all ranks of a small job, as processes or as threads, and judge the
 *      result.
 * Owns: the job and the memory that its ranks share with the test; everything is reaped or joined
 *       when ranks_run returns.
 * Never: waits without a bound. A rank reports a failure by CHECK, which prints the place and ends
 *        the rank. */
#ifndef TUTTI_TEST_SUPPORT_RANKS_H
#define TUTTI_TEST_SUPPORT_RANKS_H

#include "base/atomic.h"

#include <stddef.h>
#include <stdio.h>
#include <tutti.h>

enum { RANKS_LIFE_MS = 100000, RANKS_STEPS = 64 };

/* In a rank: ends it with 1 and prints the place. The other ranks then see that it has left. */
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

/* Processes, by tutti_spawn. 0: all ended with 0, except those in `doomed` (a bit each), which
 * SIGKILL ended. Else it prints which ranks did not. */
int ranks_run(int size, ranks_body *body, unsigned doomed);
/* Threads of this process, each with a world of its own. */
int ranks_run_threads(int size, ranks_body *body);
/* Threads under ThreadSanitizer, which can check those, else processes. For bodies in which no rank
 * is killed. */
int ranks_run_either(int size, ranks_body *body);

void ranks_say(int word, uint32_t value); /* raises a word of the page, wakes its sleepers */
int  ranks_await(int word, uint32_t value);  /* waits until word >= value: 0; -1: too late */
uint32_t ranks_count(int word);                      /* adds one and wakes; the former count */
/* waits until that rank sleeps for a key: 0, or -1 */
int  ranks_sleeps_for_key(tutti_comm *world, int rank);
void ranks_die(void);                                /* sends SIGKILL to itself */
int  ranks_many(int normal, int sanitized);
/* True: tutti_explain contains these words. Else prints it. */
bool ranks_explain(tutti_comm *comm, const char *what);
const char *ranks_job(void);                         /* a job's name that no other test has */

#endif
