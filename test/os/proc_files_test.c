/* Memory files are found in the processes that have them open, and only there. */
#include "os/proc_files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char name[40];

static void make_name(const char *what)
{
    snprintf(name, sizeof name, "proc_files_%d_%s", (int)getpid(), what);
}

static void finds_each_process_once(void **state)
{
    (void)state;
    struct proc_files s;
    struct stat st;
    int ready[2];
    char byte;
    make_name("each");
    int fd = memfd_create(name, MFD_CLOEXEC), copy = dup(fd);
    assert_true(fd >= 0 && copy >= 0 && pipe(ready) == 0);
    pid_t child = fork();
    if (child == 0) {
        close(ready[1]);
        _exit(read(ready[0], &byte, 1) == 0 ? 0 : 1);
    }
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(proc_files_find(&s, name, false), 0);
    assert_int_equal(s.n, 2);
    for (size_t i = 0; i < s.n; i++) {
        assert_int_equal(s.at[i].inode, st.st_ino);
        assert_int_equal(s.at[i].device, st.st_dev);
        assert_true(s.at[i].pid == child || s.at[i].pid == getpid());
        int opened = proc_file_open(&s.at[i]);
        assert_true(opened >= 0);
        close(opened);
    }
    assert_true(s.at[0].pid != s.at[1].pid);
    s.at[0].inode++;
    assert_int_equal(proc_file_open(&s.at[0]), -ESTALE);
    proc_files_free(&s);
    close(ready[1]);
    assert_int_equal(waitpid(child, NULL, 0), child);
    close(ready[0]);
    close(copy);
    close(fd);
    assert_int_equal(proc_files_find(&s, name, true), 0);
    assert_int_equal(s.n, 0);
    proc_files_free(&s);
}

static void finds_what_is_only_mapped(void **state)
{
    (void)state;
    struct proc_files s;
    struct stat st;
    make_name("mapped");
    int fd = memfd_create(name, MFD_CLOEXEC);
    assert_true(fd >= 0 && ftruncate(fd, 4096) == 0 && fstat(fd, &st) == 0);
    void *at = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
    assert_true(at != MAP_FAILED);
    close(fd);
    assert_int_equal(proc_files_find(&s, name, false), 0);
    assert_int_equal(s.n, 0);
    proc_files_free(&s);
    assert_int_equal(proc_files_find(&s, name, true), 0);
    assert_int_equal(s.n, 1);
    assert_int_equal(s.at[0].fd, -1);
    assert_int_equal(s.at[0].inode, st.st_ino);
    proc_files_free(&s);
    assert_true(proc_maps_file(getpid(), st.st_dev, st.st_ino));
    assert_false(proc_maps_file(getpid(), st.st_dev, st.st_ino + 1));
    munmap(at, 4096);
    assert_false(proc_maps_file(getpid(), st.st_dev, st.st_ino));
}

static void reads_the_environment_of_the_start(void **state)
{
    (void)state;
    char value[16];
    int hold[2];
    assert_int_equal(pipe(hold), 0);
    pid_t child = fork();
    if (child == 0) {
        char *const program[] = { "cat", NULL }, *const given[] = { "RANKS=7", "RANK=31", NULL };
        dup2(hold[0], STDIN_FILENO);
        close(hold[1]);
        execve("/bin/cat", program, given);
        _exit(1);
    }
    while (proc_environment(child, "RANK", value, sizeof value) < 0
           || strcmp(value, "31") != 0)
        usleep(1000);                                /* the exec is on its way */
    assert_int_equal(proc_environment(child, "RAN", value, sizeof value), -ENOENT);
    close(hold[1]);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_true(proc_environment(child, "RANK", value, sizeof value) < 0);
    close(hold[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_each_process_once),
        cmocka_unit_test(finds_what_is_only_mapped),
        cmocka_unit_test(reads_the_environment_of_the_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
