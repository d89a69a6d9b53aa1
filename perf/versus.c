/* Is tutti behind anybody anywhere? All collectives and ping-pong beside five MPIs, in rounds: all
 * systems forth and back, the time of a cache line before and after. A run adds rounds where there
 * are fewest, so that many short runs, at several moments, make one table. */
#include "harness/progress.h"
#include "os/cpu.h"
#include "reports/bare_pairs.h"
#include "reports/bare_shapes.h"
#include "reports/line_watch.h"
#include "reports/memory_budget.h"
#include "reports/question.h"
#include "reports/tutti_operations.h"
#include "reports/versus_tell.h"

#include "base/guess.h"
#include "base/text.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

static void check(const struct perf_options *o);

static const struct perf_program program = {
    .name = "versus",
    .question =
        "Is tutti behind anybody anywhere? Collectives and ping-pong beside Open MPI and MPICH, as "
        "installed and the newest, and Intel MPI, on two CPUs, near and far apart.",
    .ranks = "2,4",
    .seconds = 600,
    .sizes = true,
    .most = 16 << 20,
    .peers = true,
    .resumes = true,
    .words = "[OPERATION...] [BYTES...]",
    .check = check,
    .examples =
        "  versus --rounds r.jsonl --json r.json            20 minutes; again: adds to it\n"
        "  versus broadcast 64k 1M -n 2 --seconds 20\n"
        "  taskset -c 0,8 versus --rounds far.jsonl         the two CPUs to be on\n\n"
        "The newest MPIs: cmake --build build/release --target perf_mpis, which downloads them.\n",
};

enum { SIZES_MOST = 16, VISIT_ROUNDS = 12, CPUS = 2 };
static const double VISIT_SECONDS = 1.5, SLOW_NS = 1e6, SLOW_TIMES = 50, FOR_SURE_NS = 1e8;

static const size_t all_sizes[] = {
    4, 1 << 10, 16 << 10, 32 << 10, 64 << 10, 96 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20,
    16 << 20
};

static const struct contender contenders[] = {
    [VERSUS_TUTTI] = {
        "tutti", "from private memory", NULL, 0, false, 0, 0, operation_run, operation_rewrite,
        OP_NONE
    },
    PEER("Open MPI", "openmpi"), PEER("MPICH", "mpich"), PEER("Open MPI 5", "openmpi5"),
    PEER("MPICH 5", "mpich5"), PEER("Intel MPI", "impi"),
    [VERSUS_FLOOR] = BARE_FLOOR("floor", "the copies that must be and bare yields: all or none", 0,
                                bare_shapes_all),
    [VERSUS_FLOOR_PAST] = BARE_FLOOR("floor past caches", "the same, written past the caches",
                                     BARE_PAST_LEAST, bare_shapes_all_past),
    [VERSUS_FLOOR_DIRECT] = BARE_FLOOR("floor direct", "out of the giver's memory: all or none",
                                       BARE_DIRECT_LEAST, bare_shapes_direct),
    [VERSUS_PAIR_WHOLE] = BARE_FLOOR_BETWEEN("floor in one piece", "of pairs: copies and flags",
                                             0, BARE_WHOLE_MOST, bare_pairs_whole),
    [VERSUS_PAIR_FINE] = BARE_FLOOR("floor by 8 KiB", "the same by pieces", BARE_FINE_LEAST,
                                    bare_pairs_fine),
    [VERSUS_PAIR_COARSE] = BARE_FLOOR("floor by 32 KiB", "the same", BARE_COARSE_LEAST,
                                      bare_pairs_coarse),
    [VERSUS_PAIR_OUT] = BARE_FLOOR("floor, results past", "the same, results past the caches",
                                   BARE_OUT_LEAST, bare_pairs_out),
    [VERSUS_PAIR_PAST] = BARE_FLOOR("floor past", "in past the caches, from 1 MiB on out, too",
                                    BARE_PAIRS_PAST_LEAST, bare_pairs_past),
    [VERSUS_SYSTEMS] = { 0 }
};

struct choice {
    enum operation_id operations[OPS];
    size_t sizes[SIZES_MOST];
    int count, size_count;
};

