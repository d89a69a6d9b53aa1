/* ctest: needs=identity */
/* Who is gone without a mark: the quick question asks descriptors that are open, by one call, and
 * the thorough one opens them. A rank is a process of the test's that holds no mark. */
#include "verdict_rig.h"

#include "watch/death.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static pid_t process[N];
static shared64 handles[N];
static struct process_id *ids;

/* Each rank but 0 is a child, which says who it is. */
static int open_ranks(void **state)
{
    rig_setup(state);
    rig.header.size = N;
    rig.arena.seats = rig.seats;
    ids = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(ids != MAP_FAILED);
    for (uint32_t p = 1; p < N; p++) {
        int said[2];
        char there = 0;
        assert_int_equal(pipe(said), 0);
        process[p] = fork();
        if (process[p] == 0) {
            process_self(&ids[p]);
            _exit(write(said[1], "", 1) == 1 ? pause() : 1);
        }
        assert_true(process[p] > 0);
        assert_int_equal(read(said[0], &there, 1), 1);
        close(said[0]);
        close(said[1]);
        rig.seats[p].id = ids[p];
    }
    for (uint32_t p = 0; p < N; p++) {
        store_release64(&handles[p], 0);
        rig.watch[p].handles = handles;
    }
    return 0;
}

static void kill_rank(uint32_t p)
{
    siginfo_t info;
    kill(process[p], SIGKILL);
    assert_int_equal(waitid(P_PID, (id_t)process[p], &info, WEXITED | WNOWAIT), 0);
}

static int close_ranks(void **state)
{
    for (uint32_t p = 1; p < N; p++) {
        kill(process[p], SIGKILL);
        waitpid(process[p], NULL, 0);
        death_handle_close(&handles[p]);
    }
    munmap(ids, 4096);
    return rig_teardown(state);
}

static void the_quick_question_opens_nothing(void **state)
{
    (void)state;
    struct watch *w = &rig.watch[0];
    kill_rank(2);
    assert_int_equal(death_probe(w, false), 0);
    assert_false(death_without_mark(w, 2, false));
    for (uint32_t p = 0; p < N; p++)
        assert_int_equal(load_acquire64(&handles[p]), 0);
    assert_int_equal(death_probe(w, true), 1);       /* the thorough one needs none */
    assert_true(w->lost[2] == GONE_DIED && !w->lost[1]);
}

static void the_quick_question_finds_whom_the_thorough_one_has_asked(void **state)
{
    (void)state;
    struct watch *w = &rig.watch[0];
    assert_int_equal(death_probe(w, true), 0);
    for (uint32_t p = 1; p < N; p++)
        assert_int_not_equal(load_acquire64(&handles[p]), 0);
    assert_int_equal(death_probe(w, false), 0);
    assert_false(death_without_mark(w, 1, false));
    kill_rank(1);
    assert_true(death_without_mark(w, 1, false));
    assert_false(death_without_mark(w, 2, false));
    assert_true(w->lost[1] == GONE_DIED && !w->lost[2]);
    assert_int_equal(death_probe(w, false), 0);      /* once */
    /* whoever finds it sets the mark, and another rank needs no question */
    assert_true(death_of(&rig.seats[1]) == GONE_DIED && death_of(&rig.seats[2]) == GONE_NO);
    kill_rank(2);
    assert_int_equal(death_probe(w, false), 1);
    assert_true(w->lost[2] == GONE_DIED && death_of(&rig.seats[2]) == GONE_DIED);
    assert_int_equal(death_probe(w, false), 0);
}

static int number_of(uint32_t p)
{
    return ((struct kept *)(uintptr_t)load_acquire64(&handles[p]))->fd;
}

/* The program has closed the descriptors. What is nowhere, or readable and another file, leads to a
 * look; what is silent and another file waits for the thorough question. */
static void another_file_in_its_place_says_nothing(void **state)
{
    (void)state;
    struct watch *w = &rig.watch[0];
    int silent[2], ready[2];
    assert_int_equal(death_probe(w, true), 0);
    assert_int_equal(pipe(silent) | pipe(ready), 0);
    assert_int_equal(write(ready[1], "x", 1), 1);
    int one = number_of(1), two = number_of(2);
    assert_int_equal(dup2(ready[0], one), one);
    assert_int_equal(dup2(silent[0], two), two);
    assert_int_equal(death_probe(w, false), 0);      /* both live */
    kill_rank(1);
    kill_rank(2);
    assert_int_equal(death_probe(w, false), 1);
    assert_true(w->lost[1] == GONE_DIED && !w->lost[2]);
    assert_true(death_without_mark(w, 2, true));
    close(two);                                      /* nowhere */
    assert_true(death_without_mark(w, 2, false));
    for (int i = 0; i < 2; i++) {
        close(silent[i]);
        close(ready[i]);
    }
    close(one);
}

#define DEATH(name) cmocka_unit_test_setup_teardown(name, open_ranks, close_ranks)

int main(void)
{
    const struct CMUnitTest tests[] = {
        DEATH(the_quick_question_opens_nothing),
        DEATH(the_quick_question_finds_whom_the_thorough_one_has_asked),
        DEATH(another_file_in_its_place_says_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
