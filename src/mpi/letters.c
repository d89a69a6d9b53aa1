/* A rank's letters to another one come in the order of its calls, and all ranks make the same calls
 * in the same order: what comes next is of this call, or the ranks called different things. The tag
 * says which function it was.
 *
 * Cost: one message a rank, and no rank waits for one that it needs nothing of. */
#define TUTTI_NO_SITES
#include "mpi/letters.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { TAG_BCAST = 1, TAG_REDUCE };

static int differ(const struct link *link, const char *function, int other, const char *how)
{
    char why[160];
    snprintf(why, sizeof why,
             "%s: the ranks called different things: what rank %d sent to rank %d is %s", function,
             other, link->rank, how);
    tutti_comm_abort(link->tutti, why);
    return -EPROTO;
}

/* A message that fails by itself, as by a deadline, leaves the ranks out of step. */
static int ended(const struct link *link, int e)
{
    char why[240];
    if (e == 0 || e == -EOWNERDEAD || e == -ECANCELED)
        return e;
    snprintf(why, sizeof why, "%.200s", tutti_explain(link->tutti));
    tutti_comm_abort(link->tutti, why);
    return e;
}

static int give(struct link *link, const char *function, const void *at, size_t bytes, int to,
                int tag)
{
    return ended(link, tutti_send_at(function, at, bytes, TUTTI_U8, to, tag, link->tutti, NULL));
}

static int get(struct link *link, const char *function, void *at, size_t bytes, int from, int tag)
{
    tutti_message got;
    int e = tutti_recv_at(function, at, bytes, TUTTI_U8, from, TUTTI_ANY, &got, link->tutti, NULL);
    if (e == -EMSGSIZE)
        return differ(link, function, from, "longer");
    if (e < 0)
        return ended(link, e);
    return got.tag != tag     ? differ(link, function, from, "of another function")
        : got.count != bytes ? differ(link, function, from, "shorter")
                             : 0;
}

int letters_bcast(struct link *link, const char *function, void *at, size_t bytes, int root)
{
    int e = 0;
    if (link->rank != root)
        return get(link, function, at, bytes, root, TAG_BCAST);
    for (int i = 1; e == 0 && i < link->size; i++)
        e = give(link, function, at, bytes, (root + i) % link->size, TAG_BCAST);
    return e;
}

static int unfolded(const struct link *link, const char *function)
{
    char why[120];
    snprintf(why, sizeof why, "%s: MPI_Reduce_local failed on rank %d", function, link->rank);
    tutti_comm_abort(link->tutti, why);
    return -EINVAL;
}

int letters_reduce(struct link *link, const char *function, const void *from, void *to, size_t n,
                   const struct fold *f, int root)
{
    _Alignas(64) char room[2][LETTERS_MOST];
    size_t bytes = n * f->element->size;
    char *sum = NULL;
    int e = 0;
    if (link->rank != root)
        return give(link, function, from, bytes, root, TAG_REDUCE);
    for (int p = 0; e == 0 && p < link->size; p++) {
        char *part = room[p % 2];
        if (p != root)
            e = get(link, function, part, bytes, p, TAG_REDUCE);
        else if (bytes)
            memcpy(part, from, bytes);
        if (e == 0 && sum && n && below.Reduce_local(sum, part, (int)n, f->type, f->op))
            e = unfolded(link, function);
        sum = part;
    }
    if (e == 0 && bytes)
        memcpy(to, sum, bytes);
    return e;
}
