/* Job: tell the other ranks of a list that this rank cannot make a comm with them (comm_create):
 *      at once, also to ranks that come later.
 * Owns: member.declines of this rank.
 * Never: waits.
 *
 * A creation is known by the hash of its list and its number. Each rank counts the numbers itself.
 * A decline stays until a later creation of that list has been made: all ranks have come to that
 * one, so all have asked about the earlier ones.
 *
 * E76 decline: a rank stores the list, and before it, if it had a hold on the slot, its last
 *    word there, then the range (release); a reader loads the range (acquire), then the list
 *    once more. */
#ifndef TUTTI_GROUP_DECLINE_H
#define TUTTI_GROUP_DECLINE_H

#include "group/comm.h"

/* held: the slot was found, and this rank's last word there is said. False: there is no room. */
bool decline_say(struct tutti_comm *parent, uint64_t list, uint64_t nth, int error, bool held);

/* 0, or the error for which p declined. *held: as p said. */
int decline_of(const struct watch *parent, uint32_t p, uint64_t list, uint64_t nth, bool *held);

/* The last number that this rank has declined of a list; 0: none. */
uint64_t decline_last(const struct watch *parent, uint64_t list);

#endif
