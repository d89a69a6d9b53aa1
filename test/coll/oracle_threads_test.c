/* ctest: timeout=600 labels=tsan
 * The oracle with threads of one process as ranks, each with a world of its own: the same code,
 * and all of it in sight of ThreadSanitizer, because the ranks of a process share one mapping of
 * the arena. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/oracle.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct oracle_space few = { 2, 4, 300000, false };

struct rank {
    pthread_t thread;
    int rank, size, failed;
    const char *job;
    const struct oracle_case *cases;
    size_t n;
    struct oracle_board *board;
};

static void *rank_main(void *arg)
{
    struct rank *r = arg;
    tutti_options options = {
        .job = r->job, .rank = r->rank, .size = r->size, .span_bytes = 16 << 20
    };
    tutti_comm *world;
    r->failed = 1;
    if (tutti_init(&world, &options) < 0) {
        print_error("rank %d: %s\n", r->rank, tutti_explain(NULL));
        return NULL;
    }
    r->failed = oracle_run(world, r->cases, r->n, r->board, NULL);
    if (tutti_finalize(world) < 0)
        r->failed = 1;
    return NULL;
}

static void run_world(const struct oracle_case *cases, size_t n, int nth,
                      struct oracle_board *board)
{
    char rules[1024], job[64];
    struct rank ranks[ORACLE_RANKS];
    int size = oracle_ranks(cases), failed = 0;
    assert_int_equal(setenv("TUTTI_ALGORITHM", oracle_rules(cases, rules), 1), 0);
    snprintf(job, sizeof job, "threads-%d-%d", (int)getpid(), nth);
    for (int r = 0; r < size; r++) {
        ranks[r] = (struct rank){
            .rank = r, .size = size, .job = job, .cases = cases, .n = n, .board = board
        };
        assert_int_equal(pthread_create(&ranks[r].thread, NULL, rank_main, &ranks[r]), 0);
    }
    for (int r = 0; r < size; r++) {
        pthread_join(ranks[r].thread, NULL);
        failed += ranks[r].failed;
    }
    for (uint32_t i = 0; i < load_acquire32(&board->used) && i < ORACLE_COMPLAINTS; i++)
        print_error("%s\n", board->said[i]);
    if (failed)
        fail_msg("%d of %d ranks failed; TUTTI_ALGORITHM=%s", failed, size, rules);
}

static void threads_agree(void **state)
{
    (void)state;
    uint64_t seed = oracle_seed();
    struct oracle_cases cases = { 0 };
    struct oracle_board *board = calloc(1, sizeof *board);
    assert_non_null(board);
    for (enum kind kind = KIND_BARRIER; kind <= KIND_ALL_TO_ALL_V; kind++)
        oracle_pairs(&cases, kind, &few, &seed);
    oracle_sort(&cases);
    int worlds = 0;
    for (size_t i = 0, n; i < cases.used; i += n) {
        n = oracle_world(&cases.at[i], cases.used - i);
        run_world(&cases.at[i], n, worlds++, board);
    }
    printf("%zu cases in %d worlds\n", cases.used, worlds);
    oracle_free(&cases);
    free(board);
}

int main(void)
{
    assert_int_equal(setenv("TUTTI_TIMEOUT_MS", "120000", 1), 0);
    assert_int_equal(setenv("TUTTI_WARN_MS", "-1", 1), 0);
    const struct CMUnitTest tests[] = { cmocka_unit_test(threads_agree) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
