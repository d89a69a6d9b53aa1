/* Job: what most cases of this folder have: two buffers, two streams, some host memory; and whether
 *      misuse was found.
 * Owns: all of it, in the case's process.
 * Never: CUDA in the test's own process. */
#ifndef TUTTI_TEST_GPU_DEVICE_FIXTURE_H
#define TUTTI_TEST_GPU_DEVICE_FIXTURE_H

#include "child_case.h"

#include <tutti.h>

enum { BYTES = 1 << 16 };

extern unsigned char *host;                       /* 2 BYTES, registered if the case wanted that */
extern CUdeviceptr dev, dev2;                     /* BYTES each */
extern CUstream s1, s2;                           /* non-blocking */

int fixture_begin(bool pinned);                        /* 0, or 1: it has been said what is wrong */
CUfunction fixture_fold(tutti_type type, tutti_op op); /* our kernel, loaded; NULL: it did not */
int fixture_end(void);                                 /* host memory is registered */

/* In a case of two: tells the other one the handle of this memory; takes such a handle, and opens
 * it. 0, or 1. */
int fixture_export(CUdeviceptr at);
int fixture_import(CUdeviceptr *at);

/* The variables, and NULL. */
#define FINDS(what, body, ...) finds(case_run(body, (const char *const[]){ __VA_ARGS__ }), \
                                     "misuse: " what)
#define FINDS_IN_FIRST(what, one, other, ...) finds_in_pair("misuse: " what, one, other, true, \
                                                            (const char *const[]){ __VA_ARGS__ })
#define FINDS_IN_SECOND(what, one, other, ...) finds_in_pair("misuse: " what, one, other, false, \
                                                             (const char *const[]){ __VA_ARGS__ })
#define PAIR_PASSES(one, other, ...) \
    assert_int_equal(case_pair_passes(one, other, (const char *const[]){ __VA_ARGS__ }), 0)

void finds(int status, const char *what);
void finds_in_pair(const char *what, case_body *one, case_body *other, bool first,
                   const char *const *environment);

#endif
