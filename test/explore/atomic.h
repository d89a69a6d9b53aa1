/* Job: the names of base/atomic.h for the explorer's build: each shared access is a call, where a
 *      scheduler may stop this rank.
 * Owns: nothing.
 * Never: included but by base/atomic.h. */
#ifndef TUTTI_EXPLORE_ATOMIC_H
#define TUTTI_EXPLORE_ATOMIC_H

#include "base/atomic.h"

enum explore_order { EXPLORE_RELAXED, EXPLORE_ORDERED };
enum explore_change { EXPLORE_ADD, EXPLORE_OR, EXPLORE_AND, EXPLORE_SET };

uint64_t explore_load(const void *word, int bytes, enum explore_order order);
void     explore_store(void *word, uint64_t value, int bytes, enum explore_order order);
uint64_t explore_change(void *word, uint64_t value, int bytes, enum explore_change how);
int      explore_swap(void *word, uint64_t *seen, uint64_t value, int bytes);
void     explore_fence(void);
void     explore_pause(void);

static inline uint32_t load_acquire32(const shared32 *w)
{
    return (uint32_t)explore_load(w, 4, EXPLORE_ORDERED);
}

static inline uint64_t load_acquire64(const shared64 *w)
{
    return explore_load(w, 8, EXPLORE_ORDERED);
}

static inline uint32_t load_relaxed32(const shared32 *w)
{
    return (uint32_t)explore_load(w, 4, EXPLORE_RELAXED);
}

static inline uint64_t load_relaxed64(const shared64 *w)
{
    return explore_load(w, 8, EXPLORE_RELAXED);
}

static inline void store_release32(shared32 *w, uint32_t v)
{
    explore_store(w, v, 4, EXPLORE_ORDERED);
}

static inline void store_release64(shared64 *w, uint64_t v)
{
    explore_store(w, v, 8, EXPLORE_ORDERED);
}

static inline void store_relaxed32(shared32 *w, uint32_t v)
{
    explore_store(w, v, 4, EXPLORE_RELAXED);
}

static inline void store_relaxed64(shared64 *w, uint64_t v)
{
    explore_store(w, v, 8, EXPLORE_RELAXED);
}

static inline uint32_t fetch_add32(shared32 *w, uint32_t v)
{
    return (uint32_t)explore_change(w, v, 4, EXPLORE_ADD);
}

static inline uint32_t fetch_sub32(shared32 *w, uint32_t v)
{
    return (uint32_t)explore_change(w, UINT64_C(0) - v, 4, EXPLORE_ADD);
}

static inline uint64_t fetch_add64(shared64 *w, uint64_t v)
{
    return explore_change(w, v, 8, EXPLORE_ADD);
}

static inline uint32_t fetch_or32(shared32 *w, uint32_t v)
{
    return (uint32_t)explore_change(w, v, 4, EXPLORE_OR);
}

static inline uint32_t fetch_and32(shared32 *w, uint32_t v)
{
    return (uint32_t)explore_change(w, v, 4, EXPLORE_AND);
}

static inline void store_fence64(shared64 *w, uint64_t v) { explore_change(w, v, 8, EXPLORE_SET); }
static inline void fence_full(void) { explore_fence(); }
static inline void fence_behind_change(void) { explore_fence(); }
static inline void cpu_pause(void) { explore_pause(); }
static inline void cpu_steps(uint32_t n) { (void)n; }
static inline size_t cpu_later(uint32_t n) { return n - n; }
static inline void cpu_own(const void *at) { (void)at; }
static inline void cpu_fetch(const void *at) { (void)at; }

static inline bool swap_if32(shared32 *w, uint32_t *seen, uint32_t v)
{
    uint64_t have = *seen;
    int done = explore_swap(w, &have, v, 4);
    *seen = (uint32_t)have;
    return done;
}

static inline bool swap_if64(shared64 *w, uint64_t *seen, uint64_t v)
{
    return explore_swap(w, seen, v, 8);
}

#endif
