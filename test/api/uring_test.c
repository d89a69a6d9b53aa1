/* ctest: timeout=200 */
/* Work awaited in a ring of the caller's own: by futex and by eventfd, collectives and messages,
 * over already or not yet, ended by a death; and a server's loop: one ring for the requests on its
 * sockets and for the all_reduces between the ranks, none of either lost. */
#include "group/comm.h"
#include "support/ranks.h"
#include "support/skip.h"

#include <arpa/inet.h>
#include <errno.h>
#include <liburing.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <tutti_uring.h>
#include <unistd.h>

#include <cmocka.h>

enum { FUTEX = 1, EVENT = 2, ROUNDS = 200, ECHOES = 1000, SUMS = 10000, ABREAST = 8 };

static int way;                        /* how the ranks of this test wait */

/* 0: a completion with that user_data has come. */
static int await_ring(struct io_uring *ring, uint64_t data)
{
    struct io_uring_cqe *cqe;
    struct __kernel_timespec most = { .tv_sec = 60 };
    int r = io_uring_wait_cqe_timeout(ring, &cqe, &most);
    if (r < 0)
        return r;
    bool right = io_uring_cqe_get_data64(cqe) == data;
    io_uring_cqe_seen(ring, cqe);
    return right ? 0 : -EBADMSG;
}

static int prep(struct io_uring *ring, tutti_work *work, uint64_t data)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(ring);
    if (!sqe)
        return -EAGAIN;
    io_uring_sqe_set_data64(sqe, data);
    int r = tutti_uring_prep_wait(sqe, work);
    return r < 0 ? r : io_uring_submit(ring) == 1 ? 0 : -EIO;
}

static void choose(tutti_comm *world)
{
    if (way == EVENT)
        /* as on a kernel whose rings know no futex */
        store_relaxed32(&world->world->ring_futex, 2);
}

static int body_waits(tutti_comm *world, int rank)
{
    struct io_uring ring;
    choose(world);
    CHECK_IS(io_uring_queue_init(8, &ring, 0), 0);
    for (uint64_t i = 1; i <= ROUNDS; i++) {
        int32_t mine = rank + 1, sum = 0, got = 0;
        tutti_work *work, *other;
        CHECK_IS(tutti_all_reduce(&mine, &sum, 1, TUTTI_I32, TUTTI_SUM, world,
                                  &(tutti_call){ .work = &work }),
                 0);
        if (i % 5 == 0)                              /* it may be over */
            CHECK_IS(tutti_barrier(world, NULL), 0);
        CHECK_IS(prep(&ring, work, i), 0);
        CHECK_IS(await_ring(&ring, i), 0);
        CHECK_IS(tutti_wait(work, 0), 0);
        CHECK_IS(sum, 3);
        if (rank == 0) {
            CHECK_IS(tutti_recv(&got, 1, TUTTI_I32, 1, (int)i, NULL, world,
                                &(tutti_call){ .work = &other }),
                     0);
            CHECK_IS(prep(&ring, other, i + 1000), 0);
            if (i % 3 == 0)
                CHECK_IS(prep(&ring, other, i + 1000), 0);           /* twice is as good */
            CHECK_IS(tutti_send(&mine, 1, TUTTI_I32, 1, 0, world, NULL), 0);
            CHECK_IS(await_ring(&ring, i + 1000), 0);
            if (i % 3 == 0)
                CHECK_IS(await_ring(&ring, i + 1000), 0);
            CHECK_IS(tutti_test(other), 0);
            CHECK_IS(tutti_wait(other, 0), 0);
            CHECK_IS(got, (int32_t)i);
        } else {
            int32_t what = (int32_t)i;
            CHECK_IS(tutti_recv(&got, 1, TUTTI_I32, 0, 0, NULL, world, NULL), 0);
            CHECK_IS(tutti_send(&what, 1, TUTTI_I32, 0, (int)i, world, NULL), 0);
        }
    }
    struct io_uring_sqe sqe;
    tutti_work *work;
    CHECK_IS(tutti_barrier(world, &(tutti_call){ .work = &work }), 0);
    CHECK_IS(tutti_uring_prep_wait(NULL, work), -EINVAL);
    CHECK_IS(tutti_uring_prep_wait(&sqe, NULL), -EINVAL);
    CHECK_IS(tutti_wait(work, 0), 0);
    io_uring_queue_exit(&ring);
    return 0;
}

static bool rings_here(void)
{
    struct io_uring ring;
    int r = io_uring_queue_init(2, &ring, 0);
    if (r == 0)
        io_uring_queue_exit(&ring);
    else
        print_message("no io_uring here (%s): not looked at\n", strerror(-r));
    return r == 0;
}

static void test_waits(void **state)
{
    (void)state;
    if (!rings_here())
        skip_because("no io_uring can be made here");
    for (way = FUTEX; way <= EVENT; way++)
        assert_int_equal(ranks_run(2, body_waits, 0), 0);
}

/* A rank dies: the completion comes, and the handle says why. */
static int body_death(tutti_comm *world, int rank)
{
    struct io_uring ring;
    tutti_work *work;
    choose(world);
    if (rank == 1) {
        ranks_await(0, 1);
        ranks_die();
    }
    CHECK_IS(io_uring_queue_init(8, &ring, 0), 0);
    CHECK_IS(tutti_barrier(world, &(tutti_call){ .work = &work }), 0);
    CHECK_IS(prep(&ring, work, 7), 0);
    ranks_say(0, 1);
    CHECK_IS(await_ring(&ring, 7), 0);
    CHECK_IS(tutti_wait(work, 0), -EOWNERDEAD);
    io_uring_queue_exit(&ring);
    return 0;
}

