/* Job: declare what the parts of `tutti doctor` use of each other.
 * Owns: nothing.
 * Never: writes a word of the arena: doctor is no rank.
 *
 * There are three processes, because a driver may hang, and because only another process than its
 * owner can open memory of a device:
 *   the first     prints what the host has (doctor_host.c and the files of its sections), and that
 *                 the second has died or hangs (doctor.c)
 *   the second    asks the driver as a rank would, and prints (doctor_gpu.c, doctor_road.c)
 *   the third     one for each GPU: opens the memory that the second offers (doctor_open.c)
 * With --gpu the second prints the matrix of pairs (doctor_pairs.c), and the third reads what it
 * opens, and times it (doctor_reader.c). */
#ifndef TUTTI_CLI_DOCTOR_H
#define TUTTI_CLI_DOCTOR_H

#include "base/text.h"
#include "cli/doctor_say.h"
#include "gpu/driver.h"

#include <sys/types.h>

enum { DOCTOR_GPUS = 16, DOCTOR_WORDS = 400 };       /* further GPUs are listed, and not tried */
enum { DOCTOR_BYTES = 1 << 20 };                /* of memory for each trial, on device and host */
enum { DOCTOR_PULSE_FD = 3 };       /* the second writes each question here, a line each */

#define DOCTOR_ASK "--ask"  /* command lines of the second and the third: doctor --open DEVICE */
#define DOCTOR_OPEN "--open"
#define DOCTOR_PAIRS "--pairs"              /* the same of --gpu: doctor --pairs text|json */
#define DOCTOR_READ "--read"

/* One GPU as the second process has it. words: the reason, if there is no context or no memory to
 * share. */
struct doctor_gpu {
    bool ready, shared;
    CUresult error;                                  /* of the failure that `words` describes */
    CUcontext context;
    CUdeviceptr memory;             /* DOCTOR_BYTES; the last of them are doctor_mark(ordinal) */
    CUipcMemHandle handle;
    char words[DOCTOR_WORDS];
};

/* The third process reads this from its standard input. It writes "PEER ERROR WORDS" to its
 * standard output for each peer; no words: opened. */
struct doctor_offer {
    int gpus;
    int64_t patience_ns;                             /* of --gpu: for one reading */
    uint64_t nonce[DOCTOR_GPUS];                     /* of --gpu: of what is written there */
    struct { int shared; CUipcMemHandle handle; } gpu[DOCTOR_GPUS];
};

/* What becomes of one GPU's reading another one's memory. */
enum doctor_pair {
    PAIR_READS, PAIR_OTHER_BYTES, PAIR_NEVER_ENDS, PAIR_NO_ACCESS, PAIR_CLOSED, PAIR_UNSUPPORTED,
    PAIR_UNKNOWN
};
enum { DOCTOR_PAIR_BYTES = 16 << 20, DOCTOR_NUMBERS = 1024 };      /* numbers: the first of them */

/* A float from 1 to 2: a fold of it alone gives it back bit for bit. */
static inline uint32_t doctor_number(uint64_t nonce, uint32_t i)
{
    return UINT32_C(0x3f800000) | (uint32_t)(text_hash(&i, sizeof i, nonce) & 0x7fffff);
}

/* The result of trying a road. fault: the machine should be able to do it and cannot; not merely
 * unsupported. dead: the failure has ended the context. */
struct doctor_road { bool open, fault, dead; char words[DOCTOR_WORDS], remedy[DOCTOR_WORDS]; };

static inline unsigned char doctor_mark(int ordinal) { return (unsigned char)(0xa0 + ordinal); }

/* Writes "..." for the first process, which prints it if no answer comes. */
__attribute__((format(printf, 1, 2))) void doctor_pulse(const char *format, ...);

/* Starts this program again, as `tutti doctor OPTION [VALUE]`. map: pairs of our descriptor and
   its descriptor. Its signals are unblocked. 0 or -errno. */
int doctor_start(pid_t *pid, const char *option, const char *value, const int (*map)[2], int maps);
bool doctor_read(int fd, void *into, size_t n);              /* false: the end came before */
bool doctor_orphan(void);           /* ends with its parent; true: the parent has ended already */

/* doctor_host.c: all but GPUs, section by section; prints */
void doctor_host(struct doctor *d);
void doctor_kernel(struct doctor *d);
void doctor_cpu(void);
void doctor_memory(struct doctor *d);
void doctor_launcher(struct doctor *d);              /* doctor_settings.c */
void doctor_settings(struct doctor *d);
void doctor_rules(struct doctor *d);

int doctor_ask(void);                                /* the second process: the exit status */
int doctor_open(int device);                         /* the third */
/* The second and the third of --gpu. how: "json MS" or "text MS", MS the patience of --timeout. */
int doctor_pairs(const char *how);
int doctor_reader(int device);

/* doctor_road.c: roads that the second process tries alone. */
void doctor_pinned(const struct driver *driver, const struct doctor_gpu *gpu, int ordinal,
                   struct doctor_road *road);
void doctor_kernels(const struct driver *driver, const struct doctor_gpu *gpu, int ordinal,
                    struct doctor_road *road);

/* Puts CUDA's error into the road's words. It is a fault, except if it means "not supported". */
void doctor_failed(const struct driver *driver, struct doctor_road *road, const char *function,
                   CUresult error);

#endif
