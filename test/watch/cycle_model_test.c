/* ctest: timeout=120 labels=tsan */
/* Random waits, and a model of who could still come: -EDEADLK is said of exactly those waits that
 * nothing can end, and within two seconds.
 * Each case is a small job: 2 to 4 ranks with 1 to 3 threads each, and comms of all of them or of
 * some. Each thread makes one call or none: a collective, a key, a turn, a message, a key of the
 * store; some with a deadline of the call's own, some on a comm with one. Then it lives on and does
 * nothing. The model knows all calls, and strikes out who can be helped: by a thread that does not
 * wait, by a deadline that was given. What is left waits in cycles, or for those who do. In the end
 * everything is aborted.
 * The seconds are the test's own, as in cycle_time_test: the clock goes on only while all
 * threads sleep. */
#include "group/comm.h"
#include "support/ranks.h"
#include "watch/virtual_clock.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { RANKS = 4, THREADS = 3, COMMS = 4, LARGE = 1 << 20 };
enum { MOST = RANKS * THREADS, CONTROL = MOST, SLEEPERS = MOST + 1 };
/* Delays of coming, what is promised, deadlines that are given, the end. */
enum { LATEST_MS = 600, PROMISED_MS = 2000, GIVEN_MS = 5000, ABORT_MS = 9000, END_MS = 10000 };
enum { READY, START };                               /* of the page */

/* ---- the clock ---- */

static void time_until(int sleeper, uint64_t ms)
{
    uint64_t now = time_now(NULL), until = ms * MS;
    if (until > now)
        time_sleep(sleeper, until - now);
}

/* ---- a case ---- */

/* What a comm is for; a key of the store may be waited for on any. */
enum what { NOTHING, BARRIER, KEY, TURN, RECEIVE, RECEIVE_ANY, SEND, GET };
static const char *const names[] = {
    "nothing", "barrier", "key", "turn", "recv", "recv of any", "send", "get"
};

static struct {
    int ranks, threads[RANKS];
    struct {
        enum what what;
        unsigned members;
        bool given;
        int runner;
        int owner[RANKS];
    } comm[COMMS];
    struct { enum what what; int comm, peer; bool given; uint64_t from_ms; } call[RANKS][THREADS];
} job;

static struct { int result; uint64_t ended_ms; } came[RANKS][THREADS];
static tutti_comm *handle[RANKS][COMMS];

static uint64_t state;
static int any_of(int n)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int)((state >> 33) % (uint64_t)n);
}

static bool in_comm(int c, int r) { return job.comm[c].members >> r & 1; }

static int place_in(int c, int r)
{
    int place = 0;
    for (int q = 0; q < r; q++)
        place += in_comm(c, q);
    return place;
}

static int rank_at(int c, int place)
{
    int r = 0;
    while (!in_comm(c, r) || place_in(c, r) != place)
        r++;
    return r;
}

static int size_of(int c) { return place_in(c, RANKS); }

static void make_comm(int c)
{
    static const enum what kinds[] = { BARRIER, BARRIER, BARRIER, BARRIER, KEY, TURN, SEND, SEND };
    do
        job.comm[c].members = (unsigned)any_of(1 << job.ranks);
    while (size_of(c) < 2);
    job.comm[c].what = kinds[any_of(8)];
    job.comm[c].given = any_of(8) == 0;
    job.comm[c].runner = rank_at(c, any_of(size_of(c)));
    for (int r = 0; r < job.ranks; r++)
        job.comm[c].owner[r] = any_of(job.threads[r]);
}

static int other_rank(int c, int r)
{
    int peer = r;
    while (peer == r)
        peer = rank_at(c, any_of(size_of(c)));
    return peer;
}

/* Which call of a thread that owns comm c there. */
static void make_call(int r, int t, int c)
{
    enum what what = job.comm[c].what;
    int peer = other_rank(c, r);
    if (any_of(12) == 0)
        what = GET;
    else if (what == KEY) {
        peer = job.comm[c].runner;
        what = peer == r ? NOTHING : KEY;
    } else if (what == TURN) {
        int place = place_in(c, r);
        peer = place ? rank_at(c, place - 1) : r;
    } else if (what == SEND)
        what = any_of(3) == 0 ? RECEIVE_ANY : any_of(2) ? RECEIVE : SEND;
    job.call[r][t].what = what;
    job.call[r][t].comm = c;
    job.call[r][t].peer = peer;
    /* A turn that its rank gives up is taken: those behind it wait for somebody else from then on,
     * which is another case. */
    job.call[r][t].given = any_of(5) == 0 && (what != TURN || place_in(c, r) == size_of(c) - 1);
    job.call[r][t].from_ms = (uint64_t)any_of(LATEST_MS);
}

