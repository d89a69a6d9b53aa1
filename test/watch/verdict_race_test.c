/* ctest: timeout=300 labels=faults,tsan serial */
/* The verdict in races. Ranks are threads on the kernel's own futexes, and what they find must
 * belong together however they meet. These cases need luck, and have many tries. At the end a
 * world whose numbers pass the end of their bits. */
#include "verdict_rig.h"

#include "base/clock.h"
#include "support/team.h"
#include "watch/drive.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- races: ranks as threads, on the kernel's own futexes ---- */

/* Both threads leave it within some ten nanoseconds of each other, where both have a CPU: a barrier
 * of the C library is far too coarse. */
struct line { shared64 came; };

/* How long each of the races runs at most; how many tries that is depends on the machine. */
static uint64_t race_ns(void)
{
    const char *prove = getenv("TUTTI_PROVE");
    return (prove && *prove == '1' ? 100 : 4) * UINT64_C(1000000000);
}

static uint64_t race_rounds(void)
{
    const char *prove = getenv("TUTTI_PROVE");
    return (uint64_t)team_many("TUTTI_TEST_ROUNDS", prove && *prove == '1' ? 20000000 : 400000,
                               3000);
}

static void line_up(struct line *line, uint64_t nth)
{
    fetch_add64(&line->came, 1);
    for (uint64_t i = 1; load_acquire64(&line->came) < 2 * nth; i++)
        if (i % 20000 == 0)
            sched_yield();
        else
            cpu_pause();
}

struct race {
    struct line line;
    uint64_t end_ns;
    bool proposed;
    int result[2];
    uint64_t rounds, both_ways[2], split;
};
static struct race race;

static void race_reset(uint64_t k)
{
    say(race.proposed ? verdict_make(k, WHY_DEADLINE, 1, 0) : 0);
    for (uint32_t p = 0; p < 2; p++) {
        store_release32(&rig.watch[p].attention, 0);
        rig.watch[p].failed = 0;
    }
}

static void race_round(uint32_t me, uint64_t k, uint64_t *random)
{
    struct claim c = claim_of(k);
    struct op op = op_of(me, k);
    for (uint64_t i = team_random(random) % (me ? 24 : 40); i; i--)
        cpu_pause();
    if (me == 0 || race.proposed) {
        race.result[me] = drive_to_end(&op);      /* arrives; the other is there; looks at V */
        return;
    }
    op.advance(&op);                              /* arrives, and its deadline has passed at once */
    struct wait wait = { &rig.members[0].arrival[k & 1].seq, k, 0, false, false, false };
    int r = verdict_look(&rig.watch[1], &c, &wait, true);
    race.result[1] = r < 0 ? r : verdict_complete(&rig.watch[1], &c);
}

static void *race_run(void *arg)
{
    uint32_t me = arg != NULL;
    uint64_t random = 77 + me;
    for (uint64_t k = 1; k <= race.rounds; k++) {
        line_up(&race.line, 3 * k - 2);
        race_round(me, k, &random);
        line_up(&race.line, 3 * k - 1);
        if (me == 0) {
            race.split += race.result[0] != race.result[1];
            race.both_ways[race.result[0] != 0]++;
            /* the other one reads it after the line */
            race.rounds = clock_ns() > race.end_ns ? k : race.rounds;
            race_reset(k + 1);
        }
        line_up(&race.line, 3 * k);
    }
    return NULL;
}

static void run_race(bool proposed)
{
    pthread_t other;
    rig_close();
    rig_open(2, &wait_ways_kernel);
    race = (struct race){
        .proposed = proposed, .end_ns = clock_ns() + race_ns(), .rounds = race_rounds()
    };
    race_reset(1);
    assert_int_equal(pthread_create(&other, NULL, race_run, &race), 0);
    race_run(NULL);
    pthread_join(other, NULL);
    printf("%" PRIu64 " rounds: both succeeded in %" PRIu64 ", both failed in %" PRIu64
           ", split in %" PRIu64 "\n",
           race.rounds, race.both_ways[0], race.both_ways[1], race.split);
    assert_true(race.split == 0);
}

/* One arrives while the other gives up: in every round both succeed or both fail. Without the
   fence of the arrival, without the second look, or without the look at V on completion, some
   rounds split. */
static void both_or_none_while_one_gives_up(void **state)
{
    (void)state;
    run_race(false);
}

/* The proposal of a dead rank lies there when the round begins: one decides it while the other
 * arrives and withdraws it. */
static void both_or_none_over_a_dead_ranks_proposal(void **state)
{
    (void)state;
    run_race(true);
}

static struct { struct line line; uint64_t rounds, blamed; } last_act;

static void *arrives_and_dies(void *arg)
{
    (void)arg;
    for (uint64_t k = 1; k <= last_act.rounds; k++) {
        line_up(&last_act.line, 2 * k - 1);
        arrive(0, k);
        die(0);
        line_up(&last_act.line, 2 * k);
    }
    return NULL;
}

/* Rank 0 does its part and dies in the same breath; rank 2 has not come, so nothing is complete.
   Who looks at that moment, in whatever order it sees the two, must not blame rank 0: it loads the
   alive word first, and what was done before a death is seen after it. */
