/* The threads of an OpenMP program, GNU's or LLVM's, whichever compiles it: peer_omp STAGE. Between
 * ranks there is one operation that OpenMP has by itself, the barrier; its settings are the
 * defaults (OMP_WAIT_POLICY, KMP_BLOCKTIME and their like are unset). */
#include "harness/member.h"

#include <omp.h>
#include <stdio.h>

static int barrier(struct rank *r)
{
    (void)r;
#pragma omp barrier
    return 0;
}

static const struct system omp = { .run = { [OP_BARRIER] = barrier }, .threads = true };

int main(int argc, char **argv)
{
    struct stage *stage = argc == 2 ? member_join(argv[1]) : NULL;
    int failed = 0;
    if (!stage)
        return 2;
    member_version(stage, __VERSION__);              /* the compiler's, and so its runtime's */
    omp_set_dynamic(0);
#pragma omp parallel num_threads(member_ranks(stage)) reduction(+ : failed)
    {
        if (omp_get_num_threads() != member_ranks(stage)) {
            fprintf(stderr, "perf: OpenMP gave %d threads of %d\n", omp_get_num_threads(),
                    member_ranks(stage));
            failed = 1;
        } else {
            failed = member_serve(stage, omp_get_thread_num(), &omp);
        }
    }
    return failed != 0;
}