static bool chosen(struct choice *c, const struct perf_options *o, const char *word)
{
    uint64_t bytes;
    for (int op = OP_ALL_REDUCE; op < OPS; op++)
        if (!strcmp(word, operations[op].name) && c->count < OPS) {
            c->operations[c->count++] = (enum operation_id)op;
            return true;
        }
    if (text_parse_bytes(word, &bytes) < 0 || bytes < 4 || bytes % 4 || bytes > o->most
        || c->size_count == SIZES_MOST)
        return false;
    c->sizes[c->size_count++] = bytes;
    return true;
}

static _Noreturn void refuse(const char *word, size_t most)
{
    struct guess g;
    guess_begin(&g, word);
    for (int op = OP_ALL_REDUCE; op < OPS; op++)
        guess_add(&g, operations[op].name);
    if (g.best)
        perf_refuse("there is no operation '%.40s'; did you mean %s?", word, g.best);
    perf_refuse("'%.40s' is no operation, nor a size from 4 to %zu bytes in steps of 4", word,
                most);
}

/* What is not named is all of it. */
static void choose(struct choice *c, const struct perf_options *o)
{
    for (int i = 0; i < o->word_count; i++)
        if (!chosen(c, o, o->words[i]))
            refuse(o->words[i], o->most);
    if (!c->count)
        for (int op = OP_ALL_REDUCE; op < OPS; op++)
            c->operations[c->count++] = (enum operation_id)op;
    if (!c->size_count)
        for (size_t i = 0; i < sizeof all_sizes / sizeof *all_sizes && all_sizes[i] <= o->most; i++)
            c->sizes[c->size_count++] = all_sizes[i];
}

static void check(const struct perf_options *o)
{
    choose(&(struct choice){ 0 }, o);
}

/* Everybody, launchers included, gets the same CPUs: the first two that this program may use. */
static void keep_two_cpus(char *names, size_t room)
{
    cpu_set_t may, two;
    int kept = 0;
    CPU_ZERO(&two);
    names[0] = 0;
    sched_getaffinity(0, sizeof may, &may);
    for (size_t cpu = 0; cpu < CPU_SETSIZE && kept < CPUS; cpu++)
        if (CPU_ISSET(cpu, &may)) {
            CPU_SET(cpu, &two);
            snprintf(names + strlen(names), room - strlen(names), "%s%zu", kept++ ? "," : "", cpu);
        }
    sched_setaffinity(0, sizeof two, &two);
}

/* What all rounds of a file have in common. A program that was linked anew is another one. */
static void head(char to[HEAD_BYTES], const struct machine *m, const char *cpus, bool hot)
{
    struct stat st = { 0 };
    struct tm tm;
    char built[32] = "";
    if (stat("/proc/self/exe", &st) == 0)
        strftime(built, sizeof built, "%Y-%m-%d %H:%M:%S", localtime_r(&st.st_mtime, &tm));
    snprintf(to, HEAD_BYTES,
             "{\"versus\": 1, \"cpu\": \"%.100s\", \"cpus\": \"%s\", \"system\": \"%s\", "
             "\"tutti\": \"%s of %s\", \"hot\": %s}",
             m->cpu, cpus, m->system, tutti_version(), built, hot ? "true" : "false");
}

/* A run of one number of ranks. */
struct course {
    const struct perf_options *options;
    struct rounds *all;
    struct point *points;
    int count;
    struct team team;
    struct line_watch *line;
    double begin, until, done, share;      /* seconds; of the progress bar */
};

static double run_share(const struct course *c)
{
    double share = (stamp_seconds() - c->begin) / (c->until - c->begin);
    return c->done + c->share * (share < 1 ? share : 1);
}

static void show(const struct course *c, int at, double line)
{
    const struct point *p = &c->points[at];
    char bytes[32];
    progress_show(run_share(c), "%d ranks %s %s, line %.0f ns", p->ranks, operations[p->op].name,
                  unit_short(bytes, sizeof bytes, UNIT_BYTES, (double)p->bytes), line);
}

