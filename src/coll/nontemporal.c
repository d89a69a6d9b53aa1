/* fold.ticks is the time of all copies and folds of an operation, not only of those that write
 * results. The others take the same time with both ways, so they do not change which way is
 * faster. */
#include "coll/nontemporal.h"

#include "base/copy.h"

void stream_choose(struct coll *c, size_t bytes, bool in_place)
{
    c->stream.tuner = !COPY_STREAMS || in_place || c->gpu.mover
        ? NULL
        : tuner_of(c->comm->coll.streams, bytes, STREAM_LEAST);
    c->stream.on = c->stream.tuner && tuner_choose(c->stream.tuner, 1);
    c->stream.bytes = bytes;
}

void stream_learn(struct coll *c)
{
    if (c->stream.tuner)
        tuner_learn(c->stream.tuner, c->stream.on, c->fold.ticks, c->stream.bytes);
    c->stream.tuner = NULL;
}
