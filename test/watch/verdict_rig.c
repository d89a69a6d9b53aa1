/* A mark is held by a number that no thread has: nobody looks whether there is such a thread. */
#include "verdict_rig.h"
#include "watch/journal.h"


#include <linux/futex.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct rig rig;

static uint64_t rig_now(void *arg)
{
    (void)arg;
    return rig.now;
}

static int rig_sleep(void *arg, const struct futex_word *words, int n, uint64_t ns)
{
    (void)arg;
    memcpy(rig.slept, words, (size_t)n * sizeof *words);
    rig.slept_words = n;
    rig.now += ns;
    if (++rig.sleeps > 200)
        abort();                                     /* a wait that nothing ends */
    if (n > 1 && rig.sleep_result)
        return rig.sleep_result;
    if (rig.during)
        rig.during(&rig);
    return 0;
}

static int rig_wake(void *arg, shared32 *word, int n)
{
    (void)arg;
    (void)n;
    if (rig.wakes < 64)
        rig.woken[rig.wakes++] = word;
    return 0;
}

static void rig_yield(void *arg) { (void)arg; }

void *zeroed(size_t n, size_t bytes)
{
    void *at = NULL;
    if (posix_memalign(&at, 128, n * bytes))
        abort();
    memset(at, 0, n * bytes);
    return at;
}

shared32 *mark(uint32_t p) { return process_mark_word(&rig.seats[p].mark); }

void rig_open(uint32_t size, const struct wait_ways *ways)
{
    memset(&rig, 0, sizeof rig);
    rig.size = size;
    rig.header.size = RANKS_MAX;                     /* too many for a descriptor of each */
    rig.arena.header = &rig.header;
    rig.slot = zeroed(1, sizeof *rig.slot + MOST * sizeof(uint32_t));
    rig.members = zeroed(size, sizeof *rig.members);
    rig.seats = zeroed(size, sizeof *rig.seats);
    rig.watch = zeroed(size, sizeof *rig.watch);
    rig.ways = ways ? *ways : (struct wait_ways){ rig_now, rig_sleep, rig_wake, rig_yield, NULL };
    for (uint32_t p = 0; p < size; p++) {
        struct watch *w = &rig.watch[p];
        /* held: nobody looks whether there is such a thread */
        store_release32(mark(p), (1000 + p) | FUTEX_WAITERS);
        store_release32(&rig.seats[p].state, SEAT_JOINED);
        process_self(&rig.seats[p].id);
        *w = (struct watch){
            .slot = rig.slot, .ways = &rig.ways, .arena = &rig.arena, .timeout_ns = -1,
            .warn_ns = -1, .name = "rig"
        };
        watch_begin(w, rig.members, p, size);
        w->seats = zeroed(size, sizeof *w->seats);
        w->seen = zeroed(size, sizeof *w->seen);
        w->gone = zeroed(size, 1);
        w->lost = zeroed(size, 1);
        for (uint32_t q = 0; q < size; q++)
            w->seats[q] = &rig.seats[q];
    }
}

void rig_close(void)
{
    for (uint32_t p = 0; p < rig.size; p++) {
        free(rig.watch[p].seats);
        free(rig.watch[p].seen);
        free(rig.watch[p].gone);
        free(rig.watch[p].lost);
    }
    free(rig.watch);
    free(rig.seats);
    free((void *)rig.members);
    free((void *)rig.slot);
}

int rig_setup(void **state)
{
    (void)state;
    rig_open(N, NULL);
    return 0;
}

int rig_teardown(void **state)
{
    (void)state;
    rig_close();
    return 0;
}

struct claim claim_of(uint64_t seq)
{
    return (struct claim){ .seq = seq, .descriptor = STAMP_A, .committer = -1 };
}

void arrive_as(uint32_t p, uint64_t seq, uint64_t descriptor)
{
    struct arrival *a = &rig.members[p].arrival[seq & 1];
    store_relaxed64(&a->descriptor, descriptor);
    store_release64(&a->seq, seq);
}

void arrive(uint32_t p, uint64_t seq) { arrive_as(p, seq, STAMP_A); }
void die(uint32_t p) { store_release32(mark(p), FUTEX_OWNER_DIED | FUTEX_WAITERS); }

void leave(uint32_t p)
{
    store_release32(&rig.seats[p].state, SEAT_LEFT);
    store_release32(mark(p), 0);
}

void say(uint64_t v) { store_release64(&rig.slot->verdict, v); }
uint64_t said(void) { return load_acquire64(&rig.slot->verdict); }

int look(uint32_t p, uint64_t seq, bool late)
{
    struct claim c = claim_of(seq);
    struct wait wait = {
        &rig.members[p].arrival[seq & 1].seq, UINT64_MAX, -1, false, false, false
    };
    for (uint32_t q = 0; q < rig.size; q++)
        if (load_acquire64(&rig.members[q].arrival[seq & 1].seq) < seq) {
            wait = wait_for(&rig.members[q].arrival[seq & 1].seq, seq, q);
            break;
        }
    return verdict_look(&rig.watch[p], &c, &wait, late);
}

int complete(uint32_t p, uint64_t seq)
{
    struct claim c = claim_of(seq);
    return verdict_complete(&rig.watch[p], &c);
}

void expect_verdict(uint64_t seq, enum why why, uint32_t who)
{
    assert_int_equal(verdict_state(said()), VERDICT_CONFIRMED);
    assert_int_equal((uint32_t)said() & VERDICT_OP_MASK, seq & VERDICT_OP_MASK);
    assert_int_equal(verdict_why(said()), why);
    assert_int_equal(verdict_who(said()), who);
}

static int barrier_advance(struct op *op)
{
    if (!op->site) {                            /* no site here: it says whether we have arrived */
        op->site = 1;
        journal_arrive(op->watch, &op->claim);
    }
    return watch_all_arrived(op);
}

struct op op_of(uint32_t p, uint64_t seq)
{
    return (struct op){
        .watch = &rig.watch[p], .claim = claim_of(seq), .advance = barrier_advance, .timeout_ns = -1
    };
}
