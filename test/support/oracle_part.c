/* One rank's part of a case. Its buffers are lists of pieces, one for each block that it gives or
 * gets. Even kinds have them in a row, the others with gaps. In place, the pieces of one list are
 * those of the other. A rank that gets nothing has a buffer, too: it must stay unchanged. */
#include "support/oracle.h"

#include <stdlib.h>
#include <string.h>

/* True: in place means send == recv. */
static bool same_place(enum kind kind)
{
    return kind == KIND_REDUCE || kind == KIND_ALL_REDUCE || kind == KIND_SCAN
        || kind == KIND_EXSCAN || kind == KIND_ALL_TO_ALL || kind == KIND_ALL_TO_ALL_V
        || kind == KIND_ALL_REDUCE_MANY;
}

static bool takes_many(enum kind kind)
{
    return kind == KIND_ALL_GATHER || kind == KIND_ALL_GATHER_V || kind == KIND_GATHER
        || kind == KIND_GATHER_V || kind == KIND_ALL_TO_ALL || kind == KIND_ALL_TO_ALL_V
        || kind == KIND_ALL_REDUCE_MANY;
}

static void part_sides(struct oracle_part *p)
{
    const struct oracle_case *c = p->c;
    bool at_root = p->me == oracle_root(c),
         scatters = c->kind == KIND_SCATTER || c->kind == KIND_SCATTER_V;
    bool gathers = c->kind == KIND_GATHER || c->kind == KIND_GATHER_V || c->kind == KIND_REDUCE;
    int blocks = c->kind == KIND_ALL_REDUCE_MANY ? oracle_buffers(c) : oracle_ranks(c);
    p->give_n = c->kind == KIND_BARRIER || c->kind == KIND_BROADCAST || (scatters && !at_root) ? 0
        : oracle_each(c->kind) ? blocks
                               : 1;
    p->get_n = c->kind == KIND_BARRIER || (gathers && !at_root)
            || (c->kind == KIND_EXSCAN && p->me == 0)
        ? 0
        : takes_many(c->kind) ? blocks
                              : 1;
    for (int i = 0; i < p->give_n; i++)
        p->gives[i] = oracle_block(c, p->me, i);
    for (int i = 0; i < p->get_n; i++)
        p->gets[i] = scatters ? oracle_block(c, oracle_root(c), p->me)
            : c->kind == KIND_ALL_REDUCE_MANY ? p->gives[i]
            : oracle_block(c, i, p->me);
}

static bool part_shared(const struct oracle_part *p, bool send)
{
    switch (p->c->v[DIM_MEMORY]) {
    case MEMORY_PRIVATE: return false;
    case MEMORY_ARENA: return true;
    case MEMORY_SOME: return ((uint64_t)p->me + p->c->salt) % 2;
    case MEMORY_SEND: return send;
    default: return !send;
    }
}

/* Half of the shared buffers are registered malloc memory, whose ends stay private. The choice uses
 * bits of the salt that no other choice uses. */
static bool part_take(struct oracle_part *p, struct pieces *pieces, tutti_comm *comm,
                      const struct oracle_device *device, bool send, size_t offset)
{
    if (device && device->on(device->arg, p, send))
        return device->take(device->arg, p, pieces, send, offset);
    bool shared = part_shared(p, send);
    return shared && (p->c->salt >> (send ? 40 : 41) & 1)
        ? pieces_take_registered(pieces, comm, offset)
        : pieces_take(pieces, comm, shared, offset);
}

static size_t max(size_t a, size_t b) { return a > b ? a : b; }

static bool part_buffers(struct oracle_part *p, tutti_comm *comm,
                         const struct oracle_device *device)
{
    static const size_t offsets[] = { 0, 1, 7 };
    const struct oracle_case *c = p->c;
    size_t width = oracle_width(c->v[DIM_TYPE]);
    bool all = p->in_place && same_place(c->kind),
         small_recv = p->in_place && !all && p->give_n > 1,
         small_send = p->in_place && !all && !small_recv;
    for (int i = 0; i < p->give_n && !all && !small_send; i++)
        pieces_add(&p->send, p->gives[i] * width,
                   oracle_uneven(c->kind) ? (size_t)(13 * i + 5) : 0);
    for (int i = 0; i < p->get_n && !small_recv; i++)
        pieces_add(&p->recv, (all ? max(p->gives[i], p->gets[i]) : p->gets[i]) * width,
                   oracle_uneven(c->kind) ? (size_t)(13 * i + 5) : 0);
    if (p->get_n == 0)
        p->recv.bytes = 64;                          /* all guard */
    if (!part_take(p, &p->send, comm, device, true, offsets[c->v[DIM_SEND_AT]])
        || !part_take(p, &p->recv, comm, device, false, offsets[c->v[DIM_RECV_AT]]))
        return false;
    for (int i = 0; i < p->get_n && !small_recv; i++)
        p->get[i] = pieces_piece(&p->recv, i);
    for (int i = 0; i < p->give_n; i++)
        p->give[i] = small_send ? p->get[p->get_n > 1 ? p->me : 0]
            : all ? p->get[i]
            : pieces_piece(&p->send, i);
    if (small_recv)
        p->get[0] = p->give[p->me];
    return true;
}

