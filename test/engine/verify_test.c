/* ctest: timeout=300 */
/* TUTTI_VERIFY=1: a result that is not the same on all ranks is an error on all of them in the next
 * operation, whatever that is; and nothing else ever is. The difference is made by an operation of
 * one's own that computes something else on one rank. */
#include "support/ranks.h"

#include "support/team.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { LARGE = 20000, KEPT = 3 };

static bool lies;

static void sum_or_not(const void *in, void *inout, size_t count, tutti_type type)
{
    const int32_t *a = in;
    int32_t *b = inout;
    for (size_t i = 0; i < count && type == TUTTI_I32; i++)
        b[i] += a[i] + (lies && i + 1 == count);
}

enum spoilt { BY_ALL_REDUCE, BY_MANY, SPOILT };
enum next { BARRIER, SAME, LARGE_BROADCAST, A_SPLIT_BETWEEN, WORK, OP_CREATE, NEXTS };

static int spoil(tutti_comm *comm, tutti_op op, int how)
{
    static int32_t x[2000], y[2000];
    const void *send[2] = { x, x + 1000 };
    void *recv[2] = { y, y + 1000 };
    const size_t counts[2] = { 1000, 7 };
    if (how == BY_ALL_REDUCE)
        return tutti_all_reduce(x, y, 2000, TUTTI_I32, op, comm, NULL);
    return tutti_all_reduce_many(send, recv, counts, 2, TUTTI_I32, op, comm, NULL);
}

static int next_one(tutti_comm *comm, int which)
{
    static int32_t x[LARGE];
    tutti_work *work;
    tutti_op op;
    tutti_comm *none = NULL;
    switch (which) {
    case BARRIER: return tutti_barrier(comm, NULL);
    case SAME: return tutti_same(x, 4, comm, NULL) == 1 ? 0 : -EPROTO;
    case LARGE_BROADCAST: return tutti_broadcast(x, LARGE, TUTTI_I32, 0, comm, NULL);
    case A_SPLIT_BETWEEN:
        return tutti_comm_split(comm, 0, 0, &none) | tutti_comm_free(none)
            ? -1
            : tutti_barrier(comm, NULL);
    case WORK:
        return tutti_barrier(comm, &(tutti_call){ .work = &work }) ? -1 : tutti_wait(work, 0);
    case OP_CREATE: return tutti_op_create(sum_or_not, 1, &op, comm);
    default: return -EINVAL;
    }
}

static int body_a_difference(tutti_comm *world, int rank)
{
    int size = tutti_size(world);
    for (int liar = 0; liar < size; liar++)
        for (int how = 0; how < SPOILT; how++)
            for (int which = 0; which < NEXTS; which++) {
                tutti_comm *comm;
                tutti_op op;
                char name[32];
                CHECK_IS(tutti_comm_split(world, 0, 0, &comm), 0);
                CHECK_IS(tutti_op_create(sum_or_not, 1, &op, comm), 0);
                lies = false;
                CHECK_IS(spoil(comm, op, how), 0);
                CHECK_IS(next_one(comm, which), 0);
                lies = rank == liar;
                /* the digest of a result travels with the next arrival */
                CHECK_IS(spoil(comm, op, how), 0);
                lies = false;
                CHECK_IS(next_one(comm, which), -EPROTO);
                CHECK(strstr(tutti_explain(comm),
                             "TUTTI_VERIFY: the ranks had different results before "));
                CHECK(strstr(tutti_explain(comm), "verify_test.c:"));
                /* One line a rank: the liar's digest is alone with its value. */
                const char *own, *first = strstr(tutti_explain(comm), "  rank 0");
                CHECK(first);
                snprintf(name, sizeof name, "  rank %d", liar);
                CHECK((own = strstr(tutti_explain(comm), name)) != NULL);
                for (int p = 0; p < size; p++) {
                    snprintf(name, sizeof name, "  rank %d", p);
                    const char *other = strstr(tutti_explain(comm), name);
                    CHECK(other && (p == liar || strncmp(other + 12, own + 12, 16) != 0));
                }
                CHECK_IS(tutti_barrier(comm, NULL), -ECANCELED);
                CHECK_IS(tutti_comm_free(comm), 0);
                CHECK_IS(tutti_barrier(world, NULL), 0);             /* no other comm is hurt */
            }
    return 0;
}

/* All kinds, sizes, some under way, on two comms and the world, in an order that all ranks draw
 * alike: never an alarm. */
