/* ctest: timeout=300
 * Algorithms never wait: here the state machines of all ranks are driven by one thread, in any
 * order, so every interleaving of whole steps can happen and none depends on a scheduler. The
 * ranks' worlds are joined by a thread each, which then only lends its name.
 *
 * Looked at after every step: WAITING means that the word it names has not come; DONE means that
 * the claim holds; and where the claim holds, one more step, with nobody else moving, is DONE, or
 * waits only for peers to read this rank's buffers, which their death would end: that is what all
 * or none stands on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/oracle.h"

#include "api/check.h"
#include "engine/operation.h"
#include "coll/select.h"
#include "support/dummy_device.h"
#include "watch/drive.h"
#include "watch/journal.h"
#include "watch/verdict.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RANKS = 4, OPERATIONS = 150, STEPS_MOST = 200000 };

/* ---- worlds of one process ---- */

struct worlds {
    int size;
    char job[64];
    pthread_barrier_t meet;
    pthread_t thread[RANKS];
    tutti_comm *comm[RANKS];
};
struct seat_of { struct worlds *worlds; int rank; };

static void *hold_seat(void *arg)
{
    struct seat_of *seat = arg;
    struct worlds *worlds = seat->worlds;
    tutti_options options = {
        .job = worlds->job, .rank = seat->rank, .size = worlds->size, .span_bytes = 64 << 20
    };
    int r = tutti_init(&worlds->comm[seat->rank], &options);
    if (r < 0)
        print_error("rank %d: %s\n", seat->rank, tutti_explain(NULL));
    pthread_barrier_wait(&worlds->meet);               /* the test runs between these two */
    pthread_barrier_wait(&worlds->meet);
    if (r == 0)
        tutti_finalize(worlds->comm[seat->rank]);
    free(seat);
    return NULL;
}

static uint64_t now_zero(void *arg) { (void)arg; return 0; }
static int never_sleep(void *arg, const struct futex_word *words, int n, uint64_t ns)
{
    (void)arg; (void)words; (void)n; (void)ns;
    fail_msg("a state machine slept");
    return 0;
}
static int wake_counted(void *arg, shared32 *word, int n)
{
    (void)word; (void)n;
    ++*(int *)arg;
    return 0;
}
static void never_yield(void *arg) { (void)arg; fail_msg("a state machine yielded"); }

static int wakes;
static const struct wait_ways by_hand = {
    now_zero, never_sleep, wake_counted, never_yield, &wakes
};

static void worlds_join(struct worlds *worlds, int size)
{
    static int nth;
    *worlds = (struct worlds){ .size = size };
    snprintf(worlds->job, sizeof worlds->job, "steps-%d-%d", (int)getpid(), nth++);
    pthread_barrier_init(&worlds->meet, NULL, (unsigned)size + 1);
    for (int r = 0; r < size; r++) {
        struct seat_of *seat = malloc(sizeof *seat);
        assert_non_null(seat);
        *seat = (struct seat_of){ worlds, r };
        assert_int_equal(pthread_create(&worlds->thread[r], NULL, hold_seat, seat), 0);
    }
    pthread_barrier_wait(&worlds->meet);
    for (int r = 0; r < size; r++) {
        assert_non_null(worlds->comm[r]);
        worlds->comm[r]->watch.ways = &by_hand;
    }
}

static void worlds_leave(struct worlds *worlds)
{
    for (int r = 0; r < worlds->size; r++)
        worlds->comm[r]->watch.ways = &wait_ways_kernel;
    pthread_barrier_wait(&worlds->meet);
    for (int r = 0; r < worlds->size; r++)
        pthread_join(worlds->thread[r], NULL);
    pthread_barrier_destroy(&worlds->meet);
}

/* ---- a program, the same on all ranks ---- */

/* a bit for each rank with one */
struct operation { struct oracle_case c; const struct algorithm *gate; unsigned devices; };

/* By chance among the algorithms of this kind that can take it. */
static const struct algorithm *any_algorithm(enum kind kind, size_t bytes, uint64_t *seed)
{
    const struct algorithm *chosen = NULL;
    uint64_t n = 0;
    for (const struct algorithm *a = select_all(); a->name; a++)
        if (a->kind == kind && bytes <= a->most && oracle_any(seed) % ++n == 0)
            chosen = a;
    return chosen;
}

static const struct oracle_space everywhere = { 1, ORACLE_RANKS, 2000000, false };

