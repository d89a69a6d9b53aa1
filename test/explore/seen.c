/* No state is searched twice. Two schedules that differ in the order of steps which have nothing to
 * do with each other lead to the same state; what comes after it is the same, and is searched once.
 *
 * What a state is. All that an actor does follows from what it has learned: so each actor carries
 * one number of all it has learned, and in which order (`heard`). A load learns which store it
 * read, not only the value: the number of the storing actor when it stored. So whatever was written
 * plainly before that store, and is read after this load, is the same as well; a lock is such a
 * word, too. The state is these numbers, by which store each word has what it has, the clock, the
 * stores not out yet, who sleeps, in which order, who is stopped or dead, and the scenario's own
 * words. Nothing is compared but a hash of 60 bits: among ten million states two are taken for one
 * with a chance of one in twenty thousand.
 *
 * A state met again with fewer preemptions left than before, or as many, leads to nothing new: the
 * run is cut there. Not with MEMORY_WEAK, where what a load may give depends on more.
 * TUTTI_EXPLORE_ALL switches all this off, and `explore same NAME` compares what comes of both.
 * (What an actor of one rank allocates lies where it lies whatever the others do: pages.c. Else
 * equal states would not look equal.) */
#include "explore/engine.h"

#include <stdlib.h>
#include <sys/mman.h>

enum { SPENT_BITS = 4, ROOM_FIRST = 1 << 16 };
#define ROOM_MOST ((size_t)1 << 26)

static uint64_t *state;
static size_t room, states;
static uint64_t memory;
static bool off;

uint64_t seen_mix(uint64_t a, uint64_t b)
{
    uint64_t z = (a ^ (b + UINT64_C(0x9e3779b97f4a7c15) + (a << 6) + (a >> 2)))
        * UINT64_C(0xff51afd7ed558ccd);
    return z ^ z >> 32;
}

void seen_heard(struct actor *a, uint64_t what) { a->heard = seen_mix(a->heard, what); }
void seen_memory(uint64_t was, uint64_t is) { memory ^= was ^ is; }
uint64_t seen_states(void) { return states; }
uint64_t seen_words(void) { return memory; }

void seen_begin(void)
{
    memory = 0;
    for (int i = 0; i < engine.actors; i++)
        engine.actor[i].heard = (uint64_t)i + 1;
}

/* ---- the set ---- */

static uint64_t *take_room(size_t words)
{
    void *at = mmap(NULL, words * sizeof(uint64_t), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        abort();
    return at;
}

static uint64_t *place_of(uint64_t key)
{
    size_t i = (size_t)(key >> SPENT_BITS) & (room - 1);
    while (state[i] && state[i] >> SPENT_BITS != key >> SPENT_BITS)
        i = (i + 1) & (room - 1);
    return &state[i];
}

static void set_room(size_t words)
{
    uint64_t *old = state;
    size_t had = room;
    state = take_room(words);
    room = words;
    for (size_t i = 0; i < had; i++)
        if (old[i])
            *place_of(old[i]) = old[i];
    if (old)
        munmap(old, had * sizeof *old);
}

void seen_forget(void)
{
    if (state)
        munmap(state, room * sizeof *state);
    state = NULL;
    room = states = 0;
    set_room(ROOM_FIRST);
}

/* ---- the state ---- */

static uint64_t key_of(bool ready, bool yields)
{
    uint64_t h = seen_mix(SEEDED(words_left_out) ? engine.steps / 8 : memory, engine.now_ns);
    h = seen_mix(h,
                 (uint64_t)engine.now_on << 48 | (uint64_t)engine.times << 32
                     | (uint64_t)engine.events << 24 | (uint64_t)engine.deaths << 16
                     | (uint64_t)engine.stops << 8 | (uint64_t)ready << 1 | yields);
    for (int i = 0; i < engine.actors; i++) {
        const struct actor *a = &engine.actor[i];
        unsigned before = 0;
        for (int k = 0; k < engine.actors; k++)
            before += a->state == ACTOR_ASLEEP && engine.actor[k].state == ACTOR_ASLEEP
                && engine.actor[k].ticket < a->ticket;
        bool late = a->state == ACTOR_READY && a->slept;
        if (SEEDED(words_left_out))
            continue;
        h = seen_mix(h, a->heard);
        h = seen_mix(h,
                     (uint64_t)a->state << 32 | (uint64_t)a->stopped << 24 | (uint64_t)late << 25
                         | (uint64_t)before << 16 | (uint64_t)a->stores);
        h = a->state == ACTOR_ASLEEP || a->state == ACTOR_LOCKED ? seen_mix(h, a->end) : h;
    }
    for (size_t i = 0; i < sizeof explore_shared / sizeof *explore_shared; i++)
        if (explore_shared[i])
            h = seen_mix(h, explore_shared[i] + (uint64_t)i);
    return h;
}

bool seen_off(void) { return off; }
void seen_switch(bool now) { off = now; }

bool seen_before(bool ready, bool yields)
{
    if (seen_off() || engine.scenario->memory == MEMORY_WEAK)
        return false;
    unsigned spent = (unsigned)engine.preempted;
    uint64_t key = key_of(ready, yields) << SPENT_BITS | (spent < 15 ? spent : 15);
    key |= key >> SPENT_BITS ? 0 : UINT64_C(1) << SPENT_BITS;
    uint64_t *at = place_of(key);
    if (*at && (*at & 15) <= (key & 15))
        return true;
    if (*at) {
        *at = key;
        return false;
    }
    if (states < ROOM_MOST / 4 * 3) {
        *at = key;
        if (++states > room / 4 * 3 && room < ROOM_MOST)
            set_room(room * 2);
    }
    return false;
}
