/* lines: which cache lines a barrier and a small all_reduce of many ranks fetch from where. Ranks
 * are coroutines of one process and run the library itself, built once more with each shared access
 * a call; the rank whose time is earliest goes on. The model says how long each access takes. */
#include "lines/model.h"

#include "api/world.h"
#include "engine/guard.h"
#include "group/assemble.h"
#include "group/comm.h"
#include "group/join.h"
#include "group/seat.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

enum { STACK_BYTES = 128 << 10, OPERATIONS = 12, COUNTED_FROM = 4, LOOKS_MOST = 1 << 24 };

static struct model *model;                /* NULL: accesses are plain ones */
static ucontext_t home, context[CORES_MOST];
static tutti_comm *world[CORES_MOST];
static const void *looked_at[CORES_MOST];
static uint64_t seen_there[CORES_MOST];
static bool ended[CORES_MOST];
static char *stacks;
static int ranks, now_on;
static bool reduces;
static long looks;

/* ---- what is found ---- */

struct moment { double last; struct path path, all; };
static struct moment moments[OPERATIONS];  /* when the last rank was through */
static int through[OPERATIONS];

static void is_through(int operation)
{
    struct core *c = model_core(model, now_on);
    struct moment *m = &moments[operation];
    if (!through[operation]++ || c->now > m->last) {
        m->last = c->now;
        m->path = c->path;
    }
    m->all = model_transfers(model);
}

/* ---- the accesses ---- */

/* Who is earliest goes on; the one who asks, where it is as early. */
static void turn(void)
{
    int best = now_on, was = now_on;
    for (int r = 0; r < ranks; r++)
        if (!ended[r] && (ended[best] || model_core(model, r)->now < model_core(model, best)->now))
            best = r;
    if (best == was)
        return;
    now_on = best;
    swapcontext(&context[was], ended[best] ? &home : &context[best]);
}

static uint64_t get(const void *word, int bytes)
{
    uint64_t whole = 0;
    memcpy(&whole, word, (size_t)bytes);
    return whole;
}

static void put(void *word, uint64_t value, int bytes) { memcpy(word, &value, (size_t)bytes); }

static void stuck(void)
{
    if (++looks < LOOKS_MOST)
        return;
    fprintf(stderr, "lines: no end after %d looks\n", LOOKS_MOST);
    exit(1);
}

uint64_t explore_load(const void *word, int bytes, enum explore_order order)
{
    (void)order;
    if (!model)
        return get(word, bytes);
    turn();
    stuck();
    model_load(model, now_on, word);
    uint64_t value = get(word, bytes);
    if (looked_at[now_on] == word && seen_there[now_on] != value)
        model_news(model, now_on, word);
    looked_at[now_on] = word;
    seen_there[now_on] = value;
    return value;
}

static void about_to_write(void)
{
    turn();
    looked_at[now_on] = NULL;
}

void explore_store(void *word, uint64_t value, int bytes, enum explore_order order)
{
    (void)order;
    if (model) {
        about_to_write();
        model_store(model, now_on, word);
    }
    put(word, value, bytes);
}

uint64_t explore_change(void *word, uint64_t value, int bytes, enum explore_change how)
{
    if (model) {
        about_to_write();
        model_change(model, now_on, word);
    }
    uint64_t old = get(word, bytes);
    put(word, how == EXPLORE_ADD ? old + value
            : how == EXPLORE_OR ? old | value
            : how == EXPLORE_AND ? old & value
            : value, bytes);
    return old;
}

int explore_swap(void *word, uint64_t *seen, uint64_t value, int bytes)
{
    if (model) {
        about_to_write();
        model_change(model, now_on, word);
    }
    uint64_t have = get(word, bytes);
    if (have != *seen) {
        *seen = have;
        return 0;
    }
    put(word, value, bytes);
    return 1;
}

void explore_fence(void)
{
    if (model)
        model_fence(model, now_on);
}

void explore_pause(void)
{
    if (model)
        model_pause(model, now_on);
}

void lines_own(const void *at);
void lines_own(const void *at)
{
    if (!model)
        return;
    turn();
    model_own(model, now_on, at);
}

/* ---- a world ---- */

static void must(int error, const char *what, const struct text *why)
{
    if (error >= 0)
        return;
    fprintf(stderr, "lines: %s: %s %s\n", what, strerror(-error), why->at);
    exit(2);
}

static void world_of(int n, const char *rules)
{
    static char said[1024];
    struct text why = TEXT_IN(said);
    struct arena arena;
    struct arena_plan plan = { n, "lines", 16 << 20, rules, 0, 2 << 20, 0 };
    must(arena_create(&arena, &plan, &why), "arena", &why);
    for (int r = 0; r < n; r++) {
        struct seat_card card;
        struct assembly gather = {
            .arena = &arena, .rank = (uint32_t)r, .timeout_ms = -1, .end_ns = UINT64_MAX
        };
        seat_card(&card, 1);
        must(seat_take(&arena, (uint32_t)r, &card, &why), "seat", &why);
        assemble_seated(&gather);
    }
    store_release32(&arena.join->cpus, (uint32_t)n);             /* a CPU each */
    for (int r = 0; r < n; r++) {
        tutti_options o = { .timeout_ms = -1, .warn_ms = -1 };
        struct arena copy = arena;
        must(world_begin(&world[r], &copy, r, -1, &o, 1, &why), "world", &why);
        world[r]->watch.budget = (struct wait_budget){ .spin_ticks = UINT64_MAX / 2 };
        guard_site(world[r], "lines");     /* interned before, so that runs need not */
    }
}

