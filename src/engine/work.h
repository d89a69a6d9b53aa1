/* Job: define what every handle of work under way (tutti_work) begins with, of both makers.
 * Owns: nothing.
 * Never: touches a handle's other fields: those are its maker's (queue.c, request.c). */
#ifndef TUTTI_ENGINE_WORK_H
#define TUTTI_ENGINE_WORK_H

#include "engine/completion.h"
#include "group/comm.h"

/* comm and lock are valid while it is not over. */
struct work_completion {
    struct completion *completion;
    struct tutti_comm *comm;
    pthread_mutex_t *lock;
};

/* The functions behind tutti_wait, tutti_test and tutti_uring_prep_wait. */
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
