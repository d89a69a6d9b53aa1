/* Letters: one there and one back; small ones, one that its receiver may copy out while it is
 * copied in, in two chunks, and one that its receiver has to grant (of more than 128 bytes here, in
 * pieces of 64: p2p.h). */
#include "explore/scenarios.h"

#include <errno.h>
#include <string.h>

enum { WORDS = 20, OVERLAPPED = 15, TAG = 5 };

static uint64_t word_of(int rank, int i) { return (uint64_t)(rank + 1) * 1000 + (uint64_t)i; }

static int send_to(int rank, int which, int to, size_t n, const tutti_call *call, tutti_comm *world)
{
    uint64_t x[WORDS], began = explore_now();
    for (int i = 0; i < WORDS; i++)
        x[i] = word_of(rank, i);
    return explore_came(rank, which,
                        tutti_send_at("explore", x, n, TUTTI_U64, to, TAG, world, call), began);
}

static int recv_from(int rank, int which, int from, size_t n, const tutti_call *call,
                     tutti_comm *world)
{
    uint64_t x[WORDS] = { 0 }, began = explore_now();
    tutti_message got = { -1, -1, 0 };
    int r = tutti_recv_at("explore", x, n, TUTTI_U64, from, TAG, &got, world, call);
    if (r == 0 && (got.from != from || got.tag != TAG || got.count != n))
        explore_wrong("rank %d got a letter of rank %d, tag %d, %d elements", rank, got.from,
                      got.tag, (int)got.count);
    for (size_t i = 0; i < n && r == 0; i++)
        if (x[i] != word_of(from, (int)i))
            explore_wrong("torn letter: rank %d, element %d: %llu", rank, (int)i,
                          (unsigned long long)x[i]);
    return explore_came(rank, which, r, began);
}

/* With a deadline the same call is made again without one: then it comes. */
static int until_it_comes(int rank, int which, int peer, bool sends, size_t n, tutti_comm *world)
{
    tutti_call call = { .timeout_ms = explore_count() };
    int r = sends ? send_to(rank, which, peer, n, &call, world)
                  : recv_from(rank, which, peer, n, &call, world);
    if (r == -ETIMEDOUT)
        r = sends ? send_to(rank, which + 2, peer, n, NULL, world)
                  : recv_from(rank, which + 2, peer, n, NULL, world);
    return r;
}

static void there_and_back(int rank, tutti_comm *world, size_t n)
{
    int r = until_it_comes(rank, 0, 1 - rank, rank == 0, n, world);
    if (r == 0)
        r = until_it_comes(rank, 1, 1 - rank, rank == 1, n, world);
    explore_whole(rank, world, r < 0);
}

void letters(int rank, tutti_comm *world) { there_and_back(rank, world, 1); }

/* One way: two stages of one page each would be as much again. */
void offers(int rank, tutti_comm *world)
{
    int r = until_it_comes(rank, 0, 1 - rank, rank == 0, WORDS, world);
    explore_whole(rank, world, r < 0);
}

/* One way: a store takes pages enough. Behind a small one, whose sender makes the channel. */
void overlap(int rank, tutti_comm *world)
{
    int r = until_it_comes(rank, 0, 1 - rank, rank == 0, 1, world);
    if (r == 0)
        r = until_it_comes(rank, 1, 1 - rank, rank == 0, OVERLAPPED, world);
    explore_whole(rank, world, r < 0);
}

/* Three messages one way: the second and third cannot go by the block that the first has handed
 * over. Their previews lie in one place, with one tag: only the number tells them apart. Then one
 * back in that block. */
