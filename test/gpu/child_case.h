/* Job: tests with the driver of this folder, each in a process of its own, since what CUDA has
 *      begun or broken it does not undo.
 * Owns: the children; they are reaped when a case returns, and killed if they do not end in time.
 * Never: CUDA in the test's own process. */
#ifndef TUTTI_TEST_GPU_CHILD_CASE_H
#define TUTTI_TEST_GPU_CHILD_CASE_H

#include "fake/hooks.h"
#include "gpu/cuda_api.h"

#include <stdbool.h>
#include <stdio.h>

enum { CASE_PATIENCE_S = 60, CASE_TEXT = 8192 };

extern struct cuda_api cu;                      /* in a case, after case_cuda */
extern struct cuda_more cu_more;                /* likewise */
extern struct fake_hooks fake;                   /* none on a real driver: case_device.h */
extern int peer;                                /* in a case of two: the socket to the other one */

/* Leave the case with 1 and say where. */
#define IS(got, expected) \
    do { \
        long long got_ = (long long)(got), expected_ = (long long)(expected); \
        if (got_ != expected_) { \
            fprintf(stderr, "%s:%d: %s is %lld, not %lld\n", __FILE__, __LINE__, #got, \
                    got_, expected_); \
            return 1; \
        } \
    } while (0)
#define OK(call) IS(call, CUDA_SUCCESS)
#define YES(condition) IS(!!(condition), 1)

typedef int case_body(void);

/* The first thing in main: begins the program anew with the folder of <build> in LD_LIBRARY_PATH,
 * unless it is there. Does nothing under TUTTI_TEST_CUDA=real: the machine's driver is found. */
void cases_with(char **argv, const char *folder);

/* Runs body in a child with these variables ("NAME=value", last one NULL) and gives its exit
   status, or 128 + signal; stderr is caught. The child ends by exit(), so that what the driver
   checks at the end is checked. */
int case_run(case_body *body, const char *const *environment);
int case_pair(case_body *one, case_body *other, const char *const *environment,
              int *status_of_other);
const char *case_stderr(void);                       /* of the last one */

/* It must end with 0. The variables, and NULL. */
#define PASSES(body, ...) \
    assert_int_equal(case_passes(body, (const char *const[]){ __VA_ARGS__ }), 0)
int case_passes(case_body *body, const char *const *environment);  /* prints its stderr otherwise */
int case_pair_passes(case_body *one, case_body *other, const char *const *environment);

bool case_cuda(void);  /* in a case: opens the driver, cuInit, the context of device 0 is current */

bool tell(const void *bytes, size_t n);
bool hear(void *bytes, size_t n);
bool tell_fd(int fd);
int hear_fd(void);

#endif
