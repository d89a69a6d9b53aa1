/* ctest: timeout=120
 * All_reduce of buffers that lie in the arena on all ranks, but perhaps for their ends (registered
 * memory), goes in few, large pieces; where one rank's are private, or half private, it does not.
 * Each is some rounds long here, with a short last one, in place and not, and the result is a
 * function of the index, so that a piece in the wrong place shows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>
#include <stdlib.h>
#include <tutti.h>

/* of i32: more than three rounds of 2 MiB a rank, for 2 ranks */
enum { COUNT = 3200003, ROUNDS = 12 };

static uint32_t value(size_t i, int rank, int round)
{
    return (uint32_t)i * 2654435761u + (uint32_t)rank * 40503u + (uint32_t)round;
}

static int body(tutti_comm *world, void *arg)
{
    (void)arg;
    int me = tutti_rank(world), size = tutti_size(world);
    uint32_t *shared[2] = { tutti_alloc(COUNT * 4, world), tutti_alloc(COUNT * 4, world) },
             *own[2] = { malloc(COUNT * 4), malloc(COUNT * 4) };
    uint32_t *registered[2] = { malloc(COUNT * 4), malloc(COUNT * 4) };
    if (!shared[0] || !shared[1] || !own[0] || !own[1] || !registered[0] || !registered[1])
        return 2;
    if (tutti_register(registered[0], COUNT * 4, world) < 0
        || tutti_register(registered[1], COUNT * 4, world) < 0)
        return 5;
    /* Rank 0's private ones have their second half registered: that is no end. */
    if (me == 0
        && (tutti_register(own[0] + COUNT / 2, COUNT * 2, world) < 0
            || tutti_register(own[1] + COUNT / 2, COUNT * 2, world) < 0))
        return 6;
    for (int round = 0; round < ROUNDS; round++) {
        bool alone = (round % 4 == 2 && me == size - 1) || (round % 4 == 0 && me == 0),
             ends = round % 4 == 1 || (round % 4 == 3 && me == 0);
        uint32_t **from = alone ? own
            : ends ? registered
            : shared,
                 *send = from[0], *recv = round / 4 % 2 ? from[0] : from[1];
        for (size_t i = 0; i < COUNT; i++)
            send[i] = value(i, me, round);
        if (tutti_all_reduce(send, recv, COUNT, TUTTI_U32, TUTTI_SUM, world, NULL) < 0)
            return 3;
        for (size_t i = 0; i < COUNT; i++) {
            uint32_t sum = 0;
            for (int r = 0; r < size; r++)
                sum += value(i, r, round);
            if (recv[i] != sum)
                return 4;
        }
    }
    for (int k = 0; k < 2; k++) {
        tutti_free(shared[k], world);
        tutti_unregister(registered[k], world);
        free(registered[k]);
        if (me == 0)
            tutti_unregister(own[k] + COUNT / 2, world);
        free(own[k]);
    }
    return 0;
}

static void pieces_are_where_they_belong(void **state)
{
    (void)state;
    for (int size = 1; size <= 3; size++) {
        int status[3];
        const tutti_options room = { .span_bytes = (size_t)128 << 20 };
        assert_int_equal(tutti_spawn(size, body, NULL, &room, status), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(pieces_are_where_they_belong) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
