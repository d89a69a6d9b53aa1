/* ctest: timeout=300 labels=faults serial */
/* Ranks are killed, or abort, at random instants of every collective, by every algorithm, blocking
 * and by work, with buffers of their own and in the arena. Each rank notes what each operation
 * gave in memory that outlives it. Afterwards, for every operation: where one rank (the dead one
 * too) got a result, no survivor got an error; what succeeded is right, bit for bit; the first
 * failure has the same number and cause everywhere; and nobody hangs. TUTTI_KILLS and
 * TUTTI_TEST_SEED as in kill_random_test. */
#include "base/clock.h"
#include "every_collective.h"
#include "support/team.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

enum { READY = 1, NOTED = 2, LEAVE = 2, NOTES = 400000, UNDER_WAY = 3, NOTHING = 0 };
enum how { KILLED, ABORTS, TWICE, HOWS };
static const char *const how_text[HOWS] = { "SIGKILL", "abort", "two SIGKILLs" };

/* The point that is being tried; ranks inherit it. kind < 0: any, one after another. */
static struct {
    const char *algorithm;
    int kind, size, victims[2];
    size_t count;
    bool arena, mixed, work, user;
    enum how how;
    uint64_t delay, salt;
} point;

/* What operation n gave on each rank: an error, or its result + 1; NOTHING: it did not
 * come to that. */
struct notes { int16_t gave[TEAM_MOST][NOTES]; };
static struct notes *notes;

static struct every any(uint64_t nth, tutti_op user)
{
    uint64_t random = point.salt + nth * 1000003;
    int kind = point.kind < 0 ? (int)(team_random(&random) % (uint64_t)every_kinds) : point.kind;
    struct every e = { .kind = every_kind[kind], .count = point.count,
                       .nth = nth, .oper = user, .type = TUTTI_I32 };
    if (point.kind < 0 && point.count)
        e.count = team_random(&random) % 3 == 0
            ? team_random(&random) % (point.count < 4 ? point.count + 1 : 4)
            : team_random(&random) % 2 ? point.count
                                       : 1 + team_random(&random) % point.count;
    return e;
}

static void note(int rank, uint64_t nth, int gave)
{
    if (nth < NOTES)
        *(volatile int16_t *)&notes->gave[rank][nth] = (int16_t)(gave < 0 ? gave : gave + 1);
}

/* What operation number `nth` gave has been learnt. True: it failed, and no more shall be begun. */
static bool learn(tutti_comm *world, int rank, struct team *team, const struct every *e,
                  const struct every_room *room, int gave)
{
    struct team_rank *mine = &team->rank[rank];
    note(rank, e->nth, gave);
    if (gave < 0) {
        if (!mine->error[0])
            mine->error[0] = gave;
        return true;
    }
    mine->wrong += every_wrong(e, room, gave, world);
    mine->operation = e->nth;
    if (e->nth == 1)
        team_say(team, rank, READY);
    return false;
}

/* One after another, or up to three under way, among them blocking calls, which take their place
 * behind the others. */
static void operate(tutti_comm *world, int rank, struct team *team,
                    struct every_room rooms[UNDER_WAY], tutti_op user)
{
    tutti_work *work[UNDER_WAY] = { NULL };
    struct every e[UNDER_WAY];
    int gave[UNDER_WAY];
    uint64_t begun = 0, ended = 0;
    for (bool over = false; !over || ended < begun; over |= begun + 1 >= NOTES) {
        if (!over && begun - ended < (point.work ? UNDER_WAY : 1)) {
            int i = (int)(begun % UNDER_WAY);
            e[i] = any(begun + 1, user);
            bool queued = point.work && e[i].nth % 4;
            gave[i] = every_call(&e[i], &rooms[i], world,
                                 queued ? &(tutti_call){ .work = &work[i] } : NULL);
            /* not even begun: the comm is broken, by what is under way, or by our own abort */
            over = queued && gave[i] < 0;
            begun += !over;
            continue;
        }
        int i = (int)(ended++ % UNDER_WAY);
        if (work[i])
            gave[i] = tutti_wait(work[i], 0);
        work[i] = NULL;
        over |= learn(world, rank, team, &e[i], &rooms[i], gave[i]);
    }
    if (!team->rank[rank].error[0])
        team->rank[rank].error[0] = tutti_barrier(world, NULL);
}

