/* The file of measured rules: whole, it decides; half, of another machine, or no file at all, a job
 * starts as without. */
#include "coll/select.h"
#include "coll/tuning_file.h"
#include "group/comm.h"
#include "support/scratch.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { BYTES = 8192 };                               /* eager by the default */

static char path[64];

static void write_file(const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static void write_here(const char *rules)
{
    char machine[TUNED_MACHINE], text[TUNED_FILE];
    tuning_file_machine(machine);
    snprintf(text, sizeof text, TUNED_HEAD "%s\n%s", machine, rules);
    write_file(text);
}

static enum tuned parse(const char *file, char rules[RULES_TEXT], char said[200])
{
    struct text why = { said, 200, 0 };
    text_clear(&why);
    return tuning_file_parse(file, "M", rules, &why);
}

static void test_a_whole_file(void **state)
{
    (void)state;
    char rules[RULES_TEXT], said[200];
    assert_int_equal(parse(TUNED_HEAD "M\n", rules, said), TUNED_HERE);
    assert_string_equal(rules, "");
    assert_int_equal(parse(TUNED_HEAD "M\n"
                                      "# on a Sunday\n"
                                      "\n"
                                      " reduce:-inf=pipelined \r\n"
                                      "scan:-40=inline;exscan:-inf=pipelined\n",
                           rules, said),
                     TUNED_HERE);
    assert_string_equal(rules, "reduce:-inf=pipelined;scan:-40=inline;exscan:-inf=pipelined");
    assert_string_equal(said, "");
}

static void test_what_is_no_such_file(void **state)
{
    (void)state;
    char rules[RULES_TEXT], said[200], text[TUNED_FILE] = TUNED_HEAD "M\n";
    assert_int_equal(parse(TUNED_HEAD "M2\nreduce:-inf=pipelined\n", rules, said), TUNED_ELSEWHERE);
    assert_string_equal(said, "M2");
    assert_string_equal(rules, "");
    static const struct { const char *file, *words; } bad[] = {
        { "", "first line" }, { "\n", "first line" }, { "reduce:-inf=pipelined\n", "first line" },
        { TUNED_HEAD "\n", "first line" }, { TUNED_HEAD "M", "middle of a line" },
        { TUNED_HEAD "M\nreduce:-inf=ri", "middle of a line" },
        { TUNED_HEAD "M\nreduce:-inf=fast\n", "no algorithm" },
        { TUNED_HEAD "M\nreduce\n", "expected KIND" },
        { TUNED_HEAD "M\nreduce:-inf=pipelined|scan:-inf=pipelined\n", "no algorithm" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(parse(bad[i].file, rules, said), TUNED_DAMAGED);
        assert_string_equal(rules, "");
        assert_non_null(strstr(said, bad[i].words));
    }
    for (int i = 0; i < 50; i++)
        strcat(text, "reduce:-inf=pipelined\n");
    assert_int_equal(parse(text, rules, said), TUNED_DAMAGED);
    assert_non_null(strstr(said, "more than"));
}

static void test_where_it_lies(void **state)
{
    (void)state;
    char at[TUNED_PATH];
    setenv("HOME", "/home/x", 1);
    setenv("XDG_CONFIG_HOME", "/config", 1);
    setenv("TUTTI_TUNED", "", 1);
    assert_false(tuning_file_path(at));
    setenv("TUTTI_TUNED", "none", 1);
    assert_false(tuning_file_path(at));
    setenv("TUTTI_TUNED", "/some/file", 1);
    assert_true(tuning_file_path(at));
    assert_string_equal(at, "/some/file");
    unsetenv("TUTTI_TUNED");
    assert_true(tuning_file_path(at));
    assert_string_equal(at, "/config/tutti/rules");
    setenv("XDG_CONFIG_HOME", "config", 1);
    assert_true(tuning_file_path(at));
    assert_string_equal(at, "/home/x/.config/tutti/rules");
    unsetenv("XDG_CONFIG_HOME");
    unsetenv("HOME");
    assert_false(tuning_file_path(at));
}

static void test_no_file_is_opened_that_is_none(void **state)
{
    (void)state;
    char rules[RULES_TEXT], said[200];
    struct text why = TEXT_IN(said);
    assert_int_equal(tuning_file_read("/nowhere/at/all", rules, &why), TUNED_NONE);
    assert_int_equal(tuning_file_read("/", rules, &why), TUNED_DAMAGED);
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    /* and has not waited for a writer */
    assert_int_equal(tuning_file_read(path, rules, &why), TUNED_DAMAGED);
    unlink(path);
}

/* What a rank of a world that is made now chooses. */
static int body(tutti_comm *world, void *arg)
{
    const struct algorithm *chosen = select_algorithm(world->world->rules, KIND_REDUCE, false,
                                                      BYTES);
    float x[BYTES / sizeof(float)] = { 0 };
    return strcmp(chosen->name, arg) != 0
        || tutti_reduce(x, x, BYTES / sizeof(float), TUTTI_F32, TUTTI_SUM, 0, world, NULL) != 0;
}

static void ranks_choose(const char *name)
{
    tutti_comm *alone;
    assert_int_equal(tutti_spawn(2, body, (void *)(uintptr_t)name, NULL, NULL), 0);
    assert_int_equal(tutti_init(&alone, NULL), 0);
    assert_int_equal(body(alone, (void *)(uintptr_t)name), 0);
    assert_int_equal(tutti_finalize(alone), 0);
}

static void test_ranks_go_by_it(void **state)
{
    (void)state;
    unlink(path);
    setenv("TUTTI_TUNED", path, 1);
    ranks_choose("eager");
    write_here("reduce:-inf=pipelined\n");
    ranks_choose("pipelined");
    setenv("TUTTI_ALGORITHM", "reduce:-8k=eager", 1);       /* over the file … */
    ranks_choose("eager");
    setenv("TUTTI_ALGORITHM", "reduce:-8000=eager", 1);     /* … which has what it does not cover */
    ranks_choose("pipelined");
    unsetenv("TUTTI_ALGORITHM");
    setenv("TUTTI_TUNED", "none", 1);
    ranks_choose("eager");
}

static void test_a_bad_file_stops_nobody(void **state)
{
    (void)state;
    setenv("TUTTI_TUNED", path, 1);
    static const char *const bad[] = { "", "nonsense",
                                       TUNED_HEAD "another machine\n"
                                                  "reduce:-inf=pipelined\n" };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        write_file(bad[i]);
        ranks_choose("eager");
    }
    write_here("reduce:-inf=pipelined");
    ranks_choose("eager");
    setenv("TUTTI_TUNED", "none", 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_whole_file),
        cmocka_unit_test(test_what_is_no_such_file),
        cmocka_unit_test(test_where_it_lies),
        cmocka_unit_test(test_no_file_is_opened_that_is_none),
        cmocka_unit_test(test_ranks_go_by_it),
        cmocka_unit_test(test_a_bad_file_stops_nobody),
    };
    close(mkstemp(scratch_name(path, sizeof path, "tuned")));
    unlink(path);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return failed;
}
