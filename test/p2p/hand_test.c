/* ctest: labels=tsan */
/* Blocks that change hands: bit for bit whatever the order of sends and lengths, and used where an
 * answer can go back in one. A letter that hands over what its sender cannot have in hand is
 * refused. */
#include "group/comm.h"
#include "p2p/p2p.h"
#include "support/ranks.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { BYTES = 4 * HAND_LEAST, MOST = 1 << 20, ROUNDS = 400 };

static unsigned char byte_of(size_t i, uint32_t seed)
{
    return (unsigned char)((i * 2654435761u >> 13) + seed * 37u);
}

static void fill(unsigned char *buf, size_t n, uint32_t seed)
{
    for (size_t i = 0; i < n; i++)
        buf[i] = byte_of(i, seed);
}

static bool right(const unsigned char *buf, size_t n, uint32_t seed)
{
    for (size_t i = 0; i < n; i++)
        if (buf[i] != byte_of(i, seed))
            return false;
    return true;
}

/* True: the last letter handed over a block. */
static bool handed(const struct lane *lane)
{
    const struct reel *reel = &lane->write;
    uint32_t last = (reel->index ? reel->index : reel->size) - 1;
    return reel->at[last].envelope.mode == LETTER_HANDED;
}

static uint32_t next(uint32_t *x) { return *x = *x * 1664525u + 1013904223u; }

static size_t length(uint32_t x)
{
    static const size_t lengths[] = { 8, HAND_LEAST - 1, HAND_LEAST, 4000, 4096, 16384, 50000,
                                      65536, 200000, MEDIUM, MEDIUM + 4096, MOST };
    return lengths[(x >> 16) % (sizeof lengths / sizeof lengths[0])];
}

/* Rounds of one to three messages of random lengths, from one rank, then from the other, or from
 * both at once. All ranks draw the same numbers. */
static int body_values(tutti_comm *world, int rank)
{
    unsigned char *buf = malloc(MOST), *out[3] = { malloc(MOST), malloc(MOST), malloc(MOST) };
    uint32_t x = 7, seed = 0;
    int blocks = 0;
    CHECK(buf && out[0] && out[1] && out[2]);
    for (int k = 0; k < ROUNDS; k++) {
        uint32_t both = next(&x) >> 16 & 1, n = 1 + (next(&x) >> 16) % 3;
        for (int way = 0; way < 2; way++) {
            tutti_work *works[3] = { NULL };
            uint32_t was = x;
            for (uint32_t i = 0; i < n; i++, seed++) {
                size_t bytes = length(next(&x));
                if (rank != way)
                    continue;
                tutti_call call = { .work = &works[i] };
                fill(out[i], bytes, seed);
                CHECK_IS(tutti_send(out[i], bytes, TUTTI_U8, 1 - rank, 1, world,
                                    both || n > 1 ? &call : NULL), 0);
                blocks += handed(p2p_lane(world->p2p, (uint32_t)(1 - rank)));
            }
            if (rank != way) {
                uint32_t got = seed - n;
                for (uint32_t i = 0; i < n; i++) {
                    size_t bytes = length(next(&was));
                    CHECK_IS(tutti_recv(buf, bytes, TUTTI_U8, 1 - rank, 1, NULL, world, NULL), 0);
                    CHECK(right(buf, bytes, got + i));
                }
            }
            for (uint32_t i = 0; i < n; i++)
                if (works[i])
                    CHECK_IS(tutti_wait(works[i], -1), 0);
        }
    }
    CHECK(blocks > ROUNDS / 4);
    for (int i = 0; i < 3; i++)
        free(out[i]);
    free(buf);
    return 0;
}

/* Of large messages the lower rank tries both ways, again and again: what goes by an offer ends an
 * epoch, too. */
