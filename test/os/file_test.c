/* Small files come whole or cut, never without their final 0; descriptors move out of the way if
 * they can. */
#include "os/file.h"

#include "child.h"
#include "tree.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

static void test_a_file_is_a_string(void **state)
{
    (void)state;
    struct tree tree;
    char path[100], text[8];
    tree_begin(&tree);
    tree_file(&tree, "five", "12345");
    tree_file(&tree, "nine", "123456789");
    tree_file(&tree, "none", "");
    snprintf(path, sizeof path, "%s/five", tree.root);
    assert_int_equal(file_read(path, text, sizeof text), 5);
    assert_string_equal(text, "12345");
    snprintf(path, sizeof path, "%s/nine", tree.root);
    assert_int_equal(file_read(path, text, sizeof text), 7);
    assert_string_equal(text, "1234567");
    snprintf(path, sizeof path, "%s/none", tree.root);
    assert_int_equal(file_read(path, text, sizeof text), 0);
    assert_string_equal(text, "");
    strcpy(text, "old");
    assert_int_equal(file_read(tree.root, text, sizeof text), -EISDIR);
    assert_string_equal(text, "");
    assert_int_equal(file_read("/nowhere/at/all", text, sizeof text), -ENOENT);
    tree_end(&tree);
}

static void test_a_descriptor_moves_up(void **state)
{
    (void)state;
    int low = open("/dev/null", O_RDWR), fd = file_move_up(low);
    assert_true(fd >= 100);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    assert_int_equal(fcntl(low, F_GETFD), -1);
    close(fd);
}

static int moves_under_a_limit(void *arg)
{
    (void)arg;
    struct rlimit limit = { 64, 64 };
    int low = open("/dev/null", O_RDWR | O_CLOEXEC);
    CHILD_CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    CHILD_CHECK(file_move_up(low) == low);
    CHILD_CHECK(fcntl(low, F_GETFD) >= 0);
    return 0;
}

static void test_or_stays_where_it_is(void **state)
{
    (void)state;
    assert_int_equal(child_run(moves_under_a_limit, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_file_is_a_string),
        cmocka_unit_test(test_a_descriptor_moves_up),
        cmocka_unit_test(test_or_stays_where_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
