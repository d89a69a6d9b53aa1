/* ctest: timeout=300 labels=tsan */
/* Eager operations whose slots go round in the ring: every result, of kinds and sizes mixed at
 * random; and where the data of a slot lie: inside it, also where a rank's own block has no room.
 * Between two ranks blocks may change hands instead; below the ring's sizes they always do, and
 * each kind and class of sizes goes its own way. */
#include "coll/eager.h"
#include "coll/parts.h"
#include "coll/swap.h"
#include "support/ranks.h"
#include "support/team.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ALL = 2 * EAGER_BYTES, MOST = ALL / 4, CHEAP = 1 << 24, KINDS = 6, HANDED = 2048 };

/* Element i of what `from` gives to `to` in operation n. */
static uint32_t word_of(uint64_t n, int from, int to, size_t i)
{
    return (uint32_t)(n * 1000003u + (uint64_t)from * 257u + (uint64_t)to * 31u + i);
}

static int run(int kind, const uint32_t *in, uint32_t *out, size_t count, int root, tutti_comm *c)
{
    return kind == 0 ? tutti_all_to_all(in, out, count, TUTTI_U32, c, NULL)
        : kind == 1 ? tutti_all_gather(in, out, count, TUTTI_U32, c, NULL)
        : kind == 2 ? tutti_scatter(in, out, count, TUTTI_U32, root, c, NULL)
        : kind == 3 ? tutti_gather(in, out, count, TUTTI_U32, root, c, NULL)
        : kind == 4 ? tutti_reduce_scatter(in, out, count, TUTTI_U32, TUTTI_SUM, c, NULL)
                    : tutti_barrier(c, NULL);
}

/* Elements of `out` that are not what they have to be. */
static size_t wrong(int kind, const uint32_t *out, size_t count, int root, uint64_t n, int me,
                    int size)
{
    bool each = kind == 0 || kind == 2 || kind == 4;
    size_t bad = 0;
    int blocks = kind == 0 || kind == 1 || (kind == 3 && me == root) ? size
        : kind == 2 || kind == 4
        ? 1
        : 0;
    for (int b = 0; b < blocks; b++)
        for (size_t i = 0; i < count; i++) {
            uint32_t want = 0;
            for (int from = 0; kind == 4 && from < size; from++)
                want += word_of(n, from, me, i);
            if (kind != 4)
                want = word_of(n, kind == 2 ? root : b, each ? me : 0, i);
            bad += out[(size_t)b * count + i] != want;
        }
    return bad;
}

static bool changes_hands(const struct swap *hands, const char *first, const char *last)
{
    for (int i = 0; i < 2; i++) {
        const char *changes = i ? hands->theirs : hands->own;
        if (changes && first >= changes && last <= changes + SWAP_ROOM)
            return true;
    }
    return false;
}

/* What this rank has published is in a block that changes hands, or in a slot, which ends where the
 * next one may begin. */
static bool lies_inside(const tutti_comm *world, int me, int size, size_t block)
{
    const struct stage *s = &world->stage;
    const struct watch *w = &world->watch;
    uint64_t at = load_relaxed64(&w->mine->arrival[world->seq & 1].payload[0]);
    const char *slot = world->world->arena.base + at, *end = s->ring + s->ring_at;
    bool edge = me == 0 || me == size - 1;
    size_t given = (size_t)(size - 1) * block, room = edge ? given : given + block;
    const char *first = slot + (me == 0 ? block : 0),
               *last = slot + (size_t)(me == size - 1 ? size - 1 : size) * block;
    if (changes_hands(&world->coll.swap, first, last))
        return size == 2;
    return first >= s->ring && last <= s->ring + s->ring_bytes && last <= end
        && first + layout_round(room, 64) == end;
}

static int body(tutti_comm *world, int rank)
{
    int size = tutti_size(world), in_ring = 0, many = team_many("TUTTI_TEST_RING", 600, 300);
    uint64_t state = 17;
    uint32_t *in = malloc(ALL), *out = malloc((size_t)size * EAGER_BYTES);
    CHECK(in != NULL && out != NULL);
    world->world->staged_less = CHEAP;
    for (uint64_t n = 0; n < (uint64_t)many; n++) {
        int kind = (int)(team_random(&state) % KINDS),
            root = (int)(team_random(&state) % (uint64_t)size);
        size_t block = (MOST - team_random(&state) % (MOST / 2)) / 4 * 4, count = block / 4;
        for (int to = 0; to < size; to++)
            for (size_t i = 0; i < count; i++)
                in[(size_t)to * count + i] = word_of(n, rank, to, i);
        CHECK_IS(run(kind, in, out, count, root, world), 0);
        CHECK_IS(wrong(kind, out, count, root, n, rank, size), 0);
        if (kind == 0 && world->stage.ring_bytes >= EAGER_ENOUGH) {
            in_ring++;
            CHECK(lies_inside(world, rank, size, block));
        }
    }
    CHECK(in_ring > 0);
    free(in);
    free(out);
    return 0;
}

