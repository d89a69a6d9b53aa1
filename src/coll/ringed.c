/* Two stamps an operation that has the choice. Waiting for a late peer counts, too; of late the least of either way is what decides. */
#include "coll/ringed.h"

#include "base/clock.h"

bool ringed_choose(struct coll *c, struct tuner *classes, size_t bytes, size_t least)
{
    c->ringed.ways = classes ? tuner_of(classes, bytes, least) : NULL;
    c->ringed.bytes = bytes;
    c->ringed.yes = c->ringed.ways && tuner_choose(c->ringed.ways, 1);
    c->ringed.began = c->ringed.ways ? clock_tick() : 0;
    return c->ringed.yes;
}

void ringed_learn(struct coll *c)
{
    if (c->ringed.ways)
        tuner_learn(c->ringed.ways, c->ringed.yes, clock_tick() - c->ringed.began, c->ringed.bytes);
    c->ringed.ways = NULL;
}
