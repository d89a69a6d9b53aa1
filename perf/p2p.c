/* Measures a message to another rank and back, from four bytes to many, beside two bare flags and
 * beside copies of the same data. */
#include "harness/measure.h"
#include "harness/report.h"

#include <stdio.h>
#include <string.h>

static const struct perf_program program = {
    .name = "p2p",
    .question =
        "How long does a message take to another rank and back, beside bare flags and beside plain "
        "copies of it?",
    .ranks = "2",
    .seconds = 10,
    .sizes = true,
    .examples = "  p2p\n  p2p --most 16M --seconds 20\n  p2p --hot --html p2p.html\n",
};

enum { ROTATE_FROM = 1 << 20, SETS = 2 };
enum { TUTTI, LINE_BACK, COPY, COUNT };

/* From 1 MiB on takes the next of its buffers, so that it is not in the caches, unless --hot. */
static void rotate(struct rank *r)
{
    size_t sets = r->bytes < ROTATE_FROM || r->hot ? 1 : r->room / r->bytes,
           at = sets ? r->turn++ % sets : 0;
    r->send = r->sends + at * r->bytes;
    r->recv = r->recvs + at * r->bytes;
}

static int run_tutti(struct rank *r, uint64_t times)
{
    int error = 0;
    for (uint64_t i = 0; i < times && error == 0; i++) {
        if (i)
            rotate(r);
        if (r->me == 0)
            error = tutti_send(r->send, r->bytes, TUTTI_U8, 1, 0, r->comm, NULL);
        if (error == 0)
            error = tutti_recv(r->recv, r->bytes, TUTTI_U8, !r->me, 0, NULL, r->comm, NULL);
        if (r->me == 1 && error == 0)
            error = tutti_send(r->send, r->bytes, TUTTI_U8, 0, 0, r->comm, NULL);
    }
    return error;
}

static int run_line(struct rank *r, uint64_t times)
{
    while (times--)
        bare_there_and_back(r->bare, r->me, ++r->nth[0]);
    return 0;
}

/* There and back are two copies; the other rank does nothing. */
static int run_copy(struct rank *r, uint64_t times)
{
    for (uint64_t i = 0; i < times && r->me == 0; i++) {
        if (i)
            rotate(r);
        memcpy(r->recv, r->send, r->bytes);
        rotate(r);
        memcpy(r->recv, r->send, r->bytes);
    }
    return 0;
}

static const struct contender contenders[] = {
    [TUTTI] = {
        "tutti", "tutti_send there, tutti_send back", NULL, 2, true, 0, 0, run_tutti, rotate,
        OP_NONE
    },
    [LINE_BACK] = {
        "bare flags", "a flag there, a flag back", NULL, 2, true, 4, 4, run_line, NULL, OP_NONE
    },
    [COPY] = {
        "memcpy", "one rank copies as many bytes twice", NULL, 2, true,
        0, 0, run_copy, rotate, OP_NONE
    },
    [COUNT] = { 0 }
};

static void tell(struct report *report, struct table *table, const struct team *team, size_t bytes,
                 const struct measured *m)
{
    char text[6][32];
    const char *cells[6];
    for (int i = 0; i < COUNT; i++) {
        cells[i + 1] = "";
        if (!m[i].rounds.n)
            continue;
        struct figure *f = report_figure(report, "there and back", contenders[i].name, UNIT_NS,
                                         team->ranks);
        figure_single(f, &m[i].single);
        f->bytes = bytes;
        f->value = series_median(&m[i].rounds);
        int against = m[LINE_BACK].rounds.n ? LINE_BACK : COPY;
        f->ratio = series_ratio(&m[i].rounds, &m[against].rounds);
        snprintf(f->against, sizeof f->against, "%s", contenders[against].name);
        cells[i + 1] = unit_text(text[i + 1], sizeof text[0], UNIT_NS, f->value);
        if (i == TUTTI) {
            curve_point(&report->plots[0].curves[0], (double)bytes, f->value);
            cells[4] = unit_text(text[4], sizeof text[0], UNIT_RATIO, f->ratio.median);
            cells[5] = unit_text(text[5], sizeof text[0], UNIT_RATE,
                                 2 * (double)bytes / f->value * 1e9);
        } else if (i == COPY)
            curve_point(&report->plots[0].curves[1], (double)bytes, f->value);
    }
    char ratio[32], rate[32];
    snprintf(ratio, sizeof ratio, "%s", text[4]);
    snprintf(rate, sizeof rate, "%s", text[5]);
    cells[0] = unit_text(text[0], sizeof text[0], UNIT_BYTES, (double)bytes);
    cells[4] = ratio;
    cells[5] = rate;
    table_row(table, false, cells);
}

static void compare(struct report *report, const struct perf_options *o)
{
    static const char *const heads[] = {
        "bytes", "tutti", "bare flags", "memcpy", "ratio", "tutti"
    };
    static const int width[] = { 9, 11, 12, 11, 9, 12 };
    struct team team;
    int sizes = 0, done = 0;
    for (size_t bytes = 4; bytes <= o->most; bytes *= 4)
        sizes++;
    team_open(&team,
              &(struct team_plan){ .ranks = 2,
                                   .contenders = contenders,
                                   .shared_bytes = 4096,
                                   .pool_bytes = SETS * o->most });
    struct table *table = report_table(report, 6, heads, width);
    snprintf(table->title, sizeof table->title, "A message there and back, %s",
             o->hot ? "buffers hot" : "buffers rotated from 1 MiB on");
    snprintf(table->note, sizeof table->note,
             "Time until both are through; up to 1 KiB of one of many back to back. ratio: at 4 "
             "bytes tutti "
             "against bare flags, else against memcpy (two copies by one rank): medians of the "
             "ratios of rounds. tutti: bytes a second, one way.");
    struct plot *p = report_plot(report);
    snprintf(p->title, sizeof p->title, "A message there and back");
    snprintf(p->note, sizeof p->note,
             "Lower is better. memcpy: one rank copies as many bytes twice.");
    snprintf(p->x_title, sizeof p->x_title, "bytes");
    snprintf(p->y_title, sizeof p->y_title, "time");
    p->x_scale = p->y_scale = SCALE_LOG;
    p->x_unit = UNIT_BYTES;
    p->y_unit = UNIT_NS;
    plot_curve(p, "tutti", 0)->marks = true;
    plot_curve(p, "memcpy", 1)->marks = true;
    for (size_t bytes = 4; bytes <= o->most; bytes *= 4, done++) {
        struct measured m[CONTENDERS_MAX] = { 0 };
        struct effort e = {
            o->seconds / sizes, o->quick, o->hot, bytes, (double)done / sizes,
            1.0 / sizes, OP_NONE, false, 1
        };
        measure(&team, &e, m);
        tell(report, table, &team, bytes, m);
        if (m[LINE_BACK].rounds.n)
            report_promise(report, "4 bytes there and back / bare flags",
                           series_ratio(&m[TUTTI].rounds, &m[LINE_BACK].rounds).median, 1.5,
                           UNIT_RATIO);
        measured_free(m, COUNT);
    }
    team_close(&team);
}

int main(int argc, char **argv)
{
    struct perf_options options;
    struct report report;
    report_open(&report, &program, &options, argc, argv);
    compare(&report, &options);
    return report_end(&report, &options);
}
