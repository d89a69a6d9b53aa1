/* ctest: timeout=300 labels=faults,nosan serial */
/* One rank writes over a region of the arena, in the middle of a stream of operations of every
 * kind; then it goes on, falls silent, or ends; or it has a thread that writes there again and
 * again while operations are under way, which may be its own end. Every other rank returns from
 * whatever it is in, by an error or with something, by its deadline at the latest; none crashes
 * and none hangs. Whoever is told that something was written over is told so by -EIO, in whatever
 * it is; nobody else gets that.
 * nosan: what is written over is read by all at the same time, and the runs must be many.
 * TUTTI_HOSTILE: how many rounds over all regions; TUTTI_HOSTILE_REGION: only this one;
 * TUTTI_TEST_SEED repeats a run. */
#include "hostile.h"

#include "base/text.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { SIZE = 3, STREAM = 200, DONE = 1, LATER_MS = 600 };
enum manner { GOES_ON, SILENT, ENDS, WRITES_ON, WRITES_ON_AND_ON, MANNERS };
static const char *const manner_text[MANNERS] = {
    "goes on", "falls silent", "ends", "writes on", "writes on and on"
};
/* team_rank.number: what it is in; where it is behind the stream */
enum { NUMBER_OP, NUMBER_N, NUMBER_AFTER, NUMBER_OVER };
enum { NO_ERRNO = -4096 };                /* DAMAGED (base/error.h) stays inside the library */

static struct { int region, writer; enum manner manner; uint64_t seed, when; } point;

/* A thread of the writer's, for a while, or as long as it lives. */
static void *writes_on(void *world)
{
    uint64_t random = point.seed ^ 0x2545f491;
    int times = point.manner == WRITES_ON ? 1 + (int)(team_random(&random) % 10) : 100000;
    for (int i = 0; i < times; i++) {
        team_spin(team_random(&random) % (i % 8 ? 30000 : 3000000));
        struct hostile_stretch s = hostile_region(point.region, world);
        if (s.bytes)
            hostile_scribble(s, &random);
    }
    return NULL;
}

static void note_in(struct team *team, int rank, int op, uint64_t n)
{
    team->rank[rank].number[NUMBER_OP] = (uint64_t)op;
    team->rank[rank].number[NUMBER_N] = n;
}

/* What was written over has one code, and no other failure has it: -EIO where the report says so,
 * or where a verdict names a device that failed. -EPROTO is for ranks that called different
 * things. */
static void note_code(const char *said, int rank, int error, struct team *team)
{
    bool over = strstr(said, "written over") != NULL,
         /* a verdict that was written over so */
         device = strstr(said, "the device of ") != NULL;
    if ((error == -EPROTO && over) || (error == -EIO && !over && !device) || error <= NO_ERRNO) {
        team->rank[rank].wrong = 1;
        snprintf(team->rank[rank].report, TEAM_TEXT, "%s", said);
    } else if (error == -EIO)
        team->rank[rank].number[NUMBER_OVER] = 1;
}

/* What whoever is left may do when something has failed. Each of these returns, too. */
static void afterwards(tutti_comm *world, int rank, struct team *team)
{
    tutti_comm *rest = NULL;
    int ranks[TEAM_MOST];
    uint64_t *after = &team->rank[rank].number[NUMBER_AFTER];
    *after = 1;
    tutti_failed(world, ranks, TEAM_MOST);
    if (!team->rank[rank].wrong)
        snprintf(team->rank[rank].report, TEAM_TEXT, "%s", tutti_explain(world));
    *after = 2;
    tutti_comm_abort(world, "something failed");
    *after = 3;
    if (tutti_comm_shrink(world, &rest) == 0) {
        *after = 4;
        tutti_set_timeout(rest, LATER_MS);
        tutti_barrier(rest, NULL);
        *after = 5;
        tutti_comm_free(rest);
    }
    *after = 6;
}

/* Messages of every kind are on their way from the writer to the next rank while it writes
 * over them. */
enum { LETTERS = 7, LETTER_BYTES = 200000 };

static void send_letters(tutti_comm *world, const struct hostile_room *room, tutti_work **work)
{
    static const size_t bytes[LETTERS] = { 4, 90, 3000, 0, 20000, 60, LETTER_BYTES };
    for (int i = 0; i < LETTERS; i++)
        tutti_send(room->own[0], bytes[i], TUTTI_U8, (point.writer + 1) % SIZE, 2000 + i, world,
                   i + 1 < LETTERS ? NULL : &(tutti_call){ .work = work });
}

static void recv_letters(tutti_comm *world, struct team *team, int rank,
                         const struct hostile_room *room)
{
    if (team_hear(team, rank, 1) < 0)
        return;
    for (int i = 0; i < LETTERS; i++)
        tutti_recv(room->own[1], LETTER_BYTES, TUTTI_U8, i % 2 ? TUTTI_ANY : point.writer, 2000 + i,
                   NULL, world, NULL);
}

