/* Job: what a rank says to the others of a list that it cannot make a comm with them (comm_create):
 *      at once, also to those who come later.
 * Owns: member.declines of this rank.
 * Never: waits.
 *
 * A creation is known by the hash of its list and its number, which each rank counts for itself.
 * What is declined stays until a later creation of that list was made, for all have come to that
 * one, and so have asked for all before it.
 *
 * E76 decline: a rank stores the list, and before it, if it had a hold on the slot, its last
 *    word there, then the range (release); a reader loads the range (acquire), then the list
 *    once more. */
#ifndef TUTTI_GROUP_DECLINE_H
#define TUTTI_GROUP_DECLINE_H

#include "group/comm.h"

/* held: the slot had been found, and its last word there is said. False: there is no room
 * to say so. */
bool decline_say(struct tutti_comm *parent, uint64_t list, uint64_t nth, int error, bool held);

/* 0, or what kept p from it. *held: as said. */
int decline_of(const struct watch *parent, uint32_t p, uint64_t list, uint64_t nth, bool *held);

/* The last number that this rank has declined of a list; 0: none. */
uint64_t decline_last(const struct watch *parent, uint64_t list);

#endif
