/* ctest: labels=nosan */
/* How much stack calls need: each rank is a thread on a stack of its own that is painted first;
 * what is no longer painted was used. tutti(7) says that 128 KiB are enough, beside what the
 * program itself has there; a third of them is kept in hand. An operation that fails and writes its
 * report is among them. */
#include <tutti.h>

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

enum { RANKS = 2, STACK = 256 << 10, PROMISED = 128 << 10, SPARE = 512,
       PAINT = 0xa5, STEPS_MOST = 16, LARGE = 1 << 20 };

struct rank {
    pthread_t thread;
    tutti_comm *world;
    uint8_t *stack;
    float *in, *out;
    size_t used[STEPS_MOST];
    int rank, error, at;
};

static struct rank ranks[RANKS];
static char        job[64], path[64];

static int begin(struct rank *r)
{
    const tutti_options options = { .job = job, .rank = r->rank, .size = RANKS };
    return tutti_init(&r->world, &options);
}

static int end(struct rank *r) { return tutti_finalize(r->world); }
static int barrier(struct rank *r) { return tutti_barrier(r->world, NULL); }

static int all_reduce(struct rank *r)
{
    for (size_t n = 1; n <= LARGE; n *= 32) {
        int error = tutti_all_reduce(r->in, r->out, n, TUTTI_F32, TUTTI_SUM, r->world, NULL);
        if (error < 0)
            return error;
    }
    return tutti_all_reduce(r->in, r->out, 1000, TUTTI_F8E4M3, TUTTI_AVG, r->world, NULL);
}

static int all_to_all(struct rank *r)
{
    int error = tutti_all_to_all(r->in, r->out, LARGE / RANKS, TUTTI_F32, r->world, NULL);
    return error < 0 ? error : tutti_all_gather(r->in, r->out, 100, TUTTI_F32, r->world, NULL);
}

static int work(struct rank *r)
{
    tutti_work *one = NULL;
    const tutti_call call = { .work = &one };
    int error = tutti_all_reduce(r->in, r->out, LARGE, TUTTI_F32, TUTTI_SUM, r->world, &call);
    return error < 0 ? error : tutti_wait(one, -1);
}

static int messages(struct rank *r)
{
    if (r->rank == 0)
        return tutti_send(r->in, LARGE, TUTTI_F32, 1, 0, r->world, NULL);
    return tutti_recv(r->out, LARGE, TUTTI_F32, 0, 0, NULL, r->world, NULL);
}

static int comms(struct rank *r)
{
    tutti_comm *half;
    int error = tutti_comm_split(r->world, 0, r->rank, &half);
    return error < 0 ? error : tutti_comm_free(half);
}

static int store(struct rank *r)
{
    char   got[16];
    size_t size = sizeof got;
    int    error = tutti_set("key", "value", 6, r->world);
    return error < 0 ? error : tutti_get("key", got, &size, r->world, NULL);
}

static int files(struct rank *r)
{
    const void *data;
    size_t      size;
    return tutti_load(path, &data, &size, r->world, NULL);
}

static int mismatch(struct rank *r)
{
    int error = r->rank ? tutti_barrier(r->world, NULL)
        : tutti_all_reduce(r->in, r->out, 1, TUTTI_F32, TUTTI_SUM, r->world, NULL);
    return error == -EPROTO && strstr(tutti_explain(r->world), "barrier") ? 0 : -1;
}

static const struct { const char *name; int (*function)(struct rank *); } steps[] = {
    { "init", begin }, { "barrier", barrier }, { "all_reduce", all_reduce },
    { "all_to_all", all_to_all }, { "work", work }, { "messages", messages },
    { "comms", comms }, { "store", store }, { "load", files }, { "mismatch", mismatch },
    { "finalize", end }
};
enum { STEPS = sizeof steps / sizeof *steps };

/* Paints what lies under this frame, all but a part that the painter itself may need. */
static __attribute__((noinline)) void paint(uint8_t *from, const uint8_t *here)
{
    for (volatile uint8_t *at = from; at < here - SPARE; at++)
        *at = PAINT;
}

static void *run(void *arg)
{
    struct rank *r = arg;
    uint8_t      here = 0;
    for (int i = 0; i < STEPS && r->error >= 0; i++) {
        paint(r->stack, &here);
        r->error = steps[i].function(r);
        uint8_t *at = r->stack;
        while (at < &here && *at == PAINT)
            at++;
        r->used[i] = (size_t)(&here - at);
        r->at = i;
    }
    return NULL;
}

static void test_stack(void **state)
{
    (void)state;
    for (int i = 0; i < RANKS; i++) {
        pthread_attr_t attr;
        assert_int_equal(pthread_attr_init(&attr), 0);
        assert_int_equal(pthread_attr_setstack(&attr, ranks[i].stack, STACK), 0);
        assert_int_equal(pthread_create(&ranks[i].thread, &attr, run, &ranks[i]), 0);
        pthread_attr_destroy(&attr);
    }
    for (int i = 0; i < RANKS; i++)
        pthread_join(ranks[i].thread, NULL);
    for (int i = 0; i < RANKS; i++)
        if (ranks[i].error < 0)
            fail_msg("%s: rank %d: %s", steps[ranks[i].at].name, i,
                     tutti_strerror(ranks[i].error));
    size_t most = 0;
    for (int s = 0; s < STEPS; s++) {
        size_t used = ranks[0].used[s] > ranks[1].used[s] ? ranks[0].used[s] : ranks[1].used[s];
        printf("%-12s %6zu bytes\n", steps[s].name, used);
        most = used > most ? used : most;
    }
    assert_in_range(most, SPARE, PROMISED * 2 / 3);
}

int main(void)
{
    snprintf(job, sizeof job, "stack-%d", (int)getpid());
    snprintf(path, sizeof path, "/proc/self/exe");
    for (int i = 0; i < RANKS; i++) {
        ranks[i].rank = i;
        ranks[i].in = calloc(LARGE, sizeof(float));
        ranks[i].out = calloc(LARGE, sizeof(float));
        ranks[i].stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                              0);
        if (!ranks[i].in || !ranks[i].out || ranks[i].stack == MAP_FAILED)
            return 1;
    }
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_stack) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
