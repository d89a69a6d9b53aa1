/* Job: the words for what a rank does: one operation, an end, a wait. The roll-call on stderr and
 *      the onlookers (tutti ps, tutti why) say the same thing by the same words.
 * Owns: nothing.
 * Never: reads the arena: what is to be said is handed over in numbers. */
#ifndef TUTTI_WATCH_PHRASE_H
#define TUTTI_WATCH_PHRASE_H

#include "base/text.h"
#include "watch/fingerprint.h"

/* One operation, as a record of the journal has it. */
struct op_record {
    bool became;                      /* false: the call did not become an operation */
    uint64_t number;                  /* from the comm's first; 0: it has none */
    uint64_t descriptor, count;
    uint32_t about, tag;              /* of a message: peer + 1, tag + 1; 0: any */
    const char *comm;                 /* NULL: it need not be said */
    const char *site;
};

/* What a rank does. over: it is gone, and how has been said. stopped: by a signal. */
struct doing {
    bool over, stopped, called, ended;
    uint64_t age_ns;
    int result;
    struct op_record operation;
};

const char *phrase_short(const char *site);          /* the last two parts of a path */
/* "all_reduce f32 sum 1024 #3" */
void phrase_name(struct text *t, uint64_t descriptor, uint64_t count, uint64_t number);
/* The same of any call: "recv f32 10 from 3 tag 7". comm and site are not looked at. */
void phrase_call(struct text *t, const struct op_record *operation);
/* "all_reduce f32 sum 1024 #3 at a.c:12", "recv f32 10 from 3 tag 7 at …" */
void phrase_operation(struct text *t, const struct op_record *operation);
/* "barrier #3 at a.c:12 for 2 s"; "in its own code for 2 s, last: barrier #3 at a.c:12" … */
void phrase_doing(struct text *t, const struct doing *doing);
/* "died, killed by signal 9 (SIGKILL)". status: wait status << 1 | 1; 0: not known */
void phrase_death(struct text *t, uint32_t status);
/* "left"; "left, exit status 1". status: as above */
void phrase_left(struct text *t, uint32_t status, const char *program);
void phrase_ranks(struct text *t, const int *ranks, int n);     /* "rank 3", "ranks 0, 4-7" */

#endif