static void make_job(uint64_t seed)
{
    memset(&job, 0, sizeof job);
    state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    any_of(2);
    job.ranks = any_of(4) ? RANKS - any_of(2) : 2;
    for (int r = 0; r < job.ranks; r++)
        job.threads[r] = any_of(2) ? 1 : 1 + any_of(THREADS);
    for (int c = 0; c < COMMS; c++)
        make_comm(c);
    for (int r = 0; r < job.ranks; r++)
        for (int t = 0; t < job.threads[r]; t++)
            for (int i = 0, c = any_of(COMMS); i < COMMS && any_of(10); i++, c = (c + 1) % COMMS)
                if (in_comm(c, r) && job.comm[c].owner[r] == t) {
                    make_call(r, t, c);
                    break;
                }
}

/* ---- the model ---- */

static struct { bool stuck, cycle, bottom; } model[RANKS][THREADS];
static bool leads[MOST][MOST];

static enum what what_of(int r, int t) { return job.call[r][t].what; }
static bool comes_to(int c, int r)
{
    int t = job.comm[c].owner[r];
    return in_comm(c, r) && what_of(r, t) == BARRIER && job.call[r][t].comm == c;
}

/* It ends by itself. The comm's deadline is not for waits on a key's runner. */
static bool call_given(int r, int t)
{
    return job.call[r][t].given || (job.comm[job.call[r][t].comm].given && what_of(r, t) != KEY);
}

/* It has nothing to wait for, or a deadline of somebody's ends it. */
static bool call_ends(int r, int t)
{
    int c = job.call[r][t].comm;
    bool all = true, given = false;
    if (what_of(r, t) != BARRIER)
        return what_of(r, t) == NOTHING || job.call[r][t].peer == r || call_given(r, t);
    for (int q = 0; q < job.ranks; q++) {
        all &= !in_comm(c, q) || comes_to(c, q);
        given |= comes_to(c, q) && call_given(q, job.comm[c].owner[q]);
    }
    return all || given;
}

/* Nobody of rank q but thread `but` of rank r could do anything. */
static bool all_stuck(int q, int r, int but)
{
    for (int t = 0; t < job.threads[q]; t++)
        if ((q != r || t != but) && !model[q][t].stuck)
            return false;
    return true;
}

/* Does this call wait for rank q? */
static bool waits_for(int r, int t, int q)
{
    int c = job.call[r][t].comm;
    switch (what_of(r, t)) {
    case BARRIER: return q != r && in_comm(c, q) && !comes_to(c, q);
    case RECEIVE_ANY: return q != r && in_comm(c, q);
    case GET: return q != r || job.threads[r] > 1;
    default: return q == job.call[r][t].peer;
    }
}

static bool still_stuck(int r, int t)
{
    bool any = false, all = true;
    for (int q = 0; q < job.ranks; q++)
        if (waits_for(r, t, q)) {
            any |= all_stuck(q, r, t);
            all &= all_stuck(q, r, t);
        }
    return what_of(r, t) == BARRIER ? any : all;
}

static void model_lead(int r, int t)
{
    for (int q = 0; q < job.ranks; q++) {
        bool rests = model[r][t].stuck && waits_for(r, t, q) && all_stuck(q, r, t);
        for (int u = 0; u < job.threads[q]; u++)
            leads[r * THREADS + t][q * THREADS + u] = rests && !(q == r && u == t);
    }
}

#define EACH_THREAD(r, t) \
    for (int r = 0; r < job.ranks; r++) \
        for (int t = 0; t < job.threads[r]; t++)