static int body(tutti_comm *world, int rank, struct team *team)
{
    struct hostile_room room;
    uint64_t random = point.seed, mine = point.seed ^ 0x5bd1e995;
    int r = hostile_room_open(&room, world), wrote = 0;
    if (r < 0)
        return 1;
    tutti_set_timeout(world, LATER_MS);
    for (uint64_t n = 1; n <= STREAM && r >= 0; n++) {
        int op = (int)(team_random(&random) % (uint64_t)hostile_ops);
        uint64_t salt = team_random(&random) % 100000;
        bool letters = n == point.when && hostile_region_of_letters(point.region);
        tutti_work *work = NULL;
        if (letters && rank == (point.writer + 1) % SIZE)
            recv_letters(world, team, rank, &room);
        if (letters && rank == point.writer)
            send_letters(world, &room, &work);
        if (rank == point.writer && n >= point.when && !wrote) {
            struct hostile_stretch s = hostile_region(point.region, world);
            if (s.bytes) {
                hostile_scribble(s, &mine);
                wrote = 1;
                team->number[0] = n;
                team_tell(team, (rank + 1) % SIZE, 1);
                if (point.manner == ENDS)
                    _exit(0);
                if (point.manner == SILENT)
                    break;
                pthread_t thread;
                if (point.manner >= WRITES_ON)
                    pthread_create(&thread, NULL, writes_on, world);
            }
        }
        if (letters && rank == point.writer)         /* also if there was nothing to write over */
            team_tell(team, (rank + 1) % SIZE, 1);
        note_in(team, rank, op, n);
        r = hostile_op(world, &room, op, salt);
        team->rank[rank].operation = n;
        if (r < 0)
            note_code(hostile_said(world, op), rank, r, team);
    }
    team->rank[rank].error[0] = r;
    if (rank == point.writer) {                      /* it does not touch the arena again */
        for (int q = 0; q < SIZE; q++)
            if (q != rank)
                team_await(team, q, DONE);
        _exit(0);
    }
    if (r < 0)
        afterwards(world, rank, team);
    team_say(team, rank, DONE);
    if (point.seed & 1)
        _exit(0);
    hostile_room_close(&room, world);
    return 0;
}

/* 0 if all others have returned and lived; else it says what became of whom. */
static int look(struct team *team, int ended)
{
    int wrong = 0;
    for (int q = 0; q < SIZE; q++) {
        const struct team_rank *mine = &team->rank[q];
        bool said = load_acquire32(&mine->step) >= DONE,
             lived = WIFEXITED(team->status[q]) && WEXITSTATUS(team->status[q]) == 0;
        if (q == point.writer || (said && lived && ended == 0 && !mine->wrong))
            continue;
        wrong = 1;
        printf("rank %d %s in \"%s\" (number %llu, %llu), afterwards %llu, error %d, status 0x%x\n"
               "%.600s\n",
               q, mine->wrong ? "had the wrong error"
                   : said ? "had returned"
                          : "did not return",
               hostile_op_name((int)mine->number[NUMBER_OP]),
               (unsigned long long)mine->operation + 1, (unsigned long long)mine->number[NUMBER_N],
               (unsigned long long)mine->number[NUMBER_AFTER], mine->error[0],
               (unsigned)team->status[q], mine->report);
    }
    return wrong;
}

static int over;                                     /* ranks that were told so */

static int try(void)
{
    struct team *team = team_start(SIZE, body, true);
    int ended = team_end(team), wrong = look(team, ended);
    bool wrote = team->number[0] != 0;
    for (int q = 0; q < SIZE; q++)
        over += (int)team->rank[q].number[NUMBER_OVER];
    if (wrong) {
        printf("… when rank %d had written over its %s before operation %llu and %s: "
               "TUTTI_TEST_SEED=%llu TUTTI_HOSTILE_REGION=%d\n",
               point.writer, hostile_region_name(point.region), (unsigned long long)team->number[0],
               manner_text[point.manner], (unsigned long long)point.seed, point.region);
        fprintf(stderr, "%.3000s\n", team_stderr(team));
    }
    team_free(team);
    return wrong ? -1 : wrote;
}

static void point_at(int region, uint64_t seed)
{
    uint64_t random = seed;
    point.region = region;
    point.seed = seed;
    point.writer = (int)(team_random(&random) % SIZE);
    point.manner = (enum manner)(team_random(&random) % MANNERS);
    point.when = 5 + team_random(&random) % 120;
}

static void test_every_region(void **state)
{
    const char *only = getenv("TUTTI_HOSTILE_REGION"), *given = getenv("TUTTI_TEST_SEED");
    int rounds = team_many("TUTTI_HOSTILE", getenv("TUTTI_PROVE") ? 60 : 1, 1), wrong = 0,
        wrote = 0, runs = 0;
    uint64_t seed = team_seed();
    (void)state;
    setenv("TUTTI_TIMEOUT_MS", "600", 1);
    setenv("TUTTI_SPAN_BYTES", "64M", 1);
    setenv("TUTTI_STORE_BYTES", "4M", 1);
    for (int round = 0; round < rounds; round++)
        for (int region = 0; region < hostile_regions; region++) {
            if (only && atoi(only) != region)
                continue;
            point_at(region,
                     given && only && round == 0
                         ? seed
                         : text_hash(&region, sizeof region, seed + (uint64_t)round));
            int r = try();
            runs++;
            wrong += r < 0;
            wrote += r > 0;
        }
    printf("%d runs, in %d of them something was written over, and %d ranks were told; %d went "
           "wrong\n", runs, wrote, over, wrong);
    assert_int_equal(wrong, 0);
    assert_true(only || (wrote > runs / 2 && over > 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_every_region) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
