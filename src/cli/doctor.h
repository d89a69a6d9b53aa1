/* Job: what the parts of `tutti doctor` say to each other.
 * Owns: nothing.
 * Never: a word of the arena; doctor is no rank.
 *
 * Three processes, because a driver may hang, and because memory of a device is only opened by
 * somebody else than its owner:
 *   the first     prints what the host has (doctor_host.c and the files of its sections), and what
 *                 the second cannot: that it has died or hangs (doctor.c)
 *   the second    asks the driver as a rank would, and prints (doctor_gpu.c, doctor_road.c)
 *   the third     one for each GPU: opens what the second offers it (doctor_open.c) */
#ifndef TUTTI_CLI_DOCTOR_H
#define TUTTI_CLI_DOCTOR_H

#include "cli/doctor_say.h"
#include "gpu/driver.h"

#include <sys/types.h>

enum { DOCTOR_GPUS = 16, DOCTOR_WORDS = 400 };       /* further GPUs are listed, and not tried */
enum { DOCTOR_BYTES = 1 << 20 };                /* of memory that is tried out, device and host */
enum { DOCTOR_PULSE_FD = 3 };       /* where the second says what it is about to ask, a line each */

#define DOCTOR_ASK "--ask"  /* command lines of the second and the third: doctor --open DEVICE */
#define DOCTOR_OPEN "--open"

/* One GPU as the second process has it. words: why there is no context, no memory to share, if
 * there is none. */
struct doctor_gpu {
    bool ready, shared;
    CUresult error;                                  /* of what failed, said in words */
    CUcontext context;
    CUdeviceptr memory;             /* DOCTOR_BYTES; the last of them are doctor_mark(ordinal) */
    CUipcMemHandle handle;
    char words[DOCTOR_WORDS];
};

/* What the third is given on its standard input. It answers "PEER words" on its standard output for
 * each peer, no words: opened. */
struct doctor_offer { int gpus; struct { int shared; CUipcMemHandle handle; } gpu[DOCTOR_GPUS]; };

/* What a road came to. A fault is not what a machine cannot do, but what it should and does not.
 * dead: the context is, by that. */
struct doctor_road { bool open, fault, dead; char words[DOCTOR_WORDS], remedy[DOCTOR_WORDS]; };

static inline unsigned char doctor_mark(int ordinal) { return (unsigned char)(0xa0 + ordinal); }

/* "..." for the first process: shown if no answer comes. */
__attribute__((format(printf, 1, 2))) void doctor_pulse(const char *format, ...);

/* This program once more, as `tutti doctor OPTION [VALUE]`; in[] and out[] (may be NULL) are pairs
   of its descriptors and ours. Its signals are unblocked. 0 or -errno. */
int doctor_start(pid_t *pid, const char *option, const char *value, const int (*map)[2], int maps);
bool doctor_orphan(void);           /* dies with who has started it; true: that has ended already */

/* doctor_host.c: what is not the GPU's, section by section; prints */
void doctor_host(struct doctor *d);
void doctor_kernel(struct doctor *d);
void doctor_cpu(void);
void doctor_memory(struct doctor *d);
void doctor_launcher(struct doctor *d);              /* doctor_settings.c */
void doctor_settings(struct doctor *d);
void doctor_rules(struct doctor *d);

int doctor_ask(void);                                /* the second process: the exit status */
int doctor_open(int device);                         /* the third */

/* doctor_road.c: roads within the second process. */
void doctor_pinned(const struct driver *driver, const struct doctor_gpu *gpu, int ordinal,
                   struct doctor_road *road);
void doctor_kernels(const struct driver *driver, const struct doctor_gpu *gpu, int ordinal,
                    struct doctor_road *road);

/* What CUDA said becomes the road's words; a fault, if it is not merely not supported. */
void doctor_failed(const struct driver *driver, struct doctor_road *road, const char *function,
                   CUresult error);

#endif
