/* tutti doctor: what this machine has for us, and if not, why not. It asks as a rank would, in a process of its own, so it costs what
 * a rank's first use of a device costs, and nothing of it stays. */
#include "cli/verb.h"

#include "base/text.h"
#include "gpu/driver.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { PEERS_SHOWN = 16 };

static const char help[] =
    "usage: tutti doctor\n"
    "\n"
    "Prints which GPUs the ranks of a job started here can use, or why there is\n"
    "none, and which GPUs reach each other's memory. No GPU is no fault: buffers\n"
    "of the host need none.\n"
    "\n"
    "  -h, --help   this text\n"
    "\n"
    "Exit status: 0 if nothing is wrong, also without a GPU; 1 if a driver or a\n"
    "GPU is there and fails; 2 for a wrong command line.\n";

static void print_uuid(const CUuuid *uuid)
{
    printf("GPU-");
    for (int i = 0; i < 16; i++)
        printf("%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid->bytes[i]);
}

/* An attribute that a driver does not know is not there. */
static int attribute(const struct driver *driver, int device, int which)
{
    int value = 0;
    return driver->call.cuDeviceGetAttribute(&value, which, device) == CUDA_SUCCESS ? value : 0;
}

static void print_limits(const struct driver *driver, int device)
{
    int mode = attribute(driver, device, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE);
    if (mode == CU_COMPUTEMODE_EXCLUSIVE_PROCESS)
        printf("     one process at a time (compute mode exclusive): one rank only\n");
    else if (mode == CU_COMPUTEMODE_PROHIBITED)
        printf("     no process may use it (compute mode prohibited)\n");
    if (!attribute(driver, device, CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED))
        printf("     host memory cannot be registered with it\n");
}

static void print_peers(const struct driver *driver, int device)
{
    int n = 0;
    for (int peer = 0; peer < driver->devices && peer < PEERS_SHOWN; peer++) {
        int can = 0;
        if (peer != device && driver->call.cuDeviceCanAccessPeer(&can, device, peer) == CUDA_SUCCESS && can)
            printf("%s %d", n++ ? "" : "     reaches the memory of", peer);
    }
    if (n)
        printf("\n");
    else if (driver->devices > 1)
        printf("     reaches no other one's memory\n");
}

static int print_device(const struct driver *driver, int ordinal)
{
    char words[300];
    struct text why = TEXT_IN(words);
    struct driver_device device;
    text_clear(&why);
    if (driver_device(driver, ordinal, &device, &why) < 0) {
        printf("  %d  cannot be asked: %s\n", ordinal, words);
        return 1;
    }
    printf("  %d  %s, compute %d.%d, bus %s\n     ", ordinal, device.name, device.major, device.minor, device.bus);
    print_uuid(&device.uuid);
    printf("\n");
    print_limits(driver, ordinal);
    print_peers(driver, ordinal);
    return 0;
}

static int gpu(void)
{
    char words[500];
    struct text why = TEXT_IN(words);
    const struct driver *driver;
    text_clear(&why);
    int error = driver_open(&driver, &why);
    if (error < 0) {
        printf("GPU: none\n  %s\n", words);
        return error != -ENODEV;
    }
    int bad = 0;
    printf("GPU: %d, by a CUDA driver of version %d.%d\n", driver->devices, driver->version / 1000, driver->version % 1000 / 10);
    for (int i = 0; i < driver->devices; i++)
        bad += print_device(driver, i);
    return bad != 0;
}

int verb_doctor(int argc, char **argv)
{
    int status = 0;
    if (argc > 1 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")))
        fputs(help, stdout);
    else if (argc > 1)
        return verb_refuse("doctor", "what is '%s'?", argv[1]);
    else
        status = gpu();
    return fflush(stdout) == 0 ? status : 1;
}
