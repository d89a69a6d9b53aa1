/* Job: memory that would spare time has a price, its pages: has it been earned yet?
 * Owns: nothing: who may go on without such memory has one of these.
 * Never: touches a page; refuses memory that is needed.
 *
 * A page that is touched for the first time costs 2.2 us on a Zen 4 under KVM, and many times that
 * where a hypervisor fetches each of them from somewhere else. A rank has to live with less at
 * first, and buys the rest with what it would have saved so far with all of it: so a program that
 * stops early has not paid for what it did not use, and one that goes on has lost twice the price
 * at most. Prices are what was paid last; one that has more than doubled was held up by something
 * else, and is believed to that extent. */
#ifndef TUTTI_BASE_FRESH_H
#define TUTTI_BASE_FRESH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All in ticks; of one page, what it took last. All zeros: nothing is known, and nothing may
 * be bought. */
struct fresh { uint64_t page, earned, spent; };

static inline void fresh_earn(struct fresh *f, uint64_t ticks) { f->earned += ticks; }

static inline bool fresh_may(const struct fresh *f, size_t pages)
{
    return f->page && f->earned >= f->spent + pages * f->page;
}

/* So many pages came in so many ticks. Pages that were there already make it cheap, rightly. */
static inline void fresh_learn(struct fresh *f, uint64_t ticks, size_t pages)
{
    uint64_t now = pages ? ticks / pages + 1 : f->page, most = f->page ? 2 * f->page : now;
    f->page = now < most ? now : most;
}

/* What was learnt last was bought. */
static inline void fresh_pay(struct fresh *f, size_t pages) { f->spent += f->page * pages; }

/* They cannot be had now: to be earned all over again. */
static inline void fresh_refused(struct fresh *f, size_t pages)
{
    f->spent = f->earned + pages * f->page;
}

#endif
