/* Job: writes the text of our kernels: PTX, from which CUDA's driver makes the machine code of the
 *      GPU at hand.
 * Owns: nothing.
 * Never: a driver, a launch (kernels.h). The same text for every GPU: .version 6.0 .target sm_70 is
 *        what drivers since R384 load and
 * every GPU since Volta runs, so no instruction that came later is in it; what they would do is
 * done with integers.
 *
 * To read one, or to hold it against the real assembler where there is one (test/gpu/ptx_print.c):
 *
 *     <build>/test/gpu/ptx_print f32 sum >sum.ptx && ptxas -arch=sm_70 -v -o sum.cubin sum.ptx
 *     for f in $(<build>/test/gpu/ptx_print --all DIR); do ptxas -arch=sm_90 -o out.cubin $f; done
 *
 * (CUDA 13's ptxas begins with -arch=sm_75.) */
#ifndef TUTTI_GPU_PTX_H
#define TUTTI_GPU_PTX_H

#include "base/text.h"

#include <tutti.h>

enum { PTX_ROOM = 96 << 10, PTX_NAME = 64 };         /* enough for each text, for each name */

/* Adds the module of one kernel (kernel.h). 0; -EINVAL: fold/ has no such pair; -ENOSPC: the text
 * was cut off, into is too small. */
int ptx_fold(struct text *into, tutti_type type, tutti_op op);

/* The kernel's name, also of a pair that there is not. */
void ptx_name(struct text *into, tutti_type type, tutti_op op);

#endif
