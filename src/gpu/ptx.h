/* Job: write the text of our kernels: PTX, from which CUDA's driver makes the GPU's machine code.
 * Owns: nothing.
 * Never: asks a driver, launches (kernels.h).
 *
 * The text is the same for every GPU. Drivers since R384 load .version 6.0, and every GPU since
 * Volta runs .target sm_70. So the text has no later instruction; integer instructions do the work
 * of those.
 *
 * To read a text, or to check it with the real assembler if there is one (test/gpu/ptx_print.c):
 *
 *     <build>/test/gpu/ptx_print f32 sum >sum.ptx && ptxas -arch=sm_70 -v -o sum.cubin sum.ptx
 *     for f in $(<build>/test/gpu/ptx_print --all DIR); do ptxas -arch=sm_90 -o out.cubin $f; done
 *
 * (CUDA 13's ptxas begins with -arch=sm_75; gpu.ptxas does that for all.) */
#ifndef TUTTI_GPU_PTX_H
#define TUTTI_GPU_PTX_H

#include "base/text.h"

#include <tutti.h>

enum { PTX_ROOM = 96 << 10, PTX_NAME = 64 };         /* enough for each text, for each name */

/* Adds the beginning of a module, which ptx_kernel goes on with. */
void ptx_module(struct text *into);
int ptx_kernel(struct text *into, tutti_type type, tutti_op op);         /* results as ptx_fold's */
bool ptx_has(tutti_type type, tutti_op op);                              /* fold/ has this pair */

/* Adds the module of one kernel (kernel.h). 0. -EINVAL: fold/ has no such pair. -ENOSPC: `into` is
 * too small, and the text was cut off. */
int ptx_fold(struct text *into, tutti_type type, tutti_op op);

/* Adds the kernel's name, also of a pair that does not exist. */
void ptx_name(struct text *into, tutti_type type, tutti_op op);

#endif
