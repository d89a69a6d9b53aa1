/* tutti doctor, the second process: asks the driver as a rank would, and prints. A pulse announces
 * each question that may take long. Cost: that of a rank's first use of a device (100 ms and more
 * for each GPU). Nothing of it stays. */
#include "cli/doctor.h"

#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct ward {                                        /* all GPUs of this machine */
    const struct driver *driver;
    int gpus;                                        /* number of GPUs that are tried */
    struct doctor_gpu gpu[DOCTOR_GPUS];
};

/* The answers of one GPU's third process: on each peer, and on itself (all). */
struct answers {
    bool opened[DOCTOR_GPUS];
    CUresult error[DOCTOR_GPUS];
    char words[DOCTOR_GPUS][DOCTOR_WORDS], all[DOCTOR_WORDS];
};

/* ---- plain answers --------------------------------------------------------------------------- */

static void print_uuid(const CUuuid *uuid)
{
    printf("GPU-");
    for (int i = 0; i < 16; i++)
        printf("%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid->bytes[i]);
}

/* 0 also for an attribute that the driver does not have. */
static int attribute(const struct driver *driver, int device, int which)
{
    int value = 0;
    return driver->call.cuDeviceGetAttribute(&value, which, device) == CUDA_SUCCESS ? value : 0;
}

static bool is_exclusive(const struct driver *driver, int device)
{
    return attribute(driver, device, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE)
        == CU_COMPUTEMODE_EXCLUSIVE_PROCESS;
}

static void print_road(const char *name, const struct doctor_road *road)
{
    printf("     %-8s %s%s%s\n", name, road->open ? "yes" : "no", road->words[0] ? ": " : "",
           road->words);
    if (road->remedy[0])
        printf("              %s\n", road->remedy);
}

/* ---- memory that others are to open ---------------------------------------------------------- */

static void failed(const struct driver *driver, struct doctor_gpu *gpu, const char *function,
                   CUresult error)
{
    struct text why = TEXT_IN(gpu->words);
    text_clear(&why);
    gpu->error = error;
    driver_failed(&driver->call, function, error, &why);
}

static void enter(const struct driver *driver, struct doctor_gpu *gpu, int ordinal)
{
    doctor_pulse("a context on GPU %d", ordinal);
    CUresult error = driver->call.cuDevicePrimaryCtxRetain(&gpu->context, ordinal);
    if (error) {
        failed(driver, gpu, "cuDevicePrimaryCtxRetain", error);
        return;
    }
    error = driver->call.cuCtxSetCurrent(gpu->context);
    if (!error)
        error = driver->call.cuMemAlloc_v2(&gpu->memory, DOCTOR_BYTES);
    if (error) {
        failed(driver, gpu, "cuMemAlloc", error);
        return;
    }
    gpu->ready = true;
}

static void share(const struct driver *driver, struct doctor_gpu *gpu, int ordinal)
{
    if (!gpu->ready)
        return;
    doctor_pulse("a handle of memory on GPU %d", ordinal);
    const char *function = "cuMemsetD8Async";
    driver->call.cuCtxSetCurrent(gpu->context);
    CUresult error = driver->call.cuMemsetD8Async(gpu->memory, doctor_mark(ordinal), DOCTOR_BYTES,
                                                  NULL);
    if (!error) {
        function = "cuStreamSynchronize";
        error = driver->call.cuStreamSynchronize(NULL);
    }
    if (!error) {
        function = "cuIpcGetMemHandle";
        error = driver->call.cuIpcGetMemHandle(&gpu->handle, gpu->memory);
    }
    if (error)
        failed(driver, gpu, function, error);
    gpu->shared = !error;
}

static void leave(const struct driver *driver, struct doctor_gpu *gpu, int ordinal)
{
    if (!gpu->context)
        return;
    doctor_pulse("the end of its work on GPU %d", ordinal);
    driver->call.cuCtxSetCurrent(gpu->context);
    if (gpu->memory)
        driver->call.cuMemFree_v2(gpu->memory);
    driver->call.cuDevicePrimaryCtxRelease_v2(ordinal);
}

/* ---- the third process's answers ------------------------------------------------------------- */

static void take_line(struct answers *a, char *line, int gpus)
{
    char *end;
    line[strcspn(line, "\n")] = 0;
    bool all = line[0] == '*';
    long peer = all ? 0 : strtol(line, &end, 10);
    long error = strtol(all ? line + 1 : end, &end, 10);
    const char *words = *end == ' ' ? end + 1 : end;
    if (all)
        snprintf(a->all, sizeof a->all, "%s", words);
    if (all || peer < 0 || peer >= gpus)
        return;
    a->error[peer] = (CUresult)error;
    a->opened[peer] = !words[0];
    snprintf(a->words[peer], sizeof a->words[0], "%s", words);
}

/* Writes the offer (about a page, which a pipe takes), and reads lines until the end is closed. */
static void converse(const struct ward *w, int to, int from, int device, struct answers *a)
{
    struct doctor_offer offer = { .gpus = w->gpus };
    char line[DOCTOR_WORDS + 40];
    for (int i = 0; i < w->gpus; i++) {
        offer.gpu[i].shared = w->gpu[i].shared;
        offer.gpu[i].handle = w->gpu[i].handle;
    }
    ssize_t n = write(to, &offer, sizeof offer);
    close(to);
    FILE *answers = fdopen(from, "r");
    if (!answers) {
        close(from);
        return;
    }
    if (n != (ssize_t)sizeof offer)
        snprintf(a->all, sizeof a->all, "a second process cannot be told what to open");
    while (fgets(line, (int)sizeof line, answers)) {
        take_line(a, line, w->gpus);
        doctor_pulse("a second process on GPU %d to open the next one's memory", device);
    }
    fclose(answers);
}

static void ask_other(const struct ward *w, int device, struct answers *a)
{
    int in[2] = { -1, -1 }, out[2] = { -1, -1 }, status = 0;
    pid_t pid = -1;
    char value[16];
    snprintf(value, sizeof value, "%d", device);
    doctor_pulse("a second process on GPU %d", device);
    int error = pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC) ? -errno : 0;
    if (!error) {
        const int map[][2] = { { in[0], STDIN_FILENO }, { out[1], STDOUT_FILENO } };
        error = doctor_start(&pid, DOCTOR_OPEN, value, map, 2);
    }
    if (in[0] >= 0)
        close(in[0]);
    if (out[1] >= 0)
        close(out[1]);
    if (error) {
        snprintf(a->all, sizeof a->all, "a second process cannot be started: %s", strerror(-error));
        return;
    }
    converse(w, in[1], out[0], device, a);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (status && !a->all[0])
        snprintf(a->all, sizeof a->all,
                 "a second process that was to open the memory ended by %s %d",
                 WIFSIGNALED(status) ? "signal" : "status",
                 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

/* ---- roads that need two --------------------------------------------------------------------- */

static const char ipc_remedy[] =
    "ranks in one container, or containers with --ipc=host --pid=host; MIG: all in one instance";

/* True: `device` could open the memory of `owner`. Else fills in the road's words. */
static bool opens(const struct ward *w, const struct answers *a, int owner,
                  struct doctor_road *road)
{
    CUresult error = a->error[owner];
    if (!w->gpu[owner].shared) {
        snprintf(road->words, sizeof road->words, "%s", w->gpu[owner].words);
        error = w->gpu[owner].error;
    } else if (a->all[0]) {
        snprintf(road->words, sizeof road->words, "%s", a->all);
        error = 0;
    } else if (!a->opened[owner]) {
        snprintf(road->words, sizeof road->words, "%s",
                 a->words[owner][0] ? a->words[owner] : "a second process gave no answer");
    }
    road->fault = road->words[0] && driver_error(error) != -ENOTSUP;
    return !road->words[0];
}

static void leader(const struct ward *w, const struct answers *a, int device, bool kernels,
                   struct doctor_road *road)
{
    road->open = opens(w, a, device, road) && kernels;
    if (!road->open && !road->words[0])
        snprintf(road->words, sizeof road->words, "it needs kernels");
    else if (!road->open && is_exclusive(w->driver, device)) {
        road->fault = false;
        snprintf(road->remedy, sizeof road->remedy,
                 "only one process may use it (compute mode exclusive): nvidia-smi -c DEFAULT "
                 "changes that");
    } else if (!road->open)
        snprintf(road->remedy, sizeof road->remedy, "%s", ipc_remedy);
}

static bool print_peers(const struct ward *w, const struct answers *a, int device, bool kernels)
{
    struct doctor_road road = { .open = false };
    struct text text = TEXT_IN(road.words);
    bool fault = false;
    text_clear(&text);
    for (int peer = 0; peer < w->gpus; peer++) {
        int can = 0;
        struct doctor_road one = { .open = false };
        CUresult error = peer == device ? 0
                                        : w->driver->call.cuDeviceCanAccessPeer(&can, device, peer);
        if (error || !can || !opens(w, a, peer, &one))
            continue;
        text_add(&text, "%s%d", road.open ? ", " : "with ", peer);
        road.open = true;
    }
    if (w->gpus == 1)
        text_add(&text, "there is no other GPU");
    else if (road.open && !kernels) {
        road.open = false;
        text_clear(&text);
        text_add(&text, "it needs kernels");
    } else if (!road.open)
        text_add(&text, "it reaches no other one's memory");
    print_road("peers", &road);
    for (int peer = 0; peer < w->gpus; peer++) {
        int can = 0;
        struct doctor_road one = { .open = false };
        if (peer == device)
            continue;
        CUresult error = w->driver->call.cuDeviceCanAccessPeer(&can, device, peer);
        if (!error && !can) {
            printf("              not %d: no access from one to the other; nvidia-smi topo -p2p r "
                   "says why\n",
                   peer);
        } else if (!opens(w, a, peer, &one)) {
            printf("              not %d: %s\n", peer, one.words);
            fault = fault || (one.fault && !is_exclusive(w->driver, device));
        }
    }
    return fault;
}

/* ---- a GPU ----------------------------------------------------------------------------------- */

static bool print_roads(struct ward *w, int ordinal)
{
    struct doctor_gpu *gpu = &w->gpu[ordinal];
    struct doctor_road pinned = { .open = false }, kernels = { .open = false },
                       lead = { .open = false };
    if (!gpu->ready) {
        printf("     cannot be used: %s\n", gpu->words);
        if (is_exclusive(w->driver, ordinal))
            printf("     one process at a time (compute mode exclusive), and another one has it; "
                   "nvidia-smi -c DEFAULT lets more in\n");
        return true;
    }
    w->driver->call.cuCtxSetCurrent(gpu->context);
    doctor_pinned(w->driver, gpu, ordinal, &pinned);
    print_road("pinned", &pinned);
    if (!pinned.dead) {
        doctor_kernels(w->driver, gpu, ordinal, &kernels);
        print_road("kernels", &kernels);
    }
    /* such a failure is permanent: no further call of this process can succeed */
    if (pinned.dead || kernels.dead) {
        printf("     nothing more was tried: this failure ends all work of a process on the GPU\n");
        return true;
    }
    struct answers a = { .all = "" };
    ask_other(w, ordinal, &a);
    leader(w, &a, ordinal, kernels.open, &lead);
    print_road("leader", &lead);
    bool fault = print_peers(w, &a, ordinal, kernels.open);
    return fault || pinned.fault || kernels.fault || lead.fault;
}

static bool print_gpu(struct ward *w, int ordinal)
{
    char words[DOCTOR_WORDS];
    struct text why = TEXT_IN(words);
    struct driver_device device;
    text_clear(&why);
    if (driver_device(w->driver, ordinal, &device, &why) < 0) {
        printf("  %d  cannot be asked: %s\n", ordinal, words);
        return true;
    }
    printf("  %d  %s, compute %d.%d, bus %s\n     ", ordinal, device.name, device.major,
           device.minor, device.bus);
    print_uuid(&device.uuid);
    printf("\n");
    if (attribute(w->driver, ordinal, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE)
        == CU_COMPUTEMODE_PROHIBITED) {
        printf("     no process may use it (compute mode prohibited)\n");
        return false;
    }
    return ordinal < w->gpus ? print_roads(w, ordinal) : false;
}

int doctor_ask(void)
{
    static struct ward w;
    char words[DOCTOR_WORDS + 100];
    struct text why = TEXT_IN(words);
    if (doctor_orphan() || fcntl(DOCTOR_PULSE_FD, F_SETFD, FD_CLOEXEC) < 0)
        return 1;
    signal(SIGPIPE, SIG_IGN);                        /* from a third process that died early */
    text_clear(&why);
    doctor_pulse("its beginning, cuInit");
    int error = driver_open(&w.driver, &why);
    if (error < 0) {
        printf("GPU: none\n  %s\n", words);
        return fflush(stdout) != 0 || error != -ENODEV;
    }
    int bad = 0;
    w.gpus = w.driver->devices < DOCTOR_GPUS ? w.driver->devices : DOCTOR_GPUS;
    printf("GPU: %d, by a CUDA driver of version %d.%d\n", w.driver->devices,
           w.driver->version / 1000, w.driver->version % 1000 / 10);
    for (int i = 0; i < w.gpus; i++) {
        enter(w.driver, &w.gpu[i], i);
        share(w.driver, &w.gpu[i], i);
    }
    for (int i = 0; i < w.driver->devices; i++)
        bad += print_gpu(&w, i);
    for (int i = 0; i < w.gpus; i++)
        leave(w.driver, &w.gpu[i], i);
    return fflush(stdout) != 0 ? 1 : bad;       /* at most one a GPU; the first process adds it */
}
