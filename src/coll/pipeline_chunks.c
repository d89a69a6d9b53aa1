/* A number of chunks stands in the word beside the operation's number, so it is bounded: of larger
 * operations only the rounds count. */
#include "coll/pipeline_chunks.h"

#include "base/clock.h"
#include "base/staged.h"
#include "coll/early.h"
#include "coll/parts.h"

enum { CHUNK = TINY(32 << 10, 32), SPINS = TINY(256, 2) };

/* The same at both ranks, but for device memory. */
static bool may(const struct coll *c)
{
    const struct tutti_comm *comm = c->comm;
    uint32_t me = comm->watch.me;
    return comm->watch.size == 2 && !comm->crowded && !comm->coll.devices && !c->gpu.call
        && c->cma.may == CMA_NO && !c->algorithm->direct
        && !(parts_how(c) & (PARTS_FOLD | PARTS_UNEVEN | PARTS_EACH))
        && parts_moves(c, me, !me) != parts_moves(c, !me, me);
}

static size_t piece_bytes(const struct coll *c) { return c->pipeline.piece * c->width; }

static uint64_t chunks_of(size_t piece) { return piece / CHUNK + (piece % CHUNK != 0); }

bool chunks_copy_in(struct coll *c, char *slot, const char *from, size_t bytes)
{
    struct tuner *ways = &c->comm->coll.staged;
    uint64_t count = c->pipeline.asked * chunks_of(piece_bytes(c));
    if (!may(c))
        return false;
    struct staged way = staged_choose(ways, c->comm->world->staged_less, copy_plain, bytes);
    uint64_t began = clock_tick();
    for (size_t done = 0, n; done < bytes; done += n) {
        n = bytes - done < CHUNK ? bytes - done : CHUNK;
        (way.streamed ? copy_streaming : copy_plain)(slot + done, from + done, n);
        ++count;
        if (count <= EARLY_MOST)
            store_release64(&c->comm->watch.mine->early,
                            early_word(c->op.claim.seq, count));                /* E122 release */
    }
    uint64_t ticks = clock_tick() - began;
    staged_learn(ways, way, ticks, bytes);
    c->fold.ticks += ticks;
    return true;
}

/* Bytes that can be taken. */
static size_t there(const struct coll *c, const struct member *peer, size_t bytes)
{
    uint64_t early = load_acquire64(&peer->early),                              /* E122 acquire */
             rounds = load_acquire64(&peer->produced) - c->pipeline.base;       /* E16 acquire */
    size_t piece = piece_bytes(c);
    uint64_t count = early_count(early, c->op.claim.seq), each = chunks_of(piece);
    /* who gives may be behind this operation, or ahead of it */
    rounds = (int64_t)rounds < 0 ? 0 : rounds > c->pipeline.total ? c->pipeline.total : rounds;
    size_t whole = rounds * piece, some = count / each * piece + count % each * CHUNK;
    some = some > whole ? some : whole;
    return some < bytes ? some : bytes;
}

/* What this rank keeps, up to `to`; c->early: so much of it is in its place. */
static void keep(struct coll *c, size_t to)
{
    uint32_t me = c->comm->watch.me;
    if (c->early >= to || !parts_keeps(c))
        return;
    coll_copy_out(c, parts_recv(c, me) + c->early, parts_send(c, me) + c->early, to - c->early);
    c->early = to;
}

void chunks_take(struct coll *c)
{
    struct watch *w = &c->comm->watch;
    uint32_t me = w->me;
    size_t piece = piece_bytes(c), bytes = c->count * c->width;
    if (!may(c) || !parts_moves(c, !me, me) || c->pipeline.out == c->pipeline.taken
        || pipeline_send_place(c, !me).at)
        return;
    char *pipeline = coll_peer(c, !me, pipeline_all_slots(c));
    char *to = parts_recv(c, !me);
    size_t done = c->pipeline.taking * piece;
    for (int idle = 0; pipeline && done < bytes && idle < SPINS; idle++) {
        size_t now = there(c, &w->members[!me], bytes);
        if (now <= done && c->early < bytes && parts_keeps(c)) {
            keep(c, bytes - c->early < CHUNK ? bytes : c->early + CHUNK);
            idle = 0;
        } else
            cpu_pause();
        while (done < now) {
            size_t at = done % piece, n = now - done < piece - at ? now - done : piece - at;
            coll_copy_out(c, to + done, pipeline_slot(pipeline, c, c->pipeline.taking) + at, n);
            done += n;
            idle = 0;
            if (done % piece && done < bytes)
                continue;
            keep(c, done);
            c->pipeline.out = ++c->pipeline.taking;
            /* E18 release */
            watch_raise(w, &w->mine->consumed,
                        c->pipeline.base
                            + (c->pipeline.out == c->pipeline.taken ? c->pipeline.total
                                                                    : c->pipeline.out));
        }
    }
}
