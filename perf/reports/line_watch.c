/* A flag there and a flag back, and half of that. Without a pause between two looks, which is
 * longer than the way on some processors. It takes some 0.3 ms near and 1 ms far. */
#include "reports/line_watch.h"

#include "harness/interval.h"
#include "harness/measure.h"

#include <stdio.h>
#include <stdlib.h>

enum { TRIES = 9, TIMES = 200 };

static int there_and_back(struct rank *r, uint64_t times)
{
    struct bare_line *flags = r->bare->flag;
    for (; times--; r->nth[1]++) {
        uint64_t nth = r->nth[1] + 1;
        if (r->me == 0)
            store_release64(&flags[0].word, nth);
        while (load_acquire64(&flags[!r->me].word) < nth) { }
        if (r->me == 1)
            store_release64(&flags[1].word, nth);
    }
    return 0;
}

static const struct contender contenders[] = {
    { "line", "a flag there, a flag back", NULL, 2, true, 0, 0, there_and_back, NULL, OP_NONE },
    { 0 }
};

struct line_watch { struct team team; };

struct line_watch *line_watch_open(void)
{
    struct line_watch *w = calloc(1, sizeof *w);
    if (!w) {
        perror("perf: line");
        exit(2);
    }
    team_open(&w->team, &(struct team_plan){ .ranks = 2, .contenders = contenders });
    return w;
}

double line_watch_ns(struct line_watch *w)
{
    struct task task = { .form = FORM_BATCH, .samples = TRIES, .warm = 8, .times = TIMES };
    struct series got = { 0 };
    struct measured m = { 0 };
    double ns = measure_task(&w->team, 0, &task, &got, NULL, &m) ? series_quantile(&got, 0) / 2 : 0;
    series_free(&got);
    return ns;
}

void line_watch_close(struct line_watch *w)
{
    team_close(&w->team);
    free(w);
}

/* A machine may bring its CPUs together and apart while it is measured. */
void line_watch_tell(struct report *report, const struct series *looks)
{
    size_t near = 0;
    for (size_t i = 0; i < looks->n; i++)
        near += line_state(looks->at[i], looks->at[i]) == LINE_NEAR;
    if (looks->n)
        report_remark(report, false,
                      "a cache line took %.0f ns one way, %.0f to %.0f in %zu looks: near in %zu, "
                      "far in %zu",
                      series_quantile(looks, 0.5), series_quantile(looks, 0),
                      series_quantile(looks, 1), looks->n, near, looks->n - near);
}
