/* Job: define what every handle of work under way (tutti_work) begins with, make and end handles,
 *      and wait for them as tutti_wait and tutti_test do.
 * Owns: the fields of tutti_work.
 * Never: moves work: that is its maker's (queue.c, request.c, feed_work.c). */
#ifndef TUTTI_ENGINE_WORK_H
#define TUTTI_ENGINE_WORK_H

#include "engine/completion.h"
#include "base/clock.h"
#include "group/comm.h"

/* A maker's handle begins with it. comm is valid while the work is not over. */
struct tutti_work {
    const struct work_shape *shape;
    struct tutti_comm *comm;
    struct completion completion;      /* over: result may be read */
    int result;
    void *lists;                       /* a copy of the caller's lists, freed with the handle */
    int64_t keep_ns;                   /* TUTTI_KEEP: it is late from then on; -1: never */
    /* its waiter: when it fell asleep; 0: it has not, or has given up. A figure for the budget */
    shared64 slept_ns;
    void (*done)(int error, void *arg);
    void *done_arg;
};

/* How long a thread waits for a handle. */
struct patience {
    uint64_t began_ns;
    int64_t most_ns;                   /* -1: until the work is over */
    bool heeds_late;                   /* also ends when the work is late */
    bool told;                         /* the wait is recorded in the journal, if its maker does */
};

/* A maker's functions. */
struct work_shape {
    /* Waits: 0: it is over. -EAGAIN: the patience has ended. Else why the work ends soon. */
    int (*await)(struct tutti_work *work, const struct patience *patience);
    /* Moves works under way on, if no other thread does. */
    void (*move)(struct tutti_work *work);
    /* completion.event stands under it. Called while the work is not over. */
    pthread_mutex_t *(*lock)(struct tutti_work *work);
};

static inline struct patience patience_endless(void)
{
    return (struct patience){ .began_ns = clock_ns(), .most_ns = -1 };
}

static inline bool work_late(const struct tutti_work *work)
{
    return work->keep_ns >= 0 && clock_ns() >= (uint64_t)work->keep_ns;
}

/* Whether the patience has ended. */
bool work_patience_over(const struct tutti_work *work, const struct patience *patience);
/* Sleeps until it is over or the patience has ended, for WAIT_LONG at most. */
void work_sleep(struct tutti_work *work, const struct patience *patience);

/* Memory for a handle that outlives its call, and the thread that carries it on. NULL: *error. */
void *work_make(struct tutti_comm *comm, size_t bytes, int *error);
/* What the caller gets: the handle, and `done` if it asked for it. */
void work_give(struct tutti_work *work, const tutti_call *call);
/* The work ends now: the comm's waits learn from how long its waiter has slept. Calls `done`, if
 * there is one, with the maker's lock open and this ATTENTION_NESTED_ bit set. */
void work_call_done(struct tutti_work *work, pthread_mutex_t *lock, uint32_t nested);
/* Its result, once it is over. awaited: what `await` returned: why it ends, if it does not succeed
 * all the same. */
int work_end(struct tutti_work *work, int awaited);

/* tutti_wait, tutti_test */
int work_wait(struct tutti_work *work, int timeout_ms);
int work_test(struct tutti_work *work);

#endif
