/* Where a program is found, and what its ranks are given. */
#include "launch/program.h"
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

static char folder[64];

static void make(const char *name, mode_t mode)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fclose(f);
    assert_int_equal(chmod(path, mode), 0);
}

static int found(const char *name, const char *wanted)
{
    char path[PATH_MAX], expected[PATH_MAX];
    int r = program_find(path, sizeof path, name);
    snprintf(expected, sizeof expected, "%s/%s", folder, wanted);
    if (r == 0)
        assert_string_equal(path, expected);
    return r;
}

static void test_find(void **state)
{
    char path[512], name[256];
    (void)state;
    snprintf(path, sizeof path, "/nosuch:%s/a:%s/b:/bin", folder, folder);
    setenv("PATH", path, 1);
    assert_int_equal(found("both", "b/both"), 0);            /* a/both is not executable */
    assert_int_equal(found("first", "a/first"), 0);
    assert_int_equal(found("plain", ""), -EACCES);
    assert_int_equal(found("nowhere", ""), -ENOENT);
    assert_int_equal(found("", ""), -ENOENT);
    snprintf(name, sizeof name, "%s/b/both", folder);
    assert_int_equal(found(name, "b/both"), 0);
    assert_int_equal(found(folder, ""), -EISDIR);
    setenv("PATH", "", 1);                                   /* the current folder */
    assert_int_equal(chdir(folder), 0);
    assert_int_equal(program_find(path, sizeof path, "here"), 0);
    assert_string_equal(path, "./here");
    assert_int_equal(program_find(path, 4, "longer than its room"), -ENAMETOOLONG);
}

static const char *value(struct program *p, const char *name)
{
    const char *got = NULL;
    for (char **v = p->envp; *v; v++)
        if (!strncmp(*v, name, strlen(name)) && (*v)[strlen(name)] == '=') {
            assert_null(got);                                /* never twice */
            got = *v + strlen(name) + 1;
        }
    return got;
}

/* A rank's copy stays its own, whatever is made of the program afterwards. */
static void copies(struct program *p)
{
    static struct program copy[2];
    snprintf(p->path, sizeof p->path, "/bin/prog");
    assert_int_equal(program_copy(&copy[0], p, 5), 0);
    assert_int_equal(program_copy(&copy[1], p, 6), 0);
    program_for_rank(p, 7);
    snprintf(p->path, sizeof p->path, "/bin/another");
    for (int i = 0; i < 2; i++) {
        const char *number = i ? "6" : "5";
        size_t n = 0;
        while (p->envp[n])
            n++;
        assert_string_equal(value(&copy[i], "RANK"), number);
        assert_string_equal(value(&copy[i], "LOCAL_RANK"), number);
        assert_string_equal(value(&copy[i], "ROLE_RANK"), number);
        assert_string_equal(copy[i].argv[2], i ? "--local_rank=6" : "--local_rank=5");
        assert_string_equal(copy[i].path, "/bin/prog");
        assert_null(copy[i].argv[3]);
        assert_null(copy[i].envp[n]);
        for (size_t v = 0; v + 3 < n; v++)
            assert_string_equal(copy[i].envp[v], p->envp[v]);
        copy[i].argv[-1] = copy[i].path;                     /* the free place */
        program_free(&copy[i]);
    }
    assert_string_equal(value(p, "RANK"), "7");
}

static void test_vectors(void **state)
{
    static struct program p;
    static char word[] = "prog", flag[] = "-x";
    char *argv[] = { word, flag, NULL };
    struct job job = { .size = 4, .argv = argv, .local_rank_arg = true };
    struct program_world world = { 100, 4711, "run-1-2-3", 3 };
    (void)state;
    setenv("RANK", "9", 1);
    setenv("PYTHONUNBUFFERED", "", 1);
    unsetenv("TUTTI_LINES");
    setenv("RANKING", "kept", 1);
    setenv("TORCHELASTIC_USE_AGENT_STORE", "True", 1);
    setenv("TORCHELASTIC_RUN_ID", "outer", 1);
    assert_int_equal(program_make(&p, &job, &world), 0);
    for (int rank = 0; rank < 4; rank++) {
        char number[16], argument[32];
        snprintf(number, sizeof number, "%d", rank);
        snprintf(argument, sizeof argument, "--local_rank=%d", rank);
        program_for_rank(&p, rank);
        assert_string_equal(value(&p, "RANK"), number);
        assert_string_equal(value(&p, "LOCAL_RANK"), number);
        assert_string_equal(value(&p, "ROLE_RANK"), number);
        assert_string_equal(p.argv[2], argument);
    }
    assert_string_equal(p.argv[0], "prog");
    assert_string_equal(p.argv[1], "-x");
    assert_null(p.argv[3]);
    assert_string_equal(value(&p, "WORLD_SIZE"), "4");
    assert_string_equal(value(&p, "TUTTI_ARENA"), "100:4711");
    assert_string_equal(value(&p, "TUTTI_RUN_ID"), "run-1-2-3");
    assert_string_equal(value(&p, "TUTTI_RESTART"), "3");
    assert_string_equal(value(&p, "RANKING"), "kept");
    assert_string_equal(value(&p, "TUTTI_LINES"), "1");
    assert_string_equal(value(&p, "PYTHONUNBUFFERED"), "");
    assert_null(value(&p, "TORCHELASTIC_USE_AGENT_STORE"));
    assert_string_equal(value(&p, "TORCHELASTIC_RUN_ID"), "run-1-2-3");
    assert_string_equal(value(&p, "GROUP_WORLD_SIZE"), "1");
    assert_string_equal(value(&p, "ROLE_WORLD_SIZE"), "4");
    copies(&p);
    program_free(&p);
    job.local_rank_arg = false;
    assert_int_equal(program_make(&p, &job, &world), 0);
    assert_null(p.argv[2]);
    program_free(&p);
    job.size = 1;
    job.run_id = "night";
    job.master_port = 4711;
    unsetenv("PYTHONUNBUFFERED");
    assert_int_equal(program_make(&p, &job, &world), 0);
    assert_null(value(&p, "TUTTI_LINES"));
    assert_string_equal(value(&p, "TORCHELASTIC_RUN_ID"), "night");
    assert_string_equal(value(&p, "MASTER_PORT"), "4711");
    assert_null(value(&p, "PYTHONUNBUFFERED"));
    program_free(&p);
}

static int begin(void **state)
{
    char path[128];
    (void)state;
    assert_non_null(mkdtemp(scratch_name(folder, sizeof folder, "program")));
    for (const char *name = "ab"; *name; name++) {
        snprintf(path, sizeof path, "%s/%c", folder, *name);
        assert_int_equal(mkdir(path, 0700), 0);
    }
    make("a/both", 0600);
    make("b/both", 0700);
    make("a/first", 0700);
    make("b/first", 0700);
    make("b/plain", 0600);
    make("here", 0700);
    return 0;
}

static int end(void **state)
{
    static const char *const names[] = {
        "a/both", "b/both", "a/first", "b/first", "b/plain", "here", "a", "b", "."
    };
    char path[128];
    (void)state;
    for (size_t i = 0; i + 1 < sizeof names / sizeof names[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        remove(path);
    }
    return chdir("/") || rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_find),
                                        cmocka_unit_test(test_vectors) };
    return cmocka_run_group_tests(tests, begin, end);
}
