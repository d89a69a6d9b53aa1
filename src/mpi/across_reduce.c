/* Reductions over several hosts. Leaders fold what hosts give in the order of hosts, by the MPI's
 * own arithmetic: MPI_Reduce_local. Of two hosts, and of little, each folds all; else each leader
 * folds a block, and gives it to the others. */
#define TUTTI_NO_SITES
#include "mpi/across.h"

#include "mpi/shield.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { WHOLE = 8192 };                 /* up to so many bytes each leader folds all */

#define TYPE_AND_OP(f) (tutti_type)(f)->element->tutti, (tutti_op)(f)->tutti_op

static int reduce_here(struct link *link, const char *function, const void *from, void *sum,
                       size_t n, const struct fold *f)
{
    int e = tutti_reduce_at(function, from, sum, n, TYPE_AND_OP(f), 0, link->tutti, NULL);
    return e < 0 ? leaders_fail(link, function, e) : 0;
}

/* parts[h]: n elements of each host, which it writes over. *sum: where theirs is. */
static int fold_parts(struct link *link, char *const parts[], size_t n, const struct fold *f,
                      char **sum)
{
    *sum = parts[0];
    for (int h = 1; h < link->spread->hosts; h++) {
        if (n && below.Reduce_local(*sum, parts[h], (int)n, f->type, f->op))
            return leaders_fail(link, "MPI_Reduce_local", -EINVAL);
        *sum = parts[h];
    }
    return 0;
}

/* What leaders need for one piece; of n elements. to: the host that gets it; -1: all. */
struct chunk_sum {
    struct far_bytes *give, *get;       /* [hosts] */
    char **parts;                      /* [hosts] */
    char *sum, *result;                /* of this host; of all */
    size_t n;
    int to;
    bool blocks;                       /* each leader folds one */
};

static bool piece_open(struct chunk_sum *p, const struct spread *s)
{
    p->give = calloc((size_t)s->hosts * 2, sizeof *p->give);
    p->get = p->give ? p->give + s->hosts : NULL;
    p->parts = calloc((size_t)s->hosts, sizeof *p->parts);
    return p->give && p->parts;
}

static void piece_close(struct chunk_sum *p)
{
    free(p->give);
    free(p->parts);
}

/* Where block h of n elements begins. */
static size_t block_at(const struct spread *s, size_t n, int h)
{
    return n / (size_t)s->hosts * (size_t)h
        + ((size_t)h < n % (size_t)s->hosts ? (size_t)h : n % (size_t)s->hosts);
}

/* Starts the exchange of this host's sum. The others' parts come to room 3. */
static int piece_start(struct link *link, struct chunk_sum *p, size_t size)
{
    struct spread *s = link->spread;
    bool get = p->to < 0 || p->to == s->mine;
    size_t own = block_at(s, p->n, s->mine + 1) - block_at(s, p->n, s->mine);
    p->blocks = s->hosts > 2 && p->n * size > WHOLE;
    size_t each = (p->blocks ? own : get ? p->n : 0) * size;
    char *room = spread_room(s, 3, each * (size_t)s->hosts);
    if (!room)
        return leaders_fail(link, "MPI_Reduce", -ENOMEM);
    for (int h = 0; h < s->hosts; h++) {
        size_t from = p->blocks ? block_at(s, p->n, h) : 0;
        size_t to = p->blocks ? block_at(s, p->n, h + 1)
            : p->to < 0 || p->to == h ? p->n
                                      : 0;
        p->give[h] = (struct far_bytes){ p->sum + from * size, (to - from) * size };
        p->parts[h] = h == s->mine ? p->give[h].at : room + (size_t)h * each;
        p->get[h] = (struct far_bytes){ p->parts[h], each };
    }
    return leaders_start(link, p->give, p->get);
}

/* Ends it: result is what all hosts have given, where `to` lets it come. */
static int piece_end(struct link *link, const char *function, struct chunk_sum *p, size_t size,
                     const struct fold *f)
{
    struct spread *s = link->spread;
    size_t own = block_at(s, p->n, s->mine + 1) - block_at(s, p->n, s->mine);
    int e = leaders_wait(link, function);
    if (e || (!p->blocks && p->to >= 0 && p->to != s->mine))
        return e;
    e = fold_parts(link, p->parts, p->blocks ? own : p->n, f, &p->result);
    if (e || !p->blocks)
        return e;
    char *mine = p->sum + block_at(s, p->n, s->mine) * size;
    if (mine != p->result)
        memcpy(mine, p->result, own * size);
    for (int h = 0; h < s->hosts; h++) {
        size_t from = block_at(s, p->n, h), to = block_at(s, p->n, h + 1);
        bool he = p->to < 0 || p->to == h, I = p->to < 0 || p->to == s->mine;
        p->give[h] = (struct far_bytes){ mine, he ? own * size : 0 };
        p->get[h] = (struct far_bytes){ p->sum + from * size, I ? (to - from) * size : 0 };
    }
    p->result = p->sum;
    return leaders_exchange(link, function, p->give, p->get);
}

