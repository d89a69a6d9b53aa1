/* ctest: timeout=300 labels=tsan */
/* Random programs against a model. What a receive from a given rank gets does not depend on
 * time: in the order of posting each takes the first message that fits and that no earlier one
 * took. So the receiver knows from the seed what must come. From TUTTI_ANY it does depend on
 * time: there every message comes once, and those of one sender that fit the same receives come
 * in their order. */
#include "p2p/p2p.h"
#include "support/ranks.h"
#include "support/team.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MANY = 120, TAGS = 4, SENDERS = 3, MOST = MEDIUM + PIECE };

struct message { int tag; size_t bytes; bool taken; };
struct posted { int from, tag, nth; tutti_work *work; tutti_message got; unsigned char *buf; };

static uint64_t seed_of_run;

static size_t random_length(uint64_t *random)
{
    static const size_t some[] = {
        0, 1, 8, LETTER_TEXT, LETTER_TEXT + 1, 1000, SMALL, SMALL + 1,
        PIECE * 2 + 7, MEDIUM, MEDIUM + 1, MOST
    };
    size_t n = some[team_random(random) % (sizeof some / sizeof *some)];
    return n > 1000 && team_random(random) % 4 ? n % 777 : n;        /* few large ones */
}

static unsigned char byte_of(size_t i, int from, int nth)
{
    return (unsigned char)(i * 31 + (size_t)from * 7 + (size_t)nth * 13 + (i >> 9));
}

static void make_messages(struct message *list, int from, uint64_t round)
{
    uint64_t random = seed_of_run + round * 1000 + (uint64_t)from;
    for (int i = 0; i < MANY; i++)
        list[i] = (struct message){ (int)(team_random(&random) % TAGS), random_length(&random),
                                    false };
}

/* Large ones as work, so that what is asked for first can always come; small ones either way. */
static int send_all(tutti_comm *world, int rank, uint64_t round)
{
    struct message list[MANY];
    tutti_work *work[MANY] = { NULL };
    unsigned char *buf[MANY];
    uint64_t random = seed_of_run ^ (round << 20) ^ (uint64_t)rank;
    make_messages(list, rank, round);
    for (int i = 0; i < MANY; i++) {
        buf[i] = malloc(list[i].bytes + 1);
        CHECK(buf[i] != NULL);
        for (size_t k = 0; k < list[i].bytes; k++)
            buf[i][k] = byte_of(k, rank, i);
        bool as_work = list[i].bytes > SMALL || team_random(&random) % 3 == 0;
        CHECK_IS(tutti_send(buf[i], list[i].bytes, TUTTI_U8, 0, list[i].tag, world,
                            as_work ? &(tutti_call){ .work = &work[i] } : NULL),
                 0);
        if (!as_work)
            memset(buf[i], 0xaa, list[i].bytes);     /* it is ours again */
    }
    for (int i = 0; i < MANY; i++) {
        if (work[i])
            CHECK_IS(tutti_wait(work[i], 0), 0);
        free(buf[i]);
    }
    return 0;
}

static int model_take(struct message *list, int tag)
{
    for (int i = 0; i < MANY; i++)
        if (!list[i].taken && (tag == TUTTI_ANY || tag == list[i].tag)) {
            list[i].taken = true;
            return i;
        }
    return -1;
}

static int check_posted(tutti_comm *world, const struct posted *p, const struct message *list)
{
    CHECK_IS(p->got.from, p->from);
    CHECK_IS(p->got.tag, list[p->nth].tag);
    CHECK_IS(p->got.count, list[p->nth].bytes);
    for (size_t k = 0; k < p->got.count; k++)
        if (p->buf[k] != byte_of(k, p->from, p->nth))
            CHECK_IS(k, -1);
    return 0;
}

