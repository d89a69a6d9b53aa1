/* Job: CUDA's driver in this process: found when it is first asked for, its functions, its devices,
 *      and whose memory a pointer is.
 * Owns: the handle of libcuda.so.1 and the table of its functions, one each for the
 *       process, for good.
 * Never: a context, a buffer, a stream. Never at load or at init: nothing here runs before somebody
 *        asks about a device, and a
 * program that has no CUDA does not get it from us.
 *
 * CUDA does not survive fork. A child of a process in which it had begun is refused by driver_open,
 * and to driver_pointer all of its memory is the host's: what the parent calls device memory it
 * cannot reach. Before CUDA begins one may fork as one likes. */
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

/* The driver, begun (cuInit) by the first call; later ones give the same answer. 0, or why there is
   none, in words in *why (may be NULL): -ENODEV no driver, a stub, no GPU; -ENOSYS a driver before
   R470; -ENOTSUP a forked child; else what cuInit said. Any thread. The first call takes some 100
   ms of CUDA's time. */
int driver_open(const struct driver **driver, struct text *why);

/* plain | registered with CUDA | a GPU's | of both */
enum driver_memory { DRIVER_HOST, DRIVER_PINNED, DRIVER_DEVICE, DRIVER_MANAGED };

struct driver_pointer {
    enum driver_memory memory;
    /* ordinal in this process; -1 for DRIVER_HOST. What follows is 0 there, too */
    int device;
    CUcontext context;                               /* NULL for memory of cuMemCreate */
    CUdeviceptr address;                             /* what the device calls it */
    CUdeviceptr base;                                /* of the buffer it lies in, which has */
    size_t bytes;
    uint64_t buffer;                /* the buffer's number: addresses come again, this never does */
    bool ipc, descriptor;           /* may be shared by cuIpcGetMemHandle | by a file descriptor */
};

/* Whose memory? 0, or -errno and *why if CUDA cannot say. Loads nothing and begins nothing: where
   nobody has loaded the driver, no pointer can be a device's, and the answer costs some 60 ns,
   and 70 us the first time after a library was loaded, whichever; where it is loaded, a call of
   the driver. */
int driver_pointer(const void *at, struct driver_pointer *pointer, struct text *why);

bool driver_loaded(void);             /* by whomever */
bool driver_begun(void);              /* has CUDA begun in this process, as far as we have seen? */
bool driver_forked(void);             /* a child of a process in which CUDA had begun */

/* bus: PCI's; major.minor: compute capability */
struct driver_device { char name[96], bus[20]; CUuuid uuid; int major, minor; };

int driver_device(const struct driver *driver, int ordinal, struct driver_device *device,
                  struct text *why);

/* Adds "cuX: CUDA_ERROR_ILLEGAL_ADDRESS (700): an illegal memory access ..." to *why (may be NULL)
 * and returns the -errno of it. */
int driver_failed(const struct cuda_api *call, const char *function, CUresult error,
                  struct text *why);
int driver_error(CUresult error);                    /* 0 or -errno */

/* The context becomes current, for what is to be given back to it and stays if that fails: so a
   call that fails by chance is made twice. A broken context takes back, too: what is open in it
   must be closed before its owner may free it. */
bool driver_enter_to_give(const struct cuda_api *call, CUcontext context);

/* For tests: fills the table by any look-up; the name of the first symbol that is not
 * there, or NULL. */
const char *driver_bind(struct cuda_api *call, void *(*look)(void *library, const char *symbol),
                        void *library);

#endif
