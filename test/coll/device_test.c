/* ctest: timeout=200 labels=faults,tsan
 * Ranks with device memory among ranks without: all or none, whatever becomes of a device, by every
 * algorithm and gate, blocking and as work. The devices are played (support/dummy), since what is
 * asked here is what everybody else must do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/dummy_device.h"
#include "support/ranks.h"

#include "coll/pipeline.h"
#include "coll/select.h"
#include "watch/verdict.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 4, GOOD_CALLS = 2, LATE_MS = 100 };

/* What the ranks do: set before they are made. */
static struct {
    unsigned devices;
    int size, odd;
    size_t count;
    enum dummy_end end;
    bool early, work, central, aborts;
} play;

static float give(int rank, size_t i, int k)
{
    return (float)((rank + 1) * (k + 2)) + (float)(i % 97);
}

static int finish(tutti_work *work, int started)
{
    return started < 0 ? started : tutti_wait(work, -1);
}

/* One all_reduce: its result, and whether what came out is right. */
static int reduces(tutti_comm *world, int k, struct device_call *d, bool *right)
{
    int rank = tutti_rank(world), size = tutti_size(world);
    size_t count = play.count;
    float *x = malloc(count * sizeof *x), *y = malloc(count * sizeof *y),
          *far = calloc(count, sizeof *far);
    for (size_t i = 0; i < count; i++) {
        x[i] = give(rank, i, k);
        y[i] = -1;
    }
    if (d) {
        d->to = far;
        d->bytes = count * sizeof *far;
    }
    tutti_work *work = NULL;
    bool aborts = play.aborts && k == GOOD_CALLS && rank == (play.odd + 1) % size;
    tutti_call call = {
        .work = play.work || aborts ? &work : NULL,
        .timeout_ms = d && d->end == DUMMY_NEVER && !play.aborts ? LATE_MS : 0
    };
    int r = dummy_call(world, KIND_ALL_REDUCE, x, y, count, TUTTI_F32, TUTTI_SUM, 0, d, &call);
    if (aborts)
        tutti_comm_abort(world, "enough");
    r = work ? finish(work, r) : r;
    *right = true;
    const float *got = d ? far : y;
    for (size_t i = 0; i < count && r == 0; i++) {
        float sum = give(0, i, k);
        for (int p = 1; p < size; p++)
            sum += give(p, i, k);
        *right &= got[i] == sum;
    }
    free(x);
    free(y);
    free(far);
    return r;
}

/* ---- good ends ---- */

static int all_kinds(tutti_comm *world, int rank)
{
    int n = tutti_size(world);
    for (int k = 0; k < 6; k++) {
        bool mine = play.devices >> rank & 1, right;
        struct device_call d = {
            .before = (unsigned)(k + rank) % 3 * 7, .after = (unsigned)(k + 2 * rank) % 4 * 5
        };
        /* every third is of host memory at all ranks */
        CHECK_IS(reduces(world, k, mine && k % 3 != 2 ? &d : NULL, &right), 0);
        CHECK(right);
        int32_t *send = malloc(play.count * (size_t)n * 4),
                *recv = malloc(play.count * (size_t)n * 4),
                *to = malloc(play.count * (size_t)n * 4);
        for (size_t i = 0; i < play.count * (size_t)n; i++)
            send[i] = (int32_t)(1000000 * rank + 100000 * k + (int)i);
        struct device_call g = {
            .after = (unsigned)k, .to = to, .bytes = play.count * (size_t)n * 4
        };
        CHECK_IS(dummy_call(world, KIND_ALL_GATHER, send, recv, play.count, TUTTI_I32, TUTTI_SUM, 0,
                            mine ? &g : NULL, NULL),
                 0);
        for (int p = 0; p < n; p++)
            for (size_t i = 0; i < play.count; i++)
                CHECK_IS((mine ? to : recv)[(size_t)p * play.count + i],
                         1000000 * p + 100000 * k + (int)i);
        g.after = (unsigned)rank;
        CHECK_IS(dummy_call(world, KIND_ALL_TO_ALL, send, recv, play.count, TUTTI_I32, TUTTI_SUM, 0,
                            mine ? &g : NULL, NULL),
                 0);
        for (int p = 0; p < n; p++)
            for (size_t i = 0; i < play.count; i++)
                CHECK_IS((mine ? to : recv)[(size_t)p * play.count + i],
                         1000000 * p + 100000 * k + rank * (int)play.count + (int)i);
        g = (struct device_call){ .after = 3, .to = to, .bytes = play.count * 4 };
        memcpy(recv, send, play.count * 4);
        CHECK_IS(dummy_call(world, KIND_BROADCAST, recv, recv, play.count, TUTTI_I32, TUTTI_SUM,
                            k % n, mine ? &g : NULL, NULL),
                 0);
        for (size_t i = 0; i < play.count; i++)
            CHECK_IS((mine ? to : recv)[i], 1000000 * (k % n) + 100000 * k + (int)i);
        CHECK_IS(tutti_barrier(world, NULL), 0);
        free(send);
        free(recv);
        free(to);
    }
    return 0;
}

