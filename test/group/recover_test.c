/* ctest: timeout=300 labels=faults serial */
/* Ranks that compute, agree, and shrink when something broke, and are killed at random instants, up
 * to all but one. Whatever the instant: nobody hangs, all survivors have the same results of the
 * same agreements, the same comms with the same ranks, and right sums in them. The last agreement
 * of all is how they stop, so one that differs ends in a deadline. TUTTI_KILLS sets how many,
 * TUTTI_TEST_SEED repeats. */
#include "base/clock.h"
#include "base/text.h"
#include "group/comm.h"
#include "support/team.h"

#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

enum { READY = 1, RANKS = 6, COUNT_MOST = 20000 };
enum { AGREED, SHRUNK, CHAIN, SIZE, FAILED, ROUNDS };      /* numbers of a rank */

static struct { size_t count; int always; } scene;

/* What was decided goes into a chain: two survivors with the same chain have had the same decisions
 * in the same order. */
static void chain(struct team_rank *mine, uint64_t value)
{
    uint64_t both[2] = { mine->number[CHAIN], value };
    mine->number[CHAIN] = text_hash(both, sizeof both, 1);
}

static int wrong(struct team_rank *mine, int line, const char *what, long long value,
                 tutti_comm *comm)
{
    mine->wrong = (uint64_t)line;
    snprintf(mine->report, sizeof mine->report, "line %d: %s: %lld\n%s", line, what, value,
             tutti_explain(comm));
    return 1;
}

static int sum_right(tutti_comm *c, int rank, int *result)
{
    static int32_t x[COUNT_MOST];
    int sum = 0;
    for (int i = 0; i < tutti_size(c); i++)
        sum += 1 << c->watch.slot->world_rank[i];
    for (size_t i = 0; i < scene.count; i++)
        x[i] = 1 << rank;
    *result = tutti_all_reduce(x, x, scene.count, TUTTI_I32, TUTTI_SUM, c, NULL);
    for (size_t i = 0; *result == 0 && i < scene.count; i++)
        if (x[i] != sum)
            return 0;
    return 1;
}

/* Bit 0: go on; bit 1: my sum worked; the rest is this rank's number as zeros, so that the sum
 * shows whose votes counted. */
static int body(tutti_comm *world, int rank, struct team *team)
{
    struct team_rank *mine = &team->rank[rank];
    tutti_comm *cur = world, *next;
    if (tutti_barrier(world, NULL) < 0)
        return 1;
    team_say(team, rank, READY);
    for (uint64_t k = 0;; k++) {
        int worked = 0;
        if (!sum_right(cur, rank, &worked))
            return wrong(mine, __LINE__, "a wrong sum", (long long)k, cur);
        int flag = 0x7ffffffc & ~(4 << rank);
        flag |= (load_acquire32(&team->all) ? 0 : 1) | (worked == 0 ? 2 : 0);
        int r = tutti_comm_agree(cur, &flag);
        if (r < 0)
            return wrong(mine, __LINE__, "comm_agree", r, cur);
        chain(mine, (uint64_t)(uint32_t)flag);
        mine->number[AGREED]++;
        if (flag & 4 << rank)
            return wrong(mine, __LINE__, "my vote did not count", flag, cur);
        if (!(flag & 1))
            break;
        if ((flag & 2) && !scene.always)
            continue;
        r = tutti_comm_shrink(cur, &next);
        if (r < 0)
            return wrong(mine, __LINE__, "comm_shrink", r, cur);
        for (int i = 0; i < tutti_size(next); i++)
            chain(mine, next->watch.slot->world_rank[i] + 1);
        chain(mine, next->birth);
        mine->number[SHRUNK]++;
        if (next->watch.slot->world_rank[tutti_rank(next)] != (uint32_t)rank)
            return wrong(mine, __LINE__, "another's rank", tutti_rank(next), next);
        for (int i = 1; i < tutti_size(next); i++)
            if (next->watch.slot->world_rank[i - 1] >= next->watch.slot->world_rank[i])
                return wrong(mine, __LINE__, "not in old order", i, next);
        if (cur != world && tutti_comm_free(cur) < 0)
            return wrong(mine, __LINE__, "comm_free", 0, cur);
        cur = next;
    }
    mine->number[SIZE] = (uint64_t)tutti_size(cur);
    if (cur != world)
        tutti_comm_free(cur);
    return 0;
}

static int run_one(uint64_t *random, const char *name)
{
    int size = 2 + (int)(team_random(random) % (RANKS - 1)),
        deaths = 1 + (int)(team_random(random) % (uint64_t)(size - 1));
    uint64_t killed = 0;
    struct team *team = team_start(size, body, false);
    for (int r = 0; r < size; r++)
        assert_int_equal(team_await(team, r, READY), 0);
    for (int i = 0; i < deaths; i++) {
        int victim = (int)(team_random(random) % (uint64_t)size);
        /* Often right behind each other: the second one finds the others at what the first one
         * made them do. */
        team_spin(team_random(random) % 3 ? team_random(random) % 300000
                                          : team_random(random) % 3000000);
        if (!(killed >> victim & 1))
            kill(team_pid(team, victim), SIGKILL);
        killed |= UINT64_C(1) << victim;
    }
    team_spin(team_random(random) % 2000000);
    store_release32(&team->all, 1);
    int bad = team_end(team) < 0, first = -1;
    for (int r = 0; r < size; r++) {
        bool doomed = killed >> r & 1;
        const struct team_rank *one = &team->rank[r];
        if (doomed ? !(WIFSIGNALED(team->status[r]) && WTERMSIG(team->status[r]) == SIGKILL)
                   : team->status[r] != 0)
            bad = 1;
        if (doomed)
            continue;
        if (first < 0)
            first = r;
        else if (one->number[CHAIN] != team->rank[first].number[CHAIN]
                 || one->number[AGREED] != team->rank[first].number[AGREED]
                 || one->number[SHRUNK] != team->rank[first].number[SHRUNK]
                 || one->number[SIZE] != team->rank[first].number[SIZE])
            bad = 1;
    }
    for (int r = 0; bad && r < size; r++)
        printf("WRONG: %s, %d ranks, killed 0x%" PRIx64 ": rank %d: status 0x%x, %" PRIu64
               " agreed, %" PRIu64 " shrunk, chain %" PRIx64 ", size %" PRIu64 "; %s\n",
               name, size, killed, r, (unsigned)team->status[r], team->rank[r].number[AGREED],
               team->rank[r].number[SHRUNK], team->rank[r].number[CHAIN],
               team->rank[r].number[SIZE], team->rank[r].report);
    team_free(team);
    return bad;
}

static void run_many(const char *name, size_t count, int always)
{
    uint64_t random = team_seed();
    int many = team_many("TUTTI_KILLS", 200, 20), bad = 0;
    scene.count = count;
    scene.always = always;
    for (int i = 0; i < many; i++)
        bad += run_one(&random, name);
    printf("%s: %d runs, %d wrong\n", name, many, bad);
    assert_int_equal(bad, 0);
}

static void test_line(void **state) { (void)state; run_many("inline", 4, 0); }
static void test_eager(void **state) { (void)state; run_many("eager", 2000, 0); }
static void test_pipeline(void **state) { (void)state; run_many("pipelined", COUNT_MOST, 0); }
static void test_always(void **state) { (void)state; run_many("shrinking all the time", 4, 1); }

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_line), cmocka_unit_test(test_eager), cmocka_unit_test(test_pipeline),
        cmocka_unit_test(test_always),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
