/* SPDX-License-Identifier: MIT */
#include "progress.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { BAR = 30 };

double clock_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

void progress_begin(struct progress *progress, int steps, int quiet, int bar)
{
    *progress = (struct progress){
        .quiet = quiet, .bar = bar || isatty(STDOUT_FILENO), .steps = steps,
        .since = clock_seconds(),
    };
}

static void show_bar(const struct progress *progress, int done, double loss)
{
    static const char full[] = "##############################",
                      empty[] = "..............................";
    int filled = (int)((long)done * BAR / progress->steps);
    double passed = clock_seconds() - progress->since;
    double left = passed / done * (progress->steps - done);
    printf("[%.*s%.*s] %3d %%  loss %.3f nats/char  %4.0f s left ", filled, full, BAR - filled,
           empty, (int)((long)done * 100 / progress->steps), loss, left);
    /* \r behind it: `tutti run` passes it on as the end of a line */
    putchar(done == progress->steps ? '\n' : '\r');
    fflush(stdout);
}

static void show_line(struct progress *progress, int done, double loss)
{
    int tenths = (int)((long)done * 10 / progress->steps);
    if (tenths == progress->tenths) return;
    progress->tenths = tenths;
    printf("step %6d of %d  %3d %%  loss %.3f nats/char  %6.1f s\n", done, progress->steps,
           (int)((long)done * 100 / progress->steps), loss, clock_seconds() - progress->since);
    fflush(stdout);
}

void progress_show(struct progress *progress, int done, double loss)
{
    if (progress->quiet) return;
    if (progress->bar) show_bar(progress, done, loss);
    else show_line(progress, done, loss);
}
