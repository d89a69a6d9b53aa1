/* ctest: timeout=300 labels=faults,nosan serial */
/* A rank is killed at a random moment while all save a file, again and again: whoever opens it
 * finds one generation of it, whole; the survivors have an error, or success and then an error, and
 * no other. The same while all load; and a file that is cut off between the moment rank 0 has
 * measured it and the moment it is read.
 * nosan: the moments are what counts, and they must be many. TUTTI_KILLS: how many; TUTTI_TEST_SEED
 *        repeats the moments as far as times can. */
#include "group/comm.h"
#include "support/leftovers.h"
#include "support/team.h"

#include "base/clock.h"
#include "support/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { SIZE = 3, WORDS = 200000, BYTES = WORDS * 8, BEGUN = 1 };

static char folder[64], path[96];

static void fill(uint64_t *words, uint64_t generation)
{
    for (uint64_t i = 0; i < WORDS; i++)
        words[i] = generation * UINT64_C(0x9e3779b97f4a7c15) + i;
}

/* Which generation the file is, all of it; 0: it is none. */
static uint64_t generation_of(const uint64_t *words, size_t bytes)
{
    if (bytes != BYTES)
        return 0;
    uint64_t generation = (words[0]) * UINT64_C(0xf1de83e19937733d); /* the inverse of the factor */
    for (uint64_t i = 0; i < WORDS; i++)
        if (words[i] != generation * UINT64_C(0x9e3779b97f4a7c15) + i)
            return 0;
    return generation;
}

static int saves(tutti_comm *world, int rank, struct team *team)
{
    uint64_t *words = malloc(BYTES);
    for (uint64_t generation = team->number[0] + 1;; generation++) {
        fill(words, generation);
        team_say(team, rank, BEGUN);
        int r = tutti_save(path, words, BYTES, world, NULL);
        team->rank[rank].error[0] = r;
        if (r < 0)
            break;
        team->rank[rank].operation = generation;
    }
    free(words);
    return 0;
}

static int loads(tutti_comm *world, int rank, struct team *team)
{
    const void *data;
    size_t bytes;
    for (;;) {
        team_say(team, rank, BEGUN);
        int r = tutti_load(path, &data, &bytes, world, NULL);
        team->rank[rank].error[0] = r;
        if (r < 0)
            return 0;
        team->rank[rank].wrong += generation_of(data, bytes) == 0;
        tutti_free((void *)(uintptr_t)data, world);
        team->rank[rank].operation++;
    }
}

/* What is on the disk, read by somebody who has nothing to do with it. */
static uint64_t on_the_disk(void)
{
    uint64_t *words = malloc(BYTES + 1), found = 0;
    int fd = open(path, O_RDONLY);
    ssize_t n = fd >= 0 ? read(fd, words, BYTES + 1) : -1;
    if (n >= 0)
        found = generation_of(words, (size_t)n);
    if (fd >= 0)
        close(fd);
    free(words);
    return found;
}

/* Kills one at a random moment of its first 30 ms. */
static struct team *kill_one(team_body *body, uint64_t before, uint64_t *random, int *victim)
{
    *victim = (int)(team_random(random) % SIZE);
    uint64_t wait = team_random(random) % 30000000;
    struct team *team = team_start(SIZE, body, true);
    team->number[0] = before;
    assert_int_equal(team_await(team, *victim, BEGUN), 0);
    team_spin(wait);
    kill(team_pid(team, *victim), SIGKILL);
    assert_int_equal(team_end(team), 0);
    for (int p = 0; p < SIZE; p++)
        if (p != *victim) {
            assert_true(WIFEXITED(team->status[p]) && WEXITSTATUS(team->status[p]) == 0);
            assert_int_equal(team->rank[p].error[0], -EOWNERDEAD);
            assert_int_equal(team->rank[p].wrong, 0);
        }
    return team;
}

static void test_killed_while_saving(void **state)
{
    int kills = team_many("TUTTI_KILLS", getenv("TUTTI_PROVE") ? 400 : 25, 5);
    uint64_t random = team_seed(), last = 0, replaced = 0;
    (void)state;
    for (int i = 0; i < kills; i++) {
        int victim;
        struct team *team = kill_one(saves, last, &random, &victim);
        uint64_t now = on_the_disk(), said = 0;
        for (int p = 0; p < SIZE; p++)
            said = team->rank[p].operation > said ? team->rank[p].operation : said;
        if (last || now)
            assert_true(now != 0);
        assert_true(now >= said);                    /* what any rank was told is saved is */
        assert_true(now >= last && now <= (said > last ? said : last) + 1);
        assert_int_equal(leftovers_of_save(folder), 0);
        replaced += now > last;
        last = now;
        team_free(team);
    }
    printf("%d kills, in %llu of them a newer file was there afterwards\n", kills,
           (unsigned long long)replaced);
    assert_true(replaced > 0);
}

static void test_killed_while_loading(void **state)
{
    int kills = team_many("TUTTI_KILLS", getenv("TUTTI_PROVE") ? 400 : 15, 5);
    uint64_t random = team_seed();
    (void)state;
    for (int i = 0; i < kills; i++) {
        int victim;
        struct team *team = kill_one(loads, 0, &random, &victim);
        team_free(team);
    }
}

/* Rank 0 has measured the file and arrived; then it is cut off; then rank 1 comes. */
static int cut_off(tutti_comm *world, int rank, struct team *team)
{
    const void *data;
    size_t bytes;
    uint64_t seq = world->seq + 1;
    if (rank == 1) {
        const struct arrival *a = watch_arrival(&world->watch, 0, seq);
        /* E1 acquire */
        for (uint64_t end = clock_ns() + UINT64_C(30000000000);
             load_acquire64(&a->seq) < seq && clock_ns() < end;)
            sched_yield();
        team->rank[1].error[1] = truncate(path, BYTES / 2 + 100);
    }
    team->rank[rank].error[0] = tutti_load(path, &data, &bytes, world, NULL);
    team_note(team, rank, world);
    team->rank[rank].error[2] = tutti_barrier(world, NULL);
    return 0;
}

static void test_cut_off_while_loading(void **state)
{
    (void)state;
    for (int threads = 0; threads < 2; threads++) {
        uint64_t *words = malloc(BYTES);
        FILE *f = fopen(path, "w");
        fill(words, 1);
        assert_true(f && fwrite(words, 1, BYTES, f) == BYTES && fclose(f) == 0);
        free(words);
        setenv("TUTTI_URING", threads ? "0" : "1", 1);
        struct team *team = team_start(2, cut_off, true);
        assert_int_equal(team_end(team), 0);
        for (int p = 0; p < 2; p++) {
            assert_int_equal(team->rank[p].error[0], -EIO);
            assert_non_null(
                strstr(team->rank[p].report, "became shorter while it was read: it ends at byte"));
            assert_non_null(strstr(team->rank[p].report, path));
            assert_int_equal(team->rank[p].error[2], 0);
        }
        assert_int_equal(team->rank[1].error[1], 0);
        team_free(team);
    }
    unsetenv("TUTTI_URING");
}

static int make_folder(void **state)
{
    (void)state;
    if (!mkdtemp(scratch_name(folder, sizeof folder, "kill")))
        return -1;
    snprintf(path, sizeof path, "%s/file", folder);
    return 0;
}

static int drop_folder(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_killed_while_saving), cmocka_unit_test(test_killed_while_loading),
        cmocka_unit_test(test_cut_off_while_loading),
    };
    return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