/* All systems forth and back, from another one on each time: what drifts evenly falls on all alike,
 * and nobody always comes behind the same one. */
static void play_round(struct course *c, int at, const struct effort *e, struct measured *m,
                       int from)
{
    struct round r = { .point = c->points[at], .when = time(NULL) };
    double turns[VERSUS_SYSTEMS][2] = { { 0 } };
    if (getloadavg(&r.load, 1) != 1)
        r.load = 0;
    r.before = line_watch_ns(c->line);
    show(c, at, r.before);
    for (int k = 0; k < 2 * VERSUS_SYSTEMS; k++) {
        int back = k >= VERSUS_SYSTEMS, step = back ? 2 * VERSUS_SYSTEMS - 1 - k : k,
            i = (from + step) % VERSUS_SYSTEMS;
        turns[i][back] = measure_turn(&c->team, e, i, &m[i]);
    }
    r.after = line_watch_ns(c->line);
    for (int i = 0; i < VERSUS_SYSTEMS; i++)
        r.ns[i] = turns[i][0] > 0 && turns[i][1] > 0 ? (turns[i][0] + turns[i][1]) / 2 : 0;
    if (r.ns[VERSUS_TUTTI] > 0)
        rounds_add(c->all, &r);
}

/* An MPI that never yields takes thousands of times as long with more ranks than CPUs, at 16 MiB
 * half a minute for one operation. The rounds of all others would wait for it. */
static void leave_out(struct course *c, int at, const struct effort *e, struct measured *m)
{
    double limit = SLOW_TIMES * m[VERSUS_TUTTI].rough, ns;
    limit = limit > SLOW_NS ? limit : SLOW_NS;
    for (int i = VERSUS_TUTTI + 1; i < VERSUS_PEERS_END; i++) {
        if (!m[i].in || m[i].rough <= limit)
            continue;
        /* that was one operation, which a busy machine may have held up; now a median */
        ns = m[i].rough < FOR_SURE_NS ? measure_turn(&c->team, e, i, &m[i]) : m[i].rough;
        if (!m[i].in || ns <= limit)
            continue;
        m[i].in = false;
        rounds_leave_out(c->all, &(struct left_out){ c->points[at], (enum versus_system)i, ns,
                                                     m[VERSUS_TUTTI].rough });
    }
}

static bool has_floor(const struct point *p, enum versus_system floor)
{
    if (floor >= VERSUS_PAIR_WHOLE)
        return p->ranks == 2 || (p->ranks > CPUS && p->op == OP_PINGPONG);
    return p->ranks > CPUS && bare_shapes_have(p->op, floor == VERSUS_FLOOR_DIRECT);
}

static void visit(struct course *c, int at, struct report *report)
{
    struct measured m[CONTENDERS_MAX] = { 0 };
    struct effort e = {
        VISIT_SECONDS, c->options->quick, c->options->hot, c->points[at].bytes, 0, 0,
        c->points[at].op, false, 1
    };
    show(c, at, 0);
    for (int i = 0; i < VERSUS_SYSTEMS; i++)
        m[i].skip = i < VERSUS_PEERS_END
            ? rounds_left_out(c->all, &c->points[at], (enum versus_system)i) != NULL
            : !has_floor(&c->points[at], (enum versus_system)i);
    measure_ready(&c->team, &e, m);
    leave_out(c, at, &e, m);
    double began = stamp_seconds();
    int most = c->options->quick ? INTERVAL_LEAST : VISIT_ROUNDS;
    for (int k = 0; k < most && (k == 0 || c->options->quick
                                 || (stamp_seconds() - began < VISIT_SECONDS
                                     && stamp_seconds() < c->until)); k++)
        play_round(c, at, &e, m, k % VERSUS_SYSTEMS);
    for (int i = 0; i < VERSUS_SYSTEMS; i++)
        if (m[i].why[0])
            report_remark(report, false, "%s not measured: %s", contenders[i].name, m[i].why);
    measured_free(m, VERSUS_SYSTEMS);
}

/* The first of those with the fewest rounds that count. A point whose rounds all were dropped would
 * be chosen for ever, so those count a little. */
