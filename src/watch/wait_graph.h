/* Job: who waits for whom, as far as it can be reached from one waiting thread, and which of these
 *      waits nothing can end.
 * Owns: struct wait_graph, on the heap.
 * Never: decides by one look (cycle.h confirms), writes into the arena.
 *
 * A node is a thread that waits (its struct waiter says for what). It has groups: the threads of
 * one rank that could bring what is missing, all of which wait themselves. A rank of which a thread
 * could still come makes no group. A collective can never end if one group of it is stuck: that
 * rank will not arrive; and if nobody who has come to it has a deadline that ends it. A wait for
 * any rank can never end only if all ranks make groups and all are stuck. What is left when nothing
 * more can be struck out is stuck; a node that also leads back to itself is in a cycle; one that
 * waits for a message of its own rank, of which it is the only thread, is one. */
#ifndef TUTTI_WATCH_WAIT_GRAPH_H
#define TUTTI_WATCH_WAIT_GRAPH_H

#include "watch/watch.h"

/* WITNESSES: missing ranks of one collective that are followed up */
enum { NODES_MAX = 256, GROUPS_MAX = 1024, WITNESSES = 16 };

struct node {
    uint32_t rank, thread;            /* of the world; number there */
    uint64_t stamp, beats;
    uint64_t birth, seq;
    struct slot *slot;
    uint32_t me, kind, site, about;   /* as in struct waiter */
    int first, groups;                /* of graph.group */
    bool all;                         /* all groups must be stuck, not one of them */
    bool stuck, ahead, back;          /* ahead: node 0 leads to it; back: and it to node 0 */
};

/* member: the rank's number in the comm */
struct group { uint32_t rank, member; int n; uint16_t to[THREADS_MAX]; };

struct wait_graph {
    const struct arena *arena;
    int nodes, groups;
    bool full;
    struct node node[NODES_MAX];
    struct group group[GROUPS_MAX];
};

/* Under join.lock. True: node 0, the thread with that number of that rank, is in a cycle;
   `ahead` are all waits that this rests on, `back` those in the cycle. Stamps were all read
   before any beats. */
bool wait_graph_walk(struct wait_graph *g, const struct arena *arena, uint32_t rank,
                     uint32_t thread);
bool wait_graph_same(const struct wait_graph *g);    /* all that are ahead wait as they did */
bool wait_graph_group_stuck(const struct wait_graph *g, const struct group *group);

/* Without a lock: is there a rank that operation seq of this comm lacks and that waits itself? If
 * not, a walk is in vain. */
bool wait_graph_worth(const struct watch *w, uint64_t seq);

struct waiter *wait_graph_waiter(const struct wait_graph *g, const struct node *node);

/* A line for each wait in the cycle. */
void wait_graph_tell(const struct wait_graph *g, struct text *t);

#endif
