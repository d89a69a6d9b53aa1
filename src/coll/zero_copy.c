/* Two reads of the clock for an operation that has the choice. A wait for a late peer counts, too;
 * but the tuner compares the least of the recent times of each way. */
#include "coll/zero_copy.h"

#include "base/clock.h"

bool zero_copy_choose(struct coll *c, struct tuner *classes, size_t bytes, size_t least)
{
    c->zero_copy.ways = classes ? tuner_of(classes, bytes, least) : NULL;
    c->zero_copy.bytes = bytes;
    c->zero_copy.yes = c->zero_copy.ways && tuner_choose(c->zero_copy.ways, 1);
    c->zero_copy.began = c->zero_copy.ways ? clock_tick() : 0;
    return c->zero_copy.yes;
}

void zero_copy_learn(struct coll *c)
{
    if (c->zero_copy.ways)
        tuner_learn(c->zero_copy.ways, c->zero_copy.yes, clock_tick() - c->zero_copy.began,
                    c->zero_copy.bytes);
    c->zero_copy.ways = NULL;
}
