/* ctest: timeout=120 */
/* The tests' own PTX: each instruction against what its documentation says, branches that part and
 * meet, blocks that share memory, what is refused, and addresses that a kernel may not touch. */
#include "case_device.h"
#include "device_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HEAD ".version 6.0\n.target sm_70\n.address_size 64\n"
#define REGISTERS                                                                                  \
    ".reg .pred %p<4>; .reg .b16 %h<4>, %hA, %hD, %hE; .reg .b32 %r<16>, %rA, %rB, %rC, %rD, "     \
    "%rE; "                                                                                        \
                  ".reg .b64 %y<16>, %yA, %yB, %yC, %yD;\n"

static CUfunction function_of(const char *text, const char *name)
{
    CUmodule module;
    CUfunction f = NULL;
    if (cu.cuModuleLoadData(&module, text) != 0 || cu.cuModuleGetFunction(&f, module, name) != 0)
        return NULL;
    return f;
}

/* ---- instructions ---------------------------------------------------------------------------- */

#define F(x) ((union { float f; uint32_t u; }){ .f = (x) }).u
#define D(x) ((union { double d; uint64_t u; }){ .d = (x) }).u
#define NAN_F 0x7fffffffu

static int each(void)
{
    const struct { const char *text; uint64_t a, b, c, want; } rows[] = {
        { "add.u32 %rD, %rA, %rB", 0xffffffff, 2, 0, 1 },
        { "sub.s64 %yD, %yA, %yB", 1, 3, 0, UINT64_MAX - 1 },
        { "mul.lo.s32 %rD, %rA, %rB", 0xffffffff, 7, 0, 0xfffffff9 },
        { "mul.hi.u32 %rD, %rA, %rB", 0xffffffff, 0xffffffff, 0, 0xfffffffe },
        { "mul.hi.s32 %rD, %rA, %rB", 0xffffffff, 7, 0, 0xffffffff },
        { "mul.hi.u64 %yD, %yA, %yB", UINT64_MAX, UINT64_MAX, 0, UINT64_MAX - 1 },
        { "mul.hi.s64 %yD, %yA, %yB", UINT64_MAX, 7, 0, UINT64_MAX },
        { "mul.wide.u32 %yD, %rA, %rB", 0xffffffff, 2, 0, 0x1fffffffe },
        { "mul.wide.s32 %yD, %rA, %rB", 0xffffffff, 2, 0, UINT64_MAX - 1 },
        { "mad.lo.s32 %rD, %rA, %rB, %rC", 3, 5, 0xffffffff, 14 },
        { "mad.wide.u32 %yD, %rA, %rB, %yC", 0xffffffff, 2, 5, 0x200000003 },
        { "div.s32 %rD, %rA, %rB", 0xfffffff9, 2, 0, 0xfffffffd },
        { "div.u32 %rD, %rA, %rB", 0xfffffff9, 2, 0, 0x7ffffffc },
        { "rem.s32 %rD, %rA, %rB", 0xfffffff9, 2, 0, 0xffffffff },
        { "div.s64 %yD, %yA, %yB", UINT64_C(1) << 63, UINT64_MAX, 0, UINT64_C(1) << 63 },
        { "neg.s32 %rD, %rA", 5, 0, 0, 0xfffffffb },
        { "abs.s32 %rD, %rA", 0xfffffffb, 0, 0, 5 },
        { "min.s32 %rD, %rA, %rB", 0xffffffff, 1, 0, 0xffffffff },
        { "min.u32 %rD, %rA, %rB", 0xffffffff, 1, 0, 1 },
        { "max.s64 %yD, %yA, %yB", UINT64_MAX, 1, 0, 1 },
        { "not.b32 %rD, %rA", 5, 0, 0, 0xfffffffa },
        { "shl.b32 %rD, %rA, %rB", 3, 31, 0, 0x80000000 },
        { "shl.b32 %rD, %rA, %rB", 3, 32, 0, 0 },
        { "shr.u32 %rD, %rA, 40", 3, 0, 0, 0 },
        { "shr.s32 %rD, %rA, 40", 0x80000000, 0, 0, 0xffffffff },
        { "shr.s64 %yD, %yA, 1", UINT64_C(1) << 63, 0, 0, UINT64_C(3) << 62 },
        { "bfe.u32 %rD, %rA, 8, 8", 0x12f43456, 0, 0, 0x34 },
        { "bfe.s32 %rD, %rA, 16, 8", 0x12f43456, 0, 0, 0xfffffff4 },
        { "bfe.s32 %rD, %rA, 28, 8", 0x92f43456, 0, 0, 0xfffffff9 },
        { "bfe.u32 %rD, %rA, 8, 0", 0x12f43456, 0, 0, 0 },
        { "bfe.s32 %rD, %rA, 0, 32", 0x92f43456, 0, 0, 0x92f43456 },
        { "bfi.b32 %rD, %rA, %rB, 8, 8", 0x12f43456, 0xffffffff, 0, 0xffff56ff },
        { "bfi.b32 %rD, %rA, %rB, 8, 0", 0x12f43456, 0x1111, 0, 0x1111 },
        { "prmt.b32 %rD, %rA, %rB, 0x7531", 0x33221100, 0x77665544, 0, 0x77553311 },
        { "prmt.b32 %rD, %rA, 0, 0xb444", 0x83221100, 0, 0, 0xff000000 },
        { "mov.b32 {%hD, %hE}, %rA", 0x12345678, 0, 0, 0x5678 },
        { "mov.b64 {%rE, %rD}, %yA", 0x123456789, 0, 0, 1 },
        { "mov.b32 %rD, {%hA, %hA}", 0x5678, 0, 0, 0x56785678 },
        { "setp.lt.u32 %p0, %rA, %rB", 0xffffffff, 1, 0, 0 },
        { "setp.lt.s32 %p0, %rA, %rB", 0xffffffff, 1, 0, 1 },
        { "setp.nan.f32 %p0, %rA, %rB", 0x7fc00000, 0, 0, 1 },
        { "setp.num.f32 %p0, %rA, %rB", 0x7fc00000, 0, 0, 0 },
        { "setp.neu.f32 %p0, %rA, %rB", 0x7fc00000, 0, 0, 1 },
        { "setp.ne.f32 %p0, %rA, %rB", 0x7fc00000, 0, 0, 0 },
        { "setp.eq.f32 %p0, %rA, %rB", 0x80000000, 0, 0, 1 },
        { "selp.b32 %rD, %rA, %rB, %p3", 4, 5, 0, 5 },
        { "add.rn.f32 %rD, %rA, %rB", 0x3f800000, 0x33800000, 0, 0x3f800000 },
        { "add.f32 %rD, %rA, 0f3f800000", 0x33800001, 0, 0, 0x3f800001 },
        { "sub.f32 %rD, %rA, %rB", 0x7f800000, 0x7f800000, 0, NAN_F },
        { "mul.f32 %rD, %rA, %rB", 1, 0x3f000000, 0, 0 },
        { "mul.f32 %rD, %rA, %rB", 3, 0x3f000000, 0, 2 },
        { "div.rn.f32 %rD, %rA, %rB", 0x3f800000, 0x40400000, 0, 0x3eaaaaab },
        { "fma.rn.f32 %rD, %rA, %rB, %rC", 0x3f800001, 0x3f800001, 0xbf800002, 0x28800000 },
        { "neg.f32 %rD, %rA", 0, 0, 0, 0x80000000 },
        { "abs.f32 %rD, %rA", 0x80000001, 0, 0, 1 },
        { "min.f32 %rD, %rA, %rB", 0x7fc00000, 0x3f800000, 0, 0x3f800000 },
        { "max.f32 %rD, %rA, %rB", 0x80000000, 0, 0, 0 },
        { "min.f32 %rD, %rA, %rB", 0, 0x80000000, 0, 0x80000000 },
        { "sqrt.rn.f32 %rD, %rA", 0x40000000, 0, 0, 0x3fb504f3 },
        { "fma.rn.f64 %yD, %yA, %yB, %yC", D(3), D(4), D(5), D(17) },
        { "div.rn.f64 %yD, %yA, %yB", D(1), D(3), 0, 0x3fd5555555555555 },
        { "max.f64 %yD, %yA, 0d3ff0000000000000", D(0.5), 0, 0, D(1) },
        { "cvt.f32.f16 %rD, %hA", 0x3c00, 0, 0, F(1) },
        { "cvt.f32.f16 %rD, %hA", 0x8001, 0, 0, F(-0x1p-24f) },
        { "cvt.f32.f16 %rD, %hA", 0x7c00, 0, 0, 0x7f800000 },
        { "cvt.rn.f16.f32 %hD, %rA", F(65519), 0, 0, 0x7bff },
        { "cvt.rn.f16.f32 %hD, %rA", F(65520), 0, 0, 0x7c00 },
        { "cvt.rn.f16.f32 %hD, %rA", F(0x1p-25f), 0, 0, 0 },
        { "cvt.rn.f16.f32 %hD, %rA", F(0x1.8p-24f), 0, 0, 2 },
        { "cvt.rn.f16.f32 %hD, %rA", F(-0.f), 0, 0, 0x8000 },
        { "cvt.rn.f16.f32 %hD, %rA", 0xffc00000, 0, 0, 0x7fff },
        { "cvt.rn.f32.u32 %rD, %rA", 0xffffffff, 0, 0, F(0x1p32f) },
        { "cvt.rn.f32.s64 %rD, %yA", UINT64_MAX, 0, 0, F(-1) },
        { "cvt.rzi.s32.f32 %rD, %rA", F(-2.9f), 0, 0, 0xfffffffe },
        { "cvt.rni.s32.f32 %rD, %rA", F(2.5f), 0, 0, 2 },
        { "cvt.rzi.u32.f32 %rD, %rA", F(-2), 0, 0, 0 },
        { "cvt.rzi.s32.f32 %rD, %rA", F(1e20f), 0, 0, 0x7fffffff },
        { "cvt.rzi.s32.f32 %rD, %rA", 0x7fc00000, 0, 0, 0 },
        { "cvt.rn.f32.f64 %rD, %yA", D(0.1), 0, 0, F(0.1f) },
        { "cvt.f64.f32 %yD, %rA", F(0.5f), 0, 0, D(0.5) },
        { "cvt.s64.s32 %yD, %rA", 0x80000000, 0, 0, 0xffffffff80000000 },
        { "cvt.u64.u32 %yD, %rA", 0x80000000, 0, 0, 0x80000000 },
        { "cvt.u32.u8 %rD, %rA", 0x1234, 0, 0, 0x34 },
        { "cvt.s32.s8 %rD, %rA", 0x12f4, 0, 0, 0xfffffff4 },
        { "@%p3 mov.u32 %rD, 9", 0, 0, 0, 77 },
        { "@!%p3 mov.u32 %rD, 9", 0, 0, 0, 9 },
        { "xor.pred %p0, %p3, %p2", 0, 0, 0, 1 },
        { "mov.u32 %rD, -2", 0, 0, 0, 0xfffffffe },
        { "mov.u32 %rD, %ntid.x", 0, 0, 0, 1 },
        { "// nothing\n /* of\n it */ mov.b32 %rD, %rA", 1, 0, 0, 1 },
    };
    static char text[4096];
    if (fixture_begin(true))
        return 1;
    uint64_t *out = fake.fakePeek(dev);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *t = rows[i].text,
                   *end = strstr(t, "%p0") ? "selp.b64 %yD, 1, 0, %p0"
            : strstr(t, "%rD") ? "cvt.u64.u32 %yD, %rD"
            : strstr(t, "%hD") ? "cvt.u64.u16 %yD, %hD"
            : "mov.b64 %yD, %yD";
        snprintf(text, sizeof text,
                 HEAD
                 ".visible .entry t(.param .u64 out, .param .u64 a, .param .u64 b, .param .u64 c)\n"
                 "{\n"
                 "%s"
                 "ld.param.u64 %%yA, [a]; ld.param.u64 %%yB, [b]; ld.param.u64 %%yC, [c];\n"
                 "cvt.u32.u64 %%rA, %%yA; cvt.u32.u64 %%rB, %%yB;\n"
                 "cvt.u32.u64 %%rC, %%yC; cvt.u16.u64 %%hA, %%yA; mov.u32 %%rD, 77; setp.ne.u32 "
                 "%%p3, %%rD, 77; setp.eq.u32 %%p2, %%rD, 77;\n"
                 "%s;\n%s;\n"
                 "ld.param.u64 %%y0, [out]; st.global.u64 [%%y0], %%yD;\nret;\n}\n",
                 REGISTERS, t, end);
        CUfunction f = function_of(text, "t");
        uint64_t a = rows[i].a, b = rows[i].b, c = rows[i].c;
        OK(cu.cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, s1, (void *[]){ &dev, &a, &b, &c }, NULL));
        OK(cu.cuStreamSynchronize(s1));
        if (out[0] != rows[i].want) {
            fprintf(stderr, "%s: %#llx, not %#llx\n", t, (unsigned long long)out[0],
                    (unsigned long long)rows[i].want);
            return 1;
        }
    }
    return fixture_end();
}