/* One piece's result from the leader to those of its host who want it. */
static int hand_out(struct link *link, const char *function, struct chunk_sum *p, char *to,
                    size_t bytes, int root)
{
    struct spread *s = link->spread;
    int e = 0;
    if (root < 0)
        e = tutti_broadcast_at(function, s->leads ? p->result : to, bytes, TUTTI_U8, 0,
                               link->tutti, NULL);
    else if (s->host[root] == s->mine && s->place[root]) {
        if (s->leads)
            e = tutti_send_at(function, p->result, bytes, TUTTI_U8, s->place[root], 1, link->tutti,
                              NULL);
        else if (link->rank == root)
            e = tutti_recv_at(function, to, bytes, TUTTI_U8, 0, 1, NULL, link->tutti, NULL);
    }
    if (e < 0)
        return leaders_fail(link, function, e);
    if (s->leads && bytes && (root < 0 || root == link->rank))
        memcpy(to, p->result, bytes);
    return 0;
}

/* All in one exchange: it comes with the descriptor. */
static int reduce_small(struct link *link, const struct descriptor *d, const char *from, char *to,
                        const struct fold *f)
{
    struct spread *s = link->spread;
    struct chunk_sum p = { .n = d->count };
    size_t bytes = d->count * f->element->size;
    char sum[INLINE], *all;
    int e = reduce_here(link, d->function, from, s->leads ? sum : NULL, d->count, f);
    if (e == 0 && s->leads) {
        e = leaders_meet(link, d, sum, bytes, &all);
        if (e == 0 && !piece_open(&p, s))
            e = leaders_fail(link, d->function, -ENOMEM);
        for (int h = 0; e == 0 && h < s->hosts; h++)
            p.parts[h] = all + (size_t)h * MET + HEADER;
        e = e ? e : fold_parts(link, p.parts, d->count, f, &p.result);
    }
    e = e ? e : hand_out(link, d->function, &p, to, bytes, d->root);
    piece_close(&p);
    return e;
}

int across_reduce(struct link *link, const char *function, const char *from, char *to, size_t n,
                  const struct fold *f, int root)
{
    struct spread *s = link->spread;
    struct descriptor d = { function, f->element->tutti, f->tutti_op, root, n };
    size_t size = f->element->size, most = ACROSS_PIECE / size;
    struct chunk_sum p = { .to = root < 0 ? -1 : s->host[root] };
    char *sums[2] = { NULL, NULL }, *met;
    shield_up(link, function);
    if (n * size <= INLINE)
        return reduce_small(link, &d, from, to, f);
    for (int i = 0; s->leads && i < 2; i++)
        if (!(sums[i] = spread_room(s, 1 + i, ACROSS_PIECE)))
            return leaders_fail(link, function, -ENOMEM);
    if (s->leads && !piece_open(&p, s))
        return leaders_fail(link, function, -ENOMEM);
    int e = reduce_here(link, function, from, sums[0], n < most ? n : most, f);
    if (e == 0 && s->leads)
        e = leaders_meet(link, &d, NULL, 0, &met);
    for (size_t at = 0, k = 0; e == 0 && at < n; at += most, k++) {
        size_t next = at + most;
        p.n = n - at < most ? n - at : most;
        p.sum = sums[k % 2];
        if (s->leads)
            e = piece_start(link, &p, size);
        if (e == 0 && next < n)
            e = reduce_here(link, function, from + next * size, sums[(k + 1) % 2],
                            n - next < most ? n - next : most, f);
        if (e == 0 && s->leads)
            e = piece_end(link, function, &p, size, f);
        e = e ? e : hand_out(link, function, &p, to + at * size, p.n * size, root);
    }
    if (s->leads)
        piece_close(&p);
    return e;
}

/* ---- reduce_scatter ---- */

