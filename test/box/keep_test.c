/* Where boxes go, under which names, and how many stay. */
#include "box/keep.h"
#include "support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static char here[64];
static const char content[] = "what is in it";
static const struct box_bytes bytes = { (char *)(uintptr_t)content, sizeof content };
static char why_room[512], path_room[KEEP_PATH + 300];
static struct text why = { why_room, sizeof why_room, 0 };
static struct text path = { path_room, sizeof path_room, 0 };

static int removes(const char *name, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(name);
}

static int begin(void **state)
{
    (void)state;
    unsetenv("TUTTI_BOX");
    unsetenv("XDG_STATE_HOME");
    scratch_name(here, sizeof here, "keep");
    return mkdtemp(here) && setenv("HOME", here, 1) == 0 ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    return nftw(here, removes, 8, FTW_DEPTH | FTW_PHYS);
}

static int files(const char *folder, const char *part)
{
    int n = 0;
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));)
        n += e->d_name[0] != '.' ? strstr(e->d_name, part) != NULL
                                 : !strncmp(e->d_name, ".tutti", 6) && !strcmp(part, ".tutti");
    if (d)
        closedir(d);
    return n;
}

static int keep_one(const struct keep *k, const char *job, uint64_t seconds)
{
    text_clear(&why);
    text_clear(&path);
    return keep_box(k, job, seconds * 1000000000, &bytes, &path, &why);
}

static bool whole(const char *name)
{
    char room[64];
    int fd = open(name, O_RDONLY | O_NOFOLLOW);
    ssize_t n = fd < 0 ? -1 : read(fd, room, sizeof room);
    if (fd >= 0)
        close(fd);
    return n == (ssize_t)sizeof content && !memcmp(room, content, sizeof content);
}

static void places(void **state)
{
    (void)state;
    struct keep k;
    char expected[128];
    snprintf(expected, sizeof expected, "%s/.local/state/tutti", here);
    assert_true(keep_wanted(&k, true));
    assert_true(k.state);
    assert_string_equal(k.folder, expected);
    assert_false(keep_wanted(&k, false));
    setenv("XDG_STATE_HOME", "relative", 1);
    assert_true(keep_wanted(&k, true));
    assert_string_equal(k.folder, expected);
    setenv("XDG_STATE_HOME", "/state", 1);
    assert_true(keep_wanted(&k, true));
    assert_string_equal(k.folder, "/state/tutti");
    setenv("TUTTI_BOX", "some/folder", 1);
    assert_true(keep_wanted(&k, true) && !k.state);
    assert_true(keep_wanted(&k, false) && !k.state);
    assert_string_equal(k.folder, "some/folder");
    setenv("TUTTI_BOX", "none", 1);
    assert_false(keep_wanted(&k, true));
    assert_false(keep_wanted(&k, false));
    unsetenv("TUTTI_BOX");
    unsetenv("XDG_STATE_HOME");
    unsetenv("HOME");
    assert_false(keep_wanted(&k, true));
}

static void names(void **state)
{
    (void)state;
    struct keep k;
    struct stat st;
    char expected[KEEP_PATH + 64];
    assert_true(keep_wanted(&k, true));
    assert_int_equal(keep_one(&k, "../run 7\n", 1700000000), 0);
    snprintf(expected, sizeof expected, "%s/tutti-.._run_7_-20231114T221320Z.box", k.folder);
    assert_string_equal(path_room, expected);
    assert_true(whole(path_room));
    assert_int_equal(stat(path_room, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(stat(k.folder, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    assert_int_equal(keep_one(&k, "../run 7\n", 1700000000), 0);
    snprintf(expected, sizeof expected, "%s/tutti-.._run_7_-20231114T221320Z-2.box", k.folder);
    assert_string_equal(path_room, expected);
    assert_int_equal(files(k.folder, ".box"), 2);
    assert_int_equal(files(k.folder, ".tutti"), 0);
}

/* The oldest go; what is none of ours stays. */
static void at_most(void **state)
{
    (void)state;
    struct keep k;
    char name[KEEP_PATH + 64];
    assert_true(keep_wanted(&k, true));
    assert_int_equal(keep_one(&k, "first", 1), 0);
    const char *others[] = { "notes.box", "tutti-readme", ".tutti-box-old", ".tutti-box-new" };
    struct timespec old[2] = { { 1000, 0 }, { 1000, 0 } };
    for (int i = 0; i < 4; i++) {
        snprintf(name, sizeof name, "%s/%s", k.folder, others[i]);
        int fd = open(name, O_CREAT | O_WRONLY, 0600);
        assert_true(fd >= 0);
        if (i < 3)
            futimens(fd, old);
        close(fd);
    }
    for (int i = 0; i < 25; i++) {
        char job[32];
        snprintf(job, sizeof job, "job-%d", i);
        assert_int_equal(keep_one(&k, job, 1700000000), 0);
        struct timespec when[2] = { { 2000 + i, 0 }, { 2000 + i, 0 } };
        assert_int_equal(utimensat(AT_FDCWD, path_room, when, 0), 0);
    }
    assert_int_equal(keep_one(&k, "last", 1700000000), 0);
    assert_int_equal(files(k.folder, ".box"), KEEP_MOST + 1);
    assert_int_equal(files(k.folder, "tutti-job-5-"), 0);
    assert_int_equal(files(k.folder, "tutti-job-6-"), 0);
    assert_int_equal(files(k.folder, "tutti-job-24-"), 1);
    assert_int_equal(files(k.folder, "notes.box"), 1);
    assert_int_equal(files(k.folder, "tutti-readme"), 1);
    assert_int_equal(files(k.folder, ".tutti"), 1);  /* one that may still be written */
    /* a folder that was asked for is its owner's */
    k.state = false;
    for (int i = 0; i < 3; i++)
        assert_int_equal(keep_one(&k, "asked", 1700000000), 0);
    assert_int_equal(files(k.folder, ".box"), KEEP_MOST + 4);
}

static void cannot(void **state)
{
    (void)state;
    struct keep k = { .state = false };
    char name[128];
    snprintf(name, sizeof name, "%s/file", here);
    int fd = open(name, O_CREAT | O_WRONLY, 0600);
    close(fd);
    snprintf(k.folder, sizeof k.folder, "%s/file/folder", here);
    assert_int_equal(keep_one(&k, "job", 1), -ENOTDIR);
    assert_non_null(strstr(why_room, "/file/folder: Not a directory"));
    text_clear(&why);
    assert_int_equal(keep_file(k.folder, &bytes, &why), -ENOTDIR);
    assert_true(why.used);
    assert_int_equal(keep_file(here, &bytes, &why), -EISDIR);
    assert_int_equal(files(here, ".tutti"), 0);
}

/* A link in the place of the file is replaced and not followed. */
static void file(void **state)
{
    (void)state;
    char name[128], other[128];
    snprintf(name, sizeof name, "%s/a.box", here);
    snprintf(other, sizeof other, "%s/other", here);
    int fd = open(other, O_CREAT | O_WRONLY, 0600);
    close(fd);
    assert_int_equal(symlink(other, name), 0);
    assert_int_equal(keep_file(name, &bytes, &why), 0);
    assert_true(whole(name));
    assert_false(whole(other));
    assert_int_equal(keep_file(name, &bytes, &why), 0);
    assert_int_equal(files(here, ".tutti"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(places, begin, end),
        cmocka_unit_test_setup_teardown(names, begin, end),
        cmocka_unit_test_setup_teardown(at_most, begin, end),
        cmocka_unit_test_setup_teardown(cannot, begin, end),
        cmocka_unit_test_setup_teardown(file, begin, end)
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
