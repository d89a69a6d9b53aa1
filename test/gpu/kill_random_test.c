/* ctest: timeout=300 labels=faults */
/* Ranks killed at random instants while device buffers are under way: every survivor hears
 * of it, none has got a result that another has not, and those that are left go on, on the
 * same devices. */
#include "host_compare.h"

#include "support/team.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <unistd.h>

#include <cmocka.h>

enum { RANKS = 3, VICTIM = 1, COUNT = 70001, W_BEGUN = 0 };

static uint64_t delay_ns;

static void *strike(void *arg)
{
    (void)arg;
    team_spin(delay_ns);
    kill(getpid(), SIGKILL);
    return NULL;
}

static int goes_on(tutti_comm *world)
{
    tutti_comm *left;
    int r = tutti_comm_shrink(world, &left);
    if (r < 0)
        fprintf(stderr, "%s\n", tutti_explain(world));
    IS(r, 0);
    IS(tutti_size(left), RANKS - 1);
    for (int kind = 0; kind < 3; kind++)
        if (compare_run(left,
                        &(struct compared){ R_ALL_REDUCE + (enum compare_kind)kind,
                                            kind ? COUNT : 300, false, ON_DEVICE, NULL, false }))
            return 1;
    IS(tutti_comm_free(left), 0);
    return 0;
}

static int lives_or_dies(tutti_comm *world, int rank)
{
    pthread_t thread;
    tutti_comm *comm = NULL;
    if (compare_begin(world, COUNT, rank == 2 ? -1 : 0))
        return 1;
    ranks_count(W_BEGUN);
    IS(tutti_barrier(world, NULL), 0);
    if (rank == VICTIM && pthread_create(&thread, NULL, strike, NULL))
        return 1;
    uint64_t done = 0;
    int got = 0;
    for (; got >= 0; done++) {
        enum compare_kind kind = (enum compare_kind)((done * 7 + 3) % R_SAME);
        struct compared r = {
            kind, done % 4 == 1 ? 2000 : COUNT, false,
            rank == 2 ? ON_HOST : ON_DEVICE, NULL, done % 5 == 4
        };
        if (done % 6 == 0) {                        /* small pipelines again */
            if (comm && (got = tutti_comm_free(comm)) < 0)
                break;
            comm = NULL;
            got = tutti_comm_split(world, 0, rank, &comm);
        }
        if (got >= 0)
            got = compare_call(comm, &r);
    }
    store_release64(&page->number[rank], done);
    if (got != -EOWNERDEAD && got != -ECANCELED)    /* the latter: split's words of a broken comm */
        fprintf(stderr, "rank %d, operation %llu: %s\n", rank, (unsigned long long)done,
                comm ? tutti_explain(comm) : tutti_explain(world));
    YES(got == -EOWNERDEAD || got == -ECANCELED);
    if (comm)
        IS(tutti_comm_free(comm), 0);
    got = tutti_barrier(world, NULL);
    YES(got < 0);
    if (goes_on(world))
        return 1;
    return compare_end(world);
}

static void test_kills(void **state)
{
    (void)state;
    uint64_t seed = team_seed();
    int kills = team_many("TUTTI_KILLS", 25, 8);
    setenv("FAKE_CUDA_DELAY_US", "100", 1);
    for (int i = 0; i < kills; i++) {
        delay_ns = team_random(&seed) % 60000000;
        if (ranks_run(RANKS, lives_or_dies, 1u << VICTIM))
            fail_msg("kill %d, after %llu ns", i, (unsigned long long)delay_ns);
        uint64_t a = load_acquire64(&page->number[0]), b = load_acquire64(&page->number[2]);
        if (a != b)
            fail_msg("kill %d, after %llu ns: rank 0 got %llu results, rank 2 got %llu", i,
                     (unsigned long long)delay_ns, (unsigned long long)a, (unsigned long long)b);
    }
    unsetenv("FAKE_CUDA_DELAY_US");
}

int main(int argc, char **argv)
{
    (void)argc;
    cases_with(argv, "fake_cuda");
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_kills) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
