/* A result that the caches hold lies there for the next operation that writes it, if this one's
 * stores are plain; past the caches it does not, and then plain stores fetch it from memory. So a
 * single operation by plain stores behind a streaming one tells nothing of many: up to KEPT_MOST
 * bytes a try is KEPT_TRY operations, of which the last counts. Measured on a Zen 3, 2 ranks far
 * apart, one buffer: all_to_all of 512 KiB and 1 MiB take 0.90 and 0.88 of the time.
 *
 * fold.ticks is the time of all copies and folds of an operation, not only of those that write
 * results. The others take the same time with both ways, so they do not change which way is
 * faster. */
#include "coll/nontemporal.h"

#include "base/copy.h"

enum { KEPT_MOST = TINY(8 << 20, 512), KEPT_TRY = 4 };

/* Operations of one try. */
static uint32_t try_length(size_t bytes) { return bytes < KEPT_MOST ? KEPT_TRY : 1; }

void stream_choose(struct coll *c, size_t bytes, bool in_place)
{
    c->stream.tuner = !COPY_STREAMS || in_place || c->gpu.mover
        ? NULL
        : tuner_of(c->comm->coll.streams, bytes, STREAM_LEAST);
    c->stream.on = false;
    c->stream.bytes = bytes;
    if (!c->stream.tuner)
        return;
    size_t class = (size_t)(c->stream.tuner - c->comm->coll.streams);
    if (c->comm->coll.stream_tries[class].n == 0)
        c->comm->coll.stream_tries[class].on = tuner_choose(c->stream.tuner, 1);
    c->stream.on = c->comm->coll.stream_tries[class].on;
}

void stream_learn(struct coll *c)
{
    if (!c->stream.tuner)
        return;
    size_t class = (size_t)(c->stream.tuner - c->comm->coll.streams);
    if (++c->comm->coll.stream_tries[class].n >= try_length(c->stream.bytes)) {
        tuner_learn(c->stream.tuner, c->stream.on, c->fold.ticks, c->stream.bytes);
        c->comm->coll.stream_tries[class].n = 0;
    }
    c->stream.tuner = NULL;
}