static void instructions_are_as_documented(void **state)
{
    (void)state;
    PASSES(each, "FAKE_CUDA_DELAY_US=0", NULL);
}

/* ---- whole kernels --------------------------------------------------------------------------- */

/* How many steps of Collatz until 1: each thread leaves the loop when it likes, and parts from
 * others within it. */
static const char collatz[] = HEAD
    ".entry collatz(.param .u64 .ptr .global .align 4 out, .param .u32 n)\n"
    "{\n" REGISTERS "mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ntid.x; mov.u32 %r2, %tid.x; mad.lo.u32 "
                    "%r0, %r0, %r1, %r2;\n"
    "ld.param.u32 %r3, [n]; setp.ge.u32 %p0, %r0, %r3; @%p0 ret;\n"
    "ld.param.u64 %y0, [out]; cvta.to.global.u64 %y0, %y0; mul.wide.u32 %y1, %r0, 4; add.s64 %y0, "
    "%y0, %y1;\n"
    "add.u32 %r4, %r0, 1; mov.u32 %r5, 0;\n"
    "LOOP: setp.eq.u32 %p1, %r4, 1; @%p1 bra DONE;\n"
    "add.u32 %r5, %r5, 1; and.b32 %r6, %r4, 1; setp.eq.u32 %p2, %r6, 0; @%p2 bra EVEN;\n"
    "mad.lo.u32 %r4, %r4, 3, 1; bra LOOP;\n"
    "EVEN: shr.u32 %r4, %r4, 1; bra.uni LOOP;\n"
    "DONE: st.global.u32 [%y0], %r5;\n"
    "}\n";