/* Where the CPU sees this address, in either list. */
static unsigned char *part_see(const struct oracle_part *p, const void *at)
{
    return pieces_has(&p->send, at) ? pieces_see(&p->send, at) : pieces_see(&p->recv, at);
}

bool oracle_take(struct oracle_part *p, const struct oracle_case *c, int me, tutti_comm *comm,
                 const struct oracle_device *device)
{
    unsigned char tile[ORACLE_PERIOD * ORACLE_WIDTH];
    size_t width = oracle_width(c->v[DIM_TYPE]);
    *p = (struct oracle_part){ .c = c, .me = me, .count = oracle_count(c) };
    part_sides(p);
    p->in_place = c->v[DIM_PLACE] == PLACE_IN_PLACE && p->give_n && p->get_n;
    if (c->v[DIM_OP] == TUTTI_PREMUL_SUM)
        oracle_factor(p->factor, c, me);
    if (!part_buffers(p, comm, device))
        return false;
    for (int i = 0; i < p->give_n; i++) {
        oracle_values(tile, c, me, i);
        tile_fill(part_see(p, p->give[i]), p->gives[i] * width, tile, ORACLE_PERIOD * width);
    }
    if (c->kind == KIND_BROADCAST && me == oracle_root(c)) {
        oracle_values(tile, c, me, 0);
        tile_fill(part_see(p, p->get[0]), p->gets[0] * width, tile, ORACLE_PERIOD * width);
    }
    return true;
}

void oracle_give(struct oracle_part *p, tutti_comm *comm, const struct oracle_device *device)
{
    struct pieces *both[] = { &p->send, &p->recv };
    for (int i = 0; i < 2; i++)
        if (both[i]->device)
            device->give(device->arg, both[i]);
        else
            pieces_give(both[i], comm);
}

static void part_expect(const struct oracle_part *p, void *tile, int from)
{
    const struct oracle_case *c = p->c;
    int n = oracle_ranks(c), root = oracle_root(c);
    switch (c->kind) {
    case KIND_SCAN: oracle_fold(tile, c, p->me + 1, 0); return;
    case KIND_EXSCAN: oracle_fold(tile, c, p->me, 0); return;
    case KIND_REDUCE: case KIND_ALL_REDUCE: oracle_fold(tile, c, n, 0); return;
    case KIND_ALL_REDUCE_MANY: oracle_fold(tile, c, n, from); return;
    case KIND_REDUCE_SCATTER: case KIND_REDUCE_SCATTER_V: oracle_fold(tile, c, n, p->me); return;
    case KIND_BROADCAST: oracle_values(tile, c, root, 0); return;
    case KIND_SCATTER: case KIND_SCATTER_V: oracle_values(tile, c, root, p->me); return;
    case KIND_ALL_TO_ALL: case KIND_ALL_TO_ALL_V: oracle_values(tile, c, from, p->me); return;
    default: oracle_values(tile, c, from, 0); return;
    }
}

static bool part_same(const struct oracle_part *p, const char *what, int i, const unsigned char *is,
                      size_t count, const unsigned char *tile, struct text *why)
{
    size_t width = oracle_width(p->c->v[DIM_TYPE]),
           at = tile_differs(is, count * width, tile, ORACLE_PERIOD * width);
    if (at == SIZE_MAX)
        return true;
    text_add(why, "%s block %d of %zu: element %zu is", what, i, count, at / width);
    for (size_t b = width; b; b--)
        text_add(why, " %02x", is[at / width * width + b - 1]);
    text_add(why, ", should be");
    for (size_t b = width; b; b--)
        text_add(why, " %02x", tile[at / width % ORACLE_PERIOD * width + b - 1]);
    return false;
}

bool oracle_judge(const struct oracle_part *p, struct text *why)
{
    unsigned char tile[ORACLE_PERIOD * ORACLE_WIDTH];
    for (int i = 0; i < p->get_n; i++) {
        if (p->gets[i] == 0)
            continue;
        part_expect(p, tile, i);
        if (!part_same(p, "recv", i, part_see(p, p->get[i]), p->gets[i], tile, why))
            return false;
    }
    for (int i = 0; i < p->give_n; i++) {
        if (p->in_place && (same_place(p->c->kind) || p->give_n == 1 || i == p->me))
            continue;
        oracle_values(tile, p->c, p->me, i);
        if (!part_same(p, "send", i, part_see(p, p->give[i]), p->gives[i], tile, why))
            return false;
    }
    if (pieces_whole(&p->send) && pieces_whole(&p->recv))
        return true;
    text_add(why, "bytes beside a buffer were written");
    return false;
}
