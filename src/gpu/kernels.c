/* A table by type and operation under one lock. The lock is held while the driver compiles. That
 * takes long, but happens once, and nobody else needs the table meanwhile. A function is looked up
 * at once, since that is when a driver that loads lazily loads it.
 *
 * The grid: each multiprocessor gets at most THREADS threads, a quarter of what it holds. They have
 * 32 KiB under way, which is enough for the memory's bandwidth, and leave room for the program's.
 * Short buffers get narrow blocks: their tiles are short, so more multiprocessors have one. */
#include "gpu/kernels.h"

#include "fold/fold.h"
#include "gpu/driver.h"
#include "gpu/ptx.h"

#include <errno.h>
#include <stdlib.h>

enum { WIDE = 256, NARROW = 64, THREADS = 512, ROW = 16, ROWS_MOST = 4 };
enum { COMMON_ROOM = 24 * (24 << 10) };         /* 24 kernels of these types, 16 KiB at most */

void kernels_begin(struct kernels *k)
{
    *k = (struct kernels){ .processors = 0 };
    pthread_mutex_init(&k->lock, NULL);
}

void kernels_end(struct kernels *k, const struct cuda_api *call)
{
    for (int type = 0; type < KERNELS_TYPES; type++)
        for (int op = 0; op < KERNELS_OPS; op++)
            if (k->one[type][op].module)
                call->cuModuleUnload(k->one[type][op].module);
    if (k->common)
        call->cuModuleUnload(k->common);
    pthread_mutex_destroy(&k->lock);
}

/* ---- loading --------------------------------------------------------------------------------- */

static int load_text(const struct cuda_api *call, const char *ptx, const char *name,
                     struct kernels_one *one, struct text *why)
{
    CUresult error = call->cuModuleLoadData(&one->module, ptx);
    if (error) {
        one->module = NULL;
        return driver_failed(call, "cuModuleLoadData", error, why);
    }
    error = call->cuModuleGetFunction(&one->function, one->module, name);
    if (error) {
        call->cuModuleUnload(one->module);
        *one = (struct kernels_one){ .module = NULL };
        return driver_failed(call, "cuModuleGetFunction", error, why);
    }
    return 0;
}

static int ask_processors(struct kernels *k, const struct cuda_api *call, struct text *why)
{
    CUdevice device;
    if (k->processors)
        return 0;
    CUresult error = call->cuCtxGetDevice(&device);
    if (error)
        return driver_failed(call, "cuCtxGetDevice", error, why);
    error = call->cuDeviceGetAttribute(&k->processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
                                       device);
    if (!error)
        return 0;
    k->processors = 0;
    return driver_failed(call, "cuDeviceGetAttribute", error, why);
}

static void refuse(struct kernels *k, int error, const char *words)
{
    struct text kept = TEXT_IN(k->why);
    text_clear(&kept);
    text_add(&kept, "%s", words);
    k->refused = error;
}

static int load(struct kernels *k, const struct cuda_api *call, tutti_type type, tutti_op op,
                struct text *why)
{
    char name[PTX_NAME], words[KERNELS_WORDS], *room = malloc(PTX_ROOM);
    struct text called = TEXT_IN(name), text = { room, PTX_ROOM, 0 }, said = TEXT_IN(words);
    if (!room)
        return -ENOMEM;
    ptx_name(&called, type, op);
    text_clear(&said);
    int error = ptx_fold(&text, type, op);
    if (error)
        text_add(&said, "there is no kernel for %s of %s", fold_op_name(op), fold_type_name(type));
    else
        error = ask_processors(k, call, &said);
    if (!error)
        error = load_text(call, room, name, &k->one[type][op], &said);
    free(room);
    if (error == -ENOEXEC)
        refuse(k, error, words);
    if (error && why)
        text_add(why, "%s", words);
    return error;
}

/* True: this pair is in the module of the common types. */
static bool in_common(int type, int op)
{
    return (type == TUTTI_F16 || type == TUTTI_BF16 || type == TUTTI_F32 || type == TUTTI_F64)
        && ptx_has((tutti_type)type, (tutti_op)op);
}

/* Looks up all functions of the common types. Under the lock. */
static CUresult look_up_common(struct kernels *k, const struct cuda_api *call)
{
    CUresult error = CUDA_SUCCESS;
    for (int type = 0; type < KERNELS_TYPES && !error; type++)
        for (int op = 0; op < KERNELS_OPS && !error; op++) {
            char name[PTX_NAME];
            struct text called = TEXT_IN(name);
            if (!in_common(type, op))
                continue;
            ptx_name(&called, (tutti_type)type, (tutti_op)op);
            error = call->cuModuleGetFunction(&k->one[type][op].function, k->common, name);
        }
    return error;
}

