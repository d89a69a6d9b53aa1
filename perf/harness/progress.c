/* Redrawn at most ten times a second, between rounds: a terminal is a process, too, and
 * wants a CPU. Who has said how long it takes shows its time, and each tenth of it in a file. */
#include "harness/progress.h"

#include "harness/limit.h"
#include "harness/stamp.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

enum { WIDTH = 28, LINES = 10 };
static double shown = -1;
static int lines;

void progress_show(double share, const char *format, ...)
{
    char what[64], bar[4 * WIDTH + 1];
    double now = stamp_seconds();
    bool terminal = isatty(STDERR_FILENO);
    share = limit_set() ? limit_over() : share;
    if (terminal ? shown >= 0 && now - shown < 0.1 : !limit_set() || share * LINES < lines + 1)
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    if (!terminal) {
        lines = (int)(share * LINES);
        fprintf(stderr, "%3.0f %%  %s\n", share * 100, what);
        return;
    }
    shown = now;
    int full = (int)(share * WIDTH + 0.5), used = 0;
    for (int i = 0; i < WIDTH; i++)
        used += snprintf(bar + used, sizeof bar - (size_t)used, "%s", i < full ? "█" : "░");
    fprintf(stderr, "\r  %s %3.0f %%  %-40.40s", bar, share * 100, what);
}

void progress_clear(void)
{
    if (shown >= 0)
        fprintf(stderr, "\r%78s\r", "");
    shown = -1;
}
