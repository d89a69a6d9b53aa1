/* Actors are coroutines on stacks of their own; a switch is some twenty instructions. The decision who goes on is taken by whoever is at
 * a point, on its own stack, so that most points cost no switch at all. The clock stands still unless nobody can run: then all store
 * buffers empty, and the sleep that ends first ends. */
#include "explore/engine.h"

#include "watch/drive.h"
#include "watch/verdict.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* A jump of the clock is no longer than what the library takes for a busy CPU: of more it would think that it had been stopped. */
enum { STACK_BYTES = 256 << 10, JUMP_NS = 1000000 };

struct engine engine;
struct note note[EXPLORE_RANKS];
bool explore_killed[EXPLORE_RANKS], explore_ended[EXPLORE_RANKS];
uint64_t explore_shared[16];

/* ---- coroutines ---- */

#if defined(__x86_64__) && !defined(EXPLORE_UCONTEXT)
void engine_swap(void **from, void *to);
__asm__(".text\n.globl engine_swap\n.type engine_swap,@function\nengine_swap:\n"
        "pushq %rbp\npushq %rbx\npushq %r12\npushq %r13\npushq %r14\npushq %r15\n"
        "movq %rsp, (%rdi)\nmovq %rsi, %rsp\n"
        "popq %r15\npopq %r14\npopq %r13\npopq %r12\npopq %rbx\npopq %rbp\nret\n.size engine_swap,.-engine_swap\n");

static void coroutine_make(struct actor *a, void (*entry)(void))
{
    void **sp = (void **)(void *)(a->stack + STACK_BYTES);
    *--sp = NULL;                     /* as if it had been called: a return address, and the alignment behind one */
    memcpy(--sp, &entry, sizeof entry);
    for (int i = 0; i < 6; i++)
        *--sp = NULL;
    a->sp = sp;
}
#else
#include <ucontext.h>
static ucontext_t contexts[ACTORS_MOST + 1];
static void engine_swap(void **from, void *to)
{
    static int last = ACTORS_MOST;
    int here = last;
    last = to == engine.home ? ACTORS_MOST : (int)((struct actor *)to - engine.actor);
    *from = here == ACTORS_MOST ? (void *)&engine.home : (void *)&engine.actor[here];
    engine.home = &engine.home;
    swapcontext(&contexts[here], &contexts[last]);
}
static void coroutine_make(struct actor *a, void (*entry)(void))
{
    ucontext_t *c = &contexts[a - engine.actor];
    getcontext(c);
    c->uc_stack.ss_sp = a->stack;
    c->uc_stack.ss_size = STACK_BYTES;
    c->uc_link = NULL;
    makecontext(c, entry, 0);
    a->sp = a;
}
#endif

static void go_home(void)
{
    void *nowhere;
    engine.running = false;
    engine_swap(&nowhere, engine.home);
    abort();
}

static void go_to(int who)
{
    int me = engine.now_on;
    if (who == me)
        return;
    engine.actor[me].callback = comm_callback;
    engine.now_on = who;
    comm_callback = engine.actor[who].callback;
    engine_swap(&engine.actor[me].sp, engine.actor[who].sp);
}

/* ---- what was found ---- */

void engine_wrong(const char *format, ...)
{
    if (engine.wrong)
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(engine.said, sizeof engine.said, format, args);
    va_end(args);
    engine.wrong = engine.said;
}

void explore_wrong(const char *format, ...)
{
    if (engine.wrong)
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(engine.said, sizeof engine.said, format, args);
    va_end(args);
    engine.wrong = engine.said;
}

/* ---- who can go on ---- */

static bool can_run(const struct actor *a)
{
    if (a->stopped)
        return false;
    return a->state == ACTOR_READY || (a->state == ACTOR_LOCKED && kernel_lock_free(a->wants));
}

static bool alive(const struct actor *a) { return a->state != ACTOR_DONE && a->state != ACTOR_DEAD; }

static bool room_for(int more, bool event)
{
    int limit = event || engine.events ? engine.limit_event : engine.limit;
    return engine.preempted + more <= limit;
}

