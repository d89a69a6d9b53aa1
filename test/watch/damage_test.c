/* ctest: timeout=120 labels=faults,nosan */
/* Single words of the arena that a rank has written over, at the moment where they do most harm:
 * what others read there leads them nowhere outside of it, and lets them wait for nothing that will
 * never come. Where a rank must come to a point and no further, the one that does the harm does not
 * call: it writes its arrival by hand, and then each word when its time has come.
 * nosan: ranks write where others read. Each of these was once a crash or a hang. */
#include "base/clock.h"
#include "coll/pipeline.h"
#include "group/comm.h"
#include "os/futex.h"
#include "p2p/p2p.h"
#include "support/team.h"
#include "watch/verdict.h"

#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum {
    HERE = 1,
    WROTE = 2,
    BACK = 3,
    PATIENCE_MS = 20000,
    LATE_MS = 700,
    COUNT = 1 << 20,
    LARGE = 8 << 20
};

static uint64_t seq_next(const tutti_comm *world) { return world->seq + 1; }

static struct arrival *line_of(tutti_comm *world, uint32_t p)
{
    return watch_arrival(&world->watch, p, seq_next(world));
}

/* Until the word has come to that, without a call that would take part in anything. 0, or 1:
 * patience ran out. */
static int await(shared64 *word, uint64_t value)
{
    for (uint64_t end = clock_ns() + PATIENCE_MS * UINT64_C(1000000); load_acquire64(word) < value;
         usleep(200))
        if (clock_ns() > end)
            return 1;
    return 0;
}

static void raise_word(shared64 *word, uint64_t value)
{
    store_fence64(word, value);
    futex_wake(low_half(word), INT_MAX);
}

/* As if this rank had called what rank 0 has: its other words stand already. */
static int arrive_by_hand(tutti_comm *world)
{
    struct arrival *mine = line_of(world, world->watch.me), *first = line_of(world, 0);
    if (await(&first->seq, seq_next(world)))
        return 1;
    store_relaxed64(&mine->payload[COUNT_WORD], load_relaxed64(&first->payload[COUNT_WORD]));
    store_relaxed64(&mine->descriptor, load_relaxed64(&first->descriptor));
    raise_word(&mine->seq, seq_next(world));
    return 0;
}

static int back(tutti_comm *world, struct team *team, int rank, int error)
{
    team->rank[rank].error[0] = error;
    team_note(team, rank, world);
    team_say(team, rank, BACK);
    for (int q = 0; q < team->size; q++)        /* nobody's end shall be what ends another's wait */
        team_await(team, q, BACK);
    _exit(0);
}

static struct team *played(int size, team_body *body)
{
    struct team *team = team_start(size, body, true);
    int ended = team_end(team);
    for (int q = 0; q < size; q++)
        if (ended || team->status[q])
            print_error("rank %d: status 0x%x, error %d\n%s\n", q, (unsigned)team->status[q],
                        team->rank[q].error[0], team->rank[q].report);
    assert_int_equal(ended, 0);
    for (int q = 0; q < size; q++)
        assert_int_equal(team->status[q], 0);
    return team;
}

static void says(struct team *team, int rank, int error, const char *words)
{
    assert_int_equal(team->rank[rank].error[0], error);
    if (!strstr(team->rank[rank].report, words))
        fail_msg("rank %d does not say \"%s\" but:\n%s", rank, words, team->rank[rank].report);
    team_free(team);
}

/* ---- a comm's list of members: a walk for cycles goes along it ---- */

static bool by_size;

static int body_members(tutti_comm *world, int rank, struct team *team)
{
    struct slot *slot = world->watch.slot;
    tutti_set_timeout(world, LATE_MS);
    if (rank == 0) {
        team_await(team, 1, HERE);                   /* who opens the comm later is refused */
        if (by_size)
            slot->size = UINT32_C(0x7fffff);
        else
            slot->world_rank[0] = slot->world_rank[1] = UINT32_C(0x7fffffff);
        team_say(team, rank, WROTE);
        return back(world, team, rank, tutti_barrier(world, NULL));
    }
    int x;
    team_say(team, rank, HERE);
    team_await(team, 0, WROTE);
    return back(world, team, rank, tutti_recv(&x, 1, TUTTI_I32, 0, 1, NULL, world, NULL));
}

static void members(bool size)
{
    by_size = size;
    says(played(2, body_members), 0, -ETIMEDOUT, "missing: rank 1");
}

