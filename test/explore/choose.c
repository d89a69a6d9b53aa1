/* Three ways to choose. By search: depth first over all choices within the bounds, each run from
 * the start by the choices that led there. By chance: priorities, changed at a few random moments
 * (PCT: Burckhardt, Kothari, Musuvathi, Nagarakatte, 2010); the seed says everything. By replay: a
 * list "decision:choice", all others 0. */
#include "explore/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHANGES = 3, EVENT_MOMENTS = 2 };

static enum how how;
static struct { unsigned char taken, of; } stack[CHOICES_MOST];
static int depth, known;
static uint64_t state;
static uint32_t change[CHANGES], moment[EVENT_MOMENTS], expected = 200;
static int lowest;
/* how long runs are; fixed from then on, so that a seed says everything */
static bool learning = true;

static uint64_t chance(uint64_t below)
{
    uint64_t z = state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (z ^ z >> 31) % below;
}

void choose_search(void)
{
    how = BY_SEARCH;
    known = 0;
    seen_forget();
}

void choose_chance(uint64_t seed)
{
    how = BY_CHANCE;
    state = seed * 0x9e3779b9u + 1;
    known = 0;
}

void choose_learned(void) { learning = false; }

void choose_replay(const char *schedule)
{
    how = BY_REPLAY;
    memset(stack, 0, sizeof stack);
    known = 0;
    for (const char *s = schedule; *s;) {
        char *end;
        long at = strtol(s, &end, 10);
        if (*end != ':' || at < 0 || at >= CHOICES_MOST)
            break;
        stack[at].taken = (unsigned char)strtol(end + 1, &end, 10);
        known = (int)at + 1 > known ? (int)at + 1 : known;
        s = *end == ',' ? end + 1 : end;
    }
}

void choose_begin(void)
{
    depth = 0;
    if (how != BY_CHANCE)
        return;
    lowest = 0;
    for (int i = 0; i < ACTORS_MOST; i++)
        engine.actor[i].priority = 1 + (int)chance(1000);
    for (int i = 0; i < CHANGES; i++)
        change[i] = (uint32_t)chance(expected);
    for (int i = 0; i < EVENT_MOMENTS; i++)
        moment[i] = (uint32_t)chance(expected * (engine.scenario->events ? 3u : 1u) / 2 + 1);
}

static int by_chance(const struct option *o, int n)
{
    uint32_t now = engine.steps;
    int goes = 0, best = -1;
    expected = learning && now > expected ? now : expected;
    for (int i = 0; i < CHANGES; i++)
        if (change[i] == now)
            engine.actor[engine.now_on].priority = --lowest;
    for (int i = 0; i < n; i++)
        goes += o[i].kind == EVENT_GO;
    for (int i = 0; i < EVENT_MOMENTS; i++)
        if (moment[i] <= now) {
            moment[i] = UINT32_MAX;
            int odd = n - goes;
            if (odd)
                return goes + (int)chance((uint64_t)odd);
        }
    for (int i = goes; i < n; i++)
        if (o[i].kind == EVENT_FLUSH && chance(6) == 0)
            return i;
    for (int i = 0; i < goes; i++)
        if (best < 0 || engine.actor[o[i].who].priority > engine.actor[o[best].who].priority)
            best = i;
    return best;
}

static int by_search(int n)
{
    if (depth < known) {
        if (stack[depth].of != n) {
            fprintf(stderr,
                    "explore: a run did not repeat itself: decision %d has %d choices and had %d\n",
                    depth, n, stack[depth].of);
            abort();
        }
        return stack[depth].taken;
    }
    stack[depth].of = (unsigned char)n;
    known = depth + 1;
    return stack[depth].taken = 0;
}

int choose(const struct option *o, int n)
{
    int c;
    if (depth >= CHOICES_MOST)
        abort();
    if (how == BY_SEARCH)
        c = by_search(n);
    else if (how == BY_REPLAY)
        c = depth < known && stack[depth].taken < n ? stack[depth].taken : 0;
    else if (n == 2 && o[0].kind == EVENT_GO && o[0].who == 0 && o[1].kind == EVENT_FLUSH
             && o[1].who == 255)
        c = chance(8) == 0;            /* words.c asks for an oddity */
    else
        c = by_chance(o, n);
    if (how == BY_CHANCE)
        stack[depth].taken = (unsigned char)c;
    depth++;
    return c;
}

bool choose_new(void) { return how == BY_SEARCH && depth >= known; }

bool choose_next(void)
{
    for (known = depth; known > 0; known--)
        if (stack[known - 1].taken + 1 < stack[known - 1].of) {
            stack[known - 1].taken++;
            return true;
        }
    return false;
}

void choose_print(char *text, size_t room)
{
    size_t used = 0;
    text[0] = 0;
    for (int i = 0; i < depth && used + 16 < room; i++)
        if (stack[i].taken)
            used += (size_t)snprintf(text + used, room - used, "%s%d:%d", used ? "," : "", i,
                                     stack[i].taken);
}
