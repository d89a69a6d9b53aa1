/* A small tree of files stands for /sys/fs/cgroup: the walk must offer every directory of the
 * path, of both versions, and survive a path that is not there. What cpu and memory make of it
 * is theirs. */
#include "os/cgroup.h"

#include "tree.h"

#include "base/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct visits { const char *root; char room[4096]; struct text text; };

static void note(const char *dir, void *arg)
{
    struct visits *v = arg;
    assert_int_equal(strncmp(dir, v->root, strlen(v->root)), 0);
    text_add(&v->text, "%s|", dir + strlen(v->root));
}

static const char *walked(struct visits *v, const char *text, const char *controller)
{
    v->root = "/root";
    v->text = TEXT_IN(v->room);
    text_clear(&v->text);
    cgroup_walk(v->root, text, controller, note, v);
    return v->room;
}

static void test_version_2_up_to_the_root(void **state)
{
    (void)state;
    struct visits v;
    assert_string_equal(walked(&v, "0::/a/b.slice\n", "cpu"),
                        "/a/b.slice|/a||/unified/a/b.slice|/unified/a|/unified|");
    assert_string_equal(walked(&v, "0::/\n", "cpu"), "|/unified|");
}

static void test_version_1_by_either_name(void **state)
{
    (void)state;
    struct visits v;
    assert_string_equal(walked(&v, "4:cpu,cpuacct:/x\n3:memory:/y\n", "cpu"),
                        "/cpu/x|/cpu|/cpu,cpuacct/x|/cpu,cpuacct|");
    assert_string_equal(walked(&v, "2:cpuset:/x\n1:cpu:/\n", "cpu"), "/cpu|");
    /* a controller of version 1 is none of version 2, whose line may come first */
    assert_string_equal(walked(&v, "0::/z\n1:cpu:/\n", "cpu"), "/cpu|");
    assert_string_equal(walked(&v, "1:cpuset:/\n0::/z\n", "cpu"), "/z||/unified/z|/unified|");
    assert_string_equal(walked(&v, "9:name=systemd:/z\n", "cpu"), "|/cpu|");
}

static void test_nonsense_gives_the_roots(void **state)
{
    (void)state;
    struct visits v;
    assert_string_equal(walked(&v, "", "cpu"), "|/cpu|");
    assert_string_equal(walked(&v, "\n\nx\n1:cpu", "cpu"), "|/cpu|");
    assert_string_equal(walked(&v, "0::/../elsewhere\n", "cpu"), "|/unified|");
    assert_string_equal(walked(&v, "0::/a/..\n", "cpu"), "|/unified|");
    assert_string_equal(walked(&v, "0::/..x\n", "cpu"), "/..x||/unified/..x|/unified|");
    char endless[3000];
    memset(endless, 'p', sizeof endless);
    memcpy(endless, "0::/", 4);
    endless[sizeof endless - 1] = 0;
    assert_string_equal(walked(&v, endless, "cpu"), "|/unified|");
}

static void test_numbers_at_the_beginning_of_a_file(void **state)
{
    (void)state;
    struct tree tree;
    long long first = 7, second = 7;
    tree_begin(&tree);
    tree_file(&tree, "pair", "150000 100000\n");
    tree_file(&tree, "one", "-1\n");
    tree_file(&tree, "max", "max 100000\n");
    tree_file(&tree, "empty", "");
    tree_file(&tree, "large", "99999999999999999999\n");
    assert_true(cgroup_number(tree.root, "pair", &first, &second));
    assert_int_equal(first, 150000);
    assert_int_equal(second, 100000);
    assert_true(cgroup_number(tree.root, "one", &first, &second));
    assert_true(first == -1 && second == -1);
    assert_false(cgroup_number(tree.root, "max", &first, NULL));
    assert_false(cgroup_number(tree.root, "empty", &first, NULL));
    assert_false(cgroup_number(tree.root, "large", &first, NULL));
    assert_false(cgroup_number(tree.root, "absent", &first, NULL));
    tree_end(&tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_version_2_up_to_the_root),
        cmocka_unit_test(test_version_1_by_either_name),
        cmocka_unit_test(test_nonsense_gives_the_roots),
        cmocka_unit_test(test_numbers_at_the_beginning_of_a_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
