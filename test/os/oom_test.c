/* Where the kernel counts its kills, by version: the group itself decides, not the ones above. */
#include "os/oom.h"

#include "tree.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void the_group_itself_decides(void **state)
{
    (void)state;
    struct tree tree;
    uint64_t kills = 7;
    tree_begin(&tree);
    assert_int_equal(oom_kills_in(tree.root, "0::/a/b\n", &kills), 0);
    assert_int_equal(kills, 0);
    tree_file(&tree, "a/memory.events", "low 0\noom 9\noom_kill 5\noom_group_kill 0\n");
    assert_int_equal(oom_kills_in(tree.root, "0::/a/b\n", &kills), 1);
    assert_int_equal(kills, 5);
    tree_file(&tree, "a/b/memory.events", "oom_kill 2\n");
    assert_int_equal(oom_kills_in(tree.root, "0::/a/b\n", &kills), 1);
    assert_int_equal(kills, 2);
    tree_file(&tree, "memory/c/memory.oom_control",
              "oom_kill_disable 0\nunder_oom 0\noom_kill 31\n");
    assert_int_equal(oom_kills_in(tree.root, "4:memory:/c\n0::/\n", &kills), 1);
    assert_int_equal(kills, 31);
    tree_file(&tree, "memory/d/memory.oom_control", "oom_kill_disable 0\n");
    assert_int_equal(oom_kills_in(tree.root, "4:memory:/d\n", &kills), 0);
    tree_end(&tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(the_group_itself_decides) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