static struct operation any_operation(int size, uint64_t *seed)
{
    struct operation o = {
        .c = { .kind = KIND_BARRIER + (enum kind)(oracle_any(seed) % KIND_ALL_TO_ALL_V) }
    };
    unsigned char *v = o.c.v;
    do {
        for (int d = 0; d < DIMS; d++)
            v[d] = (unsigned char)(oracle_any(seed)
                                   % (uint64_t)oracle_values_of(o.c.kind, d, &everywhere));
        if (oracle_any(seed) % 4 == 0)
            v[DIM_SIZE] = SIZE_0;                    /* nothing at all is a case of its own */
        v[DIM_RANKS] = (unsigned char)(size - 1);
        v[DIM_RULE] = RULE_DEFAULT;
        v[DIM_MODES] = MODES_SAME;
        /* made by a collective of its own */
        v[DIM_OP] = v[DIM_OP] >= OP_TAKE ? TUTTI_SUM : v[DIM_OP];
    } while (!oracle_fits(&o.c, &everywhere));
    o.c.salt = oracle_any(seed);
    o.gate = any_algorithm(KIND_BARRIER, 0, seed);
    return o;
}

struct hand {
    struct coll c;
    bool under_way;
    int nth;
    struct oracle_part part;
    size_t first[ORACLE_RANKS + 1];
    struct device_call device;
};

/* As the public functions describe it. */
static void describe(struct hand *h, const struct oracle_case *c)
{
    struct oracle_part *p = &h->part;
    const void *send = p->give_n ? p->give[0] : p->get[0];
    check_describe(&h->c, send, p->get[0], oracle_uneven(c->kind) ? 0 : p->count, c->v[DIM_TYPE],
                   c->v[DIM_OP], oracle_root(c));
    if (!oracle_uneven(c->kind))
        return;
    size_t at = 0;
    for (int i = 0; i < p->give_n; i++) {
        h->first[i] = at;
        at += p->gives[i];
    }
    h->first[p->give_n] = h->first[p->give_n ? p->give_n : 1] = at;
    bool many = c->kind == KIND_ALL_REDUCE_MANY, folds = c->kind == KIND_REDUCE_SCATTER_V;
    h->c.lists = (struct vector_args){
        !many ? oracle_ranks(c) : p->give_n ? p->give_n : 1, (const void *const *)p->give, p->gives,
        p->get, folds || many ? p->gives : p->gets, many ? h->first : NULL, 0
    };
}

/* All ranks take the same one: which, follows from what is given, and that the checks say. */
static void begin(struct hand *h, struct tutti_comm *comm, const struct operation *o)
{
    const struct oracle_case *c = &o->c;
    tutti_call call = { .factor = h->part.factor };
    assert_true(oracle_take(&h->part, c, tutti_rank(comm), comm, NULL));
    describe(h, c);
    if (c->kind != KIND_BARRIER) {
        int r = check_data(comm, &h->c, c->kind, 0, &call);
        if (r == 0)
            r = oracle_uneven(c->kind) ? check_lists(comm, &h->c, c->kind, 0)
                                       : check_buffers(comm, &h->c, c->kind, 0);
        if (r < 0)
            fail_msg("operation %d (%s): %s", h->nth, kind_name(c->kind), tutti_explain(comm));
    }
    operation_number(comm, &h->c, c->kind, 0, -1);
    uint64_t seed = c->salt;
    if (c->kind != KIND_BARRIER)
        h->c.algorithm = any_algorithm(c->kind, h->c.bytes + (h->c.fold.scaled ? FACTOR_BYTES : 0),
                                       &seed);
    else
        h->c.algorithm = o->gate;
    h->c.gate = o->gate;
    seed += comm->watch.me;
    h->device = (struct device_call){
        .before = (unsigned)oracle_any(&seed) % 3, .after = (unsigned)oracle_any(&seed) % 4
    };
    if (o->devices >> comm->watch.me & 1)
        dummy_plays(&h->c, &h->device);
    h->c.op.advance = h->c.algorithm->advance;
    operation_begin(&h->c, 0);
    h->under_way = true;
}

static void end(struct hand *h, const struct operation *o)
{
    char what[256], room[600];
    struct text why = TEXT_IN(what), t = TEXT_IN(room);
    text_clear(&why);
    text_clear(&t);
    if (!oracle_judge(&h->part, &why)) {
        oracle_describe(&o->c, &t);
        fail_msg("operation %d, rank %u, by %s: %s: %s", h->nth, h->c.comm->watch.me,
                 h->c.algorithm->name, what, room);
    }
    assert_int_equal(operation_end(&h->c, 0), 0);
    if (h->c.gpu.call && (h->device.after || !h->device.asked))
        fail_msg("operation %d, rank %u, by %s: is over, and its result not in place", h->nth,
                 h->c.comm->watch.me, h->c.algorithm->name);
    oracle_give(&h->part, h->c.comm, NULL);
    h->under_way = false;
    h->nth++;
}

