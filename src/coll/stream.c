/* fold_ticks is the time of all copies and folds of an operation, whichever of them write results: where the others are as long each time, they do
 * not change which is less. */
#include "coll/stream.h"

#include "base/copy.h"

void stream_choose(struct coll *c, size_t bytes, bool in_place)
{
    c->stream = !COPY_STREAMS || in_place || c->mover ? NULL : tuner_of(c->comm->coll.streams, bytes, STREAM_LEAST);
    c->streams = c->stream && tuner_choose(c->stream, 1);
    c->stream_bytes = bytes;
}

void stream_learn(struct coll *c)
{
    if (c->stream)
        tuner_learn(c->stream, c->streams, c->fold_ticks, c->stream_bytes);
    c->stream = NULL;
}