static void model_run(void)
{
    memset(leads, 0, sizeof leads);
    memset(model, 0, sizeof model);
    EACH_THREAD(r, t)
        model[r][t].stuck = !call_ends(r, t);
    for (bool struck = true; struck;) {
        struck = false;
        EACH_THREAD(r, t)
            if (model[r][t].stuck && !still_stuck(r, t)) {
                model[r][t].stuck = false;
                struck = true;
            }
    }
    EACH_THREAD(r, t)
        model_lead(r, t);
    for (int k = 0; k < MOST; k++)
        for (int i = 0; i < MOST; i++)
            for (int j = 0; j < MOST; j++)
                leads[i][j] |= leads[i][k] && leads[k][j];
    EACH_THREAD(r, t) {
        int i = r * THREADS + t;
        model[r][t].cycle = leads[i][i];
        model[r][t].bottom = leads[i][i];
        for (int j = 0; j < MOST; j++)
            model[r][t].bottom &= !leads[i][j] || leads[j][i];
    }
}

/* The comm has failed by a cycle: whoever waits there is told that. */
static bool fails(int c, bool surely)
{
    bool failed = false;
    EACH_THREAD(r, t)
    failed |= what_of(r, t) == BARRIER && job.call[r][t].comm == c
        && (surely ? model[r][t].bottom : model[r][t].cycle);
    return failed;
}

/* ---- the ranks ---- */

static int call_now(int r, int t)
{
    static char large[RANKS][THREADS][LARGE];
    int c = job.call[r][t].comm, x;
    tutti_comm *comm = handle[r][c];
    int peer = place_in(c, job.call[r][t].peer);
    size_t n = sizeof x;
    const tutti_call call = { .timeout_ms = GIVEN_MS }, *with = job.call[r][t].given ? &call : NULL;
    switch (what_of(r, t)) {
    case BARRIER: return tutti_barrier(comm, with);
    case KEY: return tutti_first_begin("key", comm, with);
    case TURN: return tutti_turn_begin(comm, with);
    case RECEIVE: return tutti_recv(&x, 1, TUTTI_I32, peer, 2, NULL, comm, with);
    case RECEIVE_ANY: return tutti_recv(&x, 1, TUTTI_I32, TUTTI_ANY, 2, NULL, comm, with);
    case SEND: return tutti_send(large[r][t], LARGE, TUTTI_U8, peer, 1, comm, with);
    case GET: return tutti_get("no such key", &x, &n, comm, with);
    case NOTHING: break;
    }
    return 0;
}

static void play(int r, int t)
{
    int sleeper = r * THREADS + t;
    struct wait_ways *ways = time_ways(sleeper);
    for (int c = 0; c < COMMS; c++)
        if (in_comm(c, r) && job.comm[c].owner[r] == t)
            handle[r][c]->watch.ways = ways;
    ranks_count(READY);
    ranks_await(START, 1);
    time_until(sleeper, job.call[r][t].from_ms);
    came[r][t].result = call_now(r, t);
    came[r][t].ended_ms = time_now(NULL) / MS;
    time_until(sleeper, END_MS);
    for (int c = 0; c < COMMS; c++)
        if (in_comm(c, r) && job.comm[c].owner[r] == t)
            handle[r][c]->watch.ways = &wait_ways_kernel;
    time_leave();
}

struct player { pthread_t thread; tutti_comm *world; int rank, number; };

static void *play_thread(void *arg)
{
    const struct player *p = arg;
    tutti_rank(p->world);   /* from its first call on others reckon with it, whatever that was */
    play(p->rank, p->number);
    return NULL;
}

static void *control(void *arg)
{
    (void)arg;
    time_until(CONTROL, ABORT_MS);
    for (int c = 0; c < COMMS; c++)
        for (int r = 0; r < job.ranks; r++)
            if (in_comm(c, r))
                tutti_comm_abort(handle[r][c], "the end");
    time_leave();
    return NULL;
}

static int open_comms(tutti_comm *world, int rank)
{
    for (int c = 0; c < COMMS; c++) {
        CHECK_IS(tutti_comm_split(world, in_comm(c, rank) ? 0 : -1, 0, &handle[rank][c]), 0);
        if (in_comm(c, rank) && job.comm[c].given)
            CHECK_IS(tutti_set_timeout(handle[rank][c], GIVEN_MS), 0);
        if (in_comm(c, rank) && job.comm[c].what == KEY && job.comm[c].runner == rank)
            CHECK_IS(tutti_first_begin("key", handle[rank][c], NULL), 1);
    }
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return 0;
}

