/* Job: contributions that lie in this rank's slot in the arena when it arrives.
 * Owns: the slot, one for each parity of the operation's number.
 * Never: more than FLAT_BYTES. */
#ifndef TUTTI_COLL_FLAT_H
#define TUTTI_COLL_FLAT_H

#include "coll/coll.h"

int  flat_put(struct coll *c);                       /* c->send into the slot of this operation, and publishes it; 0 or -errno */
int  flat_put_nothing(struct coll *c);               /* this rank gives nothing; 0 */
int  flat_fold(struct coll *c);                      /* everybody's slots into c->recv; 0, or -EPROTO where a peer's slot lies nowhere */

#endif