static int body_large(tutti_comm *world, int rank)
{
    enum { TURNS = EPOCH_FIRST + EPOCH, LARGE = MEDIUM + 4096 };
    unsigned char *out = malloc(LARGE), *in = malloc(LARGE);
    int blocks = 0;
    CHECK(out && in);
    for (uint32_t k = 0; k < TURNS; k++)
        for (int way = 0; way < 2; way++) {
            if (rank != way) {
                CHECK_IS(tutti_recv(in, LARGE, TUTTI_U8, 1 - rank, 1, NULL, world, NULL), 0);
                CHECK(right(in, LARGE, 2 * k + (uint32_t)way));
                continue;
            }
            fill(out, LARGE, 2 * k + (uint32_t)way);
            CHECK_IS(tutti_send(out, LARGE, TUTTI_U8, 1 - rank, 1, world, NULL), 0);
            blocks += handed(p2p_lane(world->p2p, (uint32_t)(1 - rank)));
        }
    CHECK(rank == 1 || (blocks > 2 * EPOCH && blocks < TURNS - EPOCH));
    free(in);
    free(out);
    return 0;
}

static void forge(struct p2p *p, struct lane *lane, uint64_t at, uint32_t pages, size_t bytes)
{
    struct letter *letter = lane_letter(p, lane);
    struct envelope *e = &letter->envelope;
    e->mode = LETTER_HANDED;
    e->rest.at = at;
    e->pages = pages;
    e->bytes = bytes;
    e->tag = 7;
    e->type = TUTTI_U8;
    e->site = 0;
    lane_publish(p, lane, letter, 0);
}

/* In each lie rank 1 has just read a block of rank 0's and answered in it: rank 0 has that. */
static int body_hostile(tutti_comm *world, int rank)
{
    enum { TWICE, NOWHERE, AMID, THEIRS, TOO_LONG, MANY_PAGES, LIES };
    static _Thread_local unsigned char buf[BYTES];
    tutti_call soon = { .timeout_ms = 10000 };
    for (int lie = 0; lie < LIES; lie++) {
        tutti_comm *comm;
        int one = 1;
        CHECK_IS(tutti_comm_split(world, 0, rank, &comm), 0);
        if (rank == 1) {
            CHECK_IS(tutti_send(&one, 1, TUTTI_I32, 0, 0, comm, NULL), 0);
            CHECK_IS(tutti_recv(buf, BYTES, TUTTI_U8, 0, 0, NULL, comm, NULL), 0);
            CHECK_IS(tutti_send(buf, BYTES, TUTTI_U8, 0, 0, comm, NULL), 0);
            struct p2p *p = comm->p2p;
            struct lane *lane = p2p_lane(p, 0);
            CHECK(handed(lane));
            uint64_t at = lane->write.at[lane->write.index - 1].envelope.rest.at,
                     mine = p2p_offset(p, lane->out);
            forge(p, lane,
                  lie == NOWHERE ? UINT64_MAX - 4095
                  : lie == AMID  ? at + 4096
                  : lie == TWICE ? at
                  : lie == THEIRS ? p2p_offset(p, lane->in)
                                  : mine,
                  lie == MANY_PAGES ? 1 << 20 : 1, lie == TOO_LONG ? 4097 : BYTES);
            CHECK_IS(tutti_barrier(world, &soon), 0);
            CHECK_IS(tutti_barrier(world, &soon), 0);
            tutti_comm_free(comm);
            continue;
        }
        CHECK_IS(tutti_recv(&one, 1, TUTTI_I32, 1, 0, NULL, comm, NULL), 0);
        CHECK_IS(tutti_send(buf, BYTES, TUTTI_U8, 1, 0, comm, NULL), 0);
        CHECK(handed(p2p_lane(comm->p2p, 1)));
        CHECK_IS(tutti_recv(buf, BYTES, TUTTI_U8, 1, 0, NULL, comm, NULL), 0);
        CHECK_IS(tutti_barrier(world, NULL), 0);
        CHECK_IS(tutti_recv(buf, BYTES, TUTTI_U8, 1, 7, NULL, comm, &soon), -EIO);
        CHECK_IS(tutti_barrier(world, NULL), 0);
        tutti_comm_free(comm);
    }
    return 0;
}

static void test_values(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, body_values), 0);
}

static void test_large(void **state)
{
    (void)state;
    assert_int_equal(ranks_run(2, body_large, 0), 0);
}

static void test_hostile(void **state)
{
    (void)state;
    assert_int_equal(ranks_run(2, body_hostile, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_hostile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