static const char *rules_of(const char *algorithm, bool central)
{
    static char text[512];
    snprintf(text, sizeof text,
             "all_reduce:-inf=%s;all_gather:-inf=%s;all_to_all:-inf=%s;"
             "broadcast:-inf=%s;barrier:-inf=%s",
             algorithm, algorithm, algorithm, algorithm, central ? "central" : "flags");
    return text;
}

static void begin_play(const char *algorithm, size_t count, int size, unsigned devices)
{
    play.count = count;
    play.size = size;
    play.devices = devices;
    setenv("TUTTI_ALGORITHM", rules_of(algorithm, play.central), 1);
}

enum { LINE_AT, EAGER_AT, PIPELINE_AT, ALGORITHMS };
static const struct {
    const char *name;
    size_t count;
} algorithms[] = { { "inline", 2 }, { "eager", 1500 }, { "pipelined", 30000 } };

static void results_are_right_on_all(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 12; i++) {
        unsigned size = 2 + i % 3, all = (1u << size) - 1;
        play.central = i / 3 % 2;
        play.work = i / 6;
        begin_play(algorithms[i % ALGORITHMS].name, algorithms[i % ALGORITHMS].count, (int)size,
                   i % 4 == 0 ? all
                       : i % 4 == 1 ? all - 1
                       : 1u << i % size);
        assert_int_equal(ranks_run_either((int)size, all_kinds), 0);
    }
}

/* ---- bad ends ---- */

/* Good calls, then the one in which something happens to rank `odd`, then one more. page->number:
 * -error + 1. */
static int one_goes_wrong(tutti_comm *world, int rank)
{
    bool right, mine = play.devices >> rank & 1;
    for (int k = 0; k < GOOD_CALLS; k++) {
        struct device_call d = { .after = (unsigned)(3 * rank + k) };
        CHECK_IS(reduces(world, k, mine ? &d : NULL, &right), 0);
        CHECK(right);
    }
    struct device_call d = {
        .before = play.early && rank == play.odd ? 3 : 0, .after = rank == play.odd ? 20 : 1
    };
    if (rank == play.odd) {
        d.end = play.end;
        d.early = play.early;
    }
    int r = reduces(world, GOOD_CALLS, mine ? &d : NULL, &right);
    CHECK(right);
    store_release64(&page->number[rank], (uint64_t)(1 - r));
    bool odd = rank == play.odd;
    char words[200];
    switch (play.end) {
    case DUMMY_GOOD: CHECK_IS(r, 0); return 0;
    case DUMMY_FAILS:
        CHECK_IS(r, -EIO);
        snprintf(words, sizeof words, odd ? "%.0d%s" : "the device of rank %d failed: %s",
                 odd ? 0 : play.odd, DUMMY_WORDS);
        CHECK(strstr(tutti_explain(world), words));
        break;
    case DUMMY_NO_MEMORY: CHECK_IS(r, odd ? -ENOMEM : -ECANCELED); break;
    case DUMMY_DIES: {
        int failed[MOST], n = tutti_failed(world, failed, MOST);
        CHECK_IS(r, -EOWNERDEAD);
        bool named = false;
        for (int i = 0; i < n; i++)
            named |= failed[i] == play.odd;          /* others may have left by now */
        CHECK(named);
        break;
    }
    case DUMMY_NEVER:
        CHECK_IS(r, play.aborts ? -ECANCELED : -ETIMEDOUT);
        snprintf(words, sizeof words, "missing: rank %d%s\n", play.odd,
                 odd || !play.early ? ", which waits for its device" : "");
        CHECK(play.aborts || strstr(tutti_explain(world), words));
        CHECK(play.aborts || verdict_who(world->watch.failed) == (uint32_t)play.odd);
        break;
    }
    CHECK_IS(tutti_barrier(world, NULL), -ECANCELED);
    return 0;
}

