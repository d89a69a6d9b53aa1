/* Copies a call's lists, for work that outlives the call: one block, the pointers first. */
#include "coll/parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void *vector_args_put(char **at, const void *from, size_t bytes)
{
    void *to = *at;
    memcpy(to, from, bytes);
    *at += bytes;
    return to;
}

int coll_keep_lists(struct coll *c, enum kind kind, void **block)
{
    *block = NULL;
    if (!c->lists.n)
        return 0;
    struct sides s = parts_sides(c->comm, c, kind);
    size_t recv_counts = parts_of(kind) & PARTS_FOLD ? (size_t)c->lists.n : s.takes;
    size_t firsts = c->lists.first ? (size_t)c->lists.n + 1 : 0;
    char *at = malloc(((size_t)s.gives + s.takes) * sizeof(void *)
                      + (s.gives + recv_counts + firsts) * sizeof(size_t) + 1);
    if (!at)
        return -ENOMEM;
    *block = at;
    if (s.gives) {
        c->lists.send = vector_args_put(&at, (const void *)c->lists.send, s.gives * sizeof(void *));
        c->lists.send_counts = vector_args_put(&at, c->lists.send_counts, s.gives * sizeof(size_t));
    }
    if (s.takes)
        c->lists.recv = vector_args_put(&at, (const void *)c->lists.recv, s.takes * sizeof(void *));
    if (recv_counts)
        c->lists.recv_counts = vector_args_put(&at, c->lists.recv_counts,
                                               recv_counts * sizeof(size_t));
    if (firsts)
        c->lists.first = vector_args_put(&at, c->lists.first, firsts * sizeof(size_t));
    return 0;
}
