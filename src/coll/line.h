/* Job: contributions that travel in the arrival line.
 * Owns: this rank's payload words of the operation, before it arrives.
 * Never: more than LINE_BYTES. */
#ifndef TUTTI_COLL_LINE_H
#define TUTTI_COLL_LINE_H

#include "coll/coll.h"

int  line_put(struct coll *c);                                                       /* c->bytes of c->send, before the arrival; 0 */
void line_get(const struct coll *c, uint32_t p, uint64_t words[PAYLOAD_WORDS]);      /* p's, after all have arrived */
int  line_fold(struct coll *c);                                                      /* everybody's into c->recv; 0 */

#endif
