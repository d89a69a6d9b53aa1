/* ctest: timeout=900 labels=faults */
/* A rank with device buffers is killed: in the calls that its life is made of (before its arrival,
 * while its copies are under way, while the others wait for it to open their memory, while it has
 * that memory open, with its own part done, while it leaves), and at moments that chance takes. The
 * others are told that it has died, all of them or none, and of which rank; they shrink, and work
 * on the device as before.
 *
 * Here it dies in calls of some functions; in the first, the middle and the last one of each
 * function, and more often by chance, under TUTTI_PROVE. */
#include "case_device.h"
#include "fault_scenario.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static int ranks, runs, deaths, bad_runs;
static const char *road;
static const struct scenario_fault *const f = &scenario_fault;
static uint64_t seed;

static void wrong(const char *what, int op)
{
    fprintf(stderr, "%s: rank %d of %d, killed in %s:%llu, chance %llu: %s (%d)\n", road, f->rank,
            ranks, f->symbol ? f->symbol : "any", (unsigned long long)f->nth,
            (unsigned long long)seed, what, op);
    scenario_print(ranks);
    bad_runs++;
}

static void judge(void)
{
    const struct scenario_told *t = scenario_told();
    unsigned alive = ((1u << ranks) - 1) & ~(1u << f->rank);
    const char *bad = NULL;
    char named[16];
    int where = 0, at = scenario_failed(ranks, alive, 0, SCENARIO_OPS, &bad, &where);
    if (bad) {
        wrong(bad, where);
        return;
    }
    snprintf(named, sizeof named, "rank %d", f->rank);
    for (int r = 0; at >= 0 && r < ranks; r++) {
        if (r == f->rank && t->result[r][at] == 0)
            wrong("it had it, and the others have not", at);
        else if (r != f->rank && t->result[r][at] != -EOWNERDEAD)
            wrong("not a death", at);
        else if (r != f->rank && !strstr(t->words[r], named))
            wrong("the words do not name it", at);
        else if (r != f->rank
                 && (t->result[r][SCENARIO_SHRINK] || t->result[r][SCENARIO_DEVICE]
                     || t->result[r][SCENARIO_HOST]))
            wrong("those who are left cannot go on", at);
    }
    for (int r = 0; r < ranks; r++)
        if (r != f->rank && t->result[r][SCENARIO_END] == SCENARIO_NONE)
            wrong("no end", SCENARIO_END);
    deaths += at >= 0;
}

static void try_it(ranks_body *body)
{
    runs++;
    if (ranks_run(ranks, body, 1u << f->rank))
        wrong("a survivor crashed, hung, or misused CUDA, or nobody died", -1);
    else
        judge();
}

/* ---- in a call ------------------------------------------------------------------------------- */

static void in_calls_of(const char *symbol, uint64_t calls, int victim)
{
    uint64_t at[3] = { 1, calls / 2 + 1, calls };
    for (int i = 0; i < 3; i++) {
        /* How often it asks whether the caller's stream is ready differs from run to run; once in
         * each of the seven operations it does at least. */
        bool asks = !strcmp(symbol, "cuEventQuery");
        uint64_t nth = asks ? 1 + 3 * (uint64_t)i : at[i];
        if (i > 0 && !asks && at[i] == at[i - 1])
            continue;
        scenario_fault = (struct scenario_fault){ symbol, "0k", nth, victim, false };
        try_it(scenario_run);
    }
}

static void in_calls(const char *rules, int n, int victim, const char *const *some)
{
    uint64_t calls[SCENARIO_SYMBOLS];
    road = rules;
    ranks = n;
    runs = deaths = bad_runs = 0;
    setenv("TUTTI_ALGORITHM", rules, 1);
    scenario_fault = (struct scenario_fault){ .rank = victim };
    assert_int_equal(ranks_run(ranks, scenario_run, 0), 0);
    memcpy(calls, scenario_told()->calls, sizeof calls);
    for (int s = 0; s < SCENARIO_SYMBOLS; s++) {
        bool wanted = getenv("TUTTI_PROVE") != NULL;
        for (int i = 0; some[i] && !wanted; i++)
            wanted = !strcmp(scenario_symbols[s], some[i]);
        if (wanted && calls[s])
            in_calls_of(scenario_symbols[s], calls[s], victim);
    }
    printf("%s, rank %d of %d: killed %d times, in %d the others met it in a call, %d wrong\n",
           rules, victim, n, runs, deaths, bad_runs);
    assert_int_equal(bad_runs, 0);
}