static int add(struct option *o, int n, int kind, int who)
{
    o[n] = (struct option){ (unsigned char)kind, (unsigned char)who };
    return n + 1;
}

static int events_most(void)
{
    int most = engine.scenario->events_most;
    return most ? most : engine.scenario->chance ? 2 : 1;
}

static int add_events(struct option *o, int n)
{
    unsigned events = engine.scenario->events;
    if (!events || !room_for(0, true) || engine.events >= events_most())
        return n;
    for (int i = 0; i < engine.actors; i++) {
        const struct actor *a = &engine.actor[i];
        if (!alive(a))
            continue;
        bool first = i == a->rank;     /* an event of the rank, not of its other threads */
        if (first && (events & KILL) && engine.deaths + 1 < engine.scenario->ranks)
            n = add(o, n, EVENT_KILL, i);
        if (first && (events & STOP) && !a->stopped)
            n = add(o, n, EVENT_STOP, i);
        if ((events & SPURIOUS) && a->state == ACTOR_ASLEEP && !a->stopped)
            n = add(o, n, EVENT_SPURIOUS, i);
        if ((events & TIMER) && a->state == ACTOR_ASLEEP && !a->stopped)
            n = add(o, n, EVENT_TIMER, i);
    }
    return events & JUMP ? add(o, n, EVENT_JUMP, 0) : n;
}

/* The first is what happens if nothing odd does. */
static int options(struct option *o, bool ready, bool yields)
{
    int me = engine.now_on, n = 0;
    bool paid = ready && !yields;
    if (paid)
        n = add(o, n, EVENT_GO, me);
    for (int i = 1; i < engine.actors; i++) {
        int q = (me + i) % engine.actors;
        if (can_run(&engine.actor[q]) && (!paid || room_for(1, false)))
            n = add(o, n, EVENT_GO, q);
    }
    if (ready && yields && n == 0)
        n = add(o, n, EVENT_GO, me);
    if (!ready && can_run(&engine.actor[me]))
        n = add(o, n, EVENT_GO, me);
    if (n == 0)
        return 0;
    for (int i = 0; i < engine.actors; i++)
        if (engine.actor[i].stores)
            n = add(o, n, EVENT_FLUSH, i);
    return add_events(o, n);
}

/* ---- nobody can run ---- */

static void wake_late(struct actor *a)
{
    if (explore_trace)
        printf("    the sleep of actor %d ends by itself, at %llu us\n", (int)(a - engine.actor), (unsigned long long)(a->end / 1000 - 1000000000));
    engine.now_ns = a->end > engine.now_ns ? a->end : engine.now_ns;
    a->state = ACTOR_READY;
    a->slept = -ETIMEDOUT;
}

/* A sleeper whose word has changed should have been woken, unless who changed it was ended or stopped before it could. */
static void look_for_lost_wakes(void)
{
    for (int i = 0; i < engine.actors; i++) {
        const struct actor *a = &engine.actor[i];
        for (int k = 0; a->state == ACTOR_ASLEEP && k < a->sleeps_on; k++) {
            int writer = words_writer(a->words[k].word);
            if (words_kernel_load(a->words[k].word) == a->words[k].seen || writer < 0)
                continue;
            const struct actor *by = &engine.actor[writer];
            if (by->state != ACTOR_DEAD && !by->stopped)
                engine_wrong("lost wake-up: rank %d sleeps on word %d, which actor %d has changed", a->rank, k, writer);
        }
    }
}

static bool resume_stopped(void)
{
    bool any = false;
    for (int i = 0; i < engine.actors; i++) {
        any |= engine.actor[i].stopped && alive(&engine.actor[i]);
        engine.actor[i].stopped = false;
    }
    return any;
}

