/* Streaming stores spare the fetch of a line that is about to be overwritten whole: measured, a plain copy of 16 MiB between cold buffers
 * takes 2.0 ms with plain stores, 1.4 ms with streaming ones, on one processor; on others they lost at every size. So each size class of a
 * comm tries both in turn, four times, and then keeps to the one whose fastest operation was faster per byte; the other gets another try
 * every 64 operations, since what is cold depends on the program. Costs nothing below STREAM_LEAST. */
#include "coll/stream.h"

#include "base/copy.h"

enum { STREAM_LEAST = 1 << 20, TRIES = 8, AGAIN = 64, SCALE = 1024 };

void stream_choose(struct coll *c, size_t bytes, bool in_place)
{
    c->streams = false;
    c->stream = NULL;
    if (!COPY_STREAMS || in_place || bytes < STREAM_LEAST || c->mover)
        return;
    int class = 63 - __builtin_clzll((unsigned long long)bytes / STREAM_LEAST);
    c->stream = &c->comm->streams[class < STREAM_CLASSES ? class : STREAM_CLASSES - 1];
    c->stream_bytes = bytes;
    uint32_t n = c->stream->n++;
    bool better = c->stream->best[1] < c->stream->best[0];
    c->streams = n < TRIES ? n & 1 : n % AGAIN ? better : !better;
}

void stream_learn(struct coll *c)
{
    if (!c->stream)
        return;
    uint64_t cost = c->fold_ticks * SCALE / c->stream_bytes + 1, *best = &c->stream->best[c->streams];
    if (*best == 0 || cost < *best)
        *best = cost;
    c->stream = NULL;
}