static int branches(void)
{
    uint32_t n = 1000;
    if (fixture_begin(true))
        return 1;
    memset(fake.fakePeek(dev), 0xee, BYTES);
    OK(cu.cuLaunchKernel(function_of(collatz, "collatz"), 6, 1, 1, 200, 1, 1, 0, s1,
                         (void *[]){ &dev, &n }, NULL));
    OK(cu.cuStreamSynchronize(s1));
    const uint32_t *out = fake.fakePeek(dev);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t steps = 0;
        for (uint32_t v = i + 1; v != 1; steps++)
            v = v & 1 ? 3 * v + 1 : v >> 1;
        IS(out[i], steps);
    }
    IS(out[n], 0xeeeeeeee);
    return fixture_end();
}

/* The sum of a block by halves, through shared memory; every step needs the one before from all. */
static const char sum[] = HEAD ".visible .entry sum(.param .u64 in, .param .u64 out)\n"
                               ".maxntid 512, 1, 1\n"
                               "{\n" REGISTERS ".shared .align 4 .b8 part[2048];\n"
                               "mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; "
                               "mad.lo.u32 %r3, %r1, %r2, %r0;\n"
                               "ld.param.u64 %y0, [in]; mul.wide.u32 %y1, %r3, 4; add.s64 %y0, "
                               "%y0, %y1; ld.global.nc.f32 %r4, [%y0];\n"
                               "mov.u64 %y2, part; mul.wide.u32 %y3, %r0, 4; add.s64 %y2, %y2, "
                               "%y3; st.shared.f32 [%y2], %r4;\n"
                               "shr.u32 %r5, %r2, 1;\n"
                               "$L_next: bar.sync 0; setp.eq.u32 %p0, %r5, 0; @%p0 bra $L_done; "
                               "setp.ge.u32 %p1, %r0, %r5; @%p1 bra $L_skip;\n"
                               "mul.wide.u32 %y4, %r5, 4; add.s64 %y4, %y4, %y2; ld.shared.f32 "
                               "%r6, [%y4]; ld.shared.f32 %r7, [%y2]; "
                               "add.f32 %r7, %r7, %r6; st.shared.f32 [%y2], %r7;\n"
                               "$L_skip: shr.u32 %r5, %r5, 1; bra $L_next;\n"
                               "$L_done: setp.ne.u32 %p2, %r0, 0; @%p2 exit; ld.shared.f32 %r8, "
                               "[part]; ld.param.u64 %y5, [out]; "
                               "mul.wide.u32 %y6, %r1, 4; add.s64 %y5, %y5, %y6;\n"
                               "st.global.f32 [%y5], %r8; ret;\n}\n";

