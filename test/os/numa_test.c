/* On most machines there is one node, and the test says no more than that a binding keeps to the mask; on several, that the
 * nodes share out the CPUs. */
#include "os/numa.h"

#include "child.h"

#include "os/cpu.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { WORDS = 512 };

struct scene { uint64_t seen[WORDS]; int index, node; };

static int binds(void *arg)
{
    struct scene *s = arg;
    uint64_t before[WORDS], after[WORDS];
    CHILD_CHECK(cpu_mask(before, WORDS) > 0);
    s->node = numa_bind(s->index);
    CHILD_CHECK(s->node >= 0);
    CHILD_CHECK(cpu_mask(after, WORDS) > 0);
    for (int i = 0; i < WORDS; i++) {
        CHILD_CHECK((after[i] & ~before[i]) == 0);
        s->seen[i] |= after[i];
    }
    CHILD_CHECK(numa_nodes() == 1);                  /* bound, it can use no other */
    CHILD_CHECK(numa_bind(s->index + 1) == s->node);
    return 0;
}

static void test_nodes_share_out_the_cpus(void **state)
{
    (void)state;
    uint64_t all[WORDS];
    struct scene *s = child_memory(sizeof *s);
    int nodes = numa_nodes();
    assert_true(nodes >= 1);
    int last = -1;
    for (s->index = 0; s->index < nodes; s->index++) {
        assert_int_equal(child_run(binds, s), 0);
        assert_true(s->node > last);
        last = s->node;
    }
    assert_int_equal(cpu_mask(all, WORDS), cpu_count_mask(s->seen, WORDS));
}

static void test_indexes_go_round(void **state)
{
    (void)state;
    struct scene *s = child_memory(sizeof *s);
    s->index = 0;
    assert_int_equal(child_run(binds, s), 0);
    int first = s->node;
    s->index = numa_nodes();
    assert_int_equal(child_run(binds, s), 0);
    assert_int_equal(s->node, first);
    assert_int_equal(numa_bind(-1), -EINVAL);
}

static int on_one_cpu(void *arg)
{
    (void)arg;
    int cpu = cpu_bind(1);
    uint64_t mask[WORDS];
    CHILD_CHECK(numa_nodes() == 1);
    CHILD_CHECK(numa_bind(0) >= 0);
    CHILD_CHECK(cpu_mask(mask, WORDS) == 1);
    CHILD_CHECK(mask[cpu / 64] >> (cpu % 64) & 1);
    return 0;
}

static void test_a_node_never_widens_the_mask(void **state)
{
    (void)state;
    assert_int_equal(child_run(on_one_cpu, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nodes_share_out_the_cpus),
        cmocka_unit_test(test_indexes_go_round),
        cmocka_unit_test(test_a_node_never_widens_the_mask),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
