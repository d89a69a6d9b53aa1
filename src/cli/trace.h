/* Job: all operations of a held job that its journals still have, in order, for the ways in which
 *      tutti trace shows them.
 * Owns: the list.
 * Never: asks the system, prints. Numbers may be wrong, as for rank_states.h; texts are escaped. */
#ifndef TUTTI_CLI_TRACE_H
#define TUTTI_CLI_TRACE_H

#include "cli/held_job.h"
#include "watch/history.h"

#include <stdio.h>

/* One operation of one rank of a comm. */
struct trace_op { const struct history *comm; uint32_t member; const struct history_op *op; };

/* op[0 … n): by their beginning. begin_ns: of the first one. */
struct trace {
    const struct held_job *held;
    struct rank_states states;
    struct history *comm;             /* those that are there */
    uint32_t comms, left_out;
    struct trace_op *op;
    size_t n;
    uint64_t begin_ns;
};

/* 0 or -ENOMEM. */
int  trace_gather(struct trace *t, const struct held_job *held);
void trace_drop(struct trace *t);

/* One operation of a comm, as each rank has it. at: [size], NULL: this rank has none that is known.
   came: how many have arrived. parties: kinds of calls among them; more than 1: a mismatch. early:
   it is older than what some journals still have. */
struct trace_meeting {
    uint64_t number;
    const struct history_op **at;
    uint32_t came, ended, failed, parties;
    bool early;
    uint64_t begin_ns, end_ns;        /* of all that there are; end_ns of one under way: 0 */
    int last;                         /* rank of the comm that came last; -1: not known */
    bool waited;                      /* others waited for it: */
    uint64_t late_ns;                 /* since the middle one of them came (watch/lateness) */
};

/* `at` has room for h->size. False: no rank has it. */
bool trace_meet(struct trace_meeting *m, const struct history *h, uint64_t number,
                const struct history_op **at);
/* The numbers of a comm's operations that are there, from … to; to < from: none. */
void trace_numbers(const struct history *h, uint64_t *from, uint64_t *to);
/* Have both called the same thing? */
bool trace_alike(const struct history_op *a, const struct history_op *b);

/* Over trace->op: each operation of a comm once, with the first rank that began it. */
struct trace_walk {
    const struct trace *trace;
    uint8_t **seen;                   /* [comms][operations of the comm] */
    const struct history_op **at;
};
int  trace_walk_begin(struct trace_walk *w, const struct trace *t);          /* 0 or -ENOMEM */
/* True: nobody has begun it before o, and *m is it, valid until the next call. */
bool trace_walk_first(struct trace_walk *w, const struct trace_op *o, struct trace_meeting *m);
void trace_walk_end(struct trace_walk *w);

void trace_add_comm(struct text *t, const struct history *h);            /* "world", "comm 3" */
/* "all_reduce f32 sum 1024 #3", "send f32 10 to 3 tag 7" */
void trace_add_name(struct text *t, const struct history_op *op);
void trace_add_site(struct text *t, const struct trace *trace, const struct history_op *op);
/* When it ended; of one under way, when the arena was copied. */
uint64_t trace_end(const struct trace *t, const struct history_op *op);

/* The ways. 0, or an exit status if it has said what was wrong. */
void trace_text(FILE *out, const struct trace *t, const char *head);
void trace_perfetto(FILE *out, const struct trace *t, const char *head);
void trace_html(FILE *out, const struct trace *t, const char *head);
int  trace_fr(const char *folder, const struct trace *t);

#endif
