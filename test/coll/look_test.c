/* ctest: needs=populate labels=nosan */
/* Between two ranks that take their rings ahead (TUTTI_AHEAD) the other's ring is mapped here with
 * its first slot, by each way that reads slots. So the operations behind it, which go round the
 * whole ring, have no fault; without that they have one for each stretch that the system maps.
 * nosan: the memory of a sanitizer has faults of its own. */
#include "group/comm.h"
#include "support/ranks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

enum { BYTES = EAGER_CHUNK, ROUND = EAGER_MOST / BYTES, FEW = 8 };
/* the ways that slots are read: taken as they are, and folded; rank 0 gives, rank 1 reads */
enum way { TAKEN, FOLDED, WAYS };

static enum way way;

static int once(tutti_comm *world, char *send, char *recv)
{
    return way == TAKEN ? tutti_broadcast(send, BYTES, TUTTI_U8, 0, world, NULL)
                        : tutti_reduce(send, recv, BYTES, TUTTI_U8, TUTTI_MAX, 1, world, NULL);
}

static long faults(void)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return used.ru_minflt;
}

static int body(tutti_comm *world, int rank)
{
    char *send = malloc(BYTES), *recv = malloc(BYTES);
    CHECK(send && recv);
    memset(send, rank, BYTES);
    memset(recv, 0, BYTES);
    world->world->flags |= TUTTI_AHEAD;
    CHECK_IS(once(world, send, recv), 0);
    if (rank == 0)
        CHECK(comm_ring_whole(&world->stage));
    long before = faults();
    for (int i = 0; i < ROUND; i++)
        CHECK_IS(once(world, send, recv), 0);
    store_release64(&page->number[rank], (uint64_t)(faults() - before));
    free(send);
    free(recv);
    return 0;
}

static void test_no_faults_behind_the_first(void **state)
{
    (void)state;
    for (way = 0; way < WAYS; way++) {
        assert_int_equal(ranks_run(2, body, 0), 0);
        uint64_t faults_of_reader = load_acquire64(&page->number[1]);
        printf("%s: %llu faults\n", way == TAKEN ? "taken" : "folded",
               (unsigned long long)faults_of_reader);
        assert_true(faults_of_reader <= FEW);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_no_faults_behind_the_first) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
