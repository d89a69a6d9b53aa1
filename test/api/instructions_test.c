/* ctest: timeout=300 labels=nosan
 * How many instructions an operation costs by itself: one rank, who waits for nobody, so that the
 * numbers are the same in every run. callgrind counts a run of many and one of twice as many; only
 * prints, and fails at nothing but a run that fails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tutti.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TIMES = 1000, ELEMENTS = 4096 };

static float *given, *taken;        /* in the arena: nobody need ask whether they are a device's */

static int barrier(tutti_comm *w) { return tutti_barrier(w, NULL); }

static int all_reduce_1(tutti_comm *w)
{
    return tutti_all_reduce(given, taken, 1, TUTTI_F32, TUTTI_SUM, w, NULL);
}

static int all_reduce_256(tutti_comm *w)
{
    return tutti_all_reduce(given, taken, 256, TUTTI_F32, TUTTI_SUM, w, NULL);
}

static int all_reduce_4096(tutti_comm *w)
{
    return tutti_all_reduce(given, taken, ELEMENTS, TUTTI_F32, TUTTI_SUM, w, NULL);
}

static int broadcast_1(tutti_comm *w) { return tutti_broadcast(given, 1, TUTTI_F32, 0, w, NULL); }

static int all_gather_1(tutti_comm *w)
{
    return tutti_all_gather(given, taken, 1, TUTTI_F32, w, NULL);
}

static int barrier_as_work(tutti_comm *w)
{
    tutti_work *work;
    tutti_call call = { .work = &work };
    int r = tutti_barrier(w, &call);
    return r < 0 ? r : tutti_wait(work, -1);
}

static int message_to_itself(tutti_comm *w)
{
    int r = tutti_send(given, 1, TUTTI_F32, 0, 1, w, NULL);
    return r < 0 ? r : tutti_recv(taken, 1, TUTTI_F32, 0, 1, NULL, w, NULL);
}

static const struct { const char *name; int (*run)(tutti_comm *); } operations[] = {
    { "barrier", barrier }, { "all_reduce of 4 B", all_reduce_1 },
    { "all_reduce of 1 KiB", all_reduce_256 }, { "all_reduce of 16 KiB", all_reduce_4096 },
    { "broadcast of 4 B", broadcast_1 }, { "all_gather of 4 B", all_gather_1 },
    { "barrier, started and waited for", barrier_as_work },
    { "message of 4 B to itself", message_to_itself },
};
enum { OPERATIONS = sizeof operations / sizeof operations[0] };

/* Under callgrind. */
static int perform(int which, long times)
{
    tutti_comm *world;
    char job[32];
    snprintf(job, sizeof job, "instructions-%d", which);
    if (tutti_init(&world, &(tutti_options){ .job = job, .size = 1 }) < 0) {
        fprintf(stderr, "%s\n", tutti_explain(NULL));
        return 2;
    }
    given = tutti_alloc(ELEMENTS * sizeof *given, world);
    taken = tutti_alloc(ELEMENTS * sizeof *taken, world);
    int r = given && taken ? 0 : -1;
    for (long i = 0; i < times && r >= 0; i++)
        r = operations[which].run(world);
    return tutti_finalize(world) < 0 || r < 0 ? 2 : 0;
}

/* Of a run of so many; -1: it failed, and said why. */
static long count(const char *program, int which, long times)
{
    char command[4200], line[512];
    long counted = -1;
    snprintf(command, sizeof command,
             "valgrind --tool=callgrind --callgrind-out-file=/dev/null '%s' %d %ld 2>&1", program,
             which, times);
    FILE *out = popen(command, "r");
    assert_non_null(out);
    while (fgets(line, sizeof line, out)) {
        const char *at = strstr(line, "Collected : ");
        if (at)
            counted = strtol(at + strlen("Collected : "), NULL, 10);
        else if (strncmp(line, "==", 2) != 0)
            fputs(line, stderr);
    }
    return pclose(out) == 0 ? counted : -1;
}

static void test_instructions(void **state)
{
    const char *program = *state;
    for (int i = 0; i < OPERATIONS; i++) {
        long few = count(program, i, TIMES), many = count(program, i, 2 * TIMES);
        assert_true(few > 0 && many > few);
        print_message("%-32s %6ld instructions\n", operations[i].name,
                      (many - few + TIMES / 2) / TIMES);
    }
}

int main(int argc, char **argv)
{
    char command[4200];
    if (argc == 2)
        return 0;
    if (argc == 3)
        return perform(atoi(argv[1]) % OPERATIONS, atol(argv[2]));
    snprintf(command, sizeof command, "valgrind --tool=callgrind --callgrind-out-file=/dev/null -q "
             "'%s' nothing >/dev/null 2>&1", argv[0]);
    if (system(command) != 0) {
        puts("skipped: no valgrind for this machine, whose callgrind counts instructions: "
             "install valgrind");
        return 77;
    }
    const struct CMUnitTest tests[] = { cmocka_unit_test_prestate(test_instructions, argv[0]) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
