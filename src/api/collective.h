/* Job: a collective of even parts, from its description to its end: check the arguments, hand it to run. All checks are done before anything is
 *      touched.
 * Owns: nothing.
 * Never: lists of counts (uneven.c). */
#ifndef TUTTI_API_COLLECTIVE_H
#define TUTTI_API_COLLECTIVE_H

#include "api/check.h"
#include "api/device.h"
#include "api/enter.h"
#include "api/run.h"

/* CUDA is in this process. Not inline: the description of device buffers is large. */
int collective_device(struct tutti_comm *comm, struct coll *c, enum kind kind, uint32_t number, const tutti_call *call);

/* The comm has been entered. */
static inline int collective_entered(struct tutti_comm *comm, struct coll *c, enum kind kind, uint32_t number, const tutti_call *call)
{
    int r = check_data(comm, c, kind, number, call);
    if (r == 0)
        r = check_buffers(comm, c, kind, number);
    if (r == 0)
        r = device_suspected(comm, c, call) ? collective_device(comm, c, kind, number, call) : run_collective(comm, c, kind, number, call);
    return enter_leave(comm, r);
}

/* Inline: each caller's kind is a constant. */
static inline __attribute__((always_inline)) int collective(const char *site, tutti_comm *comm, struct coll *c, enum kind kind, const tutti_call *call)
{
    enter_clear(call);
    int r = enter(comm);
    return r < 0 ? r : collective_entered(comm, c, kind, comm_site(comm, site), call);
}

#endif