static int poorest(const struct course *c)
{
    int at = 0;
    double least = 0;
    for (int i = 0; i < c->count; i++) {
        size_t dropped;
        double rounds = (double)rounds_count(c->all, &c->points[i], &dropped);
        rounds += 0.5 * (double)dropped;
        if (i == 0 || rounds < least) {
            least = rounds;
            at = i;
        }
    }
    return at;
}

static void versions(struct course *c, struct report *report)
{
    char text[REASON_BYTES];
    rounds_version(c->all, VERSUS_TUTTI, tutti_version());
    for (int i = VERSUS_TUTTI + 1; i < VERSUS_PEERS_END; i++) {
        const char *about = team_about(&c->team, i);
        if (!*about)
            continue;
        report_remark(report, false, "%s %s", contenders[i].name, about);
        snprintf(text, sizeof text, "%.*s", (int)strcspn(about, ":"), about);
        if (!rounds_version(c->all, (enum versus_system)i, text)) {
            fprintf(stderr, "versus: %s has rounds of %s %s, and this is %s\n", c->options->rounds,
                    contenders[i].name, c->all->version[i], text);
            exit(2);
        }
    }
}

static void run(struct course *c, const struct choice *choice, struct report *report, int ranks)
{
    const struct question q = { report, c->options, ranks, 0, 0, 0 };
    size_t largest = 4;
    for (int i = 0; i < choice->size_count; i++)
        while (largest < choice->sizes[i])
            largest *= 4;
    struct ask_sizes sizes = { choice->operations, choice->count, 4, largest, false, false, 1 };
    size_t most = budget_most(&q, &sizes, VERSUS_PEERS_END);
    for (int k = 0; k < choice->count; k++)
        for (int i = 0; i < choice->size_count; i++)
            if (choice->sizes[i] <= most && (choice->operations[k] != OP_PINGPONG || ranks > 1))
                c->points[c->count++] =
                    (struct point){ choice->operations[k], ranks, choice->sizes[i] };
    team_open(&c->team,
              &(struct team_plan){ .ranks = ranks,
                                   .contenders = contenders,
                                   .system = &tutti_system,
                                   .shared_bytes = ranks > 1 ? bare_pairs_bytes(ranks) : 0,
                                   .without = c->options->without,
                                   .pool_bytes = budget_pool(&sizes, ranks, most),
                                   .done = c->done });
    versions(c, report);
    c->line = line_watch_open();
    c->begin = stamp_seconds();
    c->until = c->begin + c->options->seconds;
    bool quick = c->options->quick;
    for (int k = 0; c->count && (quick ? k < c->count : stamp_seconds() < c->until); k++)
        visit(c, poorest(c), report);
    line_watch_close(c->line);
    team_close(&c->team);
}

int main(int argc, char **argv)
{
    struct perf_options options;
    struct report report;
    struct choice choice = { 0 };
    struct rounds all;
    struct point *points = calloc(PERF_LISTS_MAX * OPS * SIZES_MOST, sizeof *points);
    char cpus[32], common[HEAD_BYTES], why[256];
    int count = 0;
    report_open(&report, &program, &options, argc, argv);
    choose(&choice, &options);
    keep_two_cpus(cpus, sizeof cpus);
    if (!points || cpu_allowed() < CPUS) {
        report_remark(&report, false, "nothing is measured where two ranks have one CPU");
        return report_end(&report, &options);
    }
    head(common, &report.machine, cpus, options.hot);
    if (!rounds_open(&all, options.rounds, common, why, sizeof why)) {
        fprintf(stderr, "versus: %s\n", why);
        return 2;
    }
    for (int k = 0; k < options.lists; k++) {
        struct course c = {
            .options = &options, .all = &all, .points = points + count,
            .done = (double)k / options.lists, .share = 1.0 / options.lists
        };
        run(&c, &choice, &report, options.ranks[k]);
        count += c.count;
    }
    versus_tell(&report, &all, points, count);
    int status = report_end(&report, &options);
    rounds_close(&all);
    free(points);
    return status;
}