static tutti_comm *abort_world;

static void *aborts(void *arg)
{
    struct team *team = arg;
    if (team_hear(team, tutti_rank(abort_world), 1) == 0 && !load_acquire32(&team->all))
        tutti_comm_abort(abort_world, "at a random instant");
    return NULL;
}

static int body(tutti_comm *world, int rank, struct team *team)
{
    struct team_rank *mine = &team->rank[rank];
    struct every_room rooms[UNDER_WAY];
    tutti_op user = TUTTI_SUM;
    pthread_t thread;
    bool aborter = point.how == ABORTS && rank == point.victims[0];
    /* Mixed: by rank and by operation, so that nobody can get by with what another said the
     * last time. */
    for (int i = 0; i < UNDER_WAY; i++)
        if (every_open(&rooms[i], point.count,
                       point.mixed ? (rank + i + (int)point.salt) % 4 : point.arena, world)
            < 0)
            return 7;
    if (point.user && tutti_op_create(every_sum, 1, &user, world) < 0)
        return 8;
    abort_world = world;
    if (aborter && pthread_create(&thread, NULL, aborts, team))
        return 9;
    operate(world, rank, team, rooms, user);
    mine->error[1] = tutti_barrier(world, NULL);
    team_note(team, rank, world);
    team_say(team, rank, NOTED);
    if (aborter)
        pthread_join(thread, NULL);
    team_hear(team, rank, LEAVE);
    return 0;
}

static int errors, points;

__attribute__((format(printf, 2, 3))) static void wrong(struct team *team, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    errors++;
    printf("WRONG: %s, %s, count %zu,%s%s%s%s %d ranks, rank %d: %s after %" PRIu64 " ns: ",
           point.kind < 0 ? "any" : kind_name(every_kind[point.kind]), point.algorithm, point.count,
           point.arena ? " arena," : "", point.mixed ? " mixed," : "", point.work ? " work," : "",
           point.user ? " user," : "", point.size, point.victims[0], how_text[point.how],
           point.delay);
    vprintf(format, args);
    va_end(args);
    printf("\n");
    for (int r = 0; r < team->size; r++)
        printf("  rank %d: status 0x%x, %" PRIu64 " succeeded, then %d, %d, wrong %" PRIu64
               "; %s\n",
               r, (unsigned)team->status[r], team->rank[r].operation, team->rank[r].error[0],
               team->rank[r].error[1], team->rank[r].wrong, team->rank[r].report);
    fflush(stdout);
}

static bool is_victim(int rank)
{
    return point.how != ABORTS && (rank == point.victims[0]
                                   || (point.how == TWICE && rank == point.victims[1]));
}

static void judge(struct team *team)
{
    int first = 0, expected = point.how == ABORTS ? -ECANCELED : -EOWNERDEAD;
    while (is_victim(first))
        first++;
    for (int r = 0; r < team->size; r++) {
        const struct team_rank *rank = &team->rank[r], *other = &team->rank[first];
        if (rank->wrong)
            wrong(team, "rank %d: results", r);
        for (int n = 1; n < NOTES; n++) {
            int gave = notes->gave[r][n], there = notes->gave[first][n];
            if (gave > 0 && there <= 0) {            /* NOTHING, too: it had failed before that */
                wrong(team, "operation %d: %d on rank %d, but %d on rank %d", n, gave - 1, r, there,
                      first);
                break;
            }
            if (gave == NOTHING && there == NOTHING)
                break;
        }
        if (is_victim(r))
            continue;
        if (team->status[r] != 0)
            wrong(team, "rank %d: status", r);
        else if (rank->error[0] != expected || rank->error[1] != -ECANCELED)
            wrong(team, "rank %d: errors", r);
        else if (rank->operation != other->operation)
            wrong(team, "rank %d and rank %d did not fail at the same operation", r, first);
        else if (point.how == ABORTS
                     ? r != point.victims[0] && !strstr(rank->report, "at a random instant")
                     : rank->failed_count < 1 || !is_victim(rank->failed[0]))
            wrong(team, "rank %d: tutti_failed says %d, or the report is another", r,
                  rank->failed_count);
    }
}

