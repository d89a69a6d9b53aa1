/* One table says how the collectives differ, so each of the three transports is written once. Costs
 * a few branches a block. */
#include "coll/parts.h"

static const unsigned table[KIND_COUNT] = {
    [KIND_BROADCAST] = PARTS_ROOT_GIVES,
    [KIND_REDUCE] = PARTS_ROOT_TAKES | PARTS_FOLD,
    [KIND_REDUCE_SCATTER] = PARTS_EACH | PARTS_FOLD,
    [KIND_REDUCE_SCATTER_V] = PARTS_EACH | PARTS_FOLD | PARTS_UNEVEN,
    [KIND_ALL_GATHER] = 0,
    [KIND_ALL_GATHER_V] = PARTS_UNEVEN,
    [KIND_GATHER] = PARTS_ROOT_TAKES,
    [KIND_GATHER_V] = PARTS_ROOT_TAKES | PARTS_UNEVEN | PARTS_PAIRS,
    [KIND_SCATTER] = PARTS_EACH | PARTS_ROOT_GIVES,
    [KIND_SCATTER_V] = PARTS_EACH | PARTS_ROOT_GIVES | PARTS_UNEVEN | PARTS_PAIRS,
    [KIND_ALL_TO_ALL] = PARTS_EACH,
    [KIND_ALL_TO_ALL_V] = PARTS_EACH | PARTS_UNEVEN | PARTS_PAIRS,
    [KIND_SCAN] = PARTS_FOLD | PARTS_LOWER,
    [KIND_EXSCAN] = PARTS_FOLD | PARTS_LOWER | PARTS_STRICT,
};

unsigned parts_of(enum kind kind) { return table[kind]; }

struct sides parts_sides(const struct tutti_comm *comm, const struct coll *c, enum kind kind)
{
    unsigned how = table[kind];
    uint32_t size = comm->watch.size,
             n = kind == KIND_ALL_REDUCE_MANY ? (uint32_t)c->lists.n : size;
    bool at_root = comm->watch.me == (uint32_t)c->root;
    struct sides s = { how & PARTS_EACH ? n : 1, how & (PARTS_FOLD | PARTS_ROOT_GIVES) ? 1 : n };
    if (kind == KIND_ALL_REDUCE_MANY)
        s = (struct sides){ n, n };
    if ((how & PARTS_ROOT_GIVES) && !at_root)
        s.gives = 0;
    if ((how & PARTS_ROOT_TAKES) && !at_root)
        s.takes = 0;
    return s;
}

struct extent parts_extent(const struct tutti_comm *comm, const struct coll *c, enum kind kind)
{
    unsigned how = table[kind];
    size_t block = c->count * c->width, size = comm->watch.size;
    bool at_root = (uint32_t)c->root == comm->watch.me;
    bool takes_all = kind == KIND_ALL_GATHER || kind == KIND_GATHER || kind == KIND_ALL_TO_ALL;
    struct extent e = { block * (how & PARTS_EACH ? size : 1), block * (takes_all ? size : 1) };
    if ((how & PARTS_ROOT_GIVES) && !at_root)
        e.sent = 0;
    if (((how & PARTS_ROOT_TAKES) && !at_root)
        || (kind == KIND_BROADCAST && at_root) || kind == KIND_SAME)
        e.taken = 0;
    if (kind == KIND_EXSCAN && comm->watch.me == 0)
        e.taken = 0;
    return e;
}

bool parts_gives(const struct coll *c, uint32_t p)
{
    unsigned how = parts_how(c);
    uint32_t size = c->comm->watch.size;
    if (how & PARTS_ROOT_GIVES)
        return p == (uint32_t)c->root && size > 1;
    if (how & PARTS_ROOT_TAKES)
        return p != (uint32_t)c->root;
    return how & PARTS_LOWER ? p + 1 < size : size > 1;
}

