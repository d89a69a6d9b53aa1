/* ctest: timeout=900 labels=faults needs=vm_read */
/* Each function of CUDA that the library calls fails, in one rank, at each of its calls. A scenario
 * runs once to count the calls, then again for each function, number and error. No rank hangs or
 * crashes, what one call returns at all ranks belongs together, what is in place is right, the
 * words name the rank and what failed; and afterwards a comm of the same processes works: on the
 * device, unless its context has died, on the host in any case. What stands in the way of a faster
 * road only must stop nothing.
 *
 * Here each function fails at its first and its last call, by one road if all call it alike; at all
 * calls, with all errors, by all roads, under TUTTI_PROVE; TUTTI_SWEEP_SHARE=k/n: of these runs the
 * k-th of each n, from 0 on. With sanitizers, which take five times as long, a third of the
 * functions by lot; TUTTI_TEST_SEED repeats it. */
#include "case_device.h"
#include "fault_scenario.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

enum { CODES = 4, STICKY_FROM = 700, STICKY_TO = 719 };

/* a: the call succeeds, and the device fails later. The first two are those of every day. */
static const char *const usual[CODES] = { "2", "700", "999", "719" };
static const char *const asynchronous[CODES] = { "700a", "719", "2", "700" };
/* another road will do, until the context dies */
static const char *const on_the_way[CODES] = { "801", "2", "800", "700" };
static const char *const of_jit[CODES] = { "221", "2", "218", "719" };

static const char *const *codes_of(const char *symbol)
{
    if (!strncmp(symbol, "cuMemcpy", 8) || !strcmp(symbol, "cuLaunchKernel"))
        return asynchronous;
    if (!strncmp(symbol, "cuIpc", 5) || !strncmp(symbol, "cuMemHost", 9))
        return on_the_way;
    return !strncmp(symbol, "cuModule", 8) ? of_jit : usual;
}

static bool sticky(const char *code)
{
    int number = atoi(code);
    return number >= STICKY_FROM && number <= STICKY_TO;
}

/* Nothing fails by it: there is another road, or other memory. */
static bool must_pass(const char *symbol, const char *code)
{
    const char *const *codes = codes_of(symbol);
    return (codes == on_the_way || codes == of_jit || !strcmp(symbol, "cuMemAlloc_v2"))
        && !sticky(code);
}

static bool gives_back(const char *symbol)
{
    static const char *const parts[] = {
        "Destroy", "Free", "Unregister", "Release", "Unmap", "Close", "Pop", "Unload"
    };
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (strstr(symbol, parts[i]))
            return true;
    return false;
}

/* What is open and cannot be closed cannot be made good: its owner frees what is still mapped. In a
 * context that has died all is closed by the same call, which other faults try. */
static bool can_fail(const char *symbol) { return strcmp(symbol, "cuIpcCloseMemHandle") != 0; }

/* Which device it is about is not known yet: their words name the function instead. */
static bool of_no_device(const char *symbol)
{
    return !strcmp(symbol, "cuInit") || !strncmp(symbol, "cuDriver", 8)
        || !strcmp(symbol, "cuDeviceGetCount") || !strcmp(symbol, "cuPointerGetAttributes");
}

/* ---- the judgement --------------------------------------------------------------------------- */

static int ranks;
static const char *road;
static const struct scenario_fault *const f = &scenario_fault;

static int wrong(const char *what, int op)
{
    fprintf(stderr, "%s: %s:%llu:%s at rank %d of %d: %s (%d)\n", road, f->symbol,
            (unsigned long long)f->nth, f->code, f->rank, ranks, what, op);
    scenario_print(ranks);
    return 1;
}

enum outcome { PASSED, FAILED, BROKE, NOT_REACHED, OUTCOMES };

/* A call whose failure stops nothing may still have broken the context: then the next one is what
 * fails, and knows its device. */
static bool names_it(const char *words)
{
    return strstr(words, "device 0") || (of_no_device(f->symbol) && strstr(words, f->symbol));
}

static int judge_failure(int at, enum outcome *outcome)
{
    const struct scenario_told *t = scenario_told();
    const char *bad = NULL;
    char named[16];
    int where, device;
    *outcome = FAILED;
    if (must_pass(f->symbol, f->code))
        return wrong("there is another road", at);
    snprintf(named, sizeof named, "rank %d", f->rank);
    for (int r = 0; r < ranks; r++)
        if (!names_it(t->words[r]) || (r != f->rank && !strstr(t->words[r], named)))
            return wrong("the words do not name rank and device", at);
    device = scenario_failed(ranks, (1u << ranks) - 1, SCENARIO_DEVICE, SCENARIO_DEVICE + 1, &bad,
                             &where);
    if (bad)
        return wrong(bad, where);
    if (device >= 0 && !sticky(f->code)
        && (!of_no_device(f->symbol) || !strcmp(f->symbol, "cuPointerGetAttributes")))
        return wrong("the device cannot be used again", device);
    if (device >= 0)
        *outcome = BROKE;
    for (int r = 0; r < ranks; r++)
        if (t->result[r][SCENARIO_SHRINK] || (device >= 0 && t->result[r][SCENARIO_AGAIN])
            || t->result[r][SCENARIO_HOST])
            return wrong("no work on the host behind it", SCENARIO_HOST);
    return 0;
}