static void who_did_its_part_and_died_is_not_blamed(void **state)
{
    (void)state;
    pthread_t other;
    rig_close();
    rig_open(3, &wait_ways_kernel);
    memset(&last_act, 0, sizeof last_act);
    uint64_t end_ns = clock_ns() + race_ns();
    last_act.rounds = race_rounds();
    assert_int_equal(pthread_create(&other, NULL, arrives_and_dies, NULL), 0);
    for (uint64_t k = 1; k <= last_act.rounds; k++) {
        arrive(1, k);
        line_up(&last_act.line, 2 * k - 1);
        do
            last_act.blamed += look(1, k, false) < 0;
        while (rig.watch[1].gone[0] == GONE_NO && said() == 0);
        last_act.rounds = clock_ns() > end_ns ? k : last_act.rounds;
        line_up(&last_act.line, 2 * k);
        store_release32(mark(0), 1000 | FUTEX_WAITERS);
        rig.watch[1].gone[0] = GONE_NO;
        store_release32(&rig.watch[1].attention, 0);
        say(0);
    }
    pthread_join(other, NULL);
    assert_true(last_act.blamed == 0);
}

enum { CROWD = 4 };
static struct {
    pthread_barrier_t line;
    shared32 stop;
    shared64 k;
    int result[CROWD];
    uint64_t rounds, failed, split;
} crowd;

static void *crowd_run(void *arg)
{
    uint32_t me = (uint32_t)(uintptr_t)arg;
    uint64_t random = 99 + me;
    for (uint64_t k = 1; k <= crowd.rounds; k++) {
        pthread_barrier_wait(&crowd.line);
        if (me == 0)
            store_release64(&crowd.k, k);
        struct op op = op_of(me, k);
        for (uint64_t i = team_random(&random) % 2000; i; i--)
            cpu_pause();
        crowd.result[me] = drive_to_end(&op);
        pthread_barrier_wait(&crowd.line);
        if (me == 0) {
            for (uint32_t p = 1; p < CROWD; p++)
                crowd.split += crowd.result[p] != crowd.result[0];
            crowd.failed += crowd.result[0] != 0;
            for (uint32_t p = 0; p < CROWD; p++)
                store_release32(&rig.watch[p].attention, 0);
            store_release64(&crowd.k, 0);
            say(0);
        }
        pthread_barrier_wait(&crowd.line);
    }
    store_release32(&crowd.stop, 1);
    return NULL;
}

/* Proposes again and again and never decides, as one that is killed right after its proposal: by a
 * plain CAS from 0, as they do. */
static void *proposer_run(void *arg)
{
    (void)arg;
    uint64_t random = 5;
    while (!load_acquire32(&crowd.stop)) {
        uint64_t k = load_acquire64(&crowd.k), none = 0;
        if (k)
            swap_if64(&rig.slot->verdict, &none, verdict_make(k, WHY_DEADLINE, 3, 2));
        for (uint64_t i = team_random(&random) % 3000; i; i--)
            cpu_pause();
    }
    return NULL;
}

static void all_or_none_under_foreign_proposals(void **state)
{
    (void)state;
    pthread_t ranks[CROWD], proposer;
    rig_close();
    rig_open(CROWD, &wait_ways_kernel);
    memset(&crowd, 0, sizeof crowd);
    crowd.rounds = (uint64_t)team_many("TUTTI_TEST_ROUNDS", 4000, 500);
    pthread_barrier_init(&crowd.line, NULL, CROWD);
    for (uintptr_t p = 0; p < CROWD; p++)
        assert_int_equal(pthread_create(&ranks[p], NULL, crowd_run, (void *)p), 0);
    assert_int_equal(pthread_create(&proposer, NULL, proposer_run, NULL), 0);
    for (int p = 0; p < CROWD; p++)
        pthread_join(ranks[p], NULL);
    pthread_join(proposer, NULL);
    pthread_barrier_destroy(&crowd.line);
    printf("%" PRIu64 " rounds, %" PRIu64 " failed for all, %" PRIu64 " split\n", crowd.rounds,
           crowd.failed, crowd.split);
    assert_true(crowd.split == 0);
}

/* ---- the same through the library, with numbers just below 2^30 and 2^32 ---- */

static int crosses(tutti_comm *world, int rank, struct team *team)
{
    struct team_rank *mine = &team->rank[rank];
    for (int i = 0; i < 6; i++) {
        int32_t x = rank + i, y = 0;
        int r = tutti_all_reduce(&x, &y, 1, TUTTI_I32, TUTTI_SUM, world, NULL);
        mine->error[0] = mine->error[0] ? mine->error[0] : r;
        mine->wrong += y != 3 + 3 * i;
    }
    if (rank == 1)
        return 0;                                    /* leaves behind the end of the number */
    mine->error[1] = tutti_barrier(world, NULL);
    team_note(team, rank, world);
    return 0;
}

static void a_world_that_crosses_the_end_of_the_number(void **state)
{
    (void)state;
    static const char *const first[] = { "1073741821", "1073741816", "4294967293", "4294967288" };
    for (size_t i = 0; i < 4; i++) {
        setenv("TUTTI_FIRST_SEQ", first[i], 1);
        struct team *team = team_start(3, crosses, true);
        assert_int_equal(team_end(team), 0);
        for (int r = 0; r < 3; r += 2) {
            if (team->rank[r].error[0])
                fail_msg("rank %d: %d, rank 1 ended with 0x%x: %s%s", r, team->rank[r].error[0],
                         (unsigned)team->status[1], team->rank[r].report, team_stderr(team));
            assert_int_equal(team->rank[r].wrong, 0);
            assert_int_equal(team->rank[r].error[1], -EOWNERDEAD);
        }
        assert_non_null(strstr(team->rank[0].report, "barrier #7"));
        team_free(team);
    }
    unsetenv("TUTTI_FIRST_SEQ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(both_or_none_while_one_gives_up), CASE(both_or_none_over_a_dead_ranks_proposal),
        CASE(who_did_its_part_and_died_is_not_blamed), CASE(all_or_none_under_foreign_proposals),
        cmocka_unit_test(a_world_that_crosses_the_end_of_the_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
