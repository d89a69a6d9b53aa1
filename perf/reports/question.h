/* Job: the questions that are asked of the library and of its peers alike, each a part of one
 *      report: `barrier` asks one, `overview` all.
 * Owns: which contenders take part.
 * Never: a command line. */
#ifndef PERF_QUESTION_H
#define PERF_QUESTION_H

#include "harness/measure.h"
#include "harness/report.h"

struct question {
    struct report *report;
    const struct perf_options *options;
    int ranks;
    /* for all of it; of a program with a limit (harness/limit.h) the end is kept, and what had to
       be left out is said */
    double seconds;
    double done, share;                    /* of the progress bar */
};

void ask_barrier(const struct question *p);
/* The same at several moments, between which other things are measured; `p` stays until close,
 * which tells. */
struct barriers;
struct barriers *ask_barriers_open(const struct question *p, int moments);
void ask_barriers_measure(struct barriers *b, double done, double share);
void ask_barriers_close(struct barriers *b);
/* Each of the operations at all sizes up to `most`: 4 bytes, 16, 64 …. work: started and waited
   for. brief: every other size. passes: all of them so often, one after the other, so that each is
   measured at several moments. */
struct ask_sizes {
    const enum operation_id *operations;
    int count;
    size_t least, most;
    bool work, brief;
    int passes;
};
void ask_collective(const struct question *p, const struct ask_sizes *sizes);
void ask_wait(const struct question *p);
void ask_start(const struct question *p);
/* The first operations of new jobs. */
void ask_first(const struct question *p);
/* Barriers of so many ranks, ascending, in one plot; count 0: of 1, 2, 4 and 16 times as
 * many as CPUs. */
void ask_crowd(const struct question *p, const int *ranks, int count);
/* Collectives of more ranks than CPUs, each beside its floor. */
void ask_shapes(const struct question *p);
/* Of 1 to 64 ranks at four sizes; of one number of ranks at 4 bytes, 16, 64 … most. Kinks
 * are remarks. */
void ask_growth_ranks(const struct question *p);
void ask_growth_sizes(const struct question *p, size_t most);

/* A program that asks one question, for each number of ranks; it may have been started as a rank by
 * ask_start. The exit status. */
int ask_program(const struct perf_program *program, int argc, char **argv,
                void (*one)(const struct question *p));

/* How many rounds a figure takes that a promise is judged by. */
size_t promise_rounds(const char *what, int ranks, size_t bytes);
/* Compares what was measured with what is promised; all: also says what was not measured. */
void check_promises(struct report *r, bool all);
/* Do the figures agree with each other? Remarks where they do not. */
void check_consistency(struct report *r);

/* Which peers took part, in which version and settings; which did not, and why: remarks. */
void remark_systems(struct report *r, const struct team *team, const struct measured *m);

/* Rows of a table of contenders. */
#define PEER_UP_TO(title, key, most) { title, "", &(const struct setting){ NULL, key, false }, 0, \
                                       false, 0, most, NULL, NULL, OP_NONE }
#define PEER(title, key) PEER_UP_TO(title, key, 0)
/* What tutti's ranks run with nothing around it. */
#define BARE_FLOOR_BETWEEN(name, help, least, most, run) { name, help, NULL, 0, false, least, \
                                                           most, run, operation_rewrite, OP_NONE }
#define BARE_FLOOR(name, help, least, run) BARE_FLOOR_BETWEEN(name, help, least, 0, run)

#define MPI_AND_GLOO PEER("Open MPI", "openmpi"), PEER("MPICH", "mpich"), PEER("Gloo", "gloo"), \
    PEER("torch gloo", "torch")

#endif