static int any_operation(tutti_comm *comm, uint64_t random, const tutti_call *call, int32_t *x,
                         int32_t *y)
{
    static const size_t sizes[] = { 0, 1, 9, 3000, LARGE };
    size_t n = sizes[random / 64 % 5];
    int size = tutti_size(comm), rank = tutti_rank(comm),
        root = (int)(random / 512 % (uint64_t)size);
    const void *send[8];
    void *recv[8];
    size_t give[8], take[8], alike[8];
    for (size_t i = 0; i < n; i++)
        x[i] = (int32_t)((uint32_t)(random + i) * (uint32_t)(rank + 1));
    n /= (size_t)size;
    for (int p = 0; p < size; p++) {
        send[p] = x + (size_t)p * n;
        recv[p] = y + (size_t)p * n;
        give[p] = n * (size_t)((rank + 2 * p) % 3) / 2;
        take[p] = n * (size_t)((p + 2 * rank) % 3) / 2;
        alike[p] = n * (size_t)(p % 3) / 2;
    }
    switch (random % 18) {
    case 0: return tutti_barrier(comm, call);
    case 1: return tutti_broadcast(x, n, TUTTI_I32, root, comm, call);
    case 2: return tutti_reduce(x, y, n, TUTTI_I32, TUTTI_SUM, root, comm, call);
    case 3: return tutti_all_reduce(x, y, n, TUTTI_I32, TUTTI_SUM, comm, call);
    case 4: return tutti_all_reduce(x, x, n, TUTTI_F32, TUTTI_MAX, comm, call);
    case 5: return tutti_all_reduce_many(send, recv, alike, size, TUTTI_I32, TUTTI_SUM, comm, call);
    case 6: return tutti_reduce_scatter(x, y, n, TUTTI_I32, TUTTI_SUM, comm, call);
    case 7: return tutti_all_gather(x, y, n, TUTTI_I32, comm, call);
    case 8: return tutti_gather(x, y, n, TUTTI_I32, root, comm, call);
    case 9: return tutti_scatter(x, y, n, TUTTI_I32, root, comm, call);
    case 10: return tutti_all_to_all(x, y, n, TUTTI_I32, comm, call);
    case 11: return tutti_scan(x, y, n, TUTTI_I32, TUTTI_SUM, comm, call);
    case 12: return tutti_exscan(x, y, n, TUTTI_I32, TUTTI_SUM, comm, call);
    case 13: return tutti_all_gather_v(x, alike[rank], recv, alike, TUTTI_I32, comm, call);
    case 14: return tutti_gather_v(x, give[root], recv, take, TUTTI_I32, root, comm, call);
    case 15: return tutti_scatter_v(send, give, y, take[root], TUTTI_I32, root, comm, call);
    case 16: return tutti_reduce_scatter_v(send, alike, y, TUTTI_I32, TUTTI_SUM, comm, call);
    default: return tutti_all_to_all_v(send, give, recv, take, TUTTI_I32, comm, call);
    }
}

static uint64_t seed;

static int body_no_alarm(tutti_comm *world, int rank)
{
    static int32_t x[KEPT][LARGE], y[KEPT][LARGE];
    tutti_comm *comms[3] = { world, NULL, NULL };
    uint64_t random = seed;
    CHECK_IS(tutti_comm_split(world, rank % 2, 0, &comms[1]), 0);
    for (int i = 0; i < ranks_many(3000, 300); i++) {
        tutti_work *work[KEPT];
        if (i % 100 == 0) {
            if (comms[2])
                CHECK_IS(tutti_comm_free(comms[2]), 0);
            CHECK_IS(tutti_comm_split(comms[0], 0, -rank, &comms[2]), 0);
        }
        tutti_comm *comm = comms[team_random(&random) % 3];
        int many = (int)(team_random(&random) % KEPT) + 1;
        bool queued = team_random(&random) % 2;
        for (int k = 0; k < many; k++) {
            int r = any_operation(comm, team_random(&random) >> 8,
                                  queued ? &(tutti_call){ .work = &work[k] } : NULL, x[k], y[k]);
            CHECK_IS(r, 0);
        }
        for (int k = 0; queued && k < many; k++)
            CHECK_IS(tutti_wait(work[k], 0), 0);
    }
    return 0;
}

static void differences(void **state)
{
    (void)state;
    assert_int_equal(ranks_run(2, body_a_difference, 0), 0);
    assert_int_equal(ranks_run(4, body_a_difference, 0), 0);
}

static void no_alarms(void **state)
{
    (void)state;
    seed = team_seed();
    assert_int_equal(ranks_run(4, body_no_alarm, 0), 0);
    setenv("TUTTI_ALGORITHM", "barrier:-inf=central", 1);
    assert_int_equal(ranks_run(3, body_no_alarm, 0), 0);
    unsetenv("TUTTI_ALGORITHM");
}

/* Without it nobody looks. */
static int body_unseen(tutti_comm *world, int rank)
{
    tutti_op op;
    CHECK_IS(tutti_op_create(sum_or_not, 1, &op, world), 0);
    lies = rank == 0;
    CHECK_IS(spoil(world, op, BY_ALL_REDUCE), 0);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return 0;
}

static void off_by_default(void **state)
{
    (void)state;
    unsetenv("TUTTI_VERIFY");
    assert_int_equal(ranks_run(2, body_unseen, 0), 0);
}

static int setup(void **state)
{
    (void)state;
    return setenv("TUTTI_VERIFY", "1", 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(differences), cmocka_unit_test(no_alarms),
                                        cmocka_unit_test(off_by_default) };
    return cmocka_run_group_tests(tests, setup, NULL);
}
