/* Job: the part of a rank in a trial, from its joining to its end, and what it shares
 *      with the test.
 * Owns: the rank's own lines of the page.
 * Never: kills anybody but a rank that is to be dead beforehand; decides where the victim
 *        dies (trial). */
#ifndef TUTTI_TEST_FAULTS_TRIAL_ROLE_H
#define TUTTI_TEST_FAULTS_TRIAL_ROLE_H

#include "base/atomic.h"
#include "every_collective.h"
#include "ptrace_step.h"

#include <tutti.h>

#define PATIENCE_NS (TRIAL_PATIENCE_S * UINT64_C(1000000000))

enum { TRIAL_MOST = 5, TRIAL_PATIENCE_S = 20, TRIAL_ERRORS = 6 };

struct trial_rank {
    shared32 stage;                   /* enum trial_stage; only grows */
    int pid;
    uint64_t base;                    /* the arena there */
    int gave, then[2];                /* what the operation gave, and the two barriers after it */
    uint64_t met_ns;                  /* when it first got an error */
    uint64_t cause;                   /* the verdict by which it failed */
    uint64_t number;                  /* an act's own: what is to be the same on all */
    int members;                      /* of the comm after shrink */
    char wrong[256];                  /* "": all is right here */
    char report[1000];
};
enum trial_stage { STAGE_NONE, STAGE_READY, STAGE_IN, STAGE_OUT, STAGE_SHRUNK, STAGE_DONE };

/* Shared by the ranks and the test. */
struct trial_page {
    /* the victim may come to its mark; the victim may begin; the others may */
    shared32 seized, go, released;
    shared32 runs;                    /* of a function under once */
    shared32 here;                    /* for an act: who has come */
    int second;                       /* rank + 1 of who is killed after the victim, 0: nobody */
    uint64_t control;                 /* how much of the arena is no rank's own memory */
    uint64_t all;                     /* the whole of it */
    struct trial_rank rank[TRIAL_MOST];
};

/* A rank's own. */
struct role {
    const struct act *act;
    tutti_comm *world, *comm;         /* comm: what the operation made, or is about */
    struct trial_page *page;
    const char *job;
    int rank, size, victim;
    struct every every;
    struct every_room room;
    char *memory;
    int value;
};

enum act_flags {
    ACT_INSTRUCTIONS = 1,             /* killed at each instruction, too */
    ACT_ALIKE = 2,                    /* all or none: the same on all survivors */
    ACT_BREAKS = 4,                   /* an error of it breaks the world there */
    ACT_BROKEN = 8,                   /* the world is broken before: the last rank has died */
    ACT_DEAD = 16,                    /* the last rank has died, and nobody has met that yet */
    /* the others do not come because the victim sleeps, only when it is over */
    ACT_HOLD = 32,
    ACT_SPANS = 64,                   /* stores to ranks' own memory count, too: letters */
    ACT_JOINS = 128,                  /* the operation is tutti_init */
    ACT_NUMBER = 256,                 /* trial_rank.number is the same on all that got 0 */
    /* the victim has another thread, which is not led: no events, instructions by lot */
    ACT_THREADS = 512,
    /* it alone is led, and the victim's own thread is not: the same */
    ACT_PROGRESS = 1024,
    /* another rank is killed after the victim, while the others find out, shrink and go on */
    ACT_TWO = 2048
};

struct act {
    const char *name;
    unsigned flags;
    int size;
    const char *algorithm;            /* every_rules; NULL: line */
    const char *gate;                 /* NULL: flags */
    enum kind kind;                   /* of a collective by every_collective.h */
    size_t count;
    int (*prepare)(struct role *s);  /* by all, before; NULL: nothing */
    int (*victim)(struct role *s);
    int (*peer)(struct role *s);     /* NULL: as victim */
    /* by the others, when the victim is gone; not 0: wrong, it has been said where */
    int (*check)(struct role *s, int gave);
    int allowed[TRIAL_ERRORS];        /* errors that they may get besides 0 */
};

extern const struct act acts[];
extern const int acts_count;

int  role_join(struct role *s);
int  role_run(struct role *s);          /* all of it; 0, or 1 and it has been said what is wrong */
void role_come(struct role *s, enum trial_stage stage);

/* For acts: notes that something is wrong on this rank, and returns 1. */
int  role_wrong(struct role *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
void role_raise(shared32 *word, uint32_t value);
bool role_awaits(shared32 *word, uint32_t value);   /* bounded */
void role_await(shared32 *word, uint32_t value);    /* ends this process when patience is over */

#endif
