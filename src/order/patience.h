/* Job: sleep until one word changes, one rank is gone, or the patience is over.
 * Owns: nothing but its declaration in the sleepers word it is given.
 * Never: collectives: those wait by watch/drive. */
#ifndef TUTTI_ORDER_PATIENCE_H
#define TUTTI_ORDER_PATIENCE_H

#include "group/comm.h"

struct patience {
    struct tutti_comm *comm;
    int64_t timeout_ns;                /* < 0: none */
    uint64_t began_ns, excused_ns;
    int slices;
    bool warned;
    bool broken;                       /* the comm has failed: the report is written */
};

struct patience patience_begin(struct tutti_comm *comm, int64_t timeout_ns);

/* One slice of sleep while *word's low half is `seen`; `about` is the rank waited for. 0: look again. -ETIMEDOUT, -EINTR (the comm is aborted);
   if the comm has failed, the cause, and it is broken here. Afterwards patience_gone says whether `about` is gone. */
int patience_sleep(struct patience *p, shared64 *word, uint64_t seen, shared32 *sleepers, uint32_t about, const char *what);
bool patience_gone(struct patience *p, uint32_t about);

/* The same for a word that no rank of the comm in particular will change. `other` is somebody who might, in the job: the sleep ends early
   when he is gone. what: "for key …". */
int patience_sleep_any(struct patience *p, shared64 *word, uint64_t seen, shared32 *sleepers, struct seat *other, const char *what);

/* The first rank of the world from *from on that is not this one, and lives; NULL: none is left. *from moves on: who is gone stays so. */
struct seat *patience_other(const struct patience *p, uint32_t *from);

/* Has the comm failed? 0, or the cause, and it is broken here: nobody begins anything on a comm that others have given up. */
int patience_check(struct patience *p, uint32_t about, const char *what);
int patience_check_any(struct patience *p, const char *what);

#endif
