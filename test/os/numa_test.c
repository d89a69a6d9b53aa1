/* On most machines there is one node, and the test says no more than that a binding keeps to the
 * mask; on several, that the nodes share out the CPUs. Which node an index means is asked of a
 * machine that the test makes up. */
#include "os/numa.h"

#include "child.h"

#include "os/cpu.h"

#include <errno.h>
#include <linux/mempolicy.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

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

static void test_an_index_is_one_of_the_allowed_nodes(void **state)
{
    (void)state;
    struct numa_node node[] = { { .number = 0, .cpus = { 0x0f } },
                                { .number = 2, .cpus = { 0xf0 } },
                                { .number = 5 },
                                { .number = 6, .cpus = { 0xf00, 1 } } };
    const struct numa_map map = { 4, node };
    uint64_t all[WORDS] = { 0xfff, 1 }, some[WORDS] = { 0x3c0 }, none[WORDS] = { 0xf000 },
             cpus[NUMA_CPU_WORDS];
    const int expected[] = { 0, 2, 6, 0, 2, 6 };
    for (int i = 0; i < 6; i++)
        assert_int_equal(numa_map_pick(&map, all, i, cpus), expected[i]);
    assert_int_equal(cpus[0], 0xf00);
    assert_int_equal(cpus[1], 1);
    assert_int_equal(numa_map_pick(&map, some, 0, cpus), 2);     /* node 0 has none of these CPUs */
    assert_int_equal(cpus[0], 0xc0);
    assert_int_equal(numa_map_pick(&map, some, 1, cpus), 6);
    assert_int_equal(cpus[0], 0x300);
    assert_int_equal(numa_map_pick(&map, some, 2, cpus), 2);
    assert_int_equal(numa_map_pick(&map, none, 0, cpus), -1);
    struct numa_set set = numa_map_of(&map, some, WORDS);
    assert_int_equal(numa_set_count(&set), 2);
    assert_int_equal(set.bits[0], 0x44);
    set = numa_map_of(&map, all, 1);                             /* no more words than there are */
    assert_int_equal(set.bits[0], 0x45);
}

static void test_the_map_is_this_machine_s(void **state)
{
    (void)state;
    uint64_t mask[WORDS];
    struct numa_map map;
    assert_true(cpu_mask(mask, WORDS) > 0);
    if (numa_map_read(&map) < 0)
        return;             /* forbidden here: then there is one node, as far as anybody can say */
    struct numa_set set = numa_map_of(&map, mask, WORDS);
    assert_true(map.count >= 1);
    assert_int_equal(numa_several(), map.count > 1);
    assert_int_equal(numa_nodes(), numa_set_count(&set));
    for (int i = 1; i < map.count; i++)
        assert_true(map.node[i].number > map.node[i - 1].number);
    numa_map_free(&map);
    assert_null(map.node);
}

/* True: a line of the file has one of the characters, or the word. */
static bool holds(const char *path, const char *characters, const char *word)
{
    char line[4096];
    bool found = false;
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file))
        found |= strpbrk(line, characters) || (word && strstr(line, word));
    if (file)
        fclose(file);
    return found;
}

static bool is_loaded(void) { return holds("/proc/self/maps", "", "libnuma"); }

/* A child: what a test has loaded stays. This one is the first. */
static int loads_when_asked(void *arg)
{
    (void)arg;
    struct numa_map map;
    CHILD_CHECK(!is_loaded());
    bool several = numa_several();
    CHILD_CHECK(is_loaded() == holds("/sys/devices/system/node/has_memory", "-,", NULL));
    if (numa_map_read(&map) == 0) {
        CHILD_CHECK(is_loaded());
        CHILD_CHECK(several == (map.count > 1));
        numa_map_free(&map);
    }
    return 0;
}

static void test_libnuma_is_loaded_where_it_is_asked(void **state)
{
    (void)state;
    assert_int_equal(child_run(loads_when_asked, NULL), 0);
}

/* Said by one mapping, read by another: it is the memory's own. */
static void test_a_policy_belongs_to_the_memory(void **state)
{
    (void)state;
    struct numa_map map;
    struct numa_policy seen, local = { 0 };
    struct numa_set set = { { 0 } };
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    int fd = memfd_create("numa", 0);
    assert_int_equal(ftruncate(fd, (off_t)(4 * page)), 0);
    char *one = mmap(NULL, 4 * page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0),
         *two = mmap(NULL, 4 * page, PROT_READ, MAP_SHARED, fd, 0);
    assert_true(one != MAP_FAILED && two != MAP_FAILED);
    if (numa_map_read(&map) == 0 && numa_policy_at(one, &seen) == 0) {
        numa_set_add(&set, map.node[0].number);
        struct numa_policy wanted = numa_prefer(&set);
        assert_int_equal(wanted.mode, MPOL_PREFERRED);
        assert_true(numa_policy_is_local(&seen) && numa_policy_is_local(&local)
                    && !numa_policy_is_local(&wanted));
        int tried = numa_policy_try(), set_now = numa_policy_set(one + page, 2 * page, &wanted);
        assert_int_equal(tried, set_now);
        if (set_now == 0) {
            for (size_t i = 0; i < 4; i++) {
                assert_int_equal(numa_policy_at(two + i * page, &seen), 0);
                assert_int_equal(memcmp(&seen, i == 1 || i == 2 ? &wanted : &local, sizeof seen),
                                 0);
            }
            assert_int_equal(numa_policy_set(one + page, 2 * page, &local), 0);
            assert_int_equal(numa_policy_at(two + page, &seen), 0);
            assert_true(numa_policy_is_local(&seen));
        }
    }
    numa_map_free(&map);
    munmap(one, 4 * page);
    munmap(two, 4 * page);
    close(fd);
}

static void test_several_nodes_take_turns(void **state)
{
    (void)state;
    struct numa_set set = { { 0 } };
    assert_int_equal(numa_prefer(&set).mode, MPOL_DEFAULT);
    numa_set_add(&set, 3);
    assert_int_equal(numa_prefer(&set).mode, MPOL_PREFERRED);
    numa_set_add(&set, 700);
    assert_int_equal(numa_prefer(&set).mode, MPOL_INTERLEAVE);
    numa_set_add(&set, -1);
    numa_set_add(&set, NUMA_NODES_MOST);
    assert_int_equal(numa_set_count(&set), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_libnuma_is_loaded_where_it_is_asked),
        cmocka_unit_test(test_nodes_share_out_the_cpus),
        cmocka_unit_test(test_indexes_go_round),
        cmocka_unit_test(test_a_node_never_widens_the_mask),
        cmocka_unit_test(test_an_index_is_one_of_the_allowed_nodes),
        cmocka_unit_test(test_the_map_is_this_machine_s),
        cmocka_unit_test(test_a_policy_belongs_to_the_memory),
        cmocka_unit_test(test_several_nodes_take_turns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