/* Everybody is somebody's odd one; alone with a device, and with others. */
static void everywhere(enum dummy_end end)
{
    unsigned n = 0;
    for (unsigned a = 0; a < ALGORITHMS; a++)
        for (unsigned how = 0; how < 8; how++, n++) {
            int size = 2 + (int)(n % 3);
            play.odd = (int)(n / 3) % size;
            play.end = end;
            play.early = how & 1;
            play.work = how >> 1 & 1;
            play.central = how >> 2;
            begin_play(algorithms[a].name, algorithms[a].count, size,
                       5 * n / 3 % 2 ? 1u << play.odd : (1u << size) - 1);
            int r = end == DUMMY_DIES ? ranks_run(size, one_goes_wrong, 1u << play.odd)
                                      : ranks_run_either(size, one_goes_wrong);
            if (r)
                fail_msg("%s, %d ranks, odd %d, devices 0x%x%s%s%s", algorithms[a].name, size,
                         play.odd, play.devices, play.early ? ", early" : "",
                         play.work ? ", work" : "", play.central ? ", central" : "");
        }
}

static void a_device_fails(void **state) { (void)state; everywhere(DUMMY_FAILS); }
static void no_memory(void **state) { (void)state; everywhere(DUMMY_NO_MEMORY); }

static void a_rank_dies_before_its_result_is_placed(void **state)
{
    (void)state;
    everywhere(DUMMY_DIES);
}

static void a_device_never_ends(void **state) { (void)state; everywhere(DUMMY_NEVER); }

static void an_abort_ends_a_wait_for_a_device(void **state)
{
    (void)state;
    play.aborts = true;
    everywhere(DUMMY_NEVER);
    play.aborts = false;
}

/* ---- pipelines of a comm that has seen a device ---- */

/* Of this rank's staging, in its span's books. */
static uint64_t staged(tutti_comm *world)
{
    struct span_piece piece;
    uint64_t bytes = 0;
    pthread_mutex_lock(&world->world->lock);
    for (bool is = span_first(world->world->span, &piece); is;
         is = span_find(world->world->span, piece.at + piece.bytes, &piece))
        bytes += piece.use == SPAN_STAGING ? piece.bytes : 0;
    pthread_mutex_unlock(&world->world->lock);
    return bytes;
}

