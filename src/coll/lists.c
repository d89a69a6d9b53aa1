/* A copy of a call's lists, for work that outlives the call: one block, the pointers first. */
#include "coll/parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void *lists_put(char **at, const void *from, size_t bytes)
{
    void *to = *at;
    memcpy(to, from, bytes);
    *at += bytes;
    return to;
}

/* How long each list is on this rank, where it is used at all. */
struct lengths { size_t send, recv, recv_counts; };

static struct lengths lists_lengths(const struct coll *c, enum kind kind)
{
    unsigned how = parts_of(kind);
    size_t n = (size_t)c->lists.n;
    bool at_root = (uint32_t)c->root == c->comm->watch.me;
    if (kind == KIND_ALL_REDUCE_MANY)
        return (struct lengths){ n, n, n };
    struct lengths l = { how & PARTS_EACH ? n : 1, how & (PARTS_FOLD | PARTS_ROOT_GIVES) ? 1 : n, 0 };
    if ((how & PARTS_ROOT_GIVES) && !at_root)
        l.send = 0;
    if ((how & PARTS_ROOT_TAKES) && !at_root)
        l.recv = 0;
    l.recv_counts = how & PARTS_FOLD ? n : l.recv;
    return l;
}

int coll_keep_lists(struct coll *c, enum kind kind, void **block)
{
    *block = NULL;
    if (!c->lists.n)
        return 0;
    struct lengths l = lists_lengths(c, kind);
    size_t firsts = c->lists.first ? (size_t)c->lists.n + 1 : 0;
    char *at = malloc((l.send + l.recv) * sizeof(void *) + (l.send + l.recv_counts + firsts) * sizeof(size_t) + 1);
    if (!at)
        return -ENOMEM;
    *block = at;
    if (l.send) {
        c->lists.send = lists_put(&at, (const void *)c->lists.send, l.send * sizeof(void *));
        c->lists.send_counts = lists_put(&at, c->lists.send_counts, l.send * sizeof(size_t));
    }
    if (l.recv)
        c->lists.recv = lists_put(&at, (const void *)c->lists.recv, l.recv * sizeof(void *));
    if (l.recv_counts)
        c->lists.recv_counts = lists_put(&at, c->lists.recv_counts, l.recv_counts * sizeof(size_t));
    if (firsts)
        c->lists.first = lists_put(&at, c->lists.first, firsts * sizeof(size_t));
    return 0;
}
