/* Actors are coroutines on stacks of their own; a switch is some twenty instructions. The decision
 * who goes on is taken by whoever is at a point, on its own stack, so that most points cost no
 * switch at all. The clock stands still unless nobody can run: then all store buffers empty, and
 * the sleep that ends first ends. */
#include "explore/engine.h"
#include "explore/scenarios.h"

#include "watch/drive.h"
#include "watch/verdict.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { STACK_BYTES = 256 << 10 };

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
        "popq %r15\n"
        "popq %r14\n"
        "popq %r13\n"
        "popq %r12\n"
        "popq %rbx\n"
        "popq %rbp\n"
        "ret\n"
        ".size engine_swap,.-engine_swap\n");

static void coroutine_make(struct actor *a, void (*entry)(void))
{
    void **sp = (void **)(void *)(a->stack + STACK_BYTES);
    *--sp = NULL;   /* as if it had been called: a return address, and the alignment behind one */
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

void engine_go_home(void)
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

/* The first is what happens if nothing odd does. */
static int options(struct option *o, bool ready, bool yields)
{
    int me = engine.now_on, n = 0;
    bool paid = ready && !yields;
    if (paid)
        n = option_add(o, n, EVENT_GO, me);
    for (int i = 1; i < engine.actors; i++) {
        int q = (me + i) % engine.actors;
        if (can_run(&engine.actor[q]) && (!paid || event_room_for(1, false)))
            n = option_add(o, n, EVENT_GO, q);
    }
    if (ready && yields && n == 0)
        n = option_add(o, n, EVENT_GO, me);
    if (!ready && can_run(&engine.actor[me]))
        n = option_add(o, n, EVENT_GO, me);
    if (n == 0)
        return 0;
    for (int i = 0; i < engine.actors; i++)
        if (engine.actor[i].stores)
            n = option_add(o, n, EVENT_FLUSH, i);
    if (!paid)
        engine.word = NULL;
    return event_options(o, n);
}

/* ---- nobody can run ---- */

/* A sleeper whose word has changed should have been woken, unless who changed it was ended or
 * stopped before it could. */
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
                engine_wrong("lost wake-up: rank %d sleeps on word %d, which actor %d has changed",
                             a->rank, k, writer);
        }
    }
}

static bool resume_stopped(void)
{
    bool any = false;
    for (int i = 0; i < engine.actors; i++) {
        any |= engine.actor[i].stopped && event_alive(&engine.actor[i]);
        engine.actor[i].stopped = false;
    }
    return any;
}

/* Besides the library's own threads. */
static bool somebody_left(void)
{
    for (int i = 0; i < engine.actors; i++)
        if (event_alive(&engine.actor[i]) && !engine.actor[i].thread)
            return true;
    return false;
}

static bool in_arena(const void *word)
{
    const struct arena *arena = &explore_world[0]->world->arena;
    return (uintptr_t)word - (uintptr_t)arena->base < arena->bytes;
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
        left |= event_alive(a) && !a->stopped;
        if ((a->state == ACTOR_ASLEEP || a->state == ACTOR_LOCKED) && !a->stopped
            && (!first || a->end < first->end))
            first = a;
        first_slice |= a->state == ACTOR_ASLEEP && a->sleeps_on == 1
            && (!engine.scenario->threads || in_arena(a->words[0].word));
    }
    if (stores && left) {
        for (int i = 0; i < engine.actors; i++)
            if (can_run(&engine.actor[i]))
                return true;
    }
    if (!first)
        return resume_stopped();
    if (!somebody_left())
        return false;
    look_for_lost_wakes();
    /* a first slice looks at one word; who sleeps on a handle leaves the looks to his thread */
    bool odd = engine.deaths || engine.scenario->patience == PATIENCE_FIRST;
    /* Who waits for one rank watches only that one's life: if it dies, and the one sleeper that is
       woken dies before he passes it on, the others learn it at the end of their slice.
       (Collectives watch all: late3.) */
    bool two = engine.scenario->own_ends && engine.deaths > 1;
    if (!engine.stops && engine.scenario->patience != PATIENCE_ALL && !(odd && first_slice) && !two)
        engine_wrong("all that are left sleep, rank %d among them, and only the end of a slice "
                     "would wake them",
                     first->rank);
    if (engine.wrong)
        return false;
    if (event_in_sleep())
        return true;
    engine.times++;
    if (engine.times > STOP_TIMES && resume_stopped()) {
        engine.times = 0;
        return true;
    }
    if (engine.times > TIMES_MOST) {
        engine_wrong("stuck: rank %d sleeps slice after slice", first->rank);
        return false;
    }
    event_late(first);
    return true;
}

/* ---- the point ---- */

