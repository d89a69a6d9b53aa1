/* How many CPUs, by mask and by quota, and staying on one. Bindings happen in children, so that no
 * test inherits one. */
#include "os/cpu.h"

#include "child.h"
#include "support/skip.h"
#include "tree.h"

#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { WORDS = 512 };

static void test_bits_are_counted(void **state)
{
    (void)state;
    const uint64_t words[] = { 0, 1, UINT64_MAX, (uint64_t)1 << 63 };
    assert_int_equal(cpu_count_mask(words, 0), 0);
    assert_int_equal(cpu_count_mask(words, 4), 66);
}

static void test_the_mask_is_the_thread_s(void **state)
{
    (void)state;
    uint64_t words[WORDS];
    cpu_set_t set;
    memset(words, 0xFF, sizeof words);
    assert_int_equal(sched_getaffinity(0, sizeof set, &set), 0);
    int count = cpu_mask(words, WORDS);
    assert_true(count >= 1);
    assert_int_equal(count, cpu_count_mask(words, WORDS));
    assert_int_equal(count, CPU_COUNT(&set));
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
        assert_int_equal(words[cpu / 64] >> (cpu % 64) & 1, CPU_ISSET(cpu, &set) != 0);
    assert_int_equal(cpu_mask(words, 0), -EINVAL);
    assert_true(cpu_allowed() >= 1 && cpu_allowed() <= count);
}

static int binds(void *arg)
{
    uint64_t words[WORDS];
    int index = *(int *)arg, count = cpu_mask(words, WORDS);
    int twin = cpu_bind(index);
    CHILD_CHECK(twin >= 0);
    CHILD_CHECK(words[twin / 64] >> (twin % 64) & 1);
    uint64_t lower = words[twin / 64] & (((uint64_t)1 << (twin % 64)) - 1);
    CHILD_CHECK(cpu_count_mask(words, twin / 64) + cpu_count_mask(&lower, 1) == index % count);
    CHILD_CHECK(sched_getcpu() == twin && cpu_here() == twin);
    CHILD_CHECK(cpu_mask(words, WORDS) == 1);
    CHILD_CHECK(cpu_allowed() == 1);
    CHILD_CHECK(cpu_bind(index + 1) == twin);        /* the only one left */
    return 0;
}

static void test_every_index_has_a_cpu(void **state)
{
    (void)state;
    uint64_t words[WORDS];
    int count = cpu_mask(words, WORDS);
    for (int index = 0; index <= count && index < 16; index++)
        assert_int_equal(child_run(binds, &index), 0);
    assert_int_equal(cpu_bind(-1), -EINVAL);
}

/* Where a thread may run changes nothing in what machine it is. */
static int names_the_machine(void *arg)
{
    char model[100];
    const struct { int cpus; char model[100]; } *here = arg;
    CHILD_CHECK(cpu_bind(0) >= 0 && cpu_allowed() == 1);
    cpu_model(model, sizeof model);
    CHILD_CHECK(cpu_machine() == here->cpus && strcmp(model, here->model) == 0);
    return 0;
}

static void test_the_machine_is_the_same_for_all(void **state)
{
    (void)state;
    struct { int cpus; char model[100]; } here = { .cpus = cpu_machine() };
    cpu_model(here.model, sizeof here.model);
    assert_true(here.cpus >= cpu_allowed());
    assert_true(here.model[0] && !strpbrk(here.model, "\n\t"));
    assert_true(cpu_siblings() >= 1 && cpu_siblings() <= 16);
    assert_int_equal(child_run(names_the_machine, &here), 0);
}