static int receive_all(tutti_comm *world, uint64_t round)
{
    static _Thread_local struct message list[SENDERS + 1][MANY];
    static _Thread_local struct posted posted[SENDERS * MANY];
    uint64_t random = seed_of_run * 3 + round;
    int left = SENDERS * MANY, n = 0;
    for (int s = 1; s <= SENDERS; s++)
        make_messages(list[s], s, round);
    for (; left; n++) {
        struct posted *p = &posted[n];
        do {
            p->from = 1 + (int)(team_random(&random) % SENDERS);
            p->tag = (int)(team_random(&random) % (TAGS + 1)) - 1;   /* -1 is TUTTI_ANY */
            p->nth = model_take(list[p->from], p->tag);
        } while (p->nth < 0);
        left--;
        p->buf = malloc(MOST);
        CHECK(p->buf != NULL);
        bool as_work = team_random(&random) % 2;
        p->work = NULL;
        if (!as_work && team_random(&random) % 4 == 0) {
            tutti_message seen;
            CHECK_IS(tutti_probe(p->from, p->tag, &seen, world, NULL), 0);
            CHECK_IS(seen.tag, list[p->from][p->nth].tag);
            CHECK_IS(seen.count, list[p->from][p->nth].bytes);
        }
        CHECK_IS(tutti_recv(p->buf, MOST, TUTTI_U8, p->from, p->tag, &p->got, world,
                            as_work ? &(tutti_call){ .work = &p->work } : NULL),
                 0);
        if (!as_work && check_posted(world, p, list[p->from]))
            return 1;
    }
    while (n-- > 0) {
        struct posted *p = &posted[n];
        if (p->work) {
            while (team_random(&random) % 2 && tutti_test(p->work) == -EAGAIN) { }
            CHECK_IS(tutti_wait(p->work, 0), 0);
            if (check_posted(world, p, list[p->from]))
                return 1;
        }
        free(p->buf);
    }
    return 0;
}

static int body_known(tutti_comm *world, int rank)
{
    for (uint64_t round = 0, rounds = (uint64_t)ranks_many(12, 3); round < rounds; round++) {
        if (rank ? send_all(world, rank, round) : receive_all(world, round))
            return 1;
        if (round % 3 == 0)
            CHECK_IS(tutti_barrier(world, NULL), 0);
    }
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return 0;
}

static void test_known(void **state)
{
    (void)state;
    seed_of_run = team_seed();
    assert_int_equal(ranks_run_either(SENDERS + 1, body_known), 0);
}

/* From anybody: the tag fixed or any. Per sender and tag the order holds, and nothing
 * comes twice. */
static int receive_any(tutti_comm *world, uint64_t round)
{
    static _Thread_local struct message list[SENDERS + 1][MANY];
    int next[SENDERS + 1][TAGS] = { { 0 } }, left[TAGS] = { 0 }, all = SENDERS * MANY;
    uint64_t random = seed_of_run * 5 + round;
    unsigned char *buf = malloc(MOST);
    CHECK(buf != NULL);
    for (int s = 1; s <= SENDERS; s++) {
        make_messages(list[s], s, round);
        for (int i = 0; i < MANY; i++)
            left[list[s][i].tag]++;
    }
    while (all-- > 0) {
        int tag = TUTTI_ANY;
        if (team_random(&random) % 2)
            do
                tag = (int)(team_random(&random) % TAGS);
            while (!left[tag]);
        tutti_message got = { 0, 0, 0 };
        CHECK_IS(tutti_recv(buf, MOST, TUTTI_U8, TUTTI_ANY, tag, &got, world, NULL), 0);
        CHECK(tag == TUTTI_ANY || tag == got.tag);
        int nth = next[got.from][got.tag];
        while (nth < MANY && list[got.from][nth].tag != got.tag)
            nth++;
        CHECK(nth < MANY);
        next[got.from][got.tag] = nth + 1;
        left[got.tag]--;
        CHECK_IS(got.count, list[got.from][nth].bytes);
        for (size_t k = 0; k < got.count; k++)
            if (buf[k] != byte_of(k, got.from, nth))
                CHECK_IS(k, -1);
    }
    free(buf);
    return 0;
}

