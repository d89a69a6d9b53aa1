/* NCCL, where the loader finds it: as it comes, which refuses two ranks on one GPU, and with the
 * switch that allows it. Declared here, as far as we call it; nothing of it is there when we are
 * built. Its jobs may hang: the time limit of the job ends them. */
#include "device/device.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct { unsigned char bytes[128]; } unique_id;
typedef void *communicator;
enum { NCCL_SUM = 0, NCCL_FLOAT = 7 };

struct nccl {
    int (*version)(int *version);
    int (*unique)(unique_id *id);
    int (*begin)(communicator *comm, int size, unique_id id, int rank);
    int (*all_reduce)(const void *send, void *recv, size_t count, int type, int op,
                      communicator comm, CUstream stream);
    int (*end)(communicator comm);
    const char *(*words)(int error);
    const char *(*last)(communicator comm);
};

static const char *const names[] = {
    "ncclGetVersion", "ncclGetUniqueId", "ncclCommInitRank", "ncclAllReduce", "ncclCommDestroy",
    "ncclGetErrorString", "ncclGetLastError",
};
_Static_assert(sizeof(struct nccl) == sizeof names, "a name for each");

static int load(struct nccl *nccl, char *why, size_t room)
{
    void *library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; library && i < sizeof names / sizeof names[0]; i++) {
        void *found = dlsym(library, names[i]);
        if (!found) {
            snprintf(why, room, "libnccl.so.2 has no %s", names[i]);
            return -ENODEV;
        }
        memcpy((char *)nccl + i * sizeof found, &found, sizeof found);
    }
    if (!library)
        snprintf(why, room, "no NCCL: there is no libnccl.so.2");
    return library ? 0 : -ENODEV;
}

struct own { struct bench *bench; const struct nccl *nccl; communicator comm; size_t bytes; };

static int prepare(void *arg, int turn)
{
    struct own *own = arg;
    return bench_stamp(own->bench, DO_ALL_REDUCE, own->bytes, turn);
}

static int reduce(void *arg, int turn)
{
    struct own *own = arg;
    struct bench *b = own->bench;
    (void)turn;
    if (own->nccl->all_reduce((void *)(uintptr_t)b->send, (void *)(uintptr_t)b->recv,
                              own->bytes / sizeof(float), NCCL_FLOAT, NCCL_SUM, own->comm,
                              b->stream))
        return -EIO;
    return driver_error(b->driver->call.cuStreamSynchronize(b->stream));
}

/* Sums in an order of its own: no bits are compared, that is not its promise. */
static int look(void *arg, int turn)
{
    (void)arg;
    (void)turn;
    return 0;
}

static int measure(struct own *own, struct part *part)
{
    struct bench *b = own->bench;
    int error = 0;
    for (int i = part->first; i < part->end && !error; i++) {
        struct point *p = &part->board->point[i];
        struct loop loop = {
            b->world, &part->board->meeting, b->rank, b->ranks,
            SAMPLES_MOST, own, prepare, reduce, look
        };
        struct series samples = { NULL, 0, 0 };
        own->bytes = p->bytes;
        if (p->bytes > b->room)
            continue;
        if (b->rank == 0)
            part->board->meeting.slice_ns = part->ns / (part->end - part->first);
        error = bench_fill(b, DO_ALL_REDUCE, p->bytes);
        if (!error)
            error = reduce(own, 0);
        if (!error)
            error = bench_check(b, DO_ALL_REDUCE, p->bytes); /* these sums are exact in any order */
        if (!error)
            error = loop_run(&loop, &samples);
        if (!error && b->rank == 0)
            point_take(p, &samples);
        series_free(&samples);
    }
    return error;
}

static int body(tutti_comm *world, void *arg)
{
    struct part *part = arg;
    struct nccl nccl;
    struct bench b;
    char why[WORDS] = "";
    unique_id id;
    int error = load(&nccl, why, sizeof why);
    if (!error)
        error = bench_open(&b, world, part->board->point[part->end - 1].bytes, MEMORY_PLAIN, why,
                           sizeof why);
    if (error) {
        part_refuse(part, why);
        return 1;
    }
    if (b.rank == 0 && nccl.unique(&id) == 0)
        memcpy(part->board->meeting.id, &id, sizeof id);
    struct own own = { .bench = &b, .nccl = &nccl };
    error = tutti_barrier(world, NULL);
    memcpy(&id, part->board->meeting.id, sizeof id);
    int said = error ? 0 : nccl.begin(&own.comm, b.ranks, id, b.rank);
    if (said) {
        const char *last = nccl.last(NULL);
        snprintf(why, sizeof why, "refused: %.200s", last && *last ? last : nccl.words(said));
        why[strcspn(why, "\n")] = 0;
        error = -EIO;
    }
    if (!error)
        error = measure(&own, part);
    if (error && !why[0])
        snprintf(why, sizeof why, "%s", error == -EBADMSG ? "WRONG RESULT" : "NCCL failed");
    if (error) {
        part_refuse(part, why);
        tutti_comm_abort(world, why);
    } else {
        nccl.end(own.comm);
        bench_close(&b);
    }
    return error != 0;
}

void nccl_measure(const struct part *part)
{
    char words[WORDS];
    bool with = part->board->point[part->first].system == SYSTEM_NCCL_SWITCH;
    if (with)
        setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 1);
    else
        unsetenv("NCCL_MULTI_RANK_GPU_ENABLE");
    if (part_spawn(part, body, words, sizeof words) != 0)
        part_refuse(part, words);
    unsetenv("NCCL_MULTI_RANK_GPU_ENABLE");
}
