/* Job: for the hostile tests: a stream of operations of every kind, the same on all ranks, and the
 *      regions of an arena that a rank might write over.
 * Owns: the buffers of a rank's stream, and its queue. A process is one rank.
 * Never: what a test expects of it. */
#ifndef TUTTI_TEST_FAULTS_HOSTILE_H
#define TUTTI_TEST_FAULTS_HOSTILE_H

#include "support/team.h"

#include <stdbool.h>

/* send, receive, receive of _v forms: in the arena, and not */
struct hostile_room { char *arena[3], *own[3]; };

enum { HOSTILE_BYTES = 2 << 20 };

int  hostile_room_open(struct hostile_room *room, tutti_comm *world);
void hostile_room_close(struct hostile_room *room, tutti_comm *world);

extern const int hostile_ops;
const char *hostile_op_name(int op);
/* Operation number n of the stream, of this kind. 0 or what it returned. What comes out is not
 * looked at. */
int hostile_op(tutti_comm *world, const struct hostile_room *room, int op, uint64_t n);
/* The report of the last hostile_op, of this kind, which failed; until the next call. */
const char *hostile_said(tutti_comm *world, int op);
tutti_queue *hostile_queue(void);                            /* of all ranks; rank 0 puts */

struct hostile_stretch { char *at; size_t bytes; };
extern const int hostile_regions;
const char *hostile_region_name(int region);
bool hostile_region_of_letters(int region);          /* where messages lie on their way */
/* Where this region of this rank's is now; bytes 0: there is none yet. */
struct hostile_stretch hostile_region(int region, tutti_comm *world);
/* Writes over some or all of it: noise, zeros, ones, numbers that look like offsets,
 * single bits. */
void hostile_scribble(struct hostile_stretch s, uint64_t *random);

#endif
