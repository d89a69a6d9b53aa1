/* Which rank reads which buffer, and the copies. A copy is of a whole block: the copy engine needs
 * no pieces, and nobody waits for a part of a block.
 *
 * Each rank writes only its own receive buffer. So only one thing can go wrong: it writes there
 * what a peer still reads.
 *   all_reduce   leader: only rank 0 reads send buffers. The others begin to write when it has
 *                folded (E17). They read rank 0's result, which is not written again. In place,
 *                rank 0 overwrites its own buffer, which only its own kernel reads. peers: rank p
 *                writes share p of its buffer while it folds. In place, this is the part of its
 *                send buffer that only rank p reads. It writes the rest when all have folded; then
 *                others read only share p.
 *   reduce, reduce_scatter   a rank that folds reads all send buffers; in place, it writes only the
 *                            part of its own that no other rank reads
 *   broadcast, scatter, gather, all_gather   in place, the block that is there already is not
 *                                            written
 *   all_to_all, scan, exscan   in place, a rank would overwrite what others read, so it gives no
 *                              card, and the pipeline takes the operation
 * All ranks stay until the result of each is in place (E70), so nobody reads a buffer after its
 * owner has got it back. */
#include "gpu/direct.h"

#include "coll/parts.h"
#include "gpu/streams.h"
#include "pattern/chunk.h"

bool direct_is_kind(enum kind kind)
{
    switch (kind) {
    case KIND_ALL_REDUCE:
    case KIND_REDUCE:
    case KIND_REDUCE_SCATTER:
    case KIND_BROADCAST:
    case KIND_ALL_GATHER:
    case KIND_GATHER:
    case KIND_SCATTER:
    case KIND_ALL_TO_ALL:
    case KIND_SCAN:
    case KIND_EXSCAN: return true;
    default: return false;
    }
}

bool direct_has_fold(const struct coll *c, uint32_t p)
{
    switch (c->algorithm->kind) {
    case KIND_ALL_REDUCE:
        return c->gpu.call->direct->leader ? p == 0 : direct_share(c, c->count, p).count > 0;
    case KIND_REDUCE: return p == (uint32_t)c->root;
    case KIND_REDUCE_SCATTER:
    case KIND_SCAN: return true;
    case KIND_EXSCAN: return p > 0;
    default: return false;
    }
}

struct chunk direct_share(const struct coll *c, size_t count, uint32_t p)
{
    enum { TOGETHER = 64 };            /* so that shares begin where vectors do */
    size_t size = c->comm->watch.size,
           each = ((count + size - 1) / size + TOGETHER - 1) / TOGETHER * TOGETHER,
           first = p * each;
    if (first >= count)
        return (struct chunk){ count, 0 };
    return (struct chunk){ first, count - first < each ? count - first : each };
}

bool direct_reads(const struct coll *c, uint32_t p, uint32_t reader)
{
    switch (c->algorithm->kind) {
    case KIND_ALL_REDUCE:
    case KIND_REDUCE:
    case KIND_REDUCE_SCATTER:
    case KIND_SCAN:
    case KIND_EXSCAN:
        return direct_has_fold(c, reader) && p != reader
            && (!(parts_how(c) & PARTS_LOWER) || p < reader);
    default: return parts_moves(c, p, reader);
    }
}

bool direct_reads_send(const struct coll *c, uint32_t p)
{
    return direct_reads(c, p, c->comm->watch.me);
}

bool direct_reads_recv(const struct coll *c, uint32_t p)
{
    return c->algorithm->kind == KIND_ALL_REDUCE && p != c->comm->watch.me && direct_has_fold(c, p);
}

int direct_move(struct coll *c, int side, CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    int r = streams_copy(c->gpu.call->streams, side, (void *)(uintptr_t)to, true,
                         (const void *)(uintptr_t)from, true, bytes);
    return r < 0 ? device_failed(c, r) : 0;
}

static int copy(struct coll *c, const void *to, CUdeviceptr from, size_t bytes)
{
    return direct_move(c, STREAM_OUT, (CUdeviceptr)(uintptr_t)to, from, bytes);
}

static int copy_folded(struct coll *c)
{
    const struct watch *w = &c->comm->watch;
    if (c->gpu.call->direct->leader)
        return w->me == 0 ? 0 : copy(c, c->recv, direct_recv(c, 0), c->count * c->width);
    for (uint32_t i = 1; i < w->size; i++) {
        uint32_t p = (w->me + i) % w->size;
        struct chunk share = direct_share(c, c->count, p);
        int r = share.count
            ? copy(c, (char *)c->recv + share.first * c->width,
                   direct_recv(c, p) + share.first * c->width, share.count * c->width)
            : 0;
        if (r < 0)
            return r;
    }
    return 0;
}

int direct_copy(struct coll *c)
{
    const struct watch *w = &c->comm->watch;
    if (c->algorithm->kind == KIND_ALL_REDUCE)
        return copy_folded(c);
    if (c->gpu.call->direct->folds)
        return 0;
    bool each = parts_how(c) & PARTS_EACH;
    for (uint32_t i = 0; i < w->size; i++) {
        uint32_t p = (w->me + i) % w->size;                 /* not all from the same one at once */
        bool kept = p == w->me && parts_keeps(c);
        if (!kept && !parts_moves(c, p, w->me))
            continue;
        CUdeviceptr from = direct_send(c, p) + (each ? w->me * c->count * c->width : 0);
        int r = copy(c, parts_recv(c, p), from, c->count * c->width);
        if (r < 0)
            return r;
    }
    return 0;
}