void hands(int rank, tutti_comm *world)
{
    int r = rank == 0 ? send_to(0, 0, 1, 1, NULL, world) : recv_from(1, 0, 0, 1, NULL, world);
    for (int k = 1; k < 5 && r == 0; k++) {
        uint64_t x[OVERLAPPED] = { 0 }, began = explore_now();
        bool sends = rank == (k < 4);
        for (int i = 0; i < OVERLAPPED && sends; i++)
            x[i] = word_of(k, i);
        r = sends ? tutti_send_at("explore", x, OVERLAPPED, TUTTI_U64, 1 - rank, 0, world, NULL)
                  : tutti_recv_at("explore", x, OVERLAPPED, TUTTI_U64, 1 - rank, 0, NULL, world,
                                  NULL);
        for (int i = 0; i < OVERLAPPED && r == 0; i++)
            if (x[i] != word_of(k, i))
                explore_wrong("torn message %d: rank %d, element %d: %llu", k, rank, i,
                              (unsigned long long)x[i]);
        r = explore_came(rank, k, r, began);
    }
    explore_whole(rank, world, r < 0);
}

/* Both have done it, or neither: an offer that was withdrawn has not been taken. */
static void check_offers_late(void)
{
    check_alone();
    for (int k = 0; k < 4; k += 2)
        for (int p = 0; p < 2; p++)
            if (note[p].there[k] && note[p].result[k] == 0
                && !(note[1 - p].there[k] && note[1 - p].result[k] == 0)
                && !(note[1 - p].there[2 - k] && note[1 - p].result[2 - k] == 0))
                explore_wrong("rank %d is done, and rank %d is not", p, 1 - p);
}

void check_letters_death(void)
{
    for (int p = 0; p < EXPLORE_RANKS; p++)
        for (int k = 0; k < NOTES; k++)
            if (note[p].there[k] && note[p].result[k] != 0 && !explore_killed[p]
                && (note[p].result[k] != -EOWNERDEAD || !explore_any_killed()))
                explore_wrong("rank %d: call %d gave %d", p, k, note[p].result[k]);
}

/* Nobody sends: rank 0 does nothing but abort. */
static void waits_letter(int rank, tutti_comm *world)
{
    if (rank == 1)
        recv_from(rank, 0, 0, 1, NULL, world);
}

const struct scenario scenario_letter_canceled = {
    .name = "letter_canceled", .ranks = 2, .helpers = 1, .body = waits_letter, .helper = aborts,
    .check = check_all_canceled, .preemptions = 3, .own_ends = true, .memory = MEMORY_TSO
};

#define EVENTS (KILL | STOP | SPURIOUS | TIMER)
#define EACH(named, does, checks_late) \
    const struct scenario scenario_##named = { \
        .name = #named, .ranks = 2, .body = does, .check = check_good, .preemptions = 2, \
        .memory = MEMORY_TSO, .after = true \
    }; \
    const struct scenario scenario_##named##_events = { \
        .name = #named "_events", .ranks = 2, .body = does, .check = check_letters_death, \
        .preemptions = 1, .preemptions_event = 1, \
        .events = EVENTS, \
        .own_ends = true, .after = true \
    }; \
    const struct scenario scenario_##named##_deadline = { \
        .name = #named "_deadline", .ranks = 2, .body = does, .count = 1, .check = checks_late, \
        .preemptions = 1, .preemptions_event = 1, .events = JUMP | TIMER, .own_ends = true \
    }; \
    const struct scenario scenario_##named##_abort = { \
        .name = #named "_abort", .ranks = 2, .helpers = 1, .body = does, .helper = aborts, \
        .check = check_canceled, .preemptions = 2, \
        .own_ends = true, \
        .patience = PATIENCE_FIRST \
    };

EACH(letter, letters, check_alone)
EACH(overlap, overlap, check_alone)
EACH(offer, offers, check_offers_late)

const struct scenario scenario_hand = {
    .name = "hand", .ranks = 2, .body = hands, .check = check_good, .preemptions = 3,
    .memory = MEMORY_TSO
};
const struct scenario scenario_hand_events = {
    .name = "hand_events", .ranks = 2, .body = hands, .check = check_letters_death,
    .preemptions = 1, .preemptions_event = 1, .events = EVENTS, .own_ends = true
};
