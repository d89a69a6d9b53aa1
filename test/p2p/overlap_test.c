/* ctest: timeout=300 labels=tsan,faults */
/* A message that is copied out while it is copied in: bit for bit whatever its length; nothing for
 * anybody before all of it is there; its sender late, dead or hostile in the middle of it. */
#include "group/comm.h"
#include "p2p/p2p.h"
#include "support/ranks.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { BYTES = 3 * OVERLAP_LEAST + 40 };

static unsigned char byte_of(size_t i, int seed)
{
    return (unsigned char)((i * 2654435761u >> 13) + (unsigned)seed * 37u);
}

static bool right(const unsigned char *buf, size_t n, int seed)
{
    for (size_t i = 0; i < n; i++)
        if (buf[i] != byte_of(i, seed))
            return false;
    return true;
}

static void fill(unsigned char *buf, size_t n, int seed)
{
    for (size_t i = 0; i < n; i++)
        buf[i] = byte_of(i, seed);
}

/* The receiver is said to wait: then the sender goes by chunks whoever comes first. */
static int body_lengths(tutti_comm *world, int rank)
{
    static const size_t lengths[] = { OVERLAP_LEAST - 1, OVERLAP_LEAST, OVERLAP_LEAST + 1,
                                      20000, 32768, 65535, 65536, 65537, 100001, 131072,
                                      MEDIUM - 1, MEDIUM, MEDIUM + 1, 4 * OVERLAP_LEAST, 5 };
    enum { LENGTHS = sizeof lengths / sizeof lengths[0] };
    unsigned char *buf = malloc(MEDIUM + 2);
    int overlapped = 0;
    CHECK(buf != NULL);
    int one = 1;
    CHECK_IS(tutti_send(&one, 1, TUTTI_I32, 1 - rank, 0, world, NULL), 0);
    CHECK_IS(tutti_recv(&one, 1, TUTTI_I32, 1 - rank, 0, NULL, world, NULL), 0);
    struct lane *lane = p2p_lane(world->p2p, (uint32_t)(1 - rank));
    bool spins = world->watch.budget.spin_ticks && !world->crowded;
    for (int k = 0; k < 20 * LENGTHS; k++)
        for (int way = 0; way < 2; way++) {
            size_t n = lengths[k % LENGTHS];
            tutti_message got = { 9, 9, 9 };
            if (rank == way) {
                fill(buf, n, k);
                while (spins && load_relaxed64(&lane->out->waits) != lane->sent + 1
                       && n >= OVERLAP_LEAST)
                    cpu_pause();
                uint64_t number = lane->sent + 1;
                CHECK_IS(tutti_send(buf, n, TUTTI_U8, 1 - rank, k, world, NULL), 0);
                overlapped += load_relaxed64(&lane->out->begun) >> 16 == number;
                continue;
            }
            memset(buf, 0xee, n + 1);
            CHECK_IS(tutti_recv(buf, n, TUTTI_U8, 1 - rank, k, &got, world, NULL), 0);
            CHECK_IS(got.from, 1 - rank);
            CHECK_IS(got.tag, k);
            CHECK_IS(got.count, n);
            CHECK(right(buf, n, k));
            CHECK_IS(buf[n], 0xee);
        }
    CHECK_IS(overlapped > 0, spins);
    free(buf);
    return 0;
}

/* A sender that has written a chunk: its message is there for no one, in no way, and no deadline is
 * missed for it. When it goes on, all is there. */
static void half_sent(struct p2p *p, struct lane *lane, const unsigned char *from, int tag,
                      struct overlap *chunks)
{
    uint64_t end;
    int error;
    struct envelope *e = &lane_letter(p, lane)->envelope;
    char *at = lane_store(p, lane, BYTES, &end, &error);
    *chunks = overlap_begin(p, lane, at, (const char *)from, BYTES, false);
    e->mode = LETTER_STORED;
    e->rest.at = p2p_offset(p, at);
    e->rest.end = end;
    e->bytes = BYTES;
    e->tag = (uint32_t)tag;
    e->type = TUTTI_U8;
    e->site = 0;
    struct preview *preview = &lane->out->preview;
    store_relaxed64(&preview->at, e->rest.at);
    preview->bytes = BYTES;
    preview->tag = (uint32_t)tag;
    preview->type = TUTTI_U8;
    preview->mode = LETTER_STORED;
    store_release64(&lane->out->begun, (lane->sent + 1) << 16 | 1);
}

