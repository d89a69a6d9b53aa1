/* Kernels: a module's text is read by ptx_parse when it is loaded, and run by ptx_run when its turn
 * comes in the stream. What a launch touches, which the order of operations is checked by, is known
 * exactly for our own kernels: struct kernel_fold says it. Of others each 64-bit parameter that is
 * an address of the fake stands for all of its buffer, read and written. A kernel reaches nothing
 * beside, so an address that it takes from memory may be found only by chance. */
#include "fake/fake.h"

#include "gpu/kernel.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

struct CUmod_st { struct ptx_module *ptx; bool unloaded; };
struct CUfunc_st { struct CUmod_st *module; const struct ptx_function *ptx; };

enum { MODULES_MOST = 4096, FUNCTIONS_MOST = 4096 };
static struct CUmod_st modules[MODULES_MOST];
static struct CUfunc_st functions[FUNCTIONS_MOST];
static int modules_n, functions_n;

/* The number after a word such as ".version" or ".target sm_"; 0: it is not there. */
static double number_after(const char *text, const char *word)
{
    const char *at = strstr(text, word);
    return at ? strtod(at + strlen(word), NULL) : 0;
}

static CUresult load(CUmodule *module, const void *image)
{
    struct CUctx_st *context = NULL;
    CUresult error = context_current(&context, true);
    if (error)
        return error;
    const char *text = image;
    while (text && isspace((unsigned char)*text))
        text++;
    if (!text || (strncmp(text, ".version", 8) != 0 && strncmp(text, "//", 2) != 0))
        return CUDA_ERROR_INVALID_IMAGE;
    if (number_after(text, ".version") > 8.7)
        return CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
    if (number_after(text, ".target sm_") > 90)
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    if (number_after(text, ".version") < 1 || number_after(text, ".target sm_") < 1
        || !strstr(text, ".address_size 64"))
        return CUDA_ERROR_INVALID_PTX;
    if (modules_n == MODULES_MOST)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (fake.drain_loads)
        context_drain(context);
    struct ptx_module *ptx = ptx_parse(text);
    if (!ptx)
        return CUDA_ERROR_INVALID_PTX;
    struct CUmod_st *m = &modules[modules_n++];
    m->ptx = ptx;
    *module = m;
    return 0;
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    ENTER;
    return load(module, image);
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned n, int *options,
                            void **values)
{
    ENTER;
    if (n && (!options || !values))
        return CUDA_ERROR_INVALID_VALUE;
    return load(module, image);
}

static CUresult module_of(const struct CUmod_st *module)
{
    if (module < modules || module >= modules + modules_n)
        return CUDA_ERROR_INVALID_HANDLE;
    if (module->unloaded)
        fake_misuse("use after the end", "a module was unloaded");
    return module->unloaded ? CUDA_ERROR_INVALID_HANDLE : 0;
}

CUresult cuModuleUnload(CUmodule module)
{
    ENTER;
    struct CUctx_st *context = NULL;
    CUresult error = module_of(module);
    if (!error && context_seen(&context) == 0)
        context_drain(context);
    if (!error)
        module->unloaded = true;
    return error;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    ENTER;
    CUresult error = module_of(module);
    if (error)
        return error;
    const struct ptx_function *ptx = ptx_function(module->ptx, name);
    if (!ptx)
        return CUDA_ERROR_NOT_FOUND;
    for (int i = 0; i < functions_n; i++)
        if (functions[i].ptx == ptx) {
            *function = &functions[i];
            return 0;
        }
    if (functions_n == FUNCTIONS_MOST)
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct CUctx_st *context = NULL;
    if (fake.drain_loads && context_seen(&context) == 0)
        context_drain(context);
    functions[functions_n] = (struct CUfunc_st){ module, ptx };
    *function = &functions[functions_n++];
    return 0;
}

/* What a kernel on this device may touch: its own memory, what is opened, host memory by its device
 * address, and that of peers if access was enabled. */
static bool reaches(const struct CUctx_st *context, const struct range *r, bool write)
{
    if (r->kind == RANGE_HOST || r->kind == RANGE_OPENED)
        return true;
    if (r->kind == RANGE_MAPPED)
        return write ? r->writable : r->readable;
    return r->kind == RANGE_ALLOC && (r->context == context || context->peer[r->context->device]);
}

/* What a kernel reads in place of what is there. Kept: few tests lie. */
static unsigned char *lie(uint64_t bytes)
{
    static struct lies { struct lies *next; unsigned char bytes[]; } *told;
    struct lies *one = calloc(1, sizeof *one + bytes);
    if (!one)
        abort();
    one->next = told;
    told = one;
    return one->bytes;
}

static void touches(struct op *op, const struct CUctx_st *context, struct range *r, CUdeviceptr at,
                    uint64_t bytes, bool write)
{
    struct ptx_launch *l = op->launch;
    if (r->kind == RANGE_OPENED && atomic_load(&r->memory->header->freed))
        fake_misuse("stale mapping", "a kernel uses memory that process %d has freed", r->exporter);
    unsigned char *seen = range_see(r, at);
    int lies = write ? 0 : lie_of(context, r);
    op->hangs |= lies & LIE_HANG;
    if (lies & LIE_KERNEL)
        seen = lie(bytes + 1);
    l->window[l->windows++] = (struct ptx_window){ at, at + bytes, seen, write };
    op_touch(op, r, r->kind == RANGE_HOST ? (uintptr_t)seen : r->offset + (at - r->begin), bytes,
             write);
}

