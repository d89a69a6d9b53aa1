/* Job: get the handle by which other processes can open a buffer of a device.
 * Owns: the descriptor of a handle, until its end. An open one keeps the memory.
 * Never: says who may open it (ipc_export.h); sends it (descriptors.h). */
#ifndef TUTTI_GPU_LENT_HANDLE_H
#define TUTTI_GPU_LENT_HANDLE_H

#include "arena/lent.h"
#include "gpu/driver.h"
#include "os/kept.h"

struct lent_handle {
    enum lent_how how;
    unsigned char legacy[64], device[16];        /* cuIpcGetMemHandle's; the GPU's UUID */
    struct kept file;                            /* of LENT_DESCRIPTOR */
    char words[120];                             /* LENT_NOT: why */
};

/* Of the buffer or mapping that begins at pointer->base. A context is current. 0, also with
 * LENT_NOT: threads of this process can still use the memory. Else -errno with *why. */
int  lent_handle_of(struct lent_handle *handle, const struct cuda_api *call,
                    const struct driver_pointer *pointer, struct text *why);
void lent_handle_end(struct lent_handle *handle);

#endif