static int judge(enum outcome *outcome)
{
    const struct scenario_told *t = scenario_told();
    const char *bad = NULL;
    int where = 0, at = scenario_failed(ranks, (1u << ranks) - 1, 0, SCENARIO_OPS, &bad, &where);
    *outcome = PASSED;
    if (bad)
        return wrong(bad, where);
    if (at >= 0 && judge_failure(at, outcome))
        return 1;
    for (int r = 0; r < ranks; r++)
        if (t->result[r][SCENARIO_END] == SCENARIO_NONE)
            return wrong("no end", SCENARIO_END);
    for (int i = 0; i < SCENARIO_SYMBOLS; i++)
        if (!strcmp(scenario_symbols[i], f->symbol) && t->calls[i] < f->nth)
            *outcome = NOT_REACHED;
    return 0;
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* Of all runs, over roads and functions. */
static bool in_share(void)
{
    static unsigned long all;
    const char *share = getenv("TUTTI_SWEEP_SHARE");
    char *end = NULL;
    unsigned long k = share ? strtoul(share, &end, 10) : 0, n = share ? strtoul(end + 1, NULL, 10)
                                                                      : 1;
    return all++ % n == k;
}

static int sweep_one(const char *symbol, uint64_t calls, uint32_t *tried,
                     uint32_t outcomes[OUTCOMES])
{
    bool all = getenv("TUTTI_PROVE") != NULL;
    int bad = 0;
    for (uint64_t n = 1; n <= calls; n++)
        for (int i = 0; i < CODES; i++) {
            enum outcome outcome = PASSED;
            const char *code = codes_of(symbol)[i];
            if ((!all && !(i == 0 && n == 1) && !(i == 1 && n == calls)) || !in_share())
                continue;
            scenario_fault = (struct scenario_fault){
                symbol, code, n, f->rank, sticky(code) || gives_back(symbol)
            };
            ++*tried;
            if (ranks_run(ranks, scenario_run, 0)
                    ? wrong("a rank crashed, hung, or misused CUDA", -1)
                    : judge(&outcome))
                bad++;
            else
                outcomes[outcome]++;
        }
    return bad;
}

enum { SANITIZED_SHARE = 3 };
static uint64_t seed, drawn;

/* What all roads call in the same manner is tried by one of them, but under TUTTI_PROVE. */
static bool wanted(const char *symbol)
{
    static const char *const own[] = {
        "cuIpc", "cuModule", "cuLaunch", "cuMemcpyDtoD", "cuMemGetAddress", "cuEventRecord"
    };
    const char *only = getenv("TUTTI_SWEEP_SYMBOL");
    bool is_own = strstr(road, "pinned") || getenv("TUTTI_PROVE") || only;
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        is_own |= !strncmp(symbol, own[i], strlen(own[i]));
    if (getenv("TUTTI_TEST_SANITIZED") && !getenv("TUTTI_PROVE") && !only
        && drawn++ % SANITIZED_SHARE != seed % SANITIZED_SHARE)
        return false;
    return is_own && can_fail(symbol) && (!only || strstr(symbol, only));
}

static void sweep(const char *rules, int n, int rank)
{
    uint64_t calls[SCENARIO_SYMBOLS];
    uint32_t all = 0;
    int bad = 0;
    road = rules;
    ranks = n;
    setenv("TUTTI_ALGORITHM", rules, 1);
    scenario_fault = (struct scenario_fault){ .rank = rank };
    assert_int_equal(ranks_run(ranks, scenario_run, 0), 0);
    for (int r = 0; r < ranks; r++)
        for (int i = 0; i < SCENARIO_OPS; i++)
            assert_int_equal(scenario_told()->result[r][i], 0);
    memcpy(calls, scenario_told()->calls, sizeof calls);
    printf("%s, %d ranks, fails at %d\n  %-34s %6s %6s %7s %7s %7s %8s\n", road, ranks, rank,
           "function", "calls", "tried", "passed", "failed", "broken", "not met");
    for (int s = 0; s < SCENARIO_SYMBOLS; s++) {
        uint32_t tried = 0, outcomes[OUTCOMES] = { 0 };
        if (!calls[s] || !wanted(scenario_symbols[s]))
            continue;
        bad += sweep_one(scenario_symbols[s], calls[s], &tried, outcomes);
        printf("  %-34s %6llu %6u %7u %7u %7u %8u\n", scenario_symbols[s],
               (unsigned long long)calls[s], tried, outcomes[PASSED], outcomes[FAILED],
               outcomes[BROKE], outcomes[NOT_REACHED]);
        fflush(stdout);
        all += tried;
    }
    printf("  %u runs, %d wrong\n", all, bad);
    assert_int_equal(bad, 0);
}

static void pinned(void **state)
{
    (void)state;
    sweep("device:-inf=pinned", 2, 1);
}

/* Rank 0 folds, the others copy from it. */
static void leader(void **state)
{
    (void)state;
    sweep("device:-inf=leader", 2, 0);
    sweep("device:-inf=leader", 2, 1);
}

static void peers(void **state)
{
    (void)state;
    sweep("device:-inf=peers", 3, 1);
}

int main(int argc, char **argv)
{
    (void)argc;
    if (case_needs_fake("fails at a chosen call"))
        return CASE_SKIP;
    cases_with(argv, "fake_cuda");
    const char *given = getenv("TUTTI_TEST_SEED");
    seed = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
    printf("TUTTI_TEST_SEED=%llu\n", (unsigned long long)seed);
    const struct CMUnitTest tests[] = { cmocka_unit_test(pinned), cmocka_unit_test(leader),
                                        cmocka_unit_test(peers) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
