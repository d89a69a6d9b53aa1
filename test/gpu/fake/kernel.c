/* Kernels: a module is what its PTX text says it holds, and what runs is a C function of the same name from the table below. A new
 * kernel needs its row here, written from what it is to do and not from its PTX. */
#include "fake/fake.h"

#include "gpu/kernel.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* What a thread of the GPU does for one element, for all of them: reads all inputs, then writes all outputs. */
static void fold_f32_sum(const struct op *op)
{
    for (uint64_t i = 0; i < op->count; i++) {
        float sum, next;
        memcpy(&sum, op->in[0] + 4 * i, 4);
        for (uint32_t k = 1; k < op->inputs; k++) {
            memcpy(&next, op->in[k] + 4 * i, 4);
            sum += next;
        }
        for (uint32_t k = 0; k < op->outputs; k++)
            memcpy(op->out[k] + 4 * i, &sum, 4);
    }
}

static void copy(const struct op *op)
{
    for (uint32_t k = 0; k < op->outputs; k++)
        memmove(op->out[k], op->in[0], op->count);
}

static const struct kernel kernels[] = {
    { KERNEL_FOLD_F32_SUM, sizeof(float), fold_f32_sum },
    { KERNEL_COPY, 1, copy },
};

struct CUmod_st { char *text; bool unloaded; };
struct CUfunc_st { struct CUmod_st *module; const struct kernel *kernel; };

enum { MODULES_MOST = 256, FUNCTIONS_MOST = 1024 };
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
    if (number_after(text, ".version") < 1 || number_after(text, ".target sm_") < 1 || !strstr(text, ".address_size 64"))
        return CUDA_ERROR_INVALID_PTX;
    if (modules_n == MODULES_MOST)
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct CUmod_st *m = &modules[modules_n++];
    m->text = strdup(text);
    *module = m;
    return m->text ? 0 : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    ENTER;
    return load(module, image);
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned n, int *options, void **values)
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
    CUresult error = module_of(module);
    if (!error)
        module->unloaded = true;
    return error;
}

static bool has_entry(const char *text, const char *name)
{
    size_t n = strlen(name);
    while ((text = strstr(text, ".entry")) != NULL) {
        text += strlen(".entry");
        while (isspace((unsigned char)*text))
            text++;
        if (!strncmp(text, name, n) && !isalnum((unsigned char)text[n]) && text[n] != '_')
            return true;
    }
    return false;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    ENTER;
    CUresult error = module_of(module);
    if (error)
        return error;
    if (!has_entry(module->text, name))
        return CUDA_ERROR_NOT_FOUND;
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++)
        if (!strcmp(kernels[i].name, name) && functions_n < FUNCTIONS_MOST) {
            functions[functions_n] = (struct CUfunc_st){ module, &kernels[i] };
            *function = &functions[functions_n++];
            return 0;
        }
    fake_misuse("unknown kernel", "the module has '%s', test/gpu/fake/kernel.c has not", name);
    return CUDA_ERROR_NOT_FOUND;
}

/* What a kernel on this device may touch: its own memory, what is opened, host memory by its device address, and that of peers if
 * access was enabled. */
static bool reaches(const struct CUctx_st *context, const struct range *r, bool write)
{
    if (r->kind == RANGE_HOST || r->kind == RANGE_OPENED)
        return true;
    if (r->kind == RANGE_MAPPED)
        return write ? r->writable : r->readable;
    return r->kind == RANGE_ALLOC && (r->context == context || context->peer[r->context->device]);
}

static unsigned char *argument(struct op *op, const struct CUctx_st *context, CUdeviceptr at, uint64_t bytes, bool write)
{
    struct range *r = address_is_ours(at) ? range_of(at) : NULL;
    if (!r || bytes > r->end - at || !reaches(context, r, write)) {
        op->error = op->error ? op->error : CUDA_ERROR_ILLEGAL_ADDRESS;
        return NULL;
    }
    if (r->kind == RANGE_OPENED && atomic_load(&r->memory->header->freed))
        fake_misuse("stale mapping", "a kernel uses memory that process %d has freed", r->exporter);
    unsigned char *seen = range_see(r, at);
    op_touch(op, r, r->kind == RANGE_HOST ? (uintptr_t)seen : r->offset + (at - r->begin), bytes, write);
    return seen;
}

static void arguments(struct op *op, const struct CUctx_st *context, const struct kernel_buffers *b, uint64_t count)
{
    op->count = count;
    op->inputs = b->inputs;
    op->outputs = b->outputs;
    uint64_t bytes = count * op->kernel->element;
    if (!b->inputs || !b->outputs || b->inputs > KERNEL_BUFFERS || b->outputs > KERNEL_BUFFERS) {
        op->error = CUDA_ERROR_ILLEGAL_ADDRESS;
        return;
    }
    for (uint32_t i = 0; i < b->inputs; i++)
        op->in[i] = argument(op, context, b->in[i], bytes, false);
    for (uint32_t i = 0; i < b->outputs; i++)
        op->out[i] = argument(op, context, b->out[i], bytes, true);
}

CUresult cuLaunchKernel(CUfunction f, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z,
                        unsigned shared_bytes, CUstream handle, void **parameters, void **extra)
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
    if (!grid_x || !grid_y || !grid_z || !block_x || !block_y || !block_z || (uint64_t)block_x * block_y * block_z > 1024 ||
        grid_y > 65535 || grid_z > 65535 || grid_x > 2147483647u || shared_bytes > 48 << 10 || extra || !parameters)
        return CUDA_ERROR_INVALID_VALUE;
    struct op *op = op_new(OP_KERNEL, __func__);
    op->kernel = f->kernel;
    arguments(op, stream->context, parameters[0], *(const uint64_t *)parameters[1]);
    stream_enqueue(stream, op);
    return 0;
}
