/* Job: what every handle of work under way (tutti_work) begins with, whoever made it.
 * Owns: nothing.
 * Never: a handle's other fields: those are its maker's (queue.c, request.c). */
#ifndef TUTTI_ENGINE_WORK_H
#define TUTTI_ENGINE_WORK_H

#include "engine/completion.h"
#include "group/comm.h"

/* comm, lock: there as long as it is not over. */
struct work_completion {
    struct completion *completion;
    struct tutti_comm *comm;
    pthread_mutex_t *lock;
};

/* What tutti_wait, tutti_test and tutti_uring_prep_wait do with it. */
struct work_shape {
    int (*wait)(struct tutti_work *work, int timeout_ms);
    int (*test)(struct tutti_work *work);
    struct work_completion (*completion)(struct tutti_work *work);
};

/* A handle's first member is a pointer to its shape. */
static inline const struct work_shape *work_shape(const struct tutti_work *work)
{
    return *(const struct work_shape *const *)(const void *)work;
}

#endif