static void forget_common(struct kernels *k, const struct cuda_api *call)
{
    call->cuModuleUnload(k->common);
    k->common = NULL;
    for (int type = 0; type < KERNELS_TYPES; type++)
        for (int op = 0; op < KERNELS_OPS; op++)
            if (in_common(type, op))
                k->one[type][op].function = NULL;
}

static int load_common(struct kernels *k, const struct cuda_api *call, struct text *why)
{
    struct text text = { malloc(COMMON_ROOM), COMMON_ROOM, 0 };
    const char *function = "cuModuleLoadData";
    if (!text.at)
        return -ENOMEM;
    int r = ask_processors(k, call, why);
    if (r < 0) {
        free(text.at);
        return r;
    }
    ptx_module(&text);
    for (int type = 0; type < KERNELS_TYPES; type++)
        for (int op = 0; op < KERNELS_OPS; op++)
            if (in_common(type, op))
                ptx_kernel(&text, (tutti_type)type, (tutti_op)op);
    CUresult error = call->cuModuleLoadData(&k->common, text.at);
    free(text.at);
    if (error)
        k->common = NULL;
    else {
        function = "cuModuleGetFunction";
        error = look_up_common(k, call);
        if (error)
            forget_common(k, call);
    }
    return error ? driver_failed(call, function, error, why) : 0;
}

int kernels_ready(struct kernels *k, const struct cuda_api *call, struct text *why)
{
    char words[KERNELS_WORDS];
    struct text said = TEXT_IN(words);
    text_clear(&said);
    pthread_mutex_lock(&k->lock);
    int r = k->common || k->refused ? 0 : load_common(k, call, &said);
    if (r == -ENOEXEC)
        refuse(k, r, words);
    pthread_mutex_unlock(&k->lock);
    if (r != -EIO)
        return 0;
    if (why)
        text_add(why, "%s", words);
    return r;
}

static int get(struct kernels *k, const struct cuda_api *call, tutti_type type, tutti_op op,
               CUfunction *function, int *processors, struct text *why)
{
    int error = 0;
    if ((unsigned)type >= KERNELS_TYPES || (unsigned)op >= KERNELS_OPS) {
        if (why)
            text_add(why, "there is no kernel for %s of %s", fold_op_name(op),
                     fold_type_name(type));
        return -EINVAL;
    }
    pthread_mutex_lock(&k->lock);
    struct kernels_one *one = &k->one[type][op];
    if (!one->function && k->refused) {
        error = k->refused;
        if (why)
            text_add(why, "%s", k->why);
    } else if (!one->function) {
        error = load(k, call, type, op, why);
    }
    *function = one->function;
    *processors = k->processors;
    pthread_mutex_unlock(&k->lock);
    return error;
}

int kernels_get(struct kernels *k, const struct cuda_api *call, tutti_type type, tutti_op op,
                CUfunction *function, struct text *why)
{
    int processors;
    return get(k, call, type, op, function, &processors, why);
}

/* ---- launching ------------------------------------------------------------------------------- */

int kernels_fold(struct kernels *k, const struct cuda_api *call, tutti_type type, tutti_op op,
                 const struct kernel_fold *fold, CUstream stream, struct text *why)
{
    CUfunction function;
    int processors;
    struct kernel_fold given = *fold;
    if (!given.inputs || given.inputs > KERNEL_INPUTS) {
        if (why)
            text_add(why, "a kernel folds 1 to %d inputs, not %u", KERNEL_INPUTS, given.inputs);
        return -EINVAL;
    }
    int error = get(k, call, type, op, &function, &processors, why);
    if (error || !given.count)
        return error;
    uint64_t bytes = given.count * fold_type_size(type);
    unsigned threads = bytes < (uint64_t)processors * WIDE * ROW * ROWS_MOST * 2 ? NARROW : WIDE;
    uint64_t blocks = (bytes + threads * ROW - 1) / (threads * ROW);
    uint64_t most = (uint64_t)processors * (THREADS / threads);
    CUresult failed = call->cuLaunchKernel(function, (unsigned)(blocks < most ? blocks : most), 1,
                                           1, threads, 1, 1, 0, stream, (void *[]){ &given }, NULL);
    return failed ? driver_failed(call, "cuLaunchKernel", failed, why) : 0;
}
