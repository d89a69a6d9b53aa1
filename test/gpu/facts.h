/* Job: what the groups of gpu_facts have in common: a line of words, a pointer's attributes, memory
 *      of cuMemCreate, functions that the library's table has not.
 * Owns: nothing.
 * Never: a judgement; a failure. */
#ifndef TUTTI_TEST_GPU_FACTS_H
#define TUTTI_TEST_GPU_FACTS_H

#include "child_case.h"

struct facts_group { const char *name; case_body *one, *other; };
extern CUcontext facts_context;                              /* the primary one of device 0 */
extern size_t facts_grain;                                   /* of cuMemCreate */

bool facts_begin(void);                                      /* in a case */
__attribute__((format(printf, 1, 2))) void fact(const char *format, ...);
const char *facts_name(CUresult error);                      /* four of them may be in use */
void *facts_symbol(const char *name);                   /* NULL: there is none, and it is said */
double facts_ms(void);
CUmemAllocationProp facts_prop(void);
CUresult facts_map(CUdeviceptr at, size_t bytes, CUmemGenericAllocationHandle handle);
size_t facts_free_mib(void);                                 /* of the device, now */
/* All that the driver says of it; addresses relative to base. */
void facts_pointer(const char *what, CUdeviceptr at, CUdeviceptr base);

int facts_vmm(void), facts_vmm_freed(void), facts_past_end(void);
int facts_lend(void), facts_borrow(void), facts_goes(void), facts_stays(void);
int facts_killed(void), facts_reads(void), facts_exits(void);
int facts_descriptor(void), facts_import(void);
int facts_foreign_context(void), facts_thread(void), facts_capture(void), facts_capture_null(void);
int facts_held(void);

#endif
