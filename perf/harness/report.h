/* Job: collects what a program found out, and says it: 80 columns for a terminal, CSV,
 *      JSON, a page.
 * Owns: tables, figures, plots and promises of one run.
 * Never: measures. */
#ifndef PERF_REPORT_H
#define PERF_REPORT_H

#include "harness/machine.h"
#include "harness/options.h"
#include "harness/series.h"

#include <stdint.h>

/* UNIT_RATE: bytes a second; UNIT_SHARE: percent */
enum unit { UNIT_NS, UNIT_RATIO, UNIT_BYTES, UNIT_RATE, UNIT_COUNT, UNIT_SHARE };

/* One measured thing, for CSV and JSON. */
struct figure {
    char what[48], contender[32];
    enum unit unit;
    int ranks;
    size_t bytes, samples;
    double least, median, p99, most;       /* of single operations */
    double value;                          /* the best estimate: of batches where there are any */
    struct ratio ratio;                    /* against `against`; n 0: none */
    char against[32];
    /* 95 % interval of value, and then ratio has one, too; high 0: none */
    double low, high;
    const char *verdict;                   /* of that ratio; NULL: none */
    /* what ratios with others of the same measurement are made of; may be empty */
    struct series rounds;
};

enum { COLUMNS_MAX = 11 };
struct cell { char text[64]; };
struct table {
    char title[96], note[320];
    int columns, rows, room;
    int width[COLUMNS_MAX];                /* of a terminal; negative: left-justified */
    char heads[COLUMNS_MAX][16];
    struct cell (*cells)[COLUMNS_MAX];
    bool *strong;                          /* rows of the library itself */
};

struct curve { char name[48]; int hue; bool marks; size_t n; double (*points)[2]; };
enum scale { SCALE_LINEAR, SCALE_LOG };
struct plot {
    char title[96], note[240], x_title[48], y_title[48];
    enum unit x_unit, y_unit;
    enum scale x_scale, y_scale;
    int count, room;
    struct curve *curves;
};

/* limit: what must be; aim: where it should come to, 0: none. measured false: there are no figures
   to judge it by. floor: what it would be if the library were as fast as the floor measured beside
   it, 0: there is none. A limit beyond that cannot be kept on this machine. few: there was no time
   for as many rounds as such a figure takes. */
struct promise {
    char what[80];
    double value, limit, aim, floor;
    enum unit unit;
    bool at_least, measured, few, kept;
};

/* What a reader has to know of the figures. bad: they contradict each other, or are wrong; with
 * --strict that is a failure. */
struct remark { char text[200]; bool bad; };

struct report {
    const struct perf_program *program;
    struct machine machine;
    struct figure *figures;
    struct table *tables;
    struct plot *plots;
    struct promise *promises;
    struct remark *remarks;
    bool only_promises;                 /* the terminal is told no more than those, and remarks */
    /* of so many ranks: the smallest size that there was no time for; 0: none */
    size_t no_time[PERF_RANKS_MAX + 1];
    int figure_count, table_count, plot_count, promise_count, remark_count;
};

void report_begin(struct report *r, const struct perf_program *program);
/* How a program begins: its options are read, the clock's rate is measured, and the report
 * has begun. */
void report_open(struct report *r, const struct perf_program *program, struct perf_options *options,
                 int argc, char **argv);

struct figure *report_figure(struct report *r, const char *what, const char *contender,
                             enum unit unit, int ranks);
/* least, median, p99, most, samples; value the median */
void figure_single(struct figure *f, const struct series *single);

/* keeps them; value: their median */
void figure_rounds(struct figure *f, const struct series *rounds);
/* The last one of that name; NULL: not measured. */
const struct figure *report_find(const struct report *r, const char *what, const char *contender,
                                 int ranks, size_t bytes);

struct table *report_table(struct report *r, int columns, const char *const heads[],
                           const int width[]);
void table_row(struct table *t, bool strong, const char *const cells[]);

struct plot *report_plot(struct report *r);
/* One for curve_cumulative: how many took at most so long. */
struct plot *report_distribution(struct report *r, const char *title, const char *x_title,
                                 const char *y_title);
struct curve *plot_curve(struct plot *p, const char *name, int hue);
void curve_point(struct curve *c, double x, double y);
/* percent of the operations that took at most so long */
void curve_cumulative(struct curve *c, const struct series *single);

/* at most */
void report_promise(struct report *r, const char *what, double value, double limit, enum unit unit);
void report_judge(struct report *r, const struct promise *promise);        /* fills in kept */

/* Said once, however often it is reported. */
__attribute__((format(printf, 3, 4))) void report_remark(struct report *r, bool bad,
                                                         const char *format, ...);

/* Prints and writes what the options ask for; the program's exit status. */
int report_end(struct report *r, const struct perf_options *options);

/* 105 ns, 1.24 us, 12.3 ms; 64 KiB; 12.3 GB/s; 1.04; 97 %. */
const char *unit_text(char *to, size_t room, enum unit unit, double value);
/* The same for round numbers: 5.00 us is a measurement, a limit or a tick is 5 us. */
const char *unit_short(char *to, size_t room, enum unit unit, double value);

#endif
