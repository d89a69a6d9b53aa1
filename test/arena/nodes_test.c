/* Which part of an arena gets which nodes, on machines that this one need not be; and that on this
 * one, if it has one node, nothing is done. Where the pages then lie is numa.here's and
 * numa.guest's question. */
#include "arena/nodes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <linux/mempolicy.h>
#include <string.h>

/* Nodes 0 and 1 of two CPUs each, node 3 of the CPUs 4, 70 and 71; node 4 is memory without a CPU.
 * CPU 5 is without memory. */
static struct numa_node nodes[] = {
    { .number = 0, .cpus = { 0x03 } }, { .number = 1, .cpus = { 0x0c } },
    { .number = 3, .cpus = { 0x10, 0xc0 } }, { .number = 4 },
};
static const struct numa_map map = { sizeof nodes / sizeof nodes[0], nodes };
static const struct numa_policy none;

static struct numa_policy of_rank(uint64_t low, uint64_t high, const struct numa_policy *asked)
{
    const uint64_t cpus[2] = { low, high };
    return nodes_of_rank(&map, cpus, 2, asked);
}

static struct numa_policy of_all(uint64_t low, uint64_t high)
{
    const uint64_t cpus[2] = { low, high };
    return nodes_of_all(&map, cpus, 2);
}

static void is(struct numa_policy got, int mode, unsigned long set)
{
    assert_int_equal(got.mode, mode);
    assert_int_equal(got.nodes.bits[0], set);
    for (size_t i = 1; i < NUMA_NODES_MOST / NUMA_WORD; i++)
        assert_int_equal(got.nodes.bits[i], 0);
}

static void test_a_span_is_at_home(void **state)
{
    (void)state;
    is(of_rank(0x01, 0, &none), MPOL_PREFERRED, 1);              /* one core */
    is(of_rank(0x0c, 0, &none), MPOL_PREFERRED, 2);              /* one node */
    is(of_rank(0x00, 0x80, &none), MPOL_PREFERRED, 8);           /* a core beyond the first 64 */
    is(of_rank(0x24, 0, &none), MPOL_PREFERRED, 2);              /* and one that has no memory */
}

static void test_a_rank_of_several_nodes_has_no_home(void **state)
{
    (void)state;
    is(of_rank(0x06, 0, &none), MPOL_DEFAULT, 0);
    is(of_rank(0x1f, 0xc0, &none), MPOL_DEFAULT, 0);
    is(of_rank(0x20, 0, &none), MPOL_DEFAULT, 0);                /* nor has one of none */
    is(of_rank(0, 0, &none), MPOL_DEFAULT, 0);
}

static void test_who_has_asked_is_obeyed(void **state)
{
    (void)state;
    const struct numa_policy bound = { MPOL_BIND, { { 8 } } },
                             turns = { MPOL_INTERLEAVE, { { 3 } } };
    const struct numa_policy still = { MPOL_PREFERRED | MPOL_F_STATIC_NODES, { { 1 } } };
    is(of_rank(0x01, 0, &bound), MPOL_BIND, 8);
    is(of_rank(0x01, 0, &turns), MPOL_INTERLEAVE, 3);
    is(of_rank(0x1f, 0, &turns), MPOL_INTERLEAVE, 3);
    is(of_rank(0x0c, 0, &still), MPOL_PREFERRED | MPOL_F_STATIC_NODES, 1);
    /* MPOL_LOCAL, by both its names */
    const struct numa_policy local = { 4, { { 0 } } }, nowhere = { MPOL_PREFERRED, { { 0 } } };
    is(of_rank(0x01, 0, &local), MPOL_PREFERRED, 1);
    is(of_rank(0x01, 0, &nowhere), MPOL_PREFERRED, 1);
}

static void test_what_all_share_lies_in_turn(void **state)
{
    (void)state;
    is(of_all(0x1f, 0xc0), MPOL_INTERLEAVE, 0x0b);
    is(of_all(0x06, 0), MPOL_INTERLEAVE, 0x03);
    is(of_all(0x03, 0x40), MPOL_INTERLEAVE, 0x09);
    is(of_all(0x0c, 0), MPOL_PREFERRED, 0x02);                   /* all ranks on one node */
    is(of_all(0x20, 0), MPOL_DEFAULT, 0);
}

/* With one node nothing is asked, set or given up. With several the span of whoever is bound has a
 * policy; the rest is as it was. */
static void test_an_arena_here(void **state)
{
    (void)state;
    char room[256];
    struct text why = TEXT_IN(room);
    struct arena arena;
    struct numa_policy before, seen;
    assert_int_equal(arena_create(&arena,
                                  &(struct arena_plan){ .size = 2,
                                                        .span_bytes = UINT64_C(16) << 20 },
                                  &why),
                     0);
    char *at = arena_span(&arena, 1);
    nodes_bind_span(&arena, 0);
    nodes_bind_shared(&arena);
    if (numa_policy_at(at, &seen) == 0)
        is(seen, MPOL_DEFAULT, 0);
    at[0] = 7;
    nodes_share(&arena, at, 4096, &before);
    is(before, MPOL_DEFAULT, 0);
    assert_int_equal(at[0], numa_several() ? 0 : 7);
    nodes_unshare(at, 4096, &before);
    if (numa_policy_at(at, &seen) == 0)
        is(seen, MPOL_DEFAULT, 0);
    arena_detach(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_span_is_at_home),
        cmocka_unit_test(test_a_rank_of_several_nodes_has_no_home),
        cmocka_unit_test(test_who_has_asked_is_obeyed),
        cmocka_unit_test(test_what_all_share_lies_in_turn),
        cmocka_unit_test(test_an_arena_here),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