static void step(struct hand *h, struct tutti_comm *comm, const struct operation *o)
{
    if (!h->under_way)
        begin(h, comm, o);
    struct op *op = &h->c.op;
    bool held = claim_holds(&comm->watch, &op->claim);
    int r = op->advance(op);
    if (r == WAITING) {
        if (load_acquire64(op->wait.word) >= op->wait.value)
            fail_msg("operation %d (%s %s): waits for a word that has come", h->nth,
                     kind_name(o->c.kind), h->c.algorithm->name);
        if (held && !op->wait.leave)
            fail_msg("operation %d (%s %s): the claim held, but rank %u cannot finish alone",
                     h->nth, kind_name(o->c.kind), h->c.algorithm->name, comm->watch.me);
        return;
    }
    assert_int_equal(r, DONE);
    if (!claim_holds(&comm->watch, &op->claim))
        fail_msg("operation %d (%s %s): rank %u is done, but the claim does not hold", h->nth,
                 kind_name(o->c.kind), h->c.algorithm->name, comm->watch.me);
    assert_int_equal(verdict_complete(&comm->watch, &op->claim), 0);
    end(h, o);
}

/* With devices: any ranks', in every third operation none. */
static void run_program(int size, bool devices, uint64_t seed)
{
    struct worlds worlds;
    struct hand *hands = calloc((size_t)size, sizeof *hands);
    struct operation *program = calloc(OPERATIONS, sizeof *program);
    assert_true(hands && program);
    for (int i = 0; i < OPERATIONS; i++)
        program[i] = any_operation(size, &seed);
    for (int i = 0; devices && i < OPERATIONS; i++)
        program[i].devices = program[i].c.kind == KIND_BARRIER || oracle_any(&seed) % 3 == 0
            ? 0
            : (unsigned)oracle_any(&seed) % (1u << size);
    worlds_join(&worlds, size);
    int left = size, steps = 0, favourite = 0;
    while (left) {
        /* Now and then another one gets most of the turns, so that one is often as far ahead as
         * it can be. */
        if (oracle_any(&seed) % 16 == 0)
            favourite = (int)(oracle_any(&seed) % (uint64_t)(size + 1));
        int r = favourite < size && oracle_any(&seed) % 8
            ? favourite
            : (int)(oracle_any(&seed) % (uint64_t)size);
        if (hands[r].nth == OPERATIONS)
            continue;
        step(&hands[r], worlds.comm[r], &program[hands[r].nth]);
        left -= hands[r].nth == OPERATIONS;
        if (++steps == STEPS_MOST)
            fail_msg("stuck: %d steps for %d operations", steps, OPERATIONS);
    }
    printf("%d ranks%s: %d operations in %d steps\n", size, devices ? " with devices" : "",
           OPERATIONS, steps);
    worlds_leave(&worlds);
    free(hands);
    free(program);
}

static void any_order_will_do(void **state)
{
    (void)state;
    uint64_t seed = oracle_seed();
    for (int i = 0; i < (oracle_prove() ? 5000 : 40); i++)
        run_program(2 + i % 3, i & 1, oracle_any(&seed));
}

/* ---- what the ranks must agree on ---- */

static void arrive(struct coll *c, struct tutti_comm *comm, size_t count)
{
    *c = (struct coll){ .count = count, .bytes = count, .width = 1, .type = TUTTI_U8 };
    operation_number(comm, c, KIND_ALL_REDUCE, 0, -1);
    coll_publish(c, NULL);
    journal_arrive(&comm->watch, &c->op.claim);
}

/* Two counts too large for the fingerprint that have the same hash: the whole value in the payload
 * must tell them apart. */
