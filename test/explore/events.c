/* What may happen to a rank besides what it does: its end, a stop, a wake-up for nothing, the end
 * of a slice, a jump of the clock. Where each of these is offered follows from what it can
 * change: a schedule in which it comes elsewhere has one here that ends in the same state
 * (explore same). */
#include "explore/engine.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* A jump of the clock is no longer than what the library takes for a busy CPU: of more it would
 * think that it had been stopped. */
enum { JUMP_NS = 1000000 };

bool event_alive(const struct actor *a) { return a->state != ACTOR_DONE && a->state != ACTOR_DEAD; }

bool event_room_for(int more, bool event)
{
    int limit = event || engine.events ? engine.limit_event : engine.limit;
    return engine.preempted + more <= limit;
}

int option_add(struct option *o, int n, int kind, int who)
{
    o[n] = (struct option){ (unsigned char)kind, (unsigned char)who };
    return n + 1;
}

static int events_most(void)
{
    int most = engine.scenario->events_most;
    return most ? most : engine.scenario->chance ? 2 : 1;
}

static int event_left(void) { return events_most() - engine.events; }
static bool everything(void) { return engine.scenario->chance || seen_off(); }

/* Somebody sleeps on whether it lives, or wants a lock that it holds. */
static bool death_lets_go_on(int rank)
{
    for (int i = 0; i < engine.actors; i++) {
        const struct actor *a = &engine.actor[i];
        for (int k = 0; a->state == ACTOR_ASLEEP && k < a->sleeps_on; k++)
            if (a->words[k].word == kernel_mark(rank))
                return true;
        for (int k = 0; a->rank == rank && k < a->helds; k++)
            for (int j = 0; j < engine.actors; j++)
                if (engine.actor[j].state == ACTOR_LOCKED && engine.actor[j].wants == a->held[k])
                    return true;
    }
    return false;
}

/* Does it matter whether `rank` dies before what is about to be done, or after it? Else one of the
   two schedules stands for both. It does before each step of the rank itself, before each that
   depends on whether it lives, where somebody cannot go on or has come to his end, and before every
   step if it lets somebody go on at once, by a preemption. (Its stores that are not out yet come
   out before it dies: that is offered at every step anyway.) */
static bool death_matters(int rank)
{
    if (SEEDED(deaths_left_out) && !everything())
        return engine.actor[engine.now_on].rank == rank;
    if (everything() || event_left() > 1 || engine.actor[engine.now_on].rank == rank
        || !engine.word)
        return true;                   /* of two deaths it may matter which was the first */
    if ((uintptr_t)engine.word >> 3 == (uintptr_t)kernel_mark(rank) >> 3)
        return true;
    return event_room_for(1, true) && death_lets_go_on(rank);
}

/* A stop is seen by nobody else, so it comes where that rank is about to do a step, or cannot, or
 * where all may move on at once. */
static bool stop_matters(int rank)
{
    return everything() || engine.actor[engine.now_on].rank == rank || !engine.word;
}

static bool event_room(void)
{
    return engine.scenario->events && event_room_for(0, true) && event_left() > 0;
}

int event_options(struct option *o, int n)
{
    unsigned events = engine.scenario->events;
    if (!event_room())
        return n;
    for (int i = 0; i < engine.actors; i++) {
        const struct actor *a = &engine.actor[i];
        if (!event_alive(a))
            continue;
        bool first = i == a->rank;     /* an event of the rank, not of its other threads */
        if (first && (events & KILL) && engine.deaths + 1 < engine.scenario->ranks
            && death_matters(i))
            n = option_add(o, n, EVENT_KILL, i);
        if (first && (events & STOP) && !a->stopped && stop_matters(i))
            n = option_add(o, n, EVENT_STOP, i);
        if ((events & SPURIOUS) && a->state == ACTOR_ASLEEP && !a->stopped)
            n = option_add(o, n, EVENT_SPURIOUS, i);
        if ((events & TIMER) && a->state == ACTOR_ASLEEP && !a->stopped)
            n = option_add(o, n, EVENT_TIMER, i);
    }
    return events & JUMP ? option_add(o, n, EVENT_JUMP, 0) : n;
}

void event_late(struct actor *a)
{
    if (explore_trace)
        printf("    the sleep of actor %d ends by itself, at %llu us\n", (int)(a - engine.actor),
               (unsigned long long)(a->end / 1000 - 1000000000));
    engine.now_ns = a->end > engine.now_ns ? a->end : engine.now_ns;
    a->state = ACTOR_READY;
    a->slept = -ETIMEDOUT;
}

struct option event_pick(const struct option *o, int n, bool ready, bool yields)
{
    if (n > 1 && choose_new() && seen_before(ready, yields)) {
        engine.cut = true;
        engine_go_home();
    }
    return o[n > 1 ? choose(o, n) : 0];
}

void event_happen(struct option o)
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
        event_late(a);
        break;
    case EVENT_JUMP:
        engine.now_ns += JUMP_NS;
        for (int i = 0; i < engine.actors; i++) {
            struct actor *b = &engine.actor[i];
            if ((b->state == ACTOR_ASLEEP || b->state == ACTOR_LOCKED) && !b->stopped
                && b->end <= engine.now_ns)
                event_late(b);
        }
        break;
    default:
        abort();
    }
}

/* All sleep: before the time goes on, one may die. */
bool event_in_sleep(void)
{
    struct option o[1 + ACTORS_MOST];
    int n = option_add(o, 0, EVENT_GO, engine.now_on);
    for (int i = 0; i < engine.scenario->ranks && event_room() && (engine.scenario->events & KILL);
         i++)
        if (event_alive(&engine.actor[i]) && engine.deaths + 1 < engine.scenario->ranks)
            n = option_add(o, n, EVENT_KILL, i);
    struct option chosen = event_pick(o, n, false, false);
    if (chosen.kind == EVENT_KILL)
        event_happen(chosen);
    return chosen.kind == EVENT_KILL;
}

/* Back from others, who went on while this one was about to do something: of what it depends on,
 * somebody may die right now. */
void event_on_return(const void *word)
{
    struct option o[1 + ACTORS_MOST];
    int n = option_add(o, 0, EVENT_GO, engine.now_on);
    engine.word = word;
    for (int i = 0; i < engine.scenario->ranks && event_room() && !everything()
         && (engine.scenario->events & KILL);
         i++)
        if (i != engine.actor[engine.now_on].rank && event_alive(&engine.actor[i])
            && engine.deaths + 1 < engine.scenario->ranks && death_matters(i))
            n = option_add(o, n, EVENT_KILL, i);
    struct option chosen = event_pick(o, n, true, true);
    if (chosen.kind == EVENT_KILL)
        event_happen(chosen);
}
