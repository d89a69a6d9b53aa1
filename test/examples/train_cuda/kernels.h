/* SPDX-License-Identifier: MIT */
/* The kernels, each a module of its own, as the text that CUDA's driver compiles for the GPU
 * at hand. Each thread makes one element; of what is said above each. Registers are named as
 * in cpu.c. */
#ifndef TRAIN_CUDA_KERNELS_H
#define TRAIN_CUDA_KERNELS_H

/* What all have in common: %i is the number of the thread, and those from `count` on leave. 160 is
 * INPUTS * HIDDEN. */
#define KERNEL(name, parameters) \
    ".version 6.0\n.target sm_70\n.address_size 64\n" \
    ".visible .entry " name \
        "(.param .u32 count, .param .u32 rows, .param .f32 factor, .param .u64 net_x, .param " \
        ".u64 net_y,\n" \
    "    .param .u64 net_hidden, .param .u64 net_error, .param .u64 net_weights, .param .u64 " \
    "net_gradient)\n" \
    "{\n" \
    "    .reg .pred %end, %positive;\n" \
    "    .reg .u32  %i, %j, %k, %n, %count, %rows, %block, %threads;\n" \
    "    .reg .u64  %x, %y, %hidden, %error, %weights, %gradient, %at;\n" \
    "    .reg .f32  %sum, %a, %b, %factor;\n" \
    "    mov.u32      %block, %ctaid.x;\n" \
    "    mov.u32      %threads, %ntid.x;\n" \
    "    mov.u32      %i, %tid.x;\n" \
    "    mad.lo.u32   %i, %block, %threads, %i;\n" \
    "    ld.param.u32 %count, [count];\n" \
    "    setp.ge.u32  %end, %i, %count;\n" \
    "    @%end bra    END;\n" \
    "    ld.param.u32 %rows, [rows];\n" \
    "    ld.param.f32 %factor, [factor];\n" parameters

#define POINTER(name) \
    "    ld.param.u64 %" name ", [net_" name "];\n" \
    "    cvta.to.global.u64 %" name ", %" name ";\n"

/* %at = the address of base[index] */
#define ADDRESS(base, index) "    mul.wide.u32 %at, " index ", 4;\n    add.u64      %at, %at, " \
    base ";\n"
#define LOAD(to, base, index) ADDRESS(base, index) "    ld.global.f32 " to ", [%at];\n"
#define STORE(base, index, from) ADDRESS(base, index) "    st.global.f32 [%at], " from ";\n"

/* for (%n = 0; %n < bound; %n++) */
#define LOOP "    mov.u32      %n, 0;\nNEXT:\n"
#define AGAIN(bound) "    add.u32      %n, %n, 1;\n    setp.lt.u32  %end, %n, " bound \
    ";\n    @%end bra    NEXT;\n"
#define END "END:\n    ret;\n}\n"

static const struct { const char *name, *text; } kernels[] = {
    /* hidden[i]: row i / 32, neuron i % 32. The sum of its inputs, or 0 where that is negative. */
    { "hidden", KERNEL("hidden", POINTER("x") POINTER("weights") POINTER("hidden"))
    "    shr.u32      %j, %i, 5;\n"
    "    mul.lo.u32   %j, %j, 5;\n"                  /* where its row of x begins */
    "    and.b32      %k, %i, 31;\n"                 /* where its column of weights begins */
    "    mov.f32      %sum, 0f00000000;\n"
    LOOP
    LOAD("%a", "%x", "%j")
    LOAD("%b", "%weights", "%k")
    "    fma.rn.f32   %sum, %a, %b, %sum;\n"
    "    add.u32      %j, %j, 1;\n"
    "    add.u32      %k, %k, 32;\n"
    AGAIN("5")
    "    max.f32      %sum, %sum, 0f00000000;\n"
    STORE("%hidden", "%i", "%sum")
    END },

    /* error[i]: of row i, what comes out less what is to come out. */
    { "error", KERNEL("error", POINTER("y") POINTER("hidden") POINTER("weights") POINTER("error"))
    LOAD("%sum", "%y", "%i")
    "    neg.f32      %sum, %sum;\n"
    "    shl.b32      %j, %i, 5;\n"
    "    mov.u32      %k, 160;\n"
    LOOP
    LOAD("%a", "%hidden", "%j")
    LOAD("%b", "%weights", "%k")
    "    fma.rn.f32   %sum, %a, %b, %sum;\n"
    "    add.u32      %j, %j, 1;\n"
    "    add.u32      %k, %k, 1;\n"
    AGAIN("32")
    STORE("%error", "%i", "%sum")
    END },

    /* gradient[i], i below 160: of the weight from input i / 32 to neuron i % 32. No error comes
     * back through a neuron that gave 0. */
    { "gradient_in",
      KERNEL("gradient_in",
             POINTER("x") POINTER("hidden") POINTER("error") POINTER("weights") POINTER("gradient"))
    "    .reg .f32    %out;\n"
    "    shr.u32      %k, %i, 5;\n"
    "    and.b32      %j, %i, 31;\n"
    "    add.u32      %block, %j, 160;\n"
    LOAD("%out", "%weights", "%block")
    "    mov.f32      %sum, 0f00000000;\n"
    LOOP
    LOAD("%a", "%error", "%n")
    "    mul.rn.f32   %a, %a, %out;\n"
    LOAD("%b", "%hidden", "%j")
    "    setp.gt.f32  %positive, %b, 0f00000000;\n"
    "    selp.f32     %a, %a, 0f00000000, %positive;\n"
    LOAD("%b", "%x", "%k")
    "    fma.rn.f32   %sum, %a, %b, %sum;\n"
    "    add.u32      %j, %j, 32;\n"
    "    add.u32      %k, %k, 5;\n"
    AGAIN("%rows")
    "    mul.rn.f32   %sum, %sum, %factor;\n"
    STORE("%gradient", "%i", "%sum")
    END },

    /* gradient[160 + i]: of the weight out of neuron i; and i = 32 makes the loss, for which the
     * other factor is the error itself. */
    { "gradient_out", KERNEL("gradient_out", POINTER("hidden") POINTER("error") POINTER("gradient"))
    "    mov.u32      %j, %i;\n"
    "    mov.f32      %sum, 0f00000000;\n"
    LOOP
    LOAD("%a", "%error", "%n")
    "    mov.f32      %b, %a;\n"
    "    setp.eq.u32  %end, %i, 32;\n"
    "    @%end bra    SUM;\n"
    LOAD("%b", "%hidden", "%j")
    "SUM:\n"
    "    fma.rn.f32   %sum, %a, %b, %sum;\n"
    "    add.u32      %j, %j, 32;\n"
    AGAIN("%rows")
    "    setp.eq.u32  %end, %i, 32;\n"
    "    mul.rn.f32   %a, %factor, 0f3F000000;\n"    /* a half */
    "    selp.f32     %factor, %a, %factor, %end;\n"
    "    mul.rn.f32   %sum, %sum, %factor;\n"
    "    add.u32      %j, %i, 160;\n"
    STORE("%gradient", "%j", "%sum")
    END },

    /* weights[i] -= factor * gradient[i] */
    { "step", KERNEL("step", POINTER("weights") POINTER("gradient"))
    "    neg.f32      %factor, %factor;\n"
    LOAD("%a", "%gradient", "%i")
    LOAD("%b", "%weights", "%i")
    "    fma.rn.f32   %b, %factor, %a, %b;\n"
    "    st.global.f32 [%at], %b;\n"                 /* %at still is the weight's */
    END },
};

#endif
