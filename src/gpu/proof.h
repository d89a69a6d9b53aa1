/* Job: find out whether memory of another GPU that can be opened here can also be read.
 * Owns: world->proofs: a page of numbers on each device that this rank lends memory of, and what it
 *       has found of the devices of others.
 * Never: chooses a road; writes memory of another device.
 *
 * Where an IOMMU or a switch's ACS stands between two GPUs, or a virtual machine shows them apart,
 * the driver opens the memory, and copies and kernels read other bytes out of it, or never end, and
 * nobody says so. So for each directed pair of devices, once, numbers that the owner has just
 * written are read by copy engine and by kernel, and compared. What fails is not tried again. */
#ifndef TUTTI_GPU_PROOF_H
#define TUTTI_GPU_PROOF_H

#include "gpu/context.h"
#include "gpu/ipc_export.h"

enum { PROOF_BYTES = 4096, PROOF_WORDS = 240 };

struct proof_host;

/* One question, under way or not. */
struct proof {
    struct gpu *gpu;                    /* whose stream reads; NULL: nothing is under way */
    CUstream stream;
    struct proof_host *host;            /* what has come: by copy engine, then by kernel */
    uint64_t began;                     /* clock_ns */
};

/* The owner's side: the page on this device, with its numbers. 0 or -errno, *why. Waits once, for
 * the device to have written it. */
int proof_page(struct world *world, struct gpu *gpu, struct driver_pointer *page, uint64_t *nonce,
               struct text *why);

/* What is known of memory of that device on this one. 1: it can be read. 0: nothing yet. -ENOTSUP:
 * it cannot, and *why says why. */
int proof_known(struct world *world, const struct gpu *gpu, const unsigned char uuid[16],
                struct text *why);
/* True: that device is behind the host bridge, without NVLink: what host memory carries, it carries
 * slower. Asked once. */
bool proof_far(struct world *world, const struct gpu *gpu, const unsigned char uuid[16]);
/* Asks: `at` is the owner's page, opened here. 0, -ENOMEM, -EIO. */
int proof_ask(struct world *world, struct gpu *gpu, struct proof *proof, CUdeviceptr at,
              struct text *why);
/* 1: it can be read, 0: not known yet, ask again. -ENOTSUP: it cannot, *why; from here on
 * proof_known says so. *lost: the device still reads it, or will: it is not to be closed. -EIO. */
int proof_look(struct world *world, struct proof *proof, const unsigned char uuid[16],
               uint64_t nonce, bool *lost, struct text *why);

/* The operation has ended. True: nothing reads any more. False: *proof is lost, and the page is not
 * to be closed. */
bool proof_drop(struct world *world, struct proof *proof);
/* Unregisters what the proofs have registered. The pages are the world's, and go with it. */
void proof_end(struct world *world);

#endif
