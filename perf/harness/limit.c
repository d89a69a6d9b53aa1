/* One for the whole process: what waits for a peer must know of it, however deep it lies. */
#include "harness/limit.h"

#include "harness/stamp.h"

static const double NEVER = 1e9, PART = 0.25, MOMENT = 1.5;
static double all, until;

void limit_begin(double seconds)
{
    all = seconds;
    until = stamp_seconds() + seconds;
}

bool limit_set(void) { return all > 0; }

double limit_left(void) { return all > 0 ? until - stamp_seconds() : NEVER; }

double limit_over(void)
{
    double share = all > 0 ? 1 - limit_left() / all : 0;
    return share < 1 ? share : 1;
}

double limit_patience(double most)
{
    double left = limit_left() > 0 ? limit_left() : 0, patience = left * PART + MOMENT;
    return patience < most ? patience : most;
}