static void test_the_tightest_quota_of_the_path_counts(void **state)
{
    (void)state;
    struct tree tree;
    tree_begin(&tree);
    tree_file(&tree, "a/b/cpu.max", "350000 100000\n");
    assert_int_equal(cpu_quota_at(tree.root, "0::/a/b\n"), 4);
    tree_file(&tree, "a/cpu.max", "100001 100000\n");
    assert_int_equal(cpu_quota_at(tree.root, "0::/a/b\n"), 2);
    tree_file(&tree, "a/cpu.max", "800000 100000\n");
    assert_int_equal(cpu_quota_at(tree.root, "0::/a/b\n"), 4);
    tree_file(&tree, "a/cpu.max", "max 100000\n");
    assert_int_equal(cpu_quota_at(tree.root, "0::/a/b\n"), 4);
    assert_int_equal(cpu_quota_at(tree.root, "0::/a\n"), 0);
    assert_int_equal(cpu_quota_at(tree.root, "0::/other\n"), 0);
    tree_end(&tree);
}

static void test_a_container_sees_its_own_root_only(void **state)
{
    (void)state;
    struct tree tree;
    tree_begin(&tree);
    tree_file(&tree, "cpu.max", "50000 100000\n");
    assert_int_equal(cpu_quota_at(tree.root, "0::/docker/0123456789ab\n"), 1);
    assert_int_equal(cpu_quota_at(tree.root, ""), 1);
    tree_end(&tree);
}

static void test_version_1_says_it_in_two_files(void **state)
{
    (void)state;
    struct tree tree;
    tree_begin(&tree);
    tree_file(&tree, "cpu,cpuacct/job/cpu.cfs_quota_us", "250000\n");
    tree_file(&tree, "cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
    tree_file(&tree, "cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
    tree_file(&tree, "cpu,cpuacct/cpu.cfs_period_us", "100000\n");
    assert_int_equal(cpu_quota_at(tree.root, "4:cpu,cpuacct:/job\n0::/\n"), 3);
    assert_int_equal(cpu_quota_at(tree.root, "4:cpu,cpuacct:/\n0::/\n"), 0);
    tree_file(&tree, "cpu/cpu.cfs_quota_us", "200000\n");
    tree_file(&tree, "cpu/cpu.cfs_period_us", "100000\n");
    assert_int_equal(cpu_quota_at(tree.root, "4:cpu:/job\n"), 2);
    tree_end(&tree);
}

static void test_broken_files_are_no_quota(void **state)
{
    (void)state;
    struct tree tree;
    tree_begin(&tree);
    tree_file(&tree, "cpu.max", "100000 0\n");
    tree_file(&tree, "a/cpu.max", "100000\n");
    tree_file(&tree, "a/b/cpu.max", "nonsense\n");
    tree_file(&tree, "a/b/c/cpu.max", "0 100000\n");
    assert_int_equal(cpu_quota_at(tree.root, "0::/a/b/c\n"), 0);
    tree_end(&tree);
}

static void test_the_machine_s_quota_is_a_number(void **state)
{
    (void)state;
    int quota = cpu_quota();
    assert_true(quota >= 0);
    if (quota > 0)
        assert_true(cpu_allowed() <= quota);
}

static void test_caches_grow_outwards(void **state)
{
    (void)state;
    size_t first = cpu_cache_bytes(1), second = cpu_cache_bytes(2);
    if (first == 0 || second == 0)
        skip_because("this machine says no sizes of caches");
    assert_in_range(first, 4096, 16 << 20);
    assert_true(second >= first);
    assert_int_equal(cpu_cache_bytes(0), 0);
    assert_int_equal(cpu_cache_bytes(9), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bits_are_counted),
        cmocka_unit_test(test_the_mask_is_the_thread_s),
        cmocka_unit_test(test_every_index_has_a_cpu),
        cmocka_unit_test(test_the_machine_is_the_same_for_all),
        cmocka_unit_test(test_the_tightest_quota_of_the_path_counts),
        cmocka_unit_test(test_a_container_sees_its_own_root_only),
        cmocka_unit_test(test_version_1_says_it_in_two_files),
        cmocka_unit_test(test_broken_files_are_no_quota),
        cmocka_unit_test(test_the_machine_s_quota_is_a_number),
        cmocka_unit_test(test_caches_grow_outwards),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
