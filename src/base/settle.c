/* Trials by the number of the operation: turn 0 of a period forgets, then each pause has a block, several times over, then the choice is made. */
#include "base/settle.h"

enum { TURNS = SETTLE_ARMS * SETTLE_PASSES };

static const int32_t arms[SETTLE_ARMS] = { 0, 32, 24, 12, -16, -40, -72 };

/* A new pause has to be better by a part in 32: ranks that go to and fro between two that are alike would be at different ones. */
static void choose(struct settle *s)
{
    uint32_t best = s->chosen;
    for (uint32_t a = 0; a < SETTLE_ARMS; a++) {
        if (s->least[a] == 0)
            return;
        if (s->least[a] < s->least[best])
            best = a;
    }
    if (s->least[best] + s->least[best] / 32 < s->least[s->chosen])
        s->chosen = best;
}

void settle_block(struct settle *s, uint64_t seq, uint64_t tick, uint64_t calls)
{
    uint64_t turn = seq / SETTLE_BLOCK % SETTLE_PERIOD, ticks = tick - s->since;
    if (turn > 1 && calls - s->calls == SETTLE_BLOCK && (s->least[s->arm] == 0 || ticks < s->least[s->arm]))
        s->least[s->arm] = ticks;
    if (turn == TURNS + 1)
        choose(s);
    for (int a = 0; turn == 0 && a < SETTLE_ARMS; a++)
        s->least[a] = 0;
    s->arm = turn >= 1 && turn <= TURNS ? (uint32_t)turn % SETTLE_ARMS : s->chosen;
    s->less = arms[s->arm];
    s->since = tick;
    s->calls = calls;
}
