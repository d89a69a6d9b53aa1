/* Job: what a case does to a device behind the library's back, on the tests' driver and on a real
 *      one alike: it fills and reads memory, holds a stream back, counts devices.
 * Owns: on a real driver, the words that held streams wait for.
 * Never: an order for anybody else's work: it uses no stream of the case or of the library.
 *
 * TUTTI_TEST_CUDA=real: the driver is the machine's own, and its devices are as many as it has. A
 * test that needs a power of the tests' driver says which one, and is skipped. */
#ifndef TUTTI_TEST_GPU_CASE_DEVICE_H
#define TUTTI_TEST_GPU_CASE_DEVICE_H

#include "child_case.h"
#include "support/skip.h"

#include <tutti.h>

bool case_real(void);                           /* TUTTI_TEST_CUDA=real */
/* In a case: how many devices the test wants (FAKE_CUDA_DEVICES), or fewer, if a real driver
 * has fewer. */
int case_devices(void);

/* In the current context; the process is aborted if the driver refuses. */
void case_put(CUdeviceptr to, const void *from, size_t bytes);
void case_get(void *to, CUdeviceptr from, size_t bytes);
void case_fill(CUdeviceptr to, unsigned char value, size_t bytes);
bool case_same(CUdeviceptr at, const void *with, size_t bytes);

/* 1: the stream takes up no more work, until 0. On a real driver it is what is put into the stream
 * from here on that waits. */
void case_hold(CUstream stream, int hold);

/* A barrier. Who waits in it closes what the others give back meanwhile. 0 or -errno. */
int case_meet(tutti_comm *comm);

/* How often this process has called that function; nobody counts on a real driver, and then a
 * difference of two counts is 0. */
uint64_t case_calls_of(const char *symbol);
static inline uint64_t case_counted(uint64_t calls) { return case_real() ? 0 : calls; }

/* The first line of a test of cmocka, or of main: not on a real driver. The power: what only the
 * tests' driver can do, as the end of "needs a driver that ...". */
#define NEEDS_FAKE(power) \
    do { \
        if (case_real()) \
            skip_because("needs a driver that %s", power); \
    } while (0)
enum { CASE_SKIP = 77 };
bool case_needs_fake(const char *power);        /* in main: true, and it has been said */

#endif
