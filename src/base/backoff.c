/* Trials are counted by the number of calls: turn 0 of a period forgets, then each delay has a
 * block, several times over, then the choice is made. */
#include "base/backoff.h"

#include <string.h>

enum { TURNS = BACKOFF_ARMS * BACKOFF_PASSES };

static const int32_t arms[BACKOFF_ARMS] = { 0, 32, 16, -28, -58, -70, -82, -94, -140, -238 };

static void keep(uint32_t sorted[BACKOFF_PASSES], uint64_t ticks)
{
    uint32_t more = ticks < UINT32_MAX ? (uint32_t)ticks : UINT32_MAX;
    for (int i = 0; i < BACKOFF_PASSES && more; i++)
        if (sorted[i] == 0 || more < sorted[i]) {
            uint32_t was = sorted[i];
            sorted[i] = more;
            more = was;
        }
}

/* A new delay has to be better by a part in 32: else ranks would switch between two equal ones, and
 * be at different ones. After a trial without enough blocks that count: the usual delay. */
static void choose(struct backoff *s)
{
    enum { MIDDLE = BACKOFF_PASSES / 2 };
    uint32_t best = s->chosen;
    for (uint32_t a = 0; a < BACKOFF_ARMS; a++) {
        if (s->ticks[a][MIDDLE] == 0) {
            s->chosen = 0;
            return;
        }
        if (s->ticks[a][MIDDLE] < s->ticks[best][MIDDLE])
            best = a;
    }
    uint64_t now = s->ticks[best][MIDDLE];
    if (now + now / 32 < s->ticks[s->chosen][MIDDLE])
        s->chosen = best;
}

void backoff_block(struct backoff *s, uint64_t seq, uint64_t tick, uint64_t calls)
{
    uint64_t turn = calls / BACKOFF_BLOCK % BACKOFF_PERIOD;
    bool trial = turn >= 1 && turn <= TURNS,
         alone = tick - s->since > BACKOFF_BLOCK * BACKOFF_SLOW;
    if (turn == 0)
        memset(s->ticks, 0, sizeof s->ticks);
    if (turn > 1 && turn <= TURNS + 1 && seq - s->seq == BACKOFF_BLOCK && !alone)
        keep(s->ticks[s->arm], tick - s->since);
    if (turn == TURNS + 1)
        choose(s);
    s->arm = trial ? (uint32_t)turn % BACKOFF_ARMS : s->chosen;
    s->less = trial || !alone ? arms[s->arm] : 0;
    s->since = tick;
    s->seq = seq;
}
