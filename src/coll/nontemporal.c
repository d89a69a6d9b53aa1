/* A result that the caches hold lies there for the next operation that writes it, if this one's
 * stores are plain; past the caches it does not, and then plain stores fetch it from memory. So a
 * single operation by plain stores behind a streaming one tells nothing of many: up to KEPT_MOST
 * bytes a try is KEPT_TRY operations, and the later half of them counts. The first two tries are
 * eight operations: so long libtutti-mpi times none (mpi/contest.c).
 *
 * A rank that streams makes the others' copies slower, too: two ranks, all_to_all of 512 KiB, one
 * buffer, a Zen 3 with near CPUs: 56 us if both store plainly, 110 if both stream, and if one does
 * each finds its own way the cheaper one. So the ranks try each way at the same time. With roots,
 * ranks take in different operations: those have tuners of their own.
 *
 * fold.ticks is the time of all copies and folds of an operation, not only of those that write
 * results. The others take the same time with both ways, so they do not change which way is
 * faster. */
#include "coll/nontemporal.h"

#include "base/copy.h"
#include "coll/parts.h"

enum { KEPT_MOST = TINY(8 << 20, 512), KEPT_TRY = 4 };

/* Where ranks share CPUs, times vary too much for few of them to tell. */
static bool try_together(const struct coll *c)
{
    return c->stream.bytes < KEPT_MOST && !c->comm->crowded;
}

/* A scatter's rank writes one block, whatever its root gives. While all blocks of the root counted,
 * 4 ranks on 2 CPUs of a Zen 3 near each other streamed results of 256 and 512 KiB, which their
 * caches hold: a scatter took 1.4 to 1.5 times as long. */
size_t stream_bytes(const struct coll *c)
{
    unsigned how = parts_how(c);
    size_t block = c->count * c->width;
    bool each_own = (how & PARTS_FOLD) && (how & (PARTS_EACH | PARTS_LOWER));
    if (each_own || !parts_takes(c))
        return 0;
    if (how & PARTS_UNEVEN)
        return c->lists.most * c->width;
    return (how & PARTS_EACH) && !(how & PARTS_ROOT_GIVES) ? block * c->comm->watch.size : block;
}

void stream_choose(struct coll *c, size_t bytes, bool in_place)
{
    c->stream.tuner = NULL;
    c->stream.on = false;
    c->stream.bytes = bytes;
    if (!COPY_STREAMS || in_place || c->gpu.mover)
        return;
    bool rooted = parts_how(c) & (PARTS_ROOT_GIVES | PARTS_ROOT_TAKES);
    struct tuner *tuner = tuner_of(c->comm->coll.streams[rooted], bytes, STREAM_LEAST);
    if (!tuner)
        return;
    c->stream.tuner = tuner;
    c->stream.try = &c->comm->coll.stream_tries[rooted][tuner - c->comm->coll.streams[rooted]];
    if (!try_together(c)) {
        c->stream.on = tuner_choose(tuner, 1);
        return;
    }
    if (c->stream.try->n == 0)
        c->stream.try->on = tuner_choose_together(tuner);
    c->stream.on = c->stream.try->on;
}

static void learn_try(struct coll *c)
{
    struct tuner *tuner = c->stream.tuner;
    uint64_t now = c->fold.ticks * 1024 / c->stream.bytes + 1, *cost = &tuner->cost[c->stream.on];
    uint32_t n = c->stream.try->n++;
    if (tuner_is_together(tuner) && (n == KEPT_TRY / 2 || (n > KEPT_TRY / 2 && now < *cost)))
        *cost = now;
    if (c->stream.try->n == KEPT_TRY)
        c->stream.try->n = 0;
}

void stream_learn(struct coll *c)
{
    if (c->stream.tuner && try_together(c))
        learn_try(c);
    else if (c->stream.tuner)
        tuner_learn(c->stream.tuner, c->stream.on, c->fold.ticks, c->stream.bytes);
    c->stream.tuner = NULL;
}