static int blocks(void)
{
    if (fixture_begin(true))
        return 1;
    float *in = fake.fakePeek(dev), *out = fake.fakePeek(dev2);
    for (int i = 0; i < 4 * 512; i++)
        in[i] = (float)(i % 97);
    OK(cu.cuLaunchKernel(function_of(sum, "sum"), 4, 1, 1, 512, 1, 1, 0, s1,
                         (void *[]){ &dev, &dev2 }, NULL));
    OK(cu.cuStreamSynchronize(s1));
    for (int b = 0; b < 4; b++) {
        float want = 0;
        for (int i = 0; i < 512; i++)
            want += in[512 * b + i];
        YES(out[b] == want);
    }
    return fixture_end();
}

/* Those who read come to the barrier at one place, those who write, which stand further down, at
 * another: it is the same barrier. */
static const char meet[] = HEAD
    ".entry meet(.param .u64 out)\n{\n" REGISTERS ".shared .align 4 .b8 part[1024];\n"
    "mov.u32 %r0, %tid.x; xor.b32 %r1, %r0, 1; and.b32 %r2, %r0, 1; setp.eq.u32 %p0, %r2, 1;\n"
    "mov.u64 %y0, part; mul.wide.u32 %y1, %r1, 4; add.s64 %y0, %y0, %y1; @%p0 bra WRITES;\n"
    "bar.sync 0; mul.wide.u32 %y2, %r0, 4; mov.u64 %y3, part; add.s64 %y3, %y3, %y2; ld.shared.u32 "
    "%r3, [%y3];\n"
    "ld.param.u64 %y4, [out]; add.s64 %y4, %y4, %y2; st.global.u32 [%y4], %r3; ret;\n"
    "WRITES: mul.lo.u32 %r4, %r0, 10; st.shared.u32 [%y0], %r4; bar.sync 0;\n}\n";