/* Contributions below the ring's sizes, also when it is whole and blocks do not pay there. */
static int few(tutti_comm *world, int rank)
{
    uint32_t in[EAGER_TURNS / 4], out[EAGER_TURNS / 4];
    int many = team_many("TUTTI_TEST_RING", 600, 300), handed = 0;
    uint64_t state = 23;
    for (uint64_t n = 0; n < (uint64_t)many; n++) {
        int kind = (int)(team_random(&state) % KINDS), root = (int)(n % 2);
        size_t block = (512 + team_random(&state) % (EAGER_TURNS / 2 - 512)) / 4 * 4,
               count = block / 4, given = kind == 0 ? 2 * block : block;
        for (int to = 0; to < 2; to++)
            for (size_t i = 0; i < count; i++)
                in[(size_t)to * count + i] = word_of(n, rank, to, i);
        for (int row = 0; row < SWAP_KINDS; row++)
            world->coll.swap.epochs[row][0].off = n % 3 == 0 && rank == 0;
        CHECK_IS(run(kind, in, out, count, root, world), 0);
        CHECK_IS(wrong(kind, out, count, root, n, rank, 2), 0);
        if (kind > 1)
            continue;
        const char *slot = world->world->arena.base
            + load_relaxed64(&world->watch.mine->arrival[world->seq & 1].payload[0]);
        bool changes = changes_hands(&world->coll.swap, slot, slot + given);
        CHECK_IS(changes, block >= HANDED);
        handed += changes;
    }
    CHECK(handed > 0);
    return 0;
}

/* Operations 0 to 2 by turns, when the ring has been earned. The first alone goes by slots. */
static int apart(tutti_comm *world, int rank)
{
    enum { TURNS = 3, BLOCK = 16384, MANY = 60, EARNED = 2 * EAGER_MOST / EAGER_CHUNK };
    static const struct { int kind; size_t block; } of[TURNS] = {
        { 0, BLOCK }, { 0, 2 * BLOCK }, { 1, 2 * BLOCK }
    };
    uint32_t *in = malloc(ALL), *out = malloc(ALL);
    CHECK(in != NULL && out != NULL);
    memset(in, 0, ALL);
    world->world->staged_less = CHEAP;
    for (int n = 0; n < EARNED && !comm_stage_paid(world); n++)
        CHECK_IS(run(1, in, out, 2 * BLOCK / 4, 0, world), 0);
    CHECK(comm_stage_paid(world));
    for (uint64_t n = 0; n < MANY; n++) {
        size_t block = of[n % TURNS].block, count = block / 4;
        int kind = of[n % TURNS].kind;
        for (int to = 0; to < 2; to++)
            for (size_t i = 0; i < count; i++)
                in[(size_t)to * count + i] = word_of(n, rank, to, i);
        if (rank == 0)
            world->coll.swap.epochs[swap_row(KIND_ALL_TO_ALL)][2].off = true;
        CHECK_IS(run(kind, in, out, count, 0, world), 0);
        CHECK_IS(wrong(kind, out, count, 0, n, rank, 2), 0);
        const char *slot = world->world->arena.base
            + load_relaxed64(&world->watch.mine->arrival[world->seq & 1].payload[0]);
        const char *first = slot + (kind == 0 && rank == 0 ? block : 0);
        if (n >= TURNS)                    /* the first one tells rank 1 */
            CHECK_IS(changes_hands(&world->coll.swap, first, first + block), n % TURNS != 0);
    }
    free(in);
    free(out);
    return 0;
}

static void test_apart(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, apart), 0);
}

static void test_few(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, few), 0);
}

static void test_2(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, body), 0);
}

static void test_3(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(3, body), 0);
}

static void test_4(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(4, body), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_few),
        cmocka_unit_test(test_apart),
        cmocka_unit_test(test_2),
        cmocka_unit_test(test_3),
        cmocka_unit_test(test_4),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
