/* Job: keeps the rounds of `versus`, in memory and in a file to which later runs add: a line of
 *      JSON each; and picks those that count for a point.
 * Owns: the file; which systems take part, in which order.
 * Never: measures, and never judges. */
#ifndef PERF_ROUNDS_H
#define PERF_ROUNDS_H

#include "harness/interval.h"
#include "harness/operation.h"

#include <stdio.h>

enum versus_system { VERSUS_TUTTI, VERSUS_OPENMPI, VERSUS_MPICH, VERSUS_OPENMPI_5, VERSUS_MPICH_5,
                     VERSUS_IMPI,
                     /* no systems, but floors: with more ranks than CPUs (bare_shapes.h) … */
                     VERSUS_FLOOR, VERSUS_FLOOR_PAST, VERSUS_FLOOR_DIRECT,
                     /* … and of two ranks on two CPUs, and of pairs (bare_pairs.h) */
                     VERSUS_PAIR_WHOLE, VERSUS_PAIR_FINE, VERSUS_PAIR_COARSE, VERSUS_PAIR_OUT,
                     VERSUS_PAIR_PAST, VERSUS_SYSTEMS,
                     VERSUS_PEERS_END = VERSUS_FLOOR };
extern const char *const versus_key[VERSUS_SYSTEMS];       /* "impi"; "tutti" */

struct point { enum operation_id op; int ranks; size_t bytes; };

struct round {
    struct point point;
    double before, after;                  /* one way of a line, ns; 0: unknown */
    double load;                           /* of the machine, in the last minute */
    long long when;                        /* seconds since 1970 */
    double ns[VERSUS_SYSTEMS];             /* of an operation; 0: it did not take part */
};

enum { ROUND_BYTES = 768, HEAD_BYTES = 512, VERSION_BYTES = 64 };
/* A line, with its end. */
void round_write(const struct round *r, char to[ROUND_BYTES]);
bool round_read(const char *line, struct round *r);

/* A system that takes so long at a point that it is left out there, and at larger sizes. */
struct left_out { struct point from; enum versus_system system; double ns, tutti_ns; };

enum { LEFT_OUT_MOST = 256 };
struct rounds {
    struct round *at;
    size_t n, room, unread;                /* unread: lines that could not be read */
    struct left_out left[LEFT_OUT_MOST];
    int left_count;
    char version[VERSUS_SYSTEMS][VERSION_BYTES];
    FILE *to;                              /* NULL: they are kept in memory only */
};

/* path: NULL for none. head: what all rounds of a file have in common, a line of JSON without its
   end: the machine, the build. false: `why` says what is in the way, as that the file has another
   head. */
bool rounds_open(struct rounds *all, const char *path, const char *head, char *why, size_t room);
/* Which version takes part from now on; false: the file has rounds of another one. */
bool rounds_version(struct rounds *all, enum versus_system system, const char *version);
/* Into the file at once: a run may be ended at any time. */
void rounds_add(struct rounds *all, const struct round *r);
void rounds_leave_out(struct rounds *all, const struct left_out *l);
/* NULL: it takes part. */
const struct left_out *rounds_left_out(const struct rounds *all, const struct point *p,
                                       enum versus_system system);
void rounds_close(struct rounds *all);

/* How many rounds of the point count, in any state; dropped: how many do not, may be NULL. */
size_t rounds_count(const struct rounds *all, const struct point *p, size_t *dropped);
/* The ns of a system in the rounds of a state; its ratios to tutti's, of rounds that have both. */
struct series rounds_ns(const struct rounds *all, const struct point *p, enum line_state state,
                        enum versus_system system);
struct series rounds_ratios(const struct rounds *all, const struct point *p, enum line_state state,
                            enum versus_system system);
/* The same over the shortest of the round's floors, of rounds that have one. */
struct series rounds_over_floor(const struct rounds *all, const struct point *p,
                                enum line_state state, enum versus_system system);

#endif
