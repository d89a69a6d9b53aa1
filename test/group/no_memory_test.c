/* ctest: timeout=120 labels=nosan needs=limit */
/* A comm is made while one of its ranks has no memory left: all hear it, nobody waits for ever, and
 * the ranks work on. (A sanitizer's malloc does not come to an end as this one does.) */
#include "support/ranks.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

/* A rank that has no memory for its handle tells those who wait for it in the new comm. No deadline
 * would end their wait. */
static int body(tutti_comm *world, int rank)
{
    tutti_comm *c = NULL;
    void **hoard = NULL;
    CHECK_IS(tutti_set_timeout(world, -1), 0);
    if (rank == 2) {
        struct rlimit none = { 0, RLIM_INFINITY };
        CHECK(setrlimit(RLIMIT_AS, &none) == 0);
        /* what little is left is less than a handle needs */
        for (void **more; (more = malloc(8192)); hoard = more)
            *more = hoard;
    }
    int r = tutti_comm_create(world, (const int[]){ 0, 1, 2 }, 3, &c);
    struct rlimit any = { RLIM_INFINITY, RLIM_INFINITY };
    setrlimit(RLIMIT_AS, &any);
    for (void **less; hoard; hoard = less) {
        less = *hoard;
        free(hoard);
    }
    CHECK_IS(r, -ENOMEM);
    CHECK(c == NULL
          && (rank == 2
              || strstr(tutti_explain(world),
                        "rank 2 could not make its comm: Cannot allocate memory")));
    CHECK_IS(tutti_barrier(world, NULL), 0);
    CHECK_IS(tutti_comm_create(world, (const int[]){ 0, 1, 2 }, 3, &c), 0);
    CHECK_IS(tutti_comm_free(c), 0);
    return 0;
}

static void test_one_cannot(void **state)
{
    (void)state;
    assert_int_equal(ranks_run(3, body, 0), 0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = { cmocka_unit_test(test_one_cannot) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