/* False: the run is over. */
static bool nobody_runs(void)
{
    struct actor *first = NULL;
    bool stores = false, left = false, first_slice = false;
    for (int i = 0; i < engine.actors; i++) {
        struct actor *a = &engine.actor[i];
        stores |= a->stores != 0;
        words_drain(a);
        left |= alive(a) && !a->stopped;
        if ((a->state == ACTOR_ASLEEP || a->state == ACTOR_LOCKED) && !a->stopped && (!first || a->end < first->end))
            first = a;
        first_slice |= a->state == ACTOR_ASLEEP && a->sleeps_on == 1;
    }
    if (stores && left) {
        for (int i = 0; i < engine.actors; i++)
            if (can_run(&engine.actor[i]))
                return true;
    }
    if (!first)
        return resume_stopped();
    look_for_lost_wakes();
    bool odd = engine.deaths || engine.scenario->patience == PATIENCE_FIRST;       /* a first slice looks at one word */
    /* Who waits for one rank watches only that one's life: if it dies, and the one sleeper that is woken dies before he passes it on, the
       others learn it at the end of their slice. (Collectives watch all: late3.) */
    bool two = engine.scenario->own_ends && engine.deaths > 1;
    if (!engine.stops && engine.scenario->patience != PATIENCE_ALL && !(odd && first_slice) && !two)
        engine_wrong("all that are left sleep, rank %d among them, and only the end of a slice would wake them", first->rank);
    if (engine.wrong)
        return false;
    engine.times++;
    if (engine.times > STOP_TIMES && resume_stopped()) {
        engine.times = 0;
        return true;
    }
    if (engine.times > TIMES_MOST) {
        engine_wrong("stuck: rank %d sleeps slice after slice", first->rank);
        return false;
    }
    wake_late(first);
    return true;
}

/* ---- the point ---- */

static void happen(struct option o)
{
    struct actor *a = &engine.actor[o.who];
    if (o.kind == EVENT_FLUSH) {
        words_drain(a);                /* all: one by one is as if it had done the others later */
        return;
    }
    if (explore_trace)
        printf("    event %d for actor %d, at a point of actor %d\n", o.kind, o.who, engine.now_on);
    engine.events++;
    engine.event_runs[o.kind]++;
    switch (o.kind) {
    case EVENT_KILL:
        engine.deaths++;
        kernel_kill(a->rank);
        break;
    case EVENT_STOP:
        engine.stops++;
        for (int i = 0; i < engine.actors; i++)
            engine.actor[i].stopped |= engine.actor[i].rank == a->rank;
        break;
    case EVENT_SPURIOUS:
        a->state = ACTOR_READY;
        a->slept = 0;
        break;
    case EVENT_TIMER:
        wake_late(a);
        break;
    case EVENT_JUMP:
        engine.now_ns += JUMP_NS;
        for (int i = 0; i < engine.actors; i++) {
            struct actor *b = &engine.actor[i];
            if ((b->state == ACTOR_ASLEEP || b->state == ACTOR_LOCKED) && !b->stopped && b->end <= engine.now_ns)
                wake_late(b);
        }
        break;
    default:
        abort();
    }
}

static void decide(bool yields)
{
    int me = engine.now_on;
    if (++engine.steps > STEPS_MOST)
        engine_wrong("no end after %d steps", STEPS_MOST);
    for (;;) {
        struct option o[4 * ACTORS_MOST + ACTORS_MOST * 4];
        struct actor *mine = &engine.actor[me];
        if (engine.wrong)
            go_home();
        bool ready = mine->state == ACTOR_READY && !mine->stopped;
        int n = options(o, ready, yields);
        if (n == 0) {
            if (!nobody_runs())
                go_home();
            continue;
        }
        struct option chosen = o[n > 1 ? choose(o, n) : 0];
        if (chosen.kind != EVENT_GO) {
            happen(chosen);
            continue;
        }
        engine.preempted += ready && !yields && chosen.who != me;
        go_to(chosen.who);
        return;
    }
}

void engine_point(void) { decide(false); }
void engine_block(void) { decide(false); }
void engine_yield(void) { decide(true); }

int explore_any_killed(void)
{
    int n = 0;
    for (int p = 0; p < EXPLORE_RANKS; p++)
        n += explore_killed[p];
    return n;
}

uint64_t explore_now(void) { return engine.now_ns; }

