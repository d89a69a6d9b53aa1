/* On most machines there is one node, and the test says no more than that a binding keeps to the
 * mask; on several, that the nodes share out the CPUs. Which node an index means is asked of a
 * machine that the test makes up. What is read of this machine is what libnuma says of it. */
#include "os/numa.h"

#include "child.h"
#include "support/skip.h"

#include "os/cpu.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/mempolicy.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
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

/* ---- libnuma, as numa(3) has it ---- */

struct bitmask { unsigned long size, *maskp; };

#define LIBNUMA(X) \
    X(int, numa_available, (void)) \
    X(int, numa_max_node, (void)) \
    X(long long, numa_node_size64, (int node, long long *spare)) \
    X(int, numa_node_to_cpus, (int node, struct bitmask *cpus)) \
    X(int, numa_bitmask_isbitset, (const struct bitmask *set, unsigned bit)) \
    X(struct bitmask *, numa_allocate_cpumask, (void))

#define FIELD_(type, symbol, parameters) type (*symbol) parameters;
struct libnuma { LIBNUMA(FIELD_) };
#undef FIELD_

/* A function pointer cannot be converted from void *, but its bytes are the same. */
static bool found(void *library, const char *symbol, void *field, size_t size)
{
    void *at = dlsym(library, symbol);
    memcpy(field, &at, size);
    return at;
}

static bool load(struct libnuma *numa, struct bitmask **nodes)
{
    void *library = dlopen("libnuma.so.1", RTLD_NOW | RTLD_LOCAL);
    bool whole = library;
#define FIND_(type, symbol, parameters) \
    whole = whole && found(library, #symbol, &numa->symbol, sizeof numa->symbol);
    LIBNUMA(FIND_)
#undef FIND_
    struct bitmask **all = whole ? dlsym(library, "numa_all_nodes_ptr") : NULL;
    *nodes = all ? *all : NULL;
    return all && numa->numa_available() >= 0;
}

static const struct numa_node *node_of(const struct numa_map *map, int number)
{
    for (int i = 0; i < map->count; i++)
        if (map->node[i].number == number)
            return &map->node[i];
    return NULL;
}

/* In a child: it stays loaded. 77: it is not installed, or knows no nodes. */
static int libnuma_says(void *arg)
{
    struct libnuma numa;
    struct bitmask *nodes, *cpus;
    struct numa_map map;
    (void)arg;
    if (!load(&numa, &nodes))
        return 77;
    CHILD_CHECK(numa_map_read(&map) == 0);
    CHILD_CHECK((cpus = numa.numa_allocate_cpumask()) != NULL);
    for (int number = 0; number <= numa.numa_max_node(); number++) {
        const struct numa_node *node = node_of(&map, number);
        CHILD_CHECK((node != NULL) == (numa.numa_bitmask_isbitset(nodes, (unsigned)number) != 0));
        CHILD_CHECK(numa.numa_node_to_cpus(number, cpus) == 0);
        for (unsigned cpu = 0; node && cpu < cpus->size && cpu < NUMA_CPU_WORDS * 64; cpu++)
            CHILD_CHECK((node->cpus[cpu / 64] >> cpu % 64 & 1)
                        == (unsigned)numa.numa_bitmask_isbitset(cpus, cpu));
    }
    CHILD_CHECK(node_of(&map, numa.numa_max_node() + 1) == NULL);
    struct numa_facts facts;
    for (int i = 0; i < numa_nodes(); i++) {
        CHILD_CHECK(numa_look(i, &facts, NULL, 0) > 0);
        CHILD_CHECK((long long)facts.bytes == numa.numa_node_size64(facts.node, NULL));
    }
    numa_map_free(&map);
    return 0;
}

static void test_libnuma_says_the_same(void **state)
{
    (void)state;
    int status = child_run(libnuma_says, NULL);
    if (status == 77)
        skip_because("libnuma (Debian: libnuma1) is missing or knows no nodes: not compared");
    assert_int_equal(status, 0);
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
                const struct numa_policy *should = i == 1 || i == 2 ? &wanted : &local;
                assert_int_equal(seen.mode, should->mode);
                assert_memory_equal(&seen.nodes, &should->nodes, sizeof seen.nodes);
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
        cmocka_unit_test(test_nodes_share_out_the_cpus),
        cmocka_unit_test(test_indexes_go_round),
        cmocka_unit_test(test_a_node_never_widens_the_mask),
        cmocka_unit_test(test_an_index_is_one_of_the_allowed_nodes),
        cmocka_unit_test(test_the_map_is_this_machine_s),
        cmocka_unit_test(test_libnuma_says_the_same),
        cmocka_unit_test(test_a_policy_belongs_to_the_memory),
        cmocka_unit_test(test_several_nodes_take_turns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
