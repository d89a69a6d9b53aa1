/* fold_ticks is the time of all copies and folds of an operation, whichever of them write results: where the others are as long each time, they do
 * not change which is less. */
#include "coll/stream.h"

void stream_choose(struct coll *c, size_t bytes, bool in_place)
{
    c->stream = in_place || c->mover ? NULL : streams_of(c->comm->streams, bytes);
    c->streams = c->stream && streams_choose(c->stream);
    c->stream_bytes = bytes;
}

void stream_learn(struct coll *c)
{
    if (c->stream)
        streams_learn(c->stream, c->streams, c->fold_ticks, c->stream_bytes);
    c->stream = NULL;
}