static void body(void)
{
    float in = 1, out = 0;
    for (int k = 0; k < OPERATIONS; k++) {
        int r = now_on;
        model_operation(model, r);
        int error = reduces ? tutti_all_reduce_at("lines", &in, &out, 1, TUTTI_F32, TUTTI_SUM,
                                                  world[r], NULL)
                            : tutti_barrier_at("lines", world[r], NULL);
        if (error < 0 || (reduces && out != (float)ranks)) {
            fprintf(stderr, "lines: rank %d: %s\n", r, tutti_strerror(error));
            exit(1);
        }
        is_through(k);
    }
    ended[now_on] = true;
    turn();
    setcontext(&home);
}

static void run(const struct machine_model *m)
{
    ranks = m->cores;
    looks = 0;
    memset(ended, 0, sizeof ended);
    memset(through, 0, sizeof through);
    memset(looked_at, 0, sizeof looked_at);
    for (int r = 0; r < ranks; r++) {
        getcontext(&context[r]);
        context[r].uc_stack.ss_sp = stacks + (size_t)r * STACK_BYTES;
        context[r].uc_stack.ss_size = STACK_BYTES;
        context[r].uc_link = &home;
        makecontext(&context[r], body, 0);
    }
    model = model_open(m);
    if (!model) {
        fprintf(stderr, "lines: no memory\n");
        exit(2);
    }
    now_on = 0;
    swapcontext(&home, &context[0]);
}

/* ---- the command ---- */

static void tell(const char *what, const struct machine_model *m)
{
    const struct moment *a = &moments[COUNTED_FROM - 1], *z = &moments[OPERATIONS - 1];
    double n = OPERATIONS - COUNTED_FROM;
    printf("%-20s %5d %4d x %-3d %-5s %5d %9.0f %7.1f %7.1f %9.0f %9.0f\n", what, m->cores,
           (m->cores + m->domain - 1) / m->domain, m->domain,
           m->protocol == MESI ? "MESI" : "MOESI", m->run_ahead, (z->last - a->last) / n,
           ((double)z->path.near - a->path.near) / n, ((double)z->path.far - a->path.far) / n,
           ((double)z->all.near - a->all.near) / n, ((double)z->all.far - a->all.far) / n);
    fflush(stdout);
}

static void one(const char *algorithm, const struct machine_model *m, bool reduce)
{
    char rules[128], what[48];
    snprintf(rules, sizeof rules, "barrier:-inf=%s;all_reduce:-88=inline", algorithm);
    snprintf(what, sizeof what, "%s %s", reduce ? "all_reduce" : "barrier", algorithm);
    reduces = reduce;
    world_of(m->cores, rules);
    run(m);
    tell(what, m);
    model_close(model);
    model = NULL;
    fflush(NULL);
}

static _Noreturn void usage(void)
{
    fprintf(stderr,
            "usage: lines [RANKS [DOMAIN [COST=NS ...]]]\n\n"
            "RANKS: 2 to %d, one a core; none: 8 to 256. DOMAIN: cores that share a last cache.\n"
            "costs: hit near far queue write_back probe pause, in ns; ahead: misses at once\n",
            CORES_MOST);
    exit(2);
}

static void cost(struct machine_model *m, const char *text)
{
    static const struct { const char *name; size_t at; } names[] = {
#define C(name) { #name, offsetof(struct costs, name) }
        C(hit), C(near), C(far), C(queue), C(write_back), C(probe), C(pause)
#undef C
    };
    const char *equals = strchr(text, '=');
    double value = equals ? atof(equals + 1) : -1;
    if (value >= 1 && value <= RUN_AHEAD_MOST && !strncmp(text, "ahead=", 6)) {
        m->run_ahead = (int)value;
        return;
    }
    for (size_t i = 0; i < sizeof names / sizeof *names && value >= 0; i++)
        if (!strncmp(text, names[i].name, strlen(names[i].name)) && equals == text
            + strlen(names[i].name)) {
            memcpy((char *)&m->costs + names[i].at, &value, sizeof value);
            return;
        }
    usage();
}

/* In a process of its own: its worlds end with it. */
static void in_child(const char *algorithm, const struct machine_model *m, bool reduce)
{
    int status = 1;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        one(algorithm, m, reduce);
        _exit(0);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
        exit(1);
}

static void all_of(struct machine_model *m)
{
    static const char *const algorithms[] = { "flags", "central" };
    for (int reduce = 0; reduce < 2; reduce++)
        for (int i = 0; i < 2; i++)
            for (int p = MESI; p <= MOESI; p++) {
                m->protocol = (enum protocol)p;
                in_child(algorithms[i], m, reduce);
            }
}

int main(int argc, char **argv)
{
    static const int sizes[] = { 8, 16, 32, 64, 128, 256 };
    struct machine_model m = { .domain = 8, .run_ahead = 8, .costs = costs_usual };
    int n = argc > 1 ? atoi(argv[1]) : 0;
    if (argc > 2)
        m.domain = atoi(argv[2]);
    for (int i = 3; i < argc; i++)
        cost(&m, argv[i]);
    if ((argc > 1 && (n < 2 || n > CORES_MOST)) || m.domain < 1
        || (n ? n : CORES_MOST) > m.domain * DOMAINS_MOST)
        usage();
    stacks = mmap(NULL, (size_t)CORES_MOST * STACK_BYTES, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stacks == MAP_FAILED)
        return 2;
    printf("COUNTED IN A MODEL, not measured. Of an operation, back to back: ns; transfers of "
           "lines on the\ncritical path; all transfers. near: within a domain; far: between "
           "domains.\n"
           "%-20s %5s %8s %-5s %5s %9s %7s %7s %9s %9s\n", "", "ranks", "domains", "", "ahead",
           "ns", "near", "far", "all near", "all far");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        m.cores = n ? n : sizes[i];
        all_of(&m);
        if (n)
            break;
    }
    return 0;
}