static int barriers(void)
{
    if (fixture_begin(true))
        return 1;
    const uint32_t *out = fake.fakePeek(dev);
    OK(cu.cuLaunchKernel(function_of(meet, "meet"), 1, 1, 1, 256, 1, 1, 0, s1, (void *[]){ &dev },
                         NULL));
    OK(cu.cuStreamSynchronize(s1));
    for (uint32_t i = 0; i < 256; i += 2)
        IS(out[i], 10 * (i + 1));
    return fixture_end();
}

/* A product of matrices, as one who trains would write it: two dimensions, a loop of
 * fused multiply-adds. */
static const char product[] = HEAD
    ".entry product(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)\n"
    "{\n" REGISTERS
    "ld.param.u64 %y0, [a]; ld.param.u64 %y1, [b]; ld.param.u64 %y2, [c]; ld.param.u32 %r0, [n];\n"
    "mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mad.lo.s32 %r1, %r1, %r2, "
    "%r3;\n"
    "mov.u32 %r2, %ctaid.y; mov.u32 %r3, %ntid.y; mov.u32 %r4, %tid.y; mad.lo.s32 %r2, %r2, %r3, "
    "%r4;\n"
    "max.u32 %r5, %r1, %r2; setp.ge.u32 %p0, %r5, %r0; @%p0 bra OUT;\n"
    "mul.lo.u32 %r6, %r2, %r0; mul.wide.u32 %y3, %r6, 4; add.s64 %y4, %y0, %y3; mul.wide.u32 %y5, "
    "%r1, 4; "
    "add.s64 %y6, %y1, %y5; mul.wide.u32 %y7, %r0, 4;\n"
    "mov.f32 %r7, 0f00000000; mov.u32 %r8, 0;\n"
    "NEXT: ld.global.f32 %r9, [%y4]; ld.global.f32 %r10, [%y6]; fma.rn.f32 %r7, %r9, %r10, %r7;\n"
    "add.s64 %y4, %y4, 4; add.s64 %y6, %y6, %y7; add.s32 %r8, %r8, 1; setp.lt.s32 %p1, %r8, %r0; "
    "@%p1 bra NEXT;\n"
    "add.s64 %y8, %y2, %y3; add.s64 %y8, %y8, %y5; st.global.f32 [%y8+0], %r7;\nOUT: ret;\n}\n";