static void counts_are_compared_whole(void **state)
{
    (void)state;
    struct worlds worlds;
    struct coll c[2];
    uint64_t one = STAMP_HASHED, other = 0;
    /* The hash is by the golden ratio: counts a Fibonacci number apart fall close together, and
     * soon on the same value. */
    for (; !other; one++)
        if (fingerprint_make(KIND_ALL_REDUCE, TUTTI_U8, TUTTI_SUM, 0, one)
            == fingerprint_make(KIND_ALL_REDUCE, TUTTI_U8, TUTTI_SUM, 0, one + 701408733))
            other = one-- + 701408733;
    worlds_join(&worlds, 2);
    arrive(&c[0], worlds.comm[0], one);
    arrive(&c[1], worlds.comm[1], one);
    assert_int_equal(watch_all_arrived(&c[0].op), DONE);
    assert_true(claim_holds(&worlds.comm[1]->watch, &c[1].op.claim));
    arrive(&c[0], worlds.comm[0], one);
    arrive(&c[1], worlds.comm[1], other);
    assert_true(c[0].op.claim.descriptor == c[1].op.claim.descriptor);
    assert_int_equal(watch_all_arrived(&c[0].op), WAITING);
    assert_true(c[0].op.wait.value == UINT64_MAX);
    assert_false(claim_holds(&worlds.comm[0]->watch, &c[0].op.claim));
    assert_int_equal(verdict_look(&worlds.comm[0]->watch, &c[0].op.claim, &c[0].op.wait, false),
                     -EPROTO);
    assert_int_equal(verdict_look(&worlds.comm[1]->watch, &c[1].op.claim, &c[0].op.wait, false),
                     -EPROTO);
    worlds_leave(&worlds);
}

/* A writer wakes exactly when somebody has declared itself a sleeper on this rank's words. */
static void sleepers_are_woken(void **state)
{
    (void)state;
    struct worlds worlds;
    struct coll c[2];
    worlds_join(&worlds, 2);
    wakes = 0;
    arrive(&c[0], worlds.comm[0], 1);
    assert_int_equal(wakes, 0);
    fetch_add32(&worlds.comm[1]->watch.mine->sleepers, 1);
    arrive(&c[1], worlds.comm[1], 1);
    assert_int_equal(wakes, 1);
    watch_raise(&worlds.comm[1]->watch, &worlds.comm[1]->watch.mine->produced, 0);
    assert_int_equal(wakes, 2);
    fetch_sub32(&worlds.comm[1]->watch.mine->sleepers, 1);
    watch_raise(&worlds.comm[1]->watch, &worlds.comm[1]->watch.mine->produced, 0);
    assert_int_equal(wakes, 2);
    worlds_leave(&worlds);
}

static uint64_t now_late(void *arg) { (void)arg; return UINT64_C(3600000000000); }

/* An operation that has succeeded waits for its buffers to be read, however long ago its deadline
 * was; asleep, not in slices of no time. */
static void a_deadline_ends_no_exit(void **state)
{
    (void)state;
    static const struct wait_ways late = {
        now_late, never_sleep, wake_counted, never_yield, &wakes
    };
    struct operation o = { .c = { .kind = KIND_ALL_REDUCE } };
    struct worlds worlds;
    struct hand *hands = calloc(2, sizeof *hands);
    assert_non_null(hands);
    o.c.v[DIM_RANKS] = 1;
    o.c.v[DIM_SIZE] = SIZE_333;
    o.c.v[DIM_MEMORY] = MEMORY_ARENA;
    worlds_join(&worlds, 2);
    o.gate = any_algorithm(KIND_BARRIER, 0, &(uint64_t){ 1 });
    for (int r = 0; r < 2; r++) {
        begin(&hands[r], worlds.comm[r], &o);
        hands[r].c.algorithm = select_named(KIND_ALL_REDUCE, "pipelined");
        hands[r].c.op.advance = hands[r].c.algorithm->advance;
    }
    struct op *op = &hands[0].c.op;
    op->timeout_ns = 1000;
    drive_started(op, op->watch->ways->now(op->watch->ways->arg));
    assert_int_equal(op->advance(op), WAITING);
    assert_false(op->watch->over);
    assert_int_equal(hands[1].c.op.advance(&hands[1].c.op), WAITING);
    assert_int_equal(op->advance(op), WAITING);
    assert_true(op->wait.leave && claim_holds(op->watch, &op->claim));
    worlds.comm[0]->watch.ways = &late;
    worlds.comm[0]->watch.warn_ns = -1;
    assert_int_equal(drive_look(op, late.now(late.arg)), 0);
    assert_true(op->watch->over);
    assert_true(drive_slice(op) >= 1000000);
    worlds.comm[0]->watch.ways = &by_hand;
    assert_int_equal(hands[1].c.op.advance(&hands[1].c.op), DONE);
    assert_int_equal(op->advance(op), DONE);
    for (int r = 0; r < 2; r++)
        end(&hands[r], &o);
    worlds_leave(&worlds);
    free(hands);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_order_will_do), cmocka_unit_test(counts_are_compared_whole),
        cmocka_unit_test(sleepers_are_woken), cmocka_unit_test(a_deadline_ends_no_exit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