static void test_ranks_of_members(void **state) { (void)state; members(false); }
static void test_number_of_members(void **state) { (void)state; members(true); }

/* ---- the verdict: whom it names ---- */

static int body_verdict(tutti_comm *world, int rank, struct team *team)
{
    shared64 *verdict = &world->watch.slot->verdict;
    if (rank == 0)
        return back(world, team, rank, tutti_barrier(world, NULL));
    if (await(&line_of(world, 0)->seq, seq_next(world)))
        return 1;
    raise_word(verdict,
               verdict_confirmed(verdict_make(seq_next(world), WHY_DEADLOCK, 0x3fff, 0x3ffe)));
    return back(world, team, rank, 0);
}

static void test_verdict_names_nobody(void **state)
{
    (void)state;
    says(played(2, body_verdict), 0, -EDEADLK, "a wait that can never end");
}

/* ---- whoever reads others' buffers and never says how far it came ---- */

/* Rank 1 waits for rank 0 to come; a verdict that cannot be sends it away, by an error that nobody
 * else meets. Rank 0 comes then. */
static int body_left_by_error(tutti_comm *world, int rank, struct team *team)
{
    char *buffer = tutti_alloc(COUNT, world);
    if (!buffer)
        return 1;
    if (rank == 1) {
        int r = tutti_broadcast(buffer, COUNT, TUTTI_U8, 0, world, NULL);
        team_say(team, rank, WROTE);
        team_await(team, 0, BACK);
        return back(world, team, rank, r);
    }
    if (await(&line_of(world, 1)->seq, seq_next(world)))
        return 1;
    raise_word(&world->watch.slot->verdict, verdict_make(seq_next(world) + 3, WHY_LEFT, 0, 0));
    team_await(team, 1, WROTE);
    store_release64(&world->watch.slot->verdict, 0);
    return back(world, team, rank, tutti_broadcast(buffer, COUNT, TUTTI_U8, 0, world, NULL));
}

static void test_reader_left_by_error(void **state)
{
    (void)state;
    struct team *team = played(2, body_left_by_error);
    assert_int_equal(team->rank[0].error[0], 0);
    says(team, 1, -EIO, "somebody has written over it");
}

/* Rank 2 has read everything and returned; then its word for that is written over, while rank 0
 * still waits for rank 1. */
static int body_word_written_over(tutti_comm *world, int rank, struct team *team)
{
    struct member *mine = world->watch.mine;
    char *buffer = tutti_alloc(COUNT, world);
    if (!buffer)
        return 1;
    if (rank == 1) {
        if (arrive_by_hand(world))
            return 1;
        team_await(team, 2, WROTE);
        raise_word(&mine->consumed, UINT64_MAX / 2);
        return back(world, team, rank, 0);
    }
    int r = tutti_broadcast(buffer, COUNT, TUTTI_U8, 0, world, NULL);
    if (rank == 2)
        store_release64(&mine->consumed, 0);
    team_say(team, rank, WROTE);
    return back(world, team, rank, r);
}

static void test_word_written_over(void **state)
{
    (void)state;
    struct team *team = played(3, body_word_written_over);
    assert_int_equal(team->rank[0].error[0], 0);
    says(team, 2, 0, "");
}

/* ---- where a rank's buffers lie: said once, and then something else ---- */

/* While its buffers lay in the arena all went in large pieces; now they do not, and its pipeline,
 * whose slots are smaller, ends with the arena. */
static int body_places(tutti_comm *world, int rank, struct team *team)
{
    const struct arena *arena = &world->world->arena;
    struct member *mine = world->watch.mine, *other = &world->watch.members[0];
    char *send = tutti_alloc(LARGE, world), *recv = tutti_alloc(LARGE, world);
    if (!send || !recv)
        return 1;
    if (rank == 0)
        return back(world, team, rank,
                    tutti_all_reduce(send, recv, LARGE / 4, TUTTI_I32, TUTTI_SUM, world, NULL));
    struct arrival *line = line_of(world, 1);
    uint64_t said[6] = {
        (uint64_t)(send - arena->base), 0, LARGE, (uint64_t)(recv - arena->base), 0, LARGE
    };
    for (int i = 0; i < 6; i++)
        store_relaxed64(&line->more[i], said[i]);
    store_relaxed64(&line->payload[0], arena->bytes - pipeline_depth(2) * pipeline_slot_bytes(2));
    if (arrive_by_hand(world))
        return 1;
    raise_word(&mine->produced, 1);
    if (await(&other->folded, 1))
        return 1;
    for (int i = 0; i < 6; i++)
        store_release64(&line->more[i], 0);
    store_release64(&mine->produced, UINT64_MAX / 2);
    raise_word(&mine->folded, UINT64_MAX / 2);       /* what it waits for: its oldest round */
    return back(world, team, rank, 0);
}