static int matrices(void)
{
    enum { N = 37 };
    uint32_t n = N;
    CUdeviceptr b = dev + N * N * 4;
    if (fixture_begin(true))
        return 1;
    b = dev + N * N * 4;
    float *x = fake.fakePeek(dev), *y = x + N * N, *z = fake.fakePeek(dev2);
    for (int i = 0; i < N * N; i++) {
        x[i] = (float)(i % 11 - 5);
        y[i] = (float)(i % 7 - 3);
    }
    OK(cu.cuLaunchKernel(function_of(product, "product"), 5, 5, 1, 8, 8, 1, 0, s1,
                         (void *[]){ &dev, &b, &dev2, &n }, NULL));
    OK(cu.cuStreamSynchronize(s1));
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            float want = 0;
            for (int k = 0; k < N; k++)
                want += x[N * i + k] * y[N * k + j];
            YES(z[N * i + j] == want);
        }
    return fixture_end();
}

/* What a kernel of others touches is all of each buffer it is given: no event between is a race. */
static int no_event(void)
{
    uint32_t n = 1;
    if (fixture_begin(true))
        return 1;
    CUfunction f = function_of(collatz, "collatz");
    OK(cu.cuMemsetD8Async(dev + BYTES - 1, 1, 1, s2));
    OK(cu.cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, s1, (void *[]){ &dev, &n }, NULL));
    return fixture_end();
}

static void kernels_of_others_run(void **state)
{
    (void)state;
    PASSES(branches, "FAKE_CUDA_DELAY_US=0", NULL);
    PASSES(blocks, "FAKE_CUDA_DELAY_US=0", NULL);
    PASSES(barriers, "FAKE_CUDA_DELAY_US=0", NULL);
    PASSES(matrices, "FAKE_CUDA_DELAY_US=0", NULL);
    FINDS("missing order:", no_event, NULL);
}

/* ---- what is refused ------------------------------------------------------------------------- */

static const char *refused_body;

static int refused(void)
{
    static char text[2048];
    CUmodule module;
    if (fixture_begin(true))
        return 1;
    snprintf(text, sizeof text, HEAD ".entry t(.param .u64 out)\n{\n%s%s\n}\n", REGISTERS,
             refused_body);
    IS(cu.cuModuleLoadData(&module, text), CUDA_ERROR_INVALID_PTX);
    fixture_end();
    return 17;
}

