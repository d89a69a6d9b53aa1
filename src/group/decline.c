/* One word holds a run of numbers that ended alike, so a rank that asks for the same list again and
 * again uses one word.
 * Cost: a scan of DECLINES words. */
#include "group/decline.h"

#include <errno.h>

enum { NUMBER_BITS = 25, ERROR_BITS = 13, HELD_BITS = 1, ERRORS = (1 << ERROR_BITS) - 1 };

#define NUMBERS ((UINT64_C(1) << NUMBER_BITS) - 1)

static uint64_t range_make(uint64_t first, uint64_t last, int error, bool held)
{
    return first << (NUMBER_BITS + ERROR_BITS + HELD_BITS) | last << (ERROR_BITS + HELD_BITS)
        | (uint64_t)(-error & ERRORS) << HELD_BITS | held;
}

static uint64_t range_first(uint64_t range)
{
    return range >> (NUMBER_BITS + ERROR_BITS + HELD_BITS) & NUMBERS;
}

static uint64_t range_last(uint64_t range) { return range >> (ERROR_BITS + HELD_BITS) & NUMBERS; }
static int range_error(uint64_t range) { return -(int)(range >> HELD_BITS & ERRORS); }

/* Has a later creation of that list been made? */
static bool range_over(const struct tutti_comm *parent, uint64_t list, uint64_t range)
{
    for (size_t i = 0; i < parent->creations_used; i++)
        if (parent->creations[i].list == list)
            return parent->creations[i].made > range_last(range);
    return false;
}

/* The place whose run this number continues, or a free place. NULL: there is none. */
static struct decline *decline_place(struct tutti_comm *parent, uint64_t list, uint64_t nth,
                                     int error, bool held)
{
    struct decline *all = parent->watch.mine->declines, *room = NULL;
    for (int i = 0; i < DECLINES; i++) {
        /* relaxed: our own words */
        uint64_t range = load_relaxed64(&all[i].range), its = load_relaxed64(&all[i].list);
        if (range && its == list && range_last(range) + 1 == nth
            && range == range_make(range_first(range), nth - 1, error, held))
            return &all[i];
        if (!room && (!range || range_over(parent, its, range)))
            room = &all[i];
    }
    if (room)
        store_release64(&room->range, 0);                            /* E76 release */
    return room;
}

bool decline_say(struct tutti_comm *parent, uint64_t list, uint64_t nth, int error, bool held)
{
    struct decline *d = nth <= NUMBERS ? decline_place(parent, list, nth, error, held) : NULL;
    if (!d)
        return false;
    uint64_t range = load_relaxed64(&d->range);                      /* relaxed: our own word */
    store_release64(&d->list, list);                                 /* E76 release */
    /* E76 release */
    store_release64(&d->range, range_make(range ? range_first(range) : nth, nth, error, held));
    return true;
}

int decline_of(const struct watch *parent, uint32_t p, uint64_t list, uint64_t nth, bool *held)
{
    const struct decline *all = parent->members[p].declines;
    for (int i = 0; i < DECLINES; i++) {
        if (load_acquire64(&all[i].list) != list)                    /* E76 acquire */
            continue;
        uint64_t range = load_acquire64(&all[i].range);              /* E76 acquire */
        /* E76 acquire */
        if (!range || nth < range_first(range) || nth > range_last(range)
            || load_acquire64(&all[i].list) != list)
            continue;
        *held = range & 1;
        /* no rank says so: the word was written over */
        return range_error(range) ? range_error(range) : -EIO;
    }
    return 0;
}

uint64_t decline_last(const struct watch *parent, uint64_t list)
{
    uint64_t last = 0;
    for (int i = 0; i < DECLINES; i++) {
        const struct decline *d = &parent->mine->declines[i];
        uint64_t range = load_relaxed64(&d->range);                  /* relaxed: our own word */
        /* relaxed: our own word */
        if (range && load_relaxed64(&d->list) == list && range_last(range) > last)
            last = range_last(range);
    }
    return last;
}