static void test_places_change(void **state)
{
    (void)state;
    says(played(2, body_places), 0, -EIO, "somebody has written over it");
}

/* ---- a message to oneself, which may lie anywhere: where, is in a letter in the arena ---- */

static int body_to_myself(tutti_comm *world, int rank, struct team *team)
{
    char *out = malloc(COUNT), *in = calloc(1, COUNT);
    tutti_work *work = NULL;
    if (!out || !in)
        return 1;
    memset(out, 'x', COUNT);
    int r = tutti_send(out, COUNT, TUTTI_U8, 0, 1, world, &(tutti_call){ .work = &work });
    if (r == 0)
        world->p2p->lanes[0].out->letters[0].envelope.rest.at = UINT64_C(0x100000000000);
    r = r < 0 ? r : tutti_recv(in, COUNT, TUTTI_U8, 0, 1, NULL, world, NULL);
    r = r < 0 ? r : tutti_wait(work, -1);
    team->rank[rank].wrong = memcmp(in, out, COUNT) != 0;
    return back(world, team, rank, r);
}

static void test_to_myself(void **state)
{
    (void)state;
    struct team *team = played(1, body_to_myself);
    assert_int_equal(team->rank[0].wrong, 0);
    says(team, 0, 0, "");
}

/* ---- a large message: where in the stage its data begin ---- */

/* Rank 1 grants by hand what it is offered, from a piece on that is not the next. */
static int body_start(tutti_comm *world, int rank, struct team *team)
{
    const struct arena *arena = &world->world->arena;
    struct member *other = &world->watch.members[0];
    char *large = calloc(1, COUNT);
    if (!large)
        return 1;
    if (rank == 0)
        return back(world, team, rank, tutti_send(large, COUNT, TUTTI_U8, 1, 1, world, NULL));
    if (await(&other->mail, 1))
        return 1;
    shared64 *table = (shared64 *)(void *)(arena->base + load_acquire64(&other->mail));
    if (await(&table[1], 1))
        return 1;
    struct channel *channel = (struct channel *)(void *)(arena->base + load_acquire64(&table[1]));
    if (await(&channel->letters[0].seq, 1))
        return 1;
    const struct envelope *e = &channel->letters[0].envelope;
    struct deal *deal = (struct deal *)(void *)(arena->base + e->rest.deal);
    store_relaxed64(&deal->start, 1);
    raise_word(&deal->state, deal_word(e->rest.generation, DEAL_GRANTED));
    fetch_add32(&other->bell, 1);
    futex_wake(&other->bell, INT_MAX);
    return back(world, team, rank, 0);
}

static void test_start_of_message(void **state)
{
    (void)state;
    says(played(2, body_start), 0, -EIO, "somebody has written over it");
}

/* ---- an exchange: a verdict on an operation that nobody has begun ---- */

static int body_beyond(tutti_comm *world, int rank, struct team *team)
{
    tutti_comm *part;
    if (rank == 1)
        return back(world, team, rank, 0);
    store_release64(&world->watch.slot->verdict,
                    verdict_make(seq_next(world) + 5, WHY_DIED, 1, 1));
    return back(world, team, rank, tutti_comm_split(world, 0, 0, &part));
}

static void test_verdict_beyond(void **state)
{
    (void)state;
    says(played(2, body_beyond), 0, -EIO, "somebody has written over it");
}

int main(void)
{
    setenv("TUTTI_SPAN_BYTES", "64M", 1);
    setenv("TUTTI_TIMEOUT_MS", "20000", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranks_of_members), cmocka_unit_test(test_number_of_members),
        cmocka_unit_test(test_verdict_names_nobody), cmocka_unit_test(test_reader_left_by_error),
        cmocka_unit_test(test_word_written_over), cmocka_unit_test(test_places_change),
        cmocka_unit_test(test_to_myself), cmocka_unit_test(test_start_of_message),
        cmocka_unit_test(test_verdict_beyond),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