static void decide(bool yields)
{
    int me = engine.now_on;
    if (++engine.steps > STEPS_MOST)
        engine_wrong("no end after %d steps", STEPS_MOST);
    for (;;) {
        struct option o[4 * ACTORS_MOST + ACTORS_MOST * 4];
        struct actor *mine = &engine.actor[me];
        if (engine.wrong)
            engine_go_home();
        bool ready = mine->state == ACTOR_READY && !mine->stopped;
        int n = options(o, ready, yields);
        if (n == 0) {
            if (!nobody_runs())
                engine_go_home();
            continue;
        }
        struct option chosen = event_pick(o, n, ready, yields);
        if (chosen.kind != EVENT_GO) {
            event_happen(chosen);
            continue;
        }
        engine.preempted += ready && !yields && chosen.who != me;
        const void *word = engine.word;
        go_to(chosen.who);
        if (chosen.who != me && ready && !yields)
            event_on_return(word);
        seen_heard(mine, 1);
        return;
    }
}

void engine_point(const void *word)
{
    engine.word = word;
    decide(false);
}

void engine_block(void) { engine_point(NULL); }

void engine_yield(void)
{
    engine.word = NULL;
    decide(true);
}

int explore_any_killed(void)
{
    int n = 0;
    for (int p = 0; p < EXPLORE_RANKS; p++)
        n += explore_killed[p];
    return n;
}

uint64_t explore_now(void) { return engine.now_ns; }

int explore_count(void) { return engine.scenario->count; }
bool explore_aborts(void) { return engine.scenario->helper == aborts; }
void explore_step(void) { engine_point(explore_shared); }

/* ---- a run ---- */

static void actor_begin(void)
{
    int i = engine.now_on, rank = engine.actor[i].rank;
    comm_callback = NULL;
    if (i == rank)
        engine.scenario->body(rank, explore_world[rank]);
    else if (engine.actor[i].thread)
        engine.actor[i].thread(engine.actor[i].thread_arg);
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
    engine.cut = false;
    memset(note, 0, sizeof note);
    memset(explore_killed, 0, sizeof explore_killed);
    memset(explore_ended, 0, sizeof explore_ended);
    memset(explore_shared, 0, sizeof explore_shared);
    for (int i = 0; i < engine.actors; i++) {
        struct actor *a = &engine.actor[i];
        char *stack = a->stack;
        if (!stack)
            stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                         0);
        if (stack == MAP_FAILED)
            abort();
        a->stack = stack;
        a->rank = i < s->ranks ? i : (i - s->ranks) % s->ranks;
        a->state = i < s->ranks || !s->threads ? ACTOR_READY : ACTOR_DONE;   /* not there yet */
        a->thread = NULL;
        a->stopped = false;
        a->stores = a->sleeps_on = a->helds = 0;
        a->floor = 0;
        a->callback = NULL;
        coroutine_make(a, actor_begin);
    }
    words_begin();
    seen_begin();
    choose_begin();
}

/* Of each operation: no rank has 0 where a living rank has an error. A rank that was killed later
 * had its 0 all the same. */
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
            engine_wrong("all or none: call %d gave rank %d success and rank %d error %d", k, good,
                         bad, note[bad].result[k]);
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
    engine.cuts += engine.cut;
    engine.all_steps += engine.steps;
    engine.deepest = engine.steps > engine.deepest ? engine.steps : engine.deepest;
    if (engine.cut)
        return true;
    for (int p = 0; p < engine.scenario->ranks && !engine.wrong; p++)
        if (!explore_ended[p] && !explore_killed[p])
            engine_wrong("rank %d did not come to its end", p);
    if (!engine.wrong && !engine.scenario->own_ends)
        check_all_or_none();
    if (!engine.wrong && engine.scenario->check)
        engine.scenario->check();
    if (!engine.wrong)
        same_outcome();
    return !engine.wrong;
}

void explore_note(int rank, int which, int result)
{
    note[rank].result[which] = result;
    note[rank].there[which] = true;
    seen_heard(&engine.actor[engine.now_on], (uint64_t)(int64_t)result);
}

bool explore_arrived(int rank, uint64_t verdict)
{
    const struct member *m = &explore_world[0]->watch.members[rank];
    return !engine.scenario->commits
        && (uint32_t)load_acquire64(&m->arrival[verdict & 1].seq)
        >= ((uint32_t)verdict & VERDICT_OP_MASK);
}

void explore_failed(int rank, tutti_comm *comm)
{
    engine_point(NULL);                /* it asks who lives */
    bool was = engine.running;
    engine.running = false;
    /* looked at without points: heard as a whole */
    note[rank].failed_count = tutti_failed(comm, note[rank].failed, EXPLORE_RANKS);
    note[rank].verdict = comm->watch.failed;
    for (int i = 0; i < note[rank].failed_count; i++)
        seen_heard(&engine.actor[engine.now_on], (uint64_t)note[rank].failed[i]);
    engine.running = was;
}
