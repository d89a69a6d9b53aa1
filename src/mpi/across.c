/* Collectives that move bytes between hosts, in pieces where they are large: while leaders exchange
 * one, the ranks of a host do theirs of the next. */
#define TUTTI_NO_SITES
#include "mpi/across.h"

#include "mpi/shield.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int across_barrier(struct link *link, const char *function)
{
    struct descriptor d = { function, -1, -1, -1, 0 };
    char *all;
    shield_up(link, function);
    int e = tutti_barrier_at(function, link->tutti, NULL);
    if (e < 0)
        return leaders_fail(link, function, e);
    if (link->spread->leads && (e = leaders_meet(link, &d, NULL, 0, &all)) < 0)
        return e;
    e = tutti_barrier_at(function, link->tutti, NULL);
    return e < 0 ? leaders_fail(link, function, e) : 0;
}

/* One piece within the host. */
static int bcast_here(struct link *link, const char *function, void *at, size_t bytes, int place)
{
    int e = tutti_broadcast_at(function, at, bytes, TUTTI_U8, place, link->tutti, NULL);
    return e < 0 ? leaders_fail(link, function, e) : 0;
}

static int bcast_small(struct link *link, const char *function, char *at, size_t bytes, int root)
{
    struct spread *s = link->spread;
    struct descriptor d = { function, -1, -1, root, bytes };
    bool mine = s->host[root] == s->mine;
    char *all;
    int e = mine ? bcast_here(link, function, at, bytes, s->place[root]) : 0;
    if (e == 0 && s->leads) {
        e = leaders_meet(link, &d, at, mine ? bytes : 0, &all);
        if (e == 0 && !mine && bytes)
            memcpy(at, all + (size_t)s->host[root] * MET + HEADER, bytes);
    }
    return e == 0 && !mine ? bcast_here(link, function, at, bytes, 0) : e;
}

int across_bcast(struct link *link, const char *function, char *at, size_t bytes, int root)
{
    struct spread *s = link->spread;
    struct descriptor d = { function, -1, -1, root, bytes };
    bool mine = s->host[root] == s->mine;
    char *met, *room[2] = { NULL, NULL };
    int e = 0;
    shield_up(link, function);
    if (bytes <= INLINE)
        return bcast_small(link, function, at, bytes, root);
    for (int i = 0; s->leads && i < 2; i++)
        if (!(room[i] = spread_room(s, 1 + i, ACROSS_PIECE)))
            return leaders_fail(link, function, -ENOMEM);
    if (s->leads)
        e = leaders_meet(link, &d, NULL, 0, &met);
    /* The root's host is one piece ahead of its leader, each other host one piece behind. */
    for (size_t k = 0, pieces = (bytes + ACROSS_PIECE - 1) / ACROSS_PIECE; e == 0 && k <= pieces;
         k++) {
        size_t here = mine ? k : k - 1, far = mine ? k - 1 : k;
        size_t far_bytes = piece_of(bytes, far), here_bytes = piece_of(bytes, here);
        bool there = s->leads && far < pieces;
        if (there && mine)
            memcpy(room[far % 2], at + far * ACROSS_PIECE, far_bytes);
        if (there)
            e = leaders_start_bcast(link, room[far % 2], far_bytes, s->host[root]);
        if (e == 0 && here < pieces)
            e = bcast_here(link, function, at + here * ACROSS_PIECE, here_bytes,
                           mine ? s->place[root] : 0);
        if (e == 0 && there)
            e = leaders_wait(link, function);
        if (e == 0 && there && !mine)
            memcpy(at + far * ACROSS_PIECE, room[far % 2], far_bytes);
    }
    return e;
}

/* What each host gives to all: the parts of its ranks, one after the other. */
struct hosts_parts { struct far_bytes *give, *get; size_t all; };

static bool parts_open(struct hosts_parts *p, const struct spread *s, const size_t bytes[])
{
    p->give = calloc((size_t)s->hosts * 2, sizeof *p->give);
    p->get = p->give ? p->give + s->hosts : NULL;
    p->all = 0;
    for (int i = 0; p->give && i < s->size; i++) {
        p->get[s->host[s->order[i]]].bytes += bytes[s->order[i]];
        p->all += bytes[s->order[i]];
    }
    return p->give != NULL;
}

/* Between leaders; whole: room for all parts, this host's own filled. */
static int gather_far(struct link *link, const char *function, struct hosts_parts *p, char *whole)
{
    struct spread *s = link->spread;
    struct descriptor d = { function, -1, -1, -1, p->all };
    char *met;
    for (int h = 0; h < s->hosts; h++) {
        p->get[h].at = whole;
        whole += p->get[h].bytes;
    }
    for (int h = 0; h < s->hosts; h++)
        p->give[h] = p->get[s->mine];
    int e = leaders_meet(link, &d, NULL, 0, &met);
    return e ? e : leaders_exchange(link, function, p->give, p->get);
}

/* The parts of this host's ranks, to its leader. */
static int gather_here(struct link *link, const char *function, const char *from,
                       const size_t bytes[], char *block)
{
    struct spread *s = link->spread;
    int n = s->number[s->mine], e = -ENOMEM;
    void **to = malloc((size_t)n * sizeof *to);
    size_t *sizes = malloc((size_t)n * sizeof *sizes);
    for (int i = 0; to && sizes && i < n; i++) {
        to[i] = block;
        sizes[i] = bytes[s->order[s->first[s->mine] + i]];
        block += sizes[i];
    }
    if (to && sizes)
        e = tutti_gather_v_at(function, from, bytes[link->rank], s->leads ? to : NULL,
                              s->leads ? sizes : NULL, TUTTI_U8, 0, link->tutti, NULL);
    free(to);
    free(sizes);
    return e < 0 ? leaders_fail(link, function, e) : 0;
}

int across_all_gather(struct link *link, const char *function, const char *from, void *const at[],
                      const size_t bytes[])
{
    struct spread *s = link->spread;
    struct hosts_parts p;
    size_t before = 0;
    shield_up(link, function);
    if (!parts_open(&p, s, bytes))
        return leaders_fail(link, function, -ENOMEM);
    for (int h = 0; h < s->mine; h++)
        before += p.get[h].bytes;
    char *whole = spread_room(s, 1, p.all);
    int e = whole ? gather_here(link, function, from, bytes, whole + before)
                  : leaders_fail(link, function, -ENOMEM);
    if (e == 0 && s->leads)
        e = gather_far(link, function, &p, whole);
    if (e == 0)
        e = bcast_here(link, function, whole, p.all, 0);
    for (int i = 0; e == 0 && i < s->size; i++) {
        int rank = s->order[i];
        if (bytes[rank])
            memcpy(at[rank], whole, bytes[rank]);
        whole += bytes[rank];
    }
    free(p.give);
    return e;
}