static void try_point(uint64_t *random)
{
    points++;
    notes = mmap(NULL, sizeof *notes, PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_true(notes != MAP_FAILED);
    struct team *team = team_start(point.size, body, true);
    for (int r = 0; r < point.size; r++)
        if (team_await(team, r, READY) < 0) {
            wrong(team, "rank %d did not come to its first operation: %s", r, team_stderr(team));
            break;
        }
    team_spin(point.delay);
    if (point.how == ABORTS)
        team_tell(team, point.victims[0], 1);
    else
        kill(team_pid(team, point.victims[0]), SIGKILL);
    if (point.how == TWICE) {
        if (point.salt % 3)
            team_spin(team_random(random) % 200000);
        kill(team_pid(team, point.victims[1]), SIGKILL);
    }
    for (int r = 0; r < point.size; r++)
        if (!is_victim(r))
            team_await(team, r, NOTED);
    for (int r = 0; r < point.size; r++)
        team_tell(team, r, LEAVE);
    if (team_end(team) < 0)
        wrong(team, "a hang");
    judge(team);
    team_free(team);
    munmap(notes, sizeof *notes);
}

/* Sizes on both sides of what line, eager and one round of a pipeline can take; the largest has
 * some rounds. */
static void choose(int i, uint64_t *random)
{
    static const char *const algorithms[] = { "pipelined", "eager", "inline", "pipelined" };
    static const size_t counts[] = { 60000, 1500, 2, 5000 };
    static const int sizes[] = { 2, 3, 4, 7 };
    int way = i % 4, size = sizes[team_random(random) % 4];
    uint64_t bits = team_random(random);
    point.algorithm = algorithms[way];
    point.size = point.how == TWICE && size < 4 ? 4 : size;
    point.kind = i / 4 % 3 == 2 ? -1 : (int)(team_random(random) % (uint64_t)every_kinds);
    point.count = counts[way] / (size_t)(point.size > 4 && way == 0 ? 3 : 1);
    point.arena = bits & 1;
    point.mixed = bits >> 1 & 1;
    point.work = bits >> 2 & 1;
    point.user = (bits >> 3 & 3) == 0;
    point.salt = bits >> 8 & 0xffff;
    point.victims[0] = (int)(team_random(random) % (uint64_t)point.size);
    point.victims[1] = (point.victims[0] + 1
                        + (int)(team_random(random) % (uint64_t)(point.size - 1)))
        % point.size;
    point.delay = team_random(random) % (way == 0 ? 4000000 : 600000);
    setenv("TUTTI_ALGORITHM", every_rules(point.algorithm, bits >> 5 & 1 ? "central" : "flags"), 1);
    setenv("TUTTI_SPAN_BYTES", "32M", 0);
}

/* Kinds in which some have given all before others have, and take nothing: they must not return
 * before everybody has given. */
static void choose_givers(int i, uint64_t *random)
{
    static const enum kind kinds[] = { KIND_GATHER, KIND_SCAN, KIND_EXSCAN };
    choose(0, random);
    for (int k = 0; k < every_kinds; k++)
        if (every_kind[k] == kinds[i % 3])
            point.kind = k;
    point.size = 3 + i % 2;
    point.count = 60000;
    point.arena = point.mixed = point.work = point.user = false;
    point.victims[0] = i / 3 % point.size;
}

static void campaign(enum how how, int many, bool givers)
{
    uint64_t random = team_seed();
    int before = errors;
    for (int i = 0; i < many; i++) {
        point.how = how;
        if (givers)
            choose_givers(i, &random);
        else
            choose(i, &random);
        try_point(&random);
    }
    printf("%s: %d points so far, %d errors\n", how_text[how], points, errors);
    fflush(stdout);
    assert_int_equal(errors, before);
}

static void kills(void **state)
{
    (void)state;
    campaign(KILLED, team_many("TUTTI_KILLS", 240, 40), false);
}

static void kills_of_givers(void **state)
{
    (void)state;
    campaign(KILLED, team_many("TUTTI_KILLS", 240, 40) / 2, true);
}

static void aborts_by_another_thread(void **state)
{
    (void)state;
    campaign(ABORTS, team_many("TUTTI_KILLS", 240, 40) / 4, false);
}

static void two_kills(void **state)
{
    (void)state;
    campaign(TWICE, team_many("TUTTI_KILLS", 240, 40) / 4, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kills), cmocka_unit_test(kills_of_givers),
        cmocka_unit_test(aborts_by_another_thread), cmocka_unit_test(two_kills),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