int explore_count(void) { return engine.scenario->count; }
void explore_step(void) { engine_point(); }

/* ---- a run ---- */

static void actor_begin(void)
{
    int i = engine.now_on, rank = engine.actor[i].rank;
    comm_callback = NULL;
    if (i == rank)
        engine.scenario->body(rank, explore_world[rank]);
    else
        engine.scenario->helper(rank, explore_world[rank]);
    struct actor *a = &engine.actor[i];
    words_drain(a);
    a->state = ACTOR_DONE;
    if (i == rank)
        explore_ended[rank] = true;
    engine_block();
    abort();
}

static void begin(void)
{
    const struct scenario *s = engine.scenario;
    engine.actors = s->ranks + s->helpers;
    engine.now_ns = UINT64_C(1000000000000);
    engine.tickets = engine.writes = 1;
    engine.preempted = engine.events = engine.times = engine.deaths = engine.stops = 0;
    engine.steps = 0;
    engine.wrong = NULL;
    memset(note, 0, sizeof note);
    memset(explore_killed, 0, sizeof explore_killed);
    memset(explore_ended, 0, sizeof explore_ended);
    memset(explore_shared, 0, sizeof explore_shared);
    for (int i = 0; i < engine.actors; i++) {
        struct actor *a = &engine.actor[i];
        char *stack = a->stack;
        if (!stack)
            stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (stack == MAP_FAILED)
            abort();
        a->stack = stack;
        a->rank = i < s->ranks ? i : (i - s->ranks) % s->ranks;
        a->state = ACTOR_READY;
        a->stopped = false;
        a->stores = a->sleeps_on = a->helds = 0;
        a->floor = 0;
        a->callback = NULL;
        coroutine_make(a, actor_begin);
    }
    words_begin();
    choose_begin();
}

/* Of each operation: no rank has 0 where a living rank has an error. A rank that was killed later had its 0 all the same. */
static void check_all_or_none(void)
{
    const struct scenario *s = engine.scenario;
    for (int k = 0; k < NOTES; k++) {
        int good = -1, bad = -1;
        for (int p = 0; p < s->ranks; p++) {
            good = note[p].there[k] && note[p].result[k] == 0 ? p : good;
            bad = note[p].there[k] && note[p].result[k] < 0 && !explore_killed[p] ? p : bad;
        }
        if (good >= 0 && bad >= 0)
            engine_wrong("all or none: call %d gave rank %d success and rank %d error %d", k, good, bad, note[bad].result[k]);
    }
}

bool engine_run(void)
{
    pages_back();
    begin();
    engine.running = true;
    engine.now_on = 0;
    comm_callback = NULL;
    struct actor start = engine.actor[0];
    engine_swap(&engine.home, start.sp);
    engine.running = false;
    engine.runs++;
    engine.all_steps += engine.steps;
    engine.deepest = engine.steps > engine.deepest ? engine.steps : engine.deepest;
    for (int p = 0; p < engine.scenario->ranks && !engine.wrong; p++)
        if (!explore_ended[p] && !explore_killed[p])
            engine_wrong("rank %d did not come to its end", p);
    if (!engine.wrong && !engine.scenario->own_ends)
        check_all_or_none();
    if (!engine.wrong && engine.scenario->check)
        engine.scenario->check();
    return !engine.wrong;
}

void explore_note(int rank, int which, int result)
{
    note[rank].result[which] = result;
    note[rank].there[which] = true;
}

bool explore_arrived(int rank, uint64_t verdict)
{
    const struct member *m = &explore_world[0]->watch.members[rank];
    return !engine.scenario->commits && (uint32_t)load_acquire64(&m->arrival[verdict & 1].seq) >= ((uint32_t)verdict & VERDICT_OP_MASK);
}

void explore_failed(int rank, tutti_comm *comm)
{
    bool was = engine.running;
    engine.running = false;
    note[rank].failed_count = tutti_failed(comm, note[rank].failed, EXPLORE_RANKS);
    note[rank].verdict = comm->watch.failed;
    engine.running = was;
}
