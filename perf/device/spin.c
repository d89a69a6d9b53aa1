/* A loop of a number of steps, timed once: a GPU's clock is near enough to the same, and a kernel
 * that reads a timer is not one that the tests' driver knows. */
#include "device/spin.h"

#include "harness/stamp.h"

enum { STEPS = 1 << 12, MORE = 16, LONG_NS = 1000000, MOST_STEPS = 1 << 30, THREADS = 128 };

static const char text[] =
    ".version 6.0\n"
    ".target sm_70\n"
    ".address_size 64\n"
    ".visible .entry spin(.param .u64 out, .param .u32 steps)\n"
    "{\n"
    "    .reg .pred %p<1>;\n"
    "    .reg .b32 %r<2>;\n"
    "    .reg .b64 %rd<1>;\n"
    "    ld.param.u64 %rd0, [out];\n"
    "    ld.param.u32 %r0, [steps];\n"
    "    mov.u32 %r1, %tid.x;\n"
    "again:\n"
    "    mad.lo.u32 %r1, %r1, 1664525, 1013904223;\n"
    "    add.u32 %r0, %r0, -1;\n"
    "    setp.ne.u32 %p0, %r0, 0;\n"
    "    @%p0 bra again;\n"
    "    st.global.u32 [%rd0], %r1;\n"
    "    ret;\n"
    "}\n";

static CUresult launch(struct spin *s, uint32_t steps, CUstream stream)
{
    void *parameters[] = { &s->out, &steps };
    return s->call->cuLaunchKernel(s->function, s->blocks, 1, 1, THREADS, 1, 1, 0, stream,
                                   parameters, NULL);
}

CUresult spin_open(struct spin *s, const struct cuda_api *call, CUstream stream)
{
    CUdevice device = 0;
    int many = 1;
    double ns = 0;
    *s = (struct spin){ .call = call, .blocks = 1 };
    CUresult error = call->cuModuleLoadData(&s->module, text);
    if (!error)
        error = call->cuModuleGetFunction(&s->function, s->module, "spin");
    if (!error)
        error = call->cuMemAlloc_v2(&s->out, 256);
    for (uint32_t steps = STEPS; !error && ns < LONG_NS && steps < MOST_STEPS; steps *= MORE) {
        uint64_t begin = stamp_now();
        error = launch(s, steps, stream);
        if (!error)
            error = call->cuStreamSynchronize(stream);
        ns = stamp_ns(stamp_now() - begin);
        s->steps_per_ms = (double)steps / ns * 1e6;
    }
    if (!error && call->cuCtxGetDevice(&device) == 0
        && call->cuDeviceGetAttribute(&many, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device) == 0)
        s->blocks = (unsigned)many;
    return error;
}

CUresult spin_beside(struct spin *s, const struct spin *other)
{
    *s = *other;
    s->module = NULL;
    return s->call->cuMemAlloc_v2(&s->out, 256);
}

CUresult spin_start(struct spin *s, double ms, CUstream stream)
{
    double steps = s->steps_per_ms * ms;
    return launch(s, steps < 1 ? 1 : steps > MOST_STEPS ? MOST_STEPS : (uint32_t)steps, stream);
}

void spin_close(struct spin *s)
{
    if (s->out)
        s->call->cuMemFree_v2(s->out);
    if (s->module)
        s->call->cuModuleUnload(s->module);
    s->out = 0;
    s->module = NULL;
}