static int body_any(tutti_comm *world, int rank)
{
    for (uint64_t round = 0, rounds = (uint64_t)ranks_many(12, 3); round < rounds; round++) {
        if (rank ? send_all(world, rank, round) : receive_any(world, round))
            return 1;
        CHECK_IS(tutti_barrier(world, NULL), 0);
    }
    return 0;
}

static void test_any(void **state)
{
    (void)state;
    seed_of_run = team_seed();
    assert_int_equal(ranks_run_either(SENDERS + 1, body_any), 0);
}

/* Posted first, in a row, as work: the messages go to them in that order. */
static int body_posted(tutti_comm *world, int rank)
{
    enum { N = 200 };
    int x[N];
    tutti_work *work[N];
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < N && rank == 0; i++)
            CHECK_IS(tutti_recv(&x[i], 1, TUTTI_I32, i % 3 ? 1 : TUTTI_ANY, i % 2 ? 7 : TUTTI_ANY,
                                NULL, world, &(tutti_call){ .work = &work[i] }),
                     0);
        CHECK_IS(tutti_barrier(world, NULL), 0);
        for (int i = 0; i < N && rank == 1; i++)
            CHECK_IS(tutti_send(&i, 1, TUTTI_I32, 0, 7, world, NULL), 0);
        int last = -1;
        if (rank == 0)                               /* a blocking one stands behind them */
            CHECK_IS(tutti_recv(&last, 1, TUTTI_I32, 1, TUTTI_ANY, NULL, world, NULL), 0);
        else
            CHECK_IS(tutti_send(&(int){ N }, 1, TUTTI_I32, 0, 8, world, NULL), 0);
        CHECK(rank == 1 || last == N);
        for (int i = 0; i < N && rank == 0; i++) {
            CHECK_IS(tutti_wait(work[i], 0), 0);
            CHECK_IS(x[i], i);
        }
    }
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return 0;
}

static void test_posted(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, body_posted), 0);
}

/* The receiver's own errors: the message is gone, everything else goes on. */
static int body_wrong(tutti_comm *world, int rank)
{
    static _Thread_local float x[SMALL];
    if (rank == 1) {
        for (int large = 0; large < 2; large++) {
            CHECK_IS(tutti_send(x, large ? SMALL : 10, TUTTI_F32, 0, 1, world, NULL), 0);
            CHECK_IS(tutti_send(x, large ? SMALL : 10, TUTTI_F32, 0, 1, world, NULL), 0);
            CHECK_IS(tutti_send(x, large ? SMALL : 10, TUTTI_F32, 0, 1, world, NULL), 0);
        }
        CHECK_IS(tutti_barrier(world, NULL), 0);
        return 0;
    }
    for (int large = 0; large < 2; large++) {
        size_t n = large ? SMALL : 10;
        tutti_message got;
        CHECK_IS(tutti_recv(x, n, TUTTI_I32, 1, 1, &got, world, NULL), -EPROTO);
        CHECK(strstr(tutti_explain(world), "recv i32") && strstr(tutti_explain(world), "send f32"));
        CHECK(strstr(strstr(tutti_explain(world), "match_test.c") + 1, "match_test.c") != NULL);
        CHECK_IS(tutti_recv(x, n - 1, TUTTI_F32, 1, 1, &got, world, NULL), -EMSGSIZE);
        CHECK(strstr(tutti_explain(world),
                     large ? "send f32 65536 tag 1 of rank 1" : "send f32 10 tag 1 of rank 1")
              != NULL);
        CHECK_IS(tutti_recv(x, n, TUTTI_F32, TUTTI_ANY, 1, &got, world, NULL), 0);
        CHECK_IS(got.count, n);
    }
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return 0;
}

static void test_wrong(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, body_wrong), 0);
}

