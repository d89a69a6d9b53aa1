/* Job: say from a copied arena, and from what the system knows of each rank's process, what each
 *      rank does, which ranks do the same, and how the job is.
 * Owns: nothing, and keeps nothing: the same input gives the same answer.
 * Never: opens a file, asks the system, prints.
 *
 * Every number of the copy may be wrong: it comes from memory that each process of the job can
 * write over. None is used as an index before it is bounded, and texts are escaped here. */
#ifndef TUTTI_CLI_MUSTER_H
#define TUTTI_CLI_MUSTER_H

#include "cli/glimpse.h"
#include "watch/phrase.h"

/* ordered: what is odd comes last */
enum standing {
    STANDS_RUNNING, STANDS_SLEEPING, STANDS_KERNEL, STANDS_LEAVING, STANDS_LEFT, STANDS_UNSEEN,
    STANDS_ABSENT, STANDS_STOPPED, STANDS_DEAD, STANDINGS
};

/* The process of a rank. pid, tid: as seen from here; 0: there is none that is known to be it.
   state: of process_state; NULL: none. cpu_ns: its CPU time at read_ns. gone: its pid is nobody's
   any more. */
struct attended { pid_t pid, tid; const char *state; uint64_t cpu_ns, read_ns; bool gone; };

enum { MUSTER_SITE = 4 * SITE_TEXT, MUSTER_JOB = 160, MUSTER_COMM = 32, MUSTER_PROGRAM = 64 };

struct stance {
    uint32_t rank;
    enum standing standing;
    struct attended process;
    uint32_t status;                  /* of a dead one: wait status << 1 | 1; 0: not known */
    struct doing doing;               /* its texts are the two below */
    char site[MUSTER_SITE], comm[MUSTER_COMM];
    char program[MUSTER_PROGRAM];
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
enum plight { PLIGHT_FINE, PLIGHT_STUCK, PLIGHT_DEAD, PLIGHT_FAILED };

struct muster {
    char job[MUSTER_JOB], version[64];
    uint32_t size, comms, left_out;
    uint64_t birth, age_ns;
    bool gathering;                   /* not all ranks have joined yet */
    bool over;                        /* no rank is there any more */
    enum plight plight;
    uint64_t oldest_ns;               /* the oldest wait */
    char failed[ABORT_TEXT + 64];     /* the comm that has failed, and how; "": none */
    struct stance *rank;              /* [size] */
};

/* process: [size]. stuck_ns: from this age a wait counts as stuck. 0 or -ENOMEM. */
int  muster(struct muster *m, const struct glimpse *g, const struct attended *process,
            struct clock_point now, uint64_t stuck_ns);
void muster_drop(struct muster *m);

/* What has changed since an earlier look at the same arena. */
void muster_compare(struct muster *m, const struct muster *before);

/* A wait that its caller is in now. */
static inline bool stance_waits(const struct stance *s)
{
    return s->standing != STANDS_DEAD && s->standing != STANDS_LEFT && s->doing.called
        && !s->doing.ended && !s->work;
}

/* Ranks that do the same: those of class k are `ranks` from begin[k] to begin[k + 1]. What most do
   comes first, what is odd before all. */
struct classes { int n; int *begin, *ranks; };
int  muster_classes(const struct muster *m, struct classes *c);      /* 0 or -ENOMEM */
void classes_drop(struct classes *c);

/* What this rank does: "barrier #3 at a.c:12 for 2 s". */
void muster_add_stance(struct text *t, const struct stance *s);
const char *standing_name(enum standing standing);
const char *plight_name(enum plight plight);

#endif