static int body_half(tutti_comm *world, int rank)
{
    static _Thread_local unsigned char buf[BYTES];
    tutti_call soon = { .timeout_ms = 20 };
    int one = 1;
    if (rank == 1) {
        CHECK_IS(tutti_send(&one, 1, TUTTI_I32, 0, 0, world, NULL), 0);
        struct lane *lane = p2p_lane(world->p2p, 0);
        struct overlap chunks;
        fill(buf, BYTES, 3);
        half_sent(world->p2p, lane, buf, 7, &chunks);
        CHECK_IS(tutti_barrier(world, NULL), 0);
        CHECK_IS(tutti_barrier(world, NULL), 0);
        memcpy(chunks.to + chunks.done, chunks.from + chunks.done, BYTES - chunks.done);
        lane_publish(world->p2p, lane, lane_letter(world->p2p, lane), BYTES);
        CHECK_IS(tutti_send(&one, 1, TUTTI_I32, 0, 8, world, NULL), 0);
        return 0;
    }
    CHECK_IS(tutti_recv(&one, 1, TUTTI_I32, 1, 0, NULL, world, NULL), 0);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    CHECK_IS(tutti_probe(1, 7, NULL, world, &soon), -ETIMEDOUT);
    CHECK_IS(tutti_probe(TUTTI_ANY, TUTTI_ANY, NULL, world, &soon), -ETIMEDOUT);
    CHECK_IS(tutti_recv(buf, BYTES, TUTTI_U8, TUTTI_ANY, 7, NULL, world, &soon), -ETIMEDOUT);
    CHECK_IS(tutti_recv(buf, BYTES, TUTTI_U8, 1, 7, NULL, world, &soon), -ETIMEDOUT);
    CHECK_IS(tutti_recv(buf, BYTES, TUTTI_U8, 1, 6, NULL, world, &soon), -ETIMEDOUT);
    CHECK_IS(tutti_recv(buf, BYTES - 1, TUTTI_U8, 1, 7, NULL, world, &soon), -ETIMEDOUT);
    CHECK_IS(tutti_recv(buf, BYTES / 4, TUTTI_F32, 1, 7, NULL, world, &soon), -ETIMEDOUT);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    CHECK_IS(tutti_recv(&one, 1, TUTTI_I32, 1, 8, NULL, world, NULL), 0);    /* sets it aside */
    memset(buf, 0, BYTES);
    tutti_message got;
    CHECK_IS(tutti_recv(buf, BYTES, TUTTI_U8, TUTTI_ANY, TUTTI_ANY, &got, world, NULL), 0);
    CHECK_IS(got.count, BYTES);
    CHECK(right(buf, BYTES, 3));
    return 0;
}

/* One that waits for another type, or has too little room, gets no chunk of it but the error. */
static int body_wrong(tutti_comm *world, int rank)
{
    static _Thread_local unsigned char buf[BYTES];
    bool spins = world->watch.budget.spin_ticks && !world->crowded;
    int one = 1;
    for (int k = 0; k < 6; k++) {
        if (rank == 1) {
            CHECK_IS(tutti_send(&one, 1, TUTTI_I32, 0, 0, world, NULL), 0);
            struct lane *lane = p2p_lane(world->p2p, 0);
            fill(buf, BYTES, k + 1);
            while (spins && load_relaxed64(&lane->out->waits) != lane->sent + 1)
                cpu_pause();
            CHECK_IS(tutti_send(buf, BYTES, TUTTI_U8, 0, 7, world, NULL), 0);
            continue;
        }
        CHECK_IS(tutti_recv(&one, 1, TUTTI_I32, 1, 0, NULL, world, NULL), 0);
        memset(buf, 0, BYTES);
        CHECK_IS(k % 2 ? tutti_recv(buf, BYTES / 4, TUTTI_F32, 1, 7, NULL, world, NULL)
                       : tutti_recv(buf, BYTES - 1, TUTTI_U8, 1, 7, NULL, world, NULL),
                 k % 2 ? -EPROTO : -EMSGSIZE);
        for (size_t i = 0; i < BYTES; i++)
            CHECK_IS(buf[i], 0);
    }
    return 0;
}