/* More than the queue takes: what finds no room does not let what comes after it pass. */
static int body_overtake(tutti_comm *world, int rank)
{
    enum { N = 400 };
    int *buf = malloc(N / 2 * SMALL), got[SMALL / 4];
    tutti_work *work[N];
    CHECK(buf != NULL);
    for (int i = 0; i < N && rank == 0; i++) {
        int *x = buf + i / 2 * (SMALL / 4) + (i % 2 ? 0 : SMALL / 4 - 1);
        x[0] = i;
        CHECK_IS(tutti_send(x, i % 2 ? SMALL / 4 - 2 : 1, TUTTI_I32, 1, 3, world,
                            &(tutti_call){ .work = &work[i] }),
                 0);
        if (i == N - 1)
            ranks_say(0, 1);
    }
    if (rank == 1)
        CHECK_IS(ranks_await(0, 1), 0);              /* by now some have found no room */
    for (int i = 0; i < N && rank == 1; i++) {
        CHECK_IS(tutti_recv(got, SMALL / 4, TUTTI_I32, i % 5 ? 0 : TUTTI_ANY, i % 3 ? 3 : TUTTI_ANY,
                            NULL, world, NULL),
                 0);
        CHECK_IS(got[0], i);
    }
    for (int i = 0; i < N && rank == 0; i++)
        CHECK_IS(tutti_wait(work[i], 0), 0);
    free(buf);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return 0;
}

static void test_overtake(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, body_overtake), 0);
}

/* All at once: every rank to every rank, itself too, many messages of all sizes, all of it as work,
 * waited for from the last to the first. */
static int body_storm(tutti_comm *world, int rank)
{
    enum { EACH = 24 };
    static const size_t lengths[] = { 1, 90, 5000, 66000, 300000 };
    int size = tutti_size(world), n = size * EACH;
    tutti_work **work = calloc((size_t)n * 2, sizeof(tutti_work *));
    unsigned char **buf = calloc((size_t)n * 2, sizeof(unsigned char *));
    CHECK(work && buf);
    for (int i = 0; i < n; i++) {
        int peer = i % size, nth = i / size;
        size_t bytes = lengths[(nth + peer + rank) % 5];
        buf[i] = malloc(bytes);
        buf[n + i] = malloc(bytes);
        CHECK(buf[i] && buf[n + i]);
        memset(buf[i], rank * 16 + nth, bytes);
        CHECK_IS(tutti_send(buf[i], bytes, TUTTI_U8, peer, nth, world,
                            &(tutti_call){ .work = &work[i] }),
                 0);
        CHECK_IS(tutti_recv(buf[n + i], bytes, TUTTI_U8, peer, nth, NULL, world,
                            &(tutti_call){ .work = &work[n + i] }),
                 0);
    }
    CHECK_IS(tutti_barrier(world, NULL), 0);         /* collectives go on meanwhile */
    for (int i = 2 * n; i-- > 0;)
        CHECK_IS(tutti_wait(work[i], 0), 0);
    for (int i = 0; i < n; i++) {
        int peer = i % size, nth = i / size;
        size_t bytes = lengths[(nth + peer + rank) % 5];
        for (size_t k = 0; k < bytes; k++)
            if (buf[n + i][k] != (unsigned char)(peer * 16 + nth))
                CHECK_IS(k, -1);
        free(buf[i]);
        free(buf[n + i]);
    }
    free(buf);
    free(work);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return 0;
}

static void test_storm(void **state)
{
    (void)state;
    for (int i = 0, rounds = ranks_many(5, 1); i < rounds; i++) {
        assert_int_equal(ranks_run_either(2, body_storm), 0);
        assert_int_equal(ranks_run_either(5, body_storm), 0);
    }
    assert_int_equal(ranks_run_threads(3, body_storm), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known), cmocka_unit_test(test_any), cmocka_unit_test(test_posted),
        cmocka_unit_test(test_wrong), cmocka_unit_test(test_overtake), cmocka_unit_test(test_storm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