/* The leader's part: sum is in the order of hosts, blocks[h] elements of each. */
static int scatter_far(struct link *link, const char *function, char *sum, const size_t blocks[],
                       const struct fold *f, struct chunk_sum *p)
{
    struct spread *s = link->spread;
    size_t size = f->element->size, each = blocks[s->mine] * size;
    char *room = spread_room(s, 3, each * (size_t)s->hosts);
    if (!room)
        return leaders_fail(link, function, -ENOMEM);
    for (int h = 0; h < s->hosts; h++) {
        p->give[h] = (struct far_bytes){ sum, blocks[h] * size };
        p->parts[h] = h == s->mine ? sum : room + (size_t)h * each;
        p->get[h] = (struct far_bytes){ p->parts[h], each };
        sum += blocks[h] * size;
    }
    int e = leaders_exchange(link, function, p->give, p->get);
    for (size_t at = 0; e == 0 && at < blocks[s->mine]; at += ACROSS_PIECE) {
        size_t n = blocks[s->mine] - at < ACROSS_PIECE ? blocks[s->mine] - at : ACROSS_PIECE;
        e = fold_parts(link, p->parts, n, f, &p->result);
        for (int h = 0; h < s->hosts; h++)
            p->parts[h] += n * size;
    }
    p->result = p->get[s->hosts - 1].at;              /* the last one has the fold */
    return e;
}

/* From the leader to each rank of its host. */
static int scatter_here(struct link *link, const char *function, const char *result,
                        const int counts[], int count, char *to, size_t size)
{
    struct spread *s = link->spread;
    int n = s->number[s->mine], e = -ENOMEM;
    const void **from = malloc((size_t)n * sizeof *from);
    size_t *sizes = malloc((size_t)n * sizeof *sizes);
    for (int i = 0; from && sizes && i < n; i++) {
        int rank = s->order[s->first[s->mine] + i];
        from[i] = result;
        sizes[i] = (size_t)(counts ? counts[rank] : count) * size;
        result += s->leads ? sizes[i] : 0;
    }
    if (from && sizes)
        e = tutti_scatter_v_at(function, s->leads ? from : NULL, s->leads ? sizes : NULL, to,
                               sizes[s->place[link->rank]], TUTTI_U8, 0, link->tutti, NULL);
    free(from);
    free(sizes);
    return e < 0 ? leaders_fail(link, function, e) : 0;
}

/* The sum of this host, in the order of hosts, into room 2. */
static char *by_hosts(const struct link *link, char *sum, const int counts[], int count,
                      size_t size, size_t bytes)
{
    struct spread *s = link->spread;
    char *room = s->ordered ? NULL : spread_room(s, 2, bytes), *at = room;
    size_t *places = room ? malloc(((size_t)s->size + 1) * sizeof *places) : NULL;
    if (s->ordered || !places)
        return s->ordered ? sum : NULL;
    places[0] = 0;
    for (int r = 0; r < s->size; r++)
        places[r + 1] = places[r] + (size_t)(counts ? counts[r] : count) * size;
    for (int i = 0; i < s->size; i++) {
        int r = s->order[i];
        memcpy(at, sum + places[r], places[r + 1] - places[r]);
        at += places[r + 1] - places[r];
    }
    free(places);
    return room;
}

int across_reduce_scatter(struct link *link, const char *function, const char *from, char *to,
                          const int counts[], int count, const struct fold *f)
{
    struct spread *s = link->spread;
    struct descriptor d = { function, f->element->tutti, f->tutti_op, -1, 0 };
    struct chunk_sum p = { .n = 0 };
    size_t size = f->element->size, *blocks = calloc((size_t)s->hosts, sizeof *blocks);
    char *sum = NULL, *met;
    shield_up(link, function);
    for (int r = 0; blocks && r < s->size; r++) {
        blocks[s->host[r]] += (size_t)(counts ? counts[r] : count);
        d.count += (size_t)(counts ? counts[r] : count);
    }
    int e = blocks ? 0 : -ENOMEM;
    if (e == 0 && s->leads && (!piece_open(&p, s) || !(sum = spread_room(s, 1, d.count * size))))
        e = -ENOMEM;
    e = e ? leaders_fail(link, function, e) : reduce_here(link, function, from, sum, d.count, f);
    if (e == 0 && s->leads) {
        e = leaders_meet(link, &d, NULL, 0, &met);
        if (e == 0 && !(sum = by_hosts(link, sum, counts, count, size, d.count * size)))
            e = leaders_fail(link, function, -ENOMEM);
        e = e ? e : scatter_far(link, function, sum, blocks, f, &p);
    }
    e = e ? e : scatter_here(link, function, p.result, counts, count, to, size);
    if (s->leads)
        piece_close(&p);
    free(blocks);
    return e;
}
