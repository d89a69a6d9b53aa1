/* Job: keep a comm's staging in the memory of one device: its own slots, and which peers' slots
 *      this rank has open for it.
 * Owns: the memory. It is allocated and shared at its first use, and stays until the comm is freed.
 * Never: copies, folds, chooses; says when a slot is free (direct_staged.c).
 *
 * It is for memory whose handle cannot be had, or should not be opened at each operation: memory of
 * a program's pool, of cuMemCreate, managed memory. To open such memory takes up to a millisecond,
 * and to close it waits for all kernels of the context. */
#ifndef TUTTI_GPU_DEVICE_SLOTS_H
#define TUTTI_GPU_DEVICE_SLOTS_H

#include "base/tiny.h"
#include "gpu/context.h"
#include "group/comm.h"

enum { DEVICE_SLOTS = 2, DEVICE_SLOT_BYTES = TINY(16 << 20, 1024) };

struct device_slots {
    void *at;                                    /* NULL: there are none */
    struct driver_pointer pointer;
    char *refused;                               /* why there will be none; NULL: not refused */
    uint64_t *opened;                            /* [ranks] CUDA's number of the peer's buffer */
};

/* Makes sure that they are there. 0, or -errno with *why: -ENOMEM … of the device. What fails once
 * is not tried again for this comm. */
int  device_slots_open(struct device_slots *slots, struct tutti_comm *comm, const struct gpu *gpu,
                       struct text *why);
/* This rank has opened p's slots, which have that number. 0, -ENOMEM. */
int  device_slots_opened(struct device_slots *slots, const struct tutti_comm *comm, uint32_t p,
                         uint64_t buffer);
/* Nothing is under way in them. Closes those of peers, gives its own back. */
void device_slots_close(struct device_slots *slots, struct tutti_comm *comm);

#endif
