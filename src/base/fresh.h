/* Job: decide when memory that saves time may be bought: its pages have a price, which must be
 *      earned first.
 * Owns: nothing: each user that can do without the memory has one of these.
 * Never: touches a page; refuses memory that is needed.
 *
 * A page that is touched for the first time costs 2.2 us on a Zen 4 under KVM, and many times that
 * if a hypervisor must fetch it. A rank starts without such memory, and buys it with the time that
 * it would have saved so far with all of it. So a program that stops early has not paid for memory
 * that it did not use, and a longer one loses twice the price at most. A price is what the last
 * pages cost, but at most twice the price before: a larger cost has another cause. */
#ifndef TUTTI_BASE_FRESH_H
#define TUTTI_BASE_FRESH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All in ticks; page: the last price of one page. All zeros: nothing is known, and nothing may be
 * bought. */
struct fresh { uint64_t page, earned, spent; };

static inline void fresh_earn(struct fresh *f, uint64_t ticks) { f->earned += ticks; }

static inline bool fresh_may(const struct fresh *f, size_t pages)
{
    return f->page && f->earned >= f->spent + pages * f->page;
}

/* `pages` pages took `ticks` ticks. Pages that were there already make the price low, which is
   right. */
static inline void fresh_learn(struct fresh *f, uint64_t ticks, size_t pages)
{
    uint64_t now = pages ? ticks / pages + 1 : f->page, most = f->page ? 2 * f->page : now;
    f->page = now < most ? now : most;
}

/* Pays for the pages learnt last. */
static inline void fresh_pay(struct fresh *f, size_t pages) { f->spent += f->page * pages; }

/* The pages cannot be had now: they must be earned again. */
static inline void fresh_refused(struct fresh *f, size_t pages)
{
    f->spent = f->earned + pages * f->page;
}

#endif