/* A sender that is killed there: its receiver is told of the death, and gets no half message. */
static int body_killed(tutti_comm *world, int rank)
{
    static unsigned char buf[BYTES];
    int one = 1;
    if (rank == 1) {
        struct overlap chunks;
        CHECK_IS(tutti_send(&one, 1, TUTTI_I32, 0, 0, world, NULL), 0);
        half_sent(world->p2p, p2p_lane(world->p2p, 0), buf, 7, &chunks);
        ranks_die();
    }
    CHECK_IS(tutti_recv(&one, 1, TUTTI_I32, 1, 0, NULL, world, NULL), 0);
    CHECK_IS(tutti_recv(buf, BYTES, TUTTI_U8, 1, 7, NULL, world, NULL), -EOWNERDEAD);
    CHECK(ranks_explain(world, "rank 1 died"));
    return 0;
}

/* Envelopes and counts that cannot be true: nothing outside the sender's memory is read, and the
 * message that then comes is not the one that was begun. */
static int body_hostile(tutti_comm *world, int rank)
{
    enum { LIES = 4 };
    static _Thread_local unsigned char buf[BYTES];
    tutti_call soon = { .timeout_ms = 20 };
    for (int k = 0; k < LIES; k++) {
        tutti_comm *comm;
        int one = 1;
        CHECK_IS(tutti_comm_split(world, 0, rank, &comm), 0);
        if (rank == 1) {
            struct overlap chunks;
            CHECK_IS(tutti_send(&one, 1, TUTTI_I32, 0, 0, comm, NULL), 0);
            struct lane *lane = p2p_lane(comm->p2p, 0);
            half_sent(comm->p2p, lane, buf, 7, &chunks);
            struct envelope *e = &lane_letter(comm->p2p, lane)->envelope;
            if (k == 0)
                e->rest.at = UINT64_MAX - 64;
            else if (k == 1)
                e->bytes = UINT64_MAX / 2;
            else if (k == 2)
                e->mode = LETTER_OFFERED;
            store_release64(&lane->out->begun, (lane->sent + 1) << 16 | (k == 3 ? 0xffff : 1));
            CHECK_IS(tutti_barrier(world, NULL), 0);
            CHECK_IS(tutti_barrier(world, NULL), 0);
            tutti_comm_free(comm);
            continue;
        }
        CHECK_IS(tutti_recv(&one, 1, TUTTI_I32, 1, 0, NULL, comm, NULL), 0);
        CHECK_IS(tutti_barrier(world, NULL), 0);
        CHECK_IS(tutti_recv(buf, BYTES, TUTTI_U8, 1, 7, NULL, comm, &soon), -ETIMEDOUT);
        CHECK_IS(tutti_barrier(world, NULL), 0);
        tutti_comm_free(comm);
    }
    return 0;
}

static void test_lengths(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, body_lengths), 0);
}

static void test_half(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, body_half), 0);
}

static void test_wrong(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, body_wrong), 0);
}

static void test_killed(void **state)
{
    (void)state;
    assert_int_equal(ranks_run(2, body_killed, 2), 0);
}

static void test_hostile(void **state)
{
    (void)state;
    assert_int_equal(ranks_run(2, body_hostile, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_half),
        cmocka_unit_test(test_wrong),
        cmocka_unit_test(test_killed),
        cmocka_unit_test(test_hostile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