static void argument(struct op *op, const struct CUctx_st *context, CUdeviceptr at, uint64_t bytes,
                     bool write)
{
    for (uint64_t n; bytes; at += n, bytes -= n) {   /* mappings may lie side by side */
        struct range *r = address_is_ours(at) ? range_of(at) : NULL;
        n = r && r->kind == RANGE_MAPPED && r->end - at < bytes ? r->end - at : bytes;
        if (!r || n > r->end - at || !reaches(context, r, write) || op->touches == OP_RANGES) {
            op->error = op->error ? op->error : CUDA_ERROR_ILLEGAL_ADDRESS;
            return;
        }
        touches(op, context, r, at, n, write);
    }
}

/* The bytes of an element: the first part of what stands behind the prefix is a type's name. */
static uint64_t element_of(const char *name)
{
    static const struct { const char *type; uint64_t bytes; } all[] = {
        { "i8_", 1 }, { "u8_", 1 }, { "bool_", 1 }, { "f8e4m3_", 1 }, { "f8e5m2_", 1 },
        { "i16_", 2 }, { "u16_", 2 }, { "f16_", 2 }, { "bf16_", 2 }, { "i32_", 4 }, { "u32_", 4 },
        { "f32_", 4 }, { "i64_", 8 }, { "u64_", 8 }, { "f64_", 8 }, { "c64_", 8 }, { "c128_", 16 },
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (!strncmp(name, all[i].type, strlen(all[i].type)))
            return all[i].bytes;
    return 0;
}

/* The op may not touch more than it has room for, but it need not name a buffer twice, either. */
static bool has_window(const struct ptx_launch *l, CUdeviceptr at)
{
    for (int i = 0; i < l->windows; i++)
        if (at >= l->window[i].begin && at < l->window[i].end)
            return true;
    return false;
}

static void arguments(struct op *op, const struct CUctx_st *context)
{
    const struct ptx_function *f = op->launch->function;
    size_t prefix = strlen(KERNEL_FOLD_PREFIX);
    uint64_t element = strncmp(f->name, KERNEL_FOLD_PREFIX, prefix) ? 0
                                                                    : element_of(f->name + prefix),
             word;
    if (element && f->params == 1 && f->param_bytes == sizeof(struct kernel_fold)) {
        struct kernel_fold fold;
        memcpy(&fold, op->launch->param, sizeof fold);
        if (!fold.inputs || fold.inputs > KERNEL_INPUTS || fold.count > SIZE_MAX / element) {
            op->error = CUDA_ERROR_ILLEGAL_ADDRESS;
            return;
        }
        argument(op, context, fold.out, fold.count * element, true);
        CUdeviceptr all = fold.out;
        for (uint32_t i = 0; i < fold.inputs; i++) {
            argument(op, context, fold.in[i], fold.count * element, false);
            all |= fold.in[i];
        }
        fake.unaligned += all % KERNEL_ALIGNED != 0;
        return;
    }
    for (size_t at = 0; at + 8 <= f->param_bytes && op->launch->windows < OP_RANGES; at += 8) {
        memcpy(&word, op->launch->param + at, 8);
        struct range *r = address_is_ours(word) ? range_of(word) : NULL;
        if (r && reaches(context, r, false) && !has_window(op->launch, word))
            touches(op, context, r, r->begin, r->end - r->begin, reaches(context, r, true));
    }
}

CUresult cuLaunchKernel(CUfunction f, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                        CUstream handle, void **parameters, void **extra)
{
    ENTER;
    struct CUstream_st *stream = NULL;
    if (f < functions || f >= functions + functions_n)
        return CUDA_ERROR_INVALID_HANDLE;
    CUresult error = module_of(f->module);
    if (!error)
        error = stream_of(handle, true, &stream);
    if (error)
        return error;
    if (!grid_x || !grid_y || !grid_z || !block_x || !block_y || !block_z
        || (uint64_t)block_x * block_y * block_z > 1024 || grid_y > 65535 || grid_z > 65535
        || grid_x > 2147483647u || shared_bytes > 48 << 10 || extra || !parameters)
        return CUDA_ERROR_INVALID_VALUE;
    fake.grid = grid_x > fake.grid ? grid_x : fake.grid;
    struct op *op = op_new(OP_KERNEL, __func__);
    struct ptx_launch *l = op->launch = calloc(1, sizeof *l);
    if (!l || !(l->window = calloc(OP_RANGES, sizeof *l->window)))
        abort();
    *l = (struct ptx_launch){
        f->ptx, { grid_x, grid_y, grid_z }, { block_x, block_y, block_z },
        shared_bytes, { 0 }, l->window, 0
    };
    for (int i = 0; i < f->ptx->params; i++)
        memcpy(l->param + f->ptx->param[i].offset, parameters[i], f->ptx->param[i].bytes);
    arguments(op, stream->context);
    stream_enqueue(stream, op);
    return 0;
}
