/* Job: contributions that travel in the arrival line.
 * Owns: this rank's payload words of the operation, before it arrives.
 * Never: more than LINE_BYTES; with a factor, 16 bytes. */
#ifndef TUTTI_COLL_LINE_H
#define TUTTI_COLL_LINE_H

#include "coll/coll.h"

/* Before the gate: all that this rank gives, c->bytes of it. 0. */
int line_put(struct coll *c);                        /* c->send */
int line_put_parts(struct coll *c);                  /* nothing where it gives nothing */
void line_get(const struct coll *c, uint32_t p, uint64_t words[PAYLOAD_WORDS]);      /* p's, after the gate */
/* After the gate. 0. */
int line_fold(struct coll *c);                       /* everybody's into c->recv */
int line_take(struct coll *c);                       /* the blocks that are meant for this rank (parts.h) */

#endif
