/* Job: say from a copied arena, and from what the system knows of each rank's process, what each
 *      rank does, which ranks do the same, and how the job is.
 * Owns: nothing, and keeps nothing: the same input gives the same answer.
 * Never: opens a file, asks the system, prints.
 *
 * Every number of the copy may be wrong: it comes from memory that each process of the job can
 * write over. None is used as an index before it is bounded, and texts are escaped here. */
#ifndef TUTTI_CLI_RANK_STATES_H
#define TUTTI_CLI_RANK_STATES_H

#include "box/arena_copy.h"
#include "watch/phrase.h"

/* ordered: what is odd comes last */
enum rank_condition {
    RANK_RUNNING, RANK_SLEEPING, RANK_KERNEL, RANK_LEAVING, RANK_LEFT, RANK_UNSEEN,
    RANK_ABSENT, RANK_STOPPED, RANK_DEAD, RANK_CONDITIONS
};

/* The process of a rank. pid, tid: as seen from here; 0: there is none that is known to be it.
   state: of process_state; NULL: none. cpu_ns: its CPU time at read_ns. gone: its pid is nobody's
   any more. kernel: NULL: it runs, and /proc can be asked; or what was found there. end: how it
   ended, if its parent has not asked yet: wait status << 1 | 1; 0: not known. */
struct rank_process {
    pid_t pid, tid;
    const char *state;
    uint64_t cpu_ns, read_ns;
    bool gone;
    const char *kernel;
    uint32_t end;
};

enum {
    STATE_SITE = 4 * SITE_TEXT, STATE_JOB = 160, STATE_COMM = 32, STATE_PROGRAM = 64,
    STATE_KEY = 4 * AWAITED_TEXT
};

struct rank_state {
    uint32_t rank;
    enum rank_condition condition;
    struct rank_process process;
    uint32_t status;                  /* of a dead one: wait status << 1 | 1; 0: not known */
    struct doing doing;               /* its texts are the two below */
    char site[STATE_SITE], comm[STATE_COMM];
    char program[STATE_PROGRAM];
    char key[STATE_KEY];              /* of the store, that it waits for; "": none */
    uint64_t left_ns;                 /* until its deadline, at its last look, + 1; 0: none */
    uint32_t slot, member;            /* of that operation's comm */
    uint64_t seq;                     /* its number in the arena; 0, UINT64_MAX: none */
    bool meets;                       /* it has joined, and others have not */
    bool work;                        /* under way as work: its caller does not wait in it */
    int percent;                      /* of a CPU, between two looks; -1: not known */
    bool moved;                       /* something has changed between two looks */
    uint64_t pace;                    /* changes with all that this rank does */
    uint64_t operations, bytes, wait_ns, sleeps;      /* of all comms that are there */
};

/* by exit status of tutti ps */
enum job_status { JOB_FINE, JOB_STUCK, JOB_DEAD, JOB_FAILED };

struct rank_states {
    char job[STATE_JOB], version[64];
    uint32_t size, comms, left_out;
    uint64_t birth, age_ns;
    bool gathering;                   /* not all ranks have joined yet */
    bool over;                        /* no rank is there any more */
    enum job_status status;
    uint64_t oldest_ns;               /* the oldest wait */
    char failed[ABORT_TEXT + 64];     /* the comm that has failed, and how; "": none */
    struct rank_state *rank;              /* [size] */
};

/* process: [size]. stuck_ns: from this age a wait counts as stuck. 0 or -ENOMEM. */
int  rank_states_fill(struct rank_states *m, const struct arena_copy *g,
                      const struct rank_process *process, struct clock_point now,
                      uint64_t stuck_ns);
void rank_states_drop(struct rank_states *m);

/* What has changed since an earlier look at the same arena. */
void rank_states_compare(struct rank_states *m, const struct rank_states *before);

/* A wait that its caller is in now. */
static inline bool rank_state_waits(const struct rank_state *s)
{
    return s->condition != RANK_DEAD && s->condition != RANK_LEFT && s->doing.called
        && !s->doing.ended && !s->work;
}

/* Ranks that do the same: those of class k are `ranks` from begin[k] to begin[k + 1]. What most do
   comes first, what is odd before all. */
struct classes { int n; int *begin, *ranks; };
int  rank_states_classes(const struct rank_states *m, struct classes *c);      /* 0 or -ENOMEM */
void classes_drop(struct classes *c);

/* What this rank does: "barrier #3 at a.c:12 for 2 s". */
void rank_states_add_state(struct text *t, const struct rank_state *s);
const char *rank_condition_name(enum rank_condition condition);
const char *job_status_name(enum job_status status);

#endif
