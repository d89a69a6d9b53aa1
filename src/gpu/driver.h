/* Job: find and load CUDA's driver when it is first needed; give its functions, its devices, and
 *      the kind of memory behind a pointer.
 * Owns: the handle of libcuda.so.1 and the table of its functions: one each per process, for good.
 * Never: makes a context, a buffer or a stream; runs at load or at init.
 *
 * Nothing here runs before somebody asks about a device, so a program without CUDA does not get it
 * from us.
 *
 * CUDA does not survive fork. In a child of a process in which CUDA had begun, driver_open fails,
 * and to driver_pointer all memory is the host's: the child cannot reach what the parent calls
 * device memory. A fork before CUDA begins is harmless. */
#ifndef TUTTI_GPU_DRIVER_H
#define TUTTI_GPU_DRIVER_H

#include "base/text.h"
#include "gpu/cuda_api.h"

#include <stdbool.h>

struct driver {
    struct cuda_api call;
    int version;                                     /* 1000 major + 10 minor: 12080 */
    int devices;                                     /* that this process may see, at least 1 */
};

/* Gives the driver, which the first call begins (cuInit); later calls give the same answer. 0, or
   -errno with the reason in *why (may be NULL). -ENODEV: no driver, a stub, no GPU. -ENOSYS: a
   driver before R470. -ENOTSUP: a forked child. Else what cuInit returned. Any thread. CUDA takes
   some 100 ms in the first call. */
int driver_open(const struct driver **driver, struct text *why);

/* plain | registered with CUDA | a GPU's | managed: of both */
enum driver_memory { DRIVER_HOST, DRIVER_PINNED, DRIVER_DEVICE, DRIVER_MANAGED };

struct driver_pointer {
    enum driver_memory memory;
    /* ordinal in this process; -1 for DRIVER_HOST, whose other fields are 0 */
    int device;
    CUcontext context;                               /* NULL for memory of cuMemCreate */
    CUdeviceptr address;                             /* the device's address of it */
    CUdeviceptr base;                                /* of its buffer; below, that buffer's size */
    size_t bytes;
    uint64_t buffer;                /* the buffer's number: unlike an address, never used again */
    bool ipc, descriptor;           /* may be shared by cuIpcGetMemHandle | by a file descriptor */
};

/* Finds the kind of memory at `at`. 0; -errno with *why: CUDA cannot say. Loads nothing and begins
   nothing. If nobody has loaded the driver, no pointer can be a device's: that answer costs 2 ns
   behind a mark (gpu/loads), 20 to 60 without. If the driver is loaded, it costs a call of it. */
int driver_pointer(const void *at, struct driver_pointer *pointer, struct text *why);

bool driver_loaded(void);             /* true: we or others have loaded it */
/* Makes later answers of these two cheap. May wait for what other threads are loading. */
void driver_ahead(void);
bool driver_begun(void);              /* CUDA was seen to begin, here or before a fork */
bool driver_forked(void);             /* this is a child of a process in which CUDA had begun */

/* bus: PCI's; major.minor: compute capability */
struct driver_device { char name[96], bus[20]; CUuuid uuid; int major, minor; };

int driver_device(const struct driver *driver, int ordinal, struct driver_device *device,
                  struct text *why);

/* Adds "cuX: CUDA_ERROR_ILLEGAL_ADDRESS (700): an illegal memory access ..." to *why (may be NULL).
 * The error's -errno. */
int driver_failed(const struct cuda_api *call, const char *function, CUresult error,
                  struct text *why);
int driver_error(CUresult error);                    /* 0 or -errno */

/* For tests: fills the table by any look-up. The name of the first missing symbol, or NULL. */
const char *driver_bind(struct cuda_api *call, void *(*look)(void *library, const char *symbol),
                        void *library);

#endif