static void test_death(void **state)
{
    (void)state;
    if (!rings_here())
        skip_because("no io_uring can be made here");
    for (way = FUTEX; way <= EVENT; way++)
        assert_int_equal(ranks_run(2, body_death, 1u << 1), 0);
}

/* ---- a server ---- */

/* Whoever asks: a number, and its answer must be the same number. */
struct asker { struct sockaddr_in at; uint32_t right; };

static void *ask(void *arg)
{
    struct asker *a = arg;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&a->at, sizeof a->at) < 0)
        return NULL;
    for (uint32_t i = 0; i < ECHOES; i++) {
        uint32_t got = 0;
        if (send(fd, &i, sizeof i, 0) != sizeof i
            || recv(fd, &got, sizeof got, MSG_WAITALL) != sizeof got)
            break;
        a->right += got == i;
    }
    close(fd);
    return NULL;
}

enum { ACCEPTS = 1, HEARS, SAYS, SUMMED = 100 };

struct server {
    struct io_uring ring;
    int listener, guest;
    uint32_t number, answered, begun, over;
    tutti_work *work[ABREAST];
    int32_t one[ABREAST], sum[ABREAST];
};

static int next_sum(struct server *s, tutti_comm *world, uint32_t slot)
{
    s->one[slot] = (int32_t)s->begun;
    s->sum[slot] = -1;
    CHECK_IS(tutti_all_reduce(&s->one[slot], &s->sum[slot], 1, TUTTI_I32, TUTTI_SUM, world,
                              &(tutti_call){ .work = &s->work[slot] }),
             0);
    s->begun++;
    CHECK_IS(prep(&s->ring, s->work[slot], SUMMED + slot), 0);
    return 0;
}

static int hear(struct server *s)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&s->ring);
    io_uring_prep_recv(sqe, s->guest, &s->number, sizeof s->number, MSG_WAITALL);
    io_uring_sqe_set_data64(sqe, HEARS);
    return io_uring_submit(&s->ring);
}

static int completed(struct server *s, tutti_comm *world, uint64_t data, int res)
{
    if (data >= SUMMED) {
        uint32_t slot = (uint32_t)data - SUMMED;
        int32_t was = s->one[slot];
        CHECK_IS(tutti_wait(s->work[slot], 0), 0);
        CHECK_IS(s->sum[slot], was * tutti_size(world));
        s->over++;
        if (s->begun < SUMS)
            CHECK_IS(next_sum(s, world, slot), 0);
        return 0;
    }
    CHECK(res >= 0);
    if (data == ACCEPTS) {
        s->guest = res;
        CHECK_IS(hear(s), 1);
    } else if (data == HEARS && res == sizeof s->number) {
        struct io_uring_sqe *sqe = io_uring_get_sqe(&s->ring);
        io_uring_prep_send(sqe, s->guest, &s->number, sizeof s->number, 0);
        io_uring_sqe_set_data64(sqe, SAYS);
        CHECK_IS(io_uring_submit(&s->ring), 1);
    } else if (data == SAYS) {
        s->answered++;
        CHECK_IS(hear(s), 1);
    }
    return 0;
}

static int body_server(tutti_comm *world, int rank)
{
    struct server s = { .guest = -1 };
    struct asker asker = {
        .at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) }
    };
    socklen_t bytes = sizeof asker.at;
    pthread_t thread;
    (void)rank;
    choose(world);
    CHECK_IS(io_uring_queue_init(64, &s.ring, 0), 0);
    s.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(s.listener >= 0);
    CHECK_IS(bind(s.listener, (struct sockaddr *)&asker.at, sizeof asker.at), 0);
    CHECK_IS(listen(s.listener, 1), 0);
    CHECK_IS(getsockname(s.listener, (struct sockaddr *)&asker.at, &bytes), 0);
    struct io_uring_sqe *sqe = io_uring_get_sqe(&s.ring);
    io_uring_prep_accept(sqe, s.listener, NULL, NULL, SOCK_CLOEXEC);
    io_uring_sqe_set_data64(sqe, ACCEPTS);
    CHECK_IS(io_uring_submit(&s.ring), 1);
    CHECK_IS(pthread_create(&thread, NULL, ask, &asker), 0);
    for (uint32_t slot = 0; slot < ABREAST; slot++)
        CHECK_IS(next_sum(&s, world, slot), 0);
    while (s.over < SUMS || s.answered < ECHOES) {
        struct io_uring_cqe *cqe;
        struct __kernel_timespec most = { .tv_sec = 60 };
        CHECK_IS(io_uring_wait_cqe_timeout(&s.ring, &cqe, &most), 0);
        uint64_t data = io_uring_cqe_get_data64(cqe);
        int res = cqe->res;
        io_uring_cqe_seen(&s.ring, cqe);
        if (completed(&s, world, data, res) != 0)
            return 1;
    }
    pthread_join(thread, NULL);
    CHECK_IS(asker.right, ECHOES);
    CHECK_IS(s.over, SUMS);
    close(s.guest);
    close(s.listener);
    io_uring_queue_exit(&s.ring);
    return 0;
}

static void test_server(void **state)
{
    (void)state;
    if (!rings_here())
        skip_because("no io_uring can be made here");
    for (way = FUTEX; way <= EVENT; way++)
        assert_int_equal(ranks_run(2, body_server, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_waits), cmocka_unit_test(test_death),
                                        cmocka_unit_test(test_server) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