static int pipelines_change(tutti_comm *world, int rank)
{
    uint32_t size = (uint32_t)tutti_size(world);
    bool mine = play.devices >> rank & 1, right;
    size_t count = play.count;
    const struct stage *stage = &world->stage;
    float *x = tutti_alloc(count * sizeof *x, world), *y = tutti_alloc(count * sizeof *y, world),
          *far = malloc(count * sizeof *far);
    CHECK(x && y && far);
    for (size_t i = 0; i < count; i++)
        x[i] = give(rank, i, 1);
    CHECK_IS(reduces(world, 0, NULL, &right), 0);
    CHECK(right);
    CHECK(stage->pipeline_bytes
          == pipeline_depth(size) * pipeline_slot_bytes(size) + 2 * pipeline_rows_bytes(size));
    for (int k = 0; k < 4; k++) {
        struct device_call d = { .after = 2, .to = far, .bytes = count * sizeof *far };
        CHECK_IS(dummy_call(world, KIND_ALL_REDUCE, x, y, count, TUTTI_F32, TUTTI_SUM, 0,
                            mine && k < 2 ? &d : NULL, NULL),
                 0);
        const float *got = mine && k < 2 ? far : y;
        for (size_t i = 0; i < count; i++) {
            float sum = give(0, i, 1);
            for (int p = 1; p < (int)size; p++)
                sum += give(p, i, 1);
            CHECK(got[i] == sum);
        }
        const struct arrival *a = &world->watch.mine->arrival[world->seq & 1];
        bool placed = load_relaxed64(&a->more[0]) != 0;
        /* read in place in the first one only, in which nobody could know */
        CHECK_IS(placed, k == 0 && !mine);
        size_t slot = k == 0
            ? pipeline_slot_bytes(size)
            : pipeline_device_slot_bytes(size, world->world->arena.header->span_bytes);
        if (k > 0 || mine)
            CHECK(stage->pipeline_bytes
                  == (k == 0 ? pipeline_depth(size) : PIPELINE_DEPTH) * slot
                      + 2 * pipeline_rows_bytes(size));
        /* that was too small is given back */
        CHECK_IS(staged(world), layout_round(stage->pipeline_bytes, 4096));
        CHECK(load_acquire64(&world->watch.mine->placed)
              == world->seq - (uint64_t)(k > 1 ? k - 1 : 0));
    }
    free(far);
    CHECK_IS(tutti_free(x, world), 0);
    CHECK_IS(tutti_free(y, world), 0);
    return 0;
}

static void pipelines_grow_and_nothing_is_read_in_place(void **state)
{
    (void)state;
    play.work = play.central = false;
    setenv("TUTTI_SPAN_BYTES", "64M", 1);            /* a sanitizer's spans are small */
    begin_play("pipelined", 3000000, 2, 2);
    assert_int_equal(ranks_run_either(2, pipelines_change), 0);
    begin_play("pipelined", 500000, 3, 7);
    assert_int_equal(ranks_run_either(3, pipelines_change), 0);
    begin_play("pipelined", 200000, 4, 5);
    assert_int_equal(ranks_run_either(4, pipelines_change), 0);
}

static void sizes_of_pipelines(void **state)
{
    (void)state;
    /* 16 MiB, but for what does not divide */
    assert_int_equal(PIPELINE_DEPTH * pipeline_device_slot_bytes(2, UINT64_C(1) << 40) / (1 << 20),
                     15);
    assert_true(PIPELINE_DEPTH * pipeline_device_slot_bytes(2, UINT64_C(1) << 40) <= 16 << 20);
    for (uint32_t ranks = 1; ranks <= RANKS_MAX; ranks++) {
        size_t slot = pipeline_device_slot_bytes(ranks, UINT64_C(1) << 40);
        assert_in_range(pipeline_depth(ranks), PIPELINE_DEPTH, PIPELINE_DEPTH_MOST);
        assert_true(slot >= pipeline_slot_bytes(ranks) && slot % ((ranks + 1) * 64) == 0);
        assert_true(PIPELINE_DEPTH * slot <= 16 << 20 || slot == pipeline_slot_bytes(ranks));
        assert_true(PIPELINE_DEPTH * slot * ranks <= 65 << 20 || PIPELINE_DEPTH * slot <= 1 << 20
                    || slot == pipeline_slot_bytes(ranks));
        slot = pipeline_device_slot_bytes(ranks, 16 << 20);
        assert_true(PIPELINE_DEPTH * slot <= 2 << 20 || slot == pipeline_slot_bytes(ranks));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_are_right_on_all), cmocka_unit_test(a_device_fails),
        cmocka_unit_test(no_memory), cmocka_unit_test(a_rank_dies_before_its_result_is_placed),
        cmocka_unit_test(a_device_never_ends), cmocka_unit_test(an_abort_ends_a_wait_for_a_device),
        cmocka_unit_test(pipelines_grow_and_nothing_is_read_in_place),
        cmocka_unit_test(sizes_of_pipelines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