bool parts_takes(const struct coll *c)
{
    unsigned how = parts_how(c);
    uint32_t me = c->comm->watch.me;
    if (how & PARTS_ROOT_GIVES)
        return me != (uint32_t)c->root || (how & PARTS_EACH);
    if (how & PARTS_ROOT_TAKES)
        return me == (uint32_t)c->root;
    return !(how & PARTS_STRICT) || me > 0;
}

bool parts_moves(const struct coll *c, uint32_t from, uint32_t to)
{
    unsigned how = parts_how(c);
    if (from == to || ((how & PARTS_ROOT_GIVES) && from != (uint32_t)c->root)
        || ((how & PARTS_ROOT_TAKES) && to != (uint32_t)c->root))
        return false;
    return !(how & PARTS_LOWER) || from < to;
}

size_t parts_count(const struct coll *c, uint32_t from, uint32_t to)
{
    unsigned how = parts_how(c);
    if (!(how & PARTS_UNEVEN))
        return c->count;
    if (!(how & PARTS_PAIRS))
        return c->lists.recv_counts[how & PARTS_EACH ? to : from];
    if (from == c->comm->watch.me)
        return how & PARTS_EACH ? c->lists.send_counts[to] : c->lists.send_counts[0];
    return how & PARTS_ROOT_GIVES ? c->lists.recv_counts[0] : c->lists.recv_counts[from];
}

const char *parts_send(const struct coll *c, uint32_t to)
{
    unsigned how = parts_how(c);
    if (!(how & PARTS_EACH))
        return c->send;
    return how & PARTS_UNEVEN ? c->lists.send[to]
                              : (const char *)c->send + to * c->count * c->width;
}

char *parts_recv(const struct coll *c, uint32_t from)
{
    unsigned how = parts_how(c);
    if (how & (PARTS_FOLD | PARTS_ROOT_GIVES))
        return c->recv;
    return how & PARTS_UNEVEN ? c->lists.recv[from] : (char *)c->recv + from * c->count * c->width;
}

size_t parts_offset(const struct coll *c, uint32_t from, uint32_t to)
{
    unsigned how = parts_how(c);
    if (!(how & PARTS_EACH))
        return 0;
    if (!(how & PARTS_UNEVEN))
        return to * c->count * c->width;
    size_t before = 0;
    for (uint32_t p = 0; p < to; p++)
        before += parts_count(c, from, p);
    return before * c->width;
}

struct even parts_even(enum kind kind, const struct watch *w, uint32_t root, size_t block)
{
    unsigned how = table[kind];
    uint32_t size = w->size, me = w->me, bytes = (uint32_t)block;
    bool each = how & PARTS_EACH, gives = size > 1, takes = size > 1, keeps = !(how & PARTS_FOLD);
    if (block > (each ? EAGER_EACH_BYTES / size : EAGER_TWO_BYTES))
        return (struct even){ 0 };
    if (how & PARTS_ROOT_GIVES) {
        gives = gives && me == root;
        takes = me != root;
        keeps = each && me == root;
    } else if (how & PARTS_ROOT_TAKES) {
        gives = me != root;
        keeps = keeps && me == root;
        takes = takes && me == root;
    } else if (how & PARTS_LOWER)
        gives = me + 1 < size;
    return (struct even){
        .gives = gives ? bytes * (each ? size : 1) : 0,
        .takes = takes ? bytes : 0,
        .first = how & PARTS_ROOT_GIVES ? root : 0,
        .end = how & PARTS_ROOT_GIVES ? root + 1 : how & PARTS_LOWER ? me + !(how & PARTS_STRICT)
            : size,
        .at = each ? me * bytes : 0,
        .step = how & (PARTS_FOLD | PARTS_ROOT_GIVES) ? 0 : bytes,
        .keeps = keeps ? bytes : 0,
    };
}

bool parts_keeps(const struct coll *c)
{
    unsigned how = parts_how(c);
    if (how & PARTS_ROOT_GIVES)
        return c->comm->watch.me == (uint32_t)c->root && (how & PARTS_EACH);
    return !(how & PARTS_ROOT_TAKES) || c->comm->watch.me == (uint32_t)c->root;
}