static int body(tutti_comm *world, int rank)
{
    struct player player[THREADS];
    pthread_t controller;
    uint32_t all = 0;
    CHECK_IS(open_comms(world, rank), 0);
    for (int t = 1; t < job.threads[rank]; t++) {
        player[t] = (struct player){ .world = world, .rank = rank, .number = t };
        CHECK_IS(pthread_create(&player[t].thread, NULL, play_thread, &player[t]), 0);
    }
    if (rank == 0) {
        for (int r = 0; r < job.ranks; r++)
            all += (uint32_t)job.threads[r];
        CHECK_IS(ranks_await(READY, all - 1), 0);
        time_open(0, (int)all + 1);
        CHECK_IS(pthread_create(&controller, NULL, control, NULL), 0);
        ranks_say(START, 1);
    }
    play(rank, 0);
    for (int t = 1; t < job.threads[rank]; t++)
        pthread_join(player[t].thread, NULL);
    if (rank == 0)
        pthread_join(controller, NULL);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return 0;
}

/* ---- the verdict ---- */

static void say_case(uint64_t seed)
{
    fprintf(stderr, "TUTTI_TEST_SEED=%llu: %d ranks\n", (unsigned long long)seed, job.ranks);
    for (int c = 0; c < COMMS; c++)
        fprintf(stderr, "  comm %d: members 0x%x, %s%s\n", c, job.comm[c].members,
                names[job.comm[c].what], job.comm[c].given ? ", with a deadline" : "");
    EACH_THREAD(r, t)
    fprintf(stderr,
            "  rank %d thread %d: %s on comm %d of rank %d%s, from %llu ms: %d at %llu ms%s%s\n", r,
            t, names[what_of(r, t)], job.call[r][t].comm, job.call[r][t].peer,
            job.call[r][t].given ? ", with a deadline" : "",
            (unsigned long long)job.call[r][t].from_ms, came[r][t].result,
            (unsigned long long)came[r][t].ended_ms, model[r][t].stuck ? "; stuck" : "",
            model[r][t].cycle ? ", in a cycle" : "");
}

static struct { int cycles, others, worst_ms; } seen;

static int judge(void)
{
    int wrong = 0;
    uint64_t last_ms = 0;
    EACH_THREAD(r, t)
        last_ms = job.call[r][t].from_ms > last_ms ? job.call[r][t].from_ms : last_ms;
    EACH_THREAD(r, t) {
        int c = job.call[r][t].comm;
        bool waits = what_of(r, t) != NOTHING, said = came[r][t].result == -EDEADLK;
        bool must = waits && (model[r][t].bottom || fails(c, true)),
             may = waits && (model[r][t].cycle || fails(c, false));
        wrong += (must && !said) || (said && !may);
        wrong += must && came[r][t].ended_ms > last_ms + PROMISED_MS;
        if (must && (int)(came[r][t].ended_ms - last_ms) > seen.worst_ms
            && came[r][t].ended_ms > last_ms)
            seen.worst_ms = (int)(came[r][t].ended_ms - last_ms);
        seen.cycles += must;
        seen.others += waits && !may;
    }
    return wrong;
}

static void one(uint64_t seed)
{
    make_job(seed);
    model_run();
    int r = ranks_run_threads(job.ranks, body), wrong = r ? 0 : judge();
    if (!r && !wrong)
        return;
    say_case(seed);
    fail_msg("%d calls did not end as the model says", wrong);
}

static void as_the_model_says(void **arg)
{
    (void)arg;
    const char *given = getenv("TUTTI_TEST_SEED");
    int cases = given ? 1 : ranks_many(getenv("TUTTI_PROVE") ? 20000 : 500, 60);
    for (int i = 0; i < cases; i++)
        one(given ? (uint64_t)strtoull(given, NULL, 0) : (uint64_t)i);
    printf("%d cases: %d waits in cycles, at most %d ms of sleep from the last one's coming; %d "
           "others left alone\n",
           cases, seen.cycles, seen.worst_ms, seen.others);
    assert_true(given || (seen.cycles > cases / 10 && seen.others > cases / 10));
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(as_the_model_says) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