static void what_it_does_not_know_is_invalid(void **state)
{
    (void)state;
    static const struct { const char *body, *words; } all[] = {
        { "cvt.rn.bf16.f32 %h0, %r0;",
          "line 7: no type to convert to: 'cvt.rn.bf16.f32 %h0, %r0'" },
        { "min.NaN.f32 %r0, %r1, %r2;", "no such modifier" },
        { "cvt.rn.satfinite.e4m3x2.f32 %h0, %r0, %r1;", "no type to convert to" },
        { "add.bf16 %h0, %h1, %h2;", "no such type" },
        { "frob.u32 %r0, %r1;", "no such instruction" },
        { "add.u32 %r0, %r1;", "that many operands" },
        { "add.u32 %r0, %y1, %r2;", "another size" },
        { "add.u64 %y0, %y1, %r2;", "another size" },
        { "add.u32 %r0, %r1, %r16;", "nothing has this name" },
        { "mov.u32 5, %r1;", "no register to write to" },
        { "mov.u32 %tid.x, %r1;", "no register to write to" },
        { "bra NOWHERE;", "no such label" },
        { "selp.b32 %r0, %r1, %r2, %r3;", "another size" },
        { "cvt.f16.f32 %h0, %r0;", "wants .rn" },
        { "cvt.rn.f32.f16 %r0, %h0;", "has no rounding" },
        { "cvt.s32.f32 %r0, %r1;", "wants .rzi" },
        { "div.f32 %r0, %r1, %r2;", "no such type or mode" },
        { "mul.u32 %r0, %r1, %r2;", "no such type or mode" },
        { "ld.global.u64 %r0, [%y0];", "another size" },
        { "ld.global.v2.u32 {%r0}, [%y0];", "how many values" },
        { "ld.global.u32 %r0, %y0;", "in brackets" }, { "st.param.u32 [out], %r0;", "not written" },
        { "add.f32 %r0, %r1, 0f3f8;", "nothing has this name" },
        { "@%r0 bra X; X:", "another size" },
        { ".reg .b32 %tid;", "special register" },
        { ".weird 7;", "no such directive" },
        { "bar.sync 1;", "only barrier 0" },
        { "add.ftz.f32 %r0, %r1, %r2;", "no such modifier" }, { "mov.u64 %y0, %tid.x;", "32 bits" },
        { "ret", "ends within" },
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        refused_body = all[i].body;
        int status = case_run(refused, (const char *const[]){ NULL });
        if (status != 17 || !strstr(case_stderr(), "fake CUDA: PTX line")
            || !strstr(case_stderr(), all[i].words))
            fail_msg("'%s': status %d: %s", all[i].body, status, case_stderr());
    }
}

/* ---- addresses ------------------------------------------------------------------------------- */

static const char poke[] = HEAD ".entry poke(.param .u64 at, .param .u64 further)\n{\n" REGISTERS
                                "ld.param.u64 %y0, [at]; ld.param.u64 %y1, [further]; add.s64 %y0, "
                                "%y0, %y1; mov.u32 %r0, 7; st.global.u32 [%y0], %r0;\n"
                                "}\n";

static uint64_t further;

static int pokes(void)
{
    if (fixture_begin(false))
        return 1;
    OK(cu.cuLaunchKernel(function_of(poke, "poke"), 1, 1, 1, 1, 1, 1, 0, s1,
                         (void *[]){ &dev, &further }, NULL));
    CUresult error = cu.cuStreamSynchronize(s1);
    IS(cu.cuCtxSynchronize(), error);
    return error == CUDA_SUCCESS ? 0
        : error == CUDA_ERROR_ILLEGAL_ADDRESS ? 70
        : error == CUDA_ERROR_MISALIGNED_ADDRESS ? 71
        : 1;
}

static int status_of(uint64_t n)
{
    further = n;
    return case_run(pokes, (const char *const[]){ NULL });
}

static void addresses_are_checked(void **state)
{
    (void)state;
    assert_int_equal(status_of(0), 0);
    assert_int_equal(status_of(BYTES - 4), 0);
    assert_int_equal(status_of(BYTES), 70);
    assert_non_null(strstr(case_stderr(), "poke, PTX line 7: writes 0x"));
    assert_int_equal(status_of((uint64_t)-4), 70);
    assert_int_equal(status_of(2), 71);
}

int main(int argc, char **argv)
{
    (void)argc;
    if (case_needs_fake("runs PTX step by step"))
        return CASE_SKIP;
    cases_with(argv, "fake_cuda");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(instructions_are_as_documented),
        cmocka_unit_test(kernels_of_others_run),
        cmocka_unit_test(what_it_does_not_know_is_invalid),
        cmocka_unit_test(addresses_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
