/* Job: a world of the verdict's that stands in plain memory: a slot, its members and their marks,
 * and a wait whose clock and sleep the test plays.
 * Owns: rig, of one test at a time.
 * Never: a process, luck: what a dead or slow rank would have left is written by the test. */
#ifndef TUTTI_TEST_WATCH_VERDICT_RIG_H
#define TUTTI_TEST_WATCH_VERDICT_RIG_H

#include "watch/verdict.h"

#include "sync/wait.h"

#include <stdbool.h>

enum { N = 3, MOST = 130, STAMP_A = 1, STAMP_B = 2 };

extern struct rig {
    struct slot *slot;
    struct member *members;
    struct seat *seats;
    struct watch *watch;              /* [size] as each rank sees it */
    uint32_t size;
    struct arena arena;
    struct arena_header header;
    struct wait_ways ways;
    uint64_t now;
    /* what the injected sleep saw and does */
    struct futex_word slept[FUTEX_WORDS];
    int slept_words, sleeps;
    void (*during)(struct rig *rig);
    shared32 *woken[64];
    int wakes, wakes_when_looked;
    int sleep_result;
} rig;

/* ways NULL: those of the rig. */
void rig_open(uint32_t size, const struct wait_ways *ways);
void rig_close(void);
/* For cmocka_unit_test_setup_teardown: N ranks. */
int rig_setup(void **state);
int rig_teardown(void **state);
#define CASE(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)

void *zeroed(size_t n, size_t bytes);
shared32 *mark(uint32_t p);
struct claim claim_of(uint64_t seq);
/* A barrier of rank p, for watch_drive and watch_poll. */
struct op op_of(uint32_t p, uint64_t seq);

/* What rank p would have written. */
void arrive_as(uint32_t p, uint64_t seq, uint64_t descriptor);
void arrive(uint32_t p, uint64_t seq);
void die(uint32_t p);
void leave(uint32_t p);

/* The word of the verdict. */
void say(uint64_t v);
uint64_t said(void);

/* p looks, waiting for the first who is not there. */
int look(uint32_t p, uint64_t seq, bool late);
int complete(uint32_t p, uint64_t seq);
void expect_verdict(uint64_t seq, enum why why, uint32_t who);

#endif