/* Before its arrival; a copy to the staging asked for; asking whether that has ended; a result on
 * its way; the end. */
static const char *const of_staging[] = {
    "cuPointerGetAttributes", "cuMemcpyDtoHAsync_v2", "cuEventQuery", "cuMemcpyHtoDAsync_v2",
    "cuMemcpy2DAsync_v2", "cuStreamWriteValue32_v2", "cuStreamDestroy_v2", NULL
};
/* Its memory is lent; the others wait in `mapped`; all memory is open; it has read, and they wait
 * in `placed`; it leaves. */
static const char *const of_reading[] = {
    "cuIpcGetMemHandle", "cuIpcOpenMemHandle_v2", "cuLaunchKernel", "cuMemcpyDtoDAsync_v2",
    "cuEventQuery", "cuIpcCloseMemHandle", "cuMemHostUnregister", NULL
};

static void calls_pinned(void **state)
{
    (void)state;
    NEEDS_FAKE("kills in a chosen call");
    in_calls("device:-inf=pinned", 3, 1, of_staging);
}

static void calls_leader(void **state)
{
    (void)state;
    NEEDS_FAKE("kills in a chosen call");
    in_calls("device:-inf=leader", 3, 0, of_reading);
    in_calls("device:-inf=leader", 3, 2, of_reading);
}

static void calls_peers(void **state)
{
    (void)state;
    NEEDS_FAKE("kills in a chosen call");
    in_calls("device:-inf=peers", 3, 1, of_reading);
}

/* ---- at any moment --------------------------------------------------------------------------- */

static uint64_t chance(void)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return seed >> 33;
}

static long wait_ns;

static void *kills(void *arg)
{
    (void)arg;
    nanosleep(&(struct timespec){ 0, wait_ns }, NULL);
    ranks_die();
    return NULL;
}

static int dies(tutti_comm *world, int rank)
{
    pthread_t thread;
    scenario_clear(rank);
    if (rank == f->rank && pthread_create(&thread, NULL, kills, NULL))
        return 1;
    return scenario_runs(world, rank);
}

static void any_moment(void **state)
{
    (void)state;
    static const char *const roads[] = { "device:-inf=pinned", "device:-inf=leader",
                                         "device:-inf=peers" };
    const char *given = getenv("TUTTI_TEST_SEED");
    int many = getenv("TUTTI_PROVE") ? 1000 : 12;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    seed = given ? strtoull(given, NULL, 0) : (uint64_t)now.tv_nsec ^ (uint64_t)now.tv_sec << 30;
    printf("TUTTI_TEST_SEED=%llu\n", (unsigned long long)seed);
    setenv("FAKE_CUDA_DELAY_US", "200", 1);
    runs = deaths = bad_runs = 0;
    for (int i = 0; i < many; i++) {
        road = roads[i % 3];
        ranks = 2 + (int)(chance() % 3);
        wait_ns = (long)(chance() % 400000000);
        setenv("TUTTI_ALGORITHM", road, 1);
        scenario_fault = (struct scenario_fault){ .rank = (int)(chance() % (uint64_t)ranks) };
        try_it(dies);
    }
    unsetenv("FAKE_CUDA_DELAY_US");
    printf("at any moment: killed %d times, in %d the others met it in a call, %d wrong\n", runs,
           deaths, bad_runs);
    assert_int_equal(bad_runs, 0);
}

int main(int argc, char **argv)
{
    (void)argc;
    cases_with(argv, "fake_cuda");
    const struct CMUnitTest tests[] = { cmocka_unit_test(calls_pinned),
                                        cmocka_unit_test(calls_leader),
                                        cmocka_unit_test(calls_peers),
                                        cmocka_unit_test(any_moment) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
