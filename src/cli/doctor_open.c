/* tutti doctor, the third process: on one GPU it opens the memory of each GPU that the second has
 * shared, reads it, and prints the result. A rank's peer does the same, and only another process
 * can do it. Cost: a context on the GPU. */
#include "cli/doctor.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { LOOK = 256 };                        /* number of bytes that are read, the last ones */

static void look(const struct driver *driver, CUdeviceptr at, int peer, struct text *why)
{
    unsigned char bytes[LOOK] = { 0 };
    CUresult error = driver->call.cuMemcpyDtoHAsync_v2(bytes, at + DOCTOR_BYTES - LOOK, LOOK, NULL);
    if (!error)
        error = driver->call.cuStreamSynchronize(NULL);
    if (error) {
        driver_failed(&driver->call, "reading it", error, why);
        return;
    }
    for (int i = 0; i < LOOK; i++)
        if (bytes[i] != doctor_mark(peer)) {
            text_add(why, "it opens, and what is read there is not what was written");
            return;
        }
}

/* Prints the error's number first: the reader decides by it whether that is a fault. */
static void open_peer(const struct driver *driver, const struct doctor_offer *offer, int peer)
{
    char words[DOCTOR_WORDS];
    struct text why = TEXT_IN(words);
    CUdeviceptr at = 0;
    text_clear(&why);
    if (!offer->gpu[peer].shared)
        return;
    CUresult error = driver->call.cuIpcOpenMemHandle_v2(&at, offer->gpu[peer].handle,
                                                        CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
    if (error) {
        driver_failed(&driver->call, "cuIpcOpenMemHandle", error, &why);
    } else {
        look(driver, at, peer, &why);
        driver->call.cuIpcCloseMemHandle(at);
    }
    printf("%d %d %s\n", peer, error, words);
    fflush(stdout);
}

int doctor_open(int device)
{
    char words[DOCTOR_WORDS];
    struct text why = TEXT_IN(words);
    struct doctor_offer offer;
    const struct driver *driver;
    CUcontext context;
    text_clear(&why);
    if (doctor_orphan() || !doctor_read(STDIN_FILENO, &offer, sizeof offer) || offer.gpus < 0
        || offer.gpus > DOCTOR_GPUS)
        return 1;
    int error = driver_open(&driver, &why);
    if (!error) {
        CUresult said = driver->call.cuDevicePrimaryCtxRetain(&context, device);
        error = said ? driver_failed(&driver->call, "cuDevicePrimaryCtxRetain", said, &why) : 0;
        if (!error)
            driver->call.cuCtxSetCurrent(context);
    }
    if (error) {
        printf("* %d a second process cannot use the GPU: %s\n", error, words);
        return fflush(stdout) == 0 ? 0 : 1;
    }
    for (int peer = 0; peer < offer.gpus; peer++)
        open_peer(driver, &offer, peer);
    driver->call.cuDevicePrimaryCtxRelease_v2(device);
    return 0;
}
