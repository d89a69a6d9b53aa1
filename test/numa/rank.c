/* Each kind of memory is made by the call a program would make; only that a peer is the first to
 * touch a page of my span is done by hand, because it depends on who comes first everywhere else.
 * What is right is worked out here from the affinity that this rank finds itself with, from what
 * /sys says, and from nothing that src/ says. */
#include "rank.h"

#include "pages.h"

#include "group/comm.h"
#include "tutti.h"

#include <limits.h>
#include <linux/mempolicy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    TOUCHED = 32 * PAGE,
    FLOATS = 1 << 20,
    KEYS = 8,
    VALUE = 32 << 10,
    LETTERS = 20,
    SMALL = 1000,
    LARGE = 1 << 20,
    HUGE = 8 << 20
};

struct me {
    tutti_comm *world;
    const struct arena *arena;
    const char *bind;
    int rank, size, home;             /* home: the one node it may run on; -1: several */
    uint64_t ours;                    /* nodes that all ranks together may run on */
    cpu_set_t before, now;            /* the launcher's CPUs, and this rank's */
    int wrong;
};

static void wrong(struct me *me, const char *what, const char *text, long got, long expected)
{
    printf("WRONG: --bind %s, rank %d: %s: %s %ld, expected %ld\n", me->bind, me->rank, what, text,
           got, expected);
    me->wrong++;
}

static void must(struct me *me, int result, const char *call)
{
    if (result == 0)
        return;
    printf("WRONG: --bind %s, rank %d: %s: %s\n", me->bind, me->rank, call,
           tutti_explain(me->world));
    fflush(stdout);
    _exit(1);
}

/* ---- the binding itself ---- */

/* The nth of a set; -1: there is none. */
static int nth(uint64_t set, int n)
{
    for (int i = 0; i < NODES; i++)
        if ((set >> i & 1) && n-- == 0)
            return i;
    return -1;
}

static int first_cpu(const cpu_set_t *set)
{
    int cpu = 0;
    while (cpu < CPU_SETSIZE && !CPU_ISSET((size_t)cpu, set))
        cpu++;
    return cpu;
}

static void look_at_binding(struct me *me)
{
    uint64_t nodes = 0, seen = pages_nodes_of(&me->before);
    int mode = pages_policy(NULL, &nodes), count = CPU_COUNT(&me->before),
        got = CPU_COUNT(&me->now), at = 0, first = first_cpu(&me->now);
    if ((!strcmp(me->bind, "none") || !strcmp(me->bind, "asked"))
        && !CPU_EQUAL(&me->before, &me->now))
        wrong(me, "affinity", "CPUs", got, count);
    if (!strcmp(me->bind, "core")) {
        for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
            if (CPU_ISSET(cpu, &me->before) && at++ == me->rank % count && first != (int)cpu)
                wrong(me, "affinity", "CPU", first, (long)cpu);
        if (got != 1)
            wrong(me, "affinity", "CPUs", got, 1);
    }
    int expected_mode = !strcmp(me->bind, "asked") ? MPOL_BIND
        : !strcmp(me->bind, "numa") ? MPOL_PREFERRED
        : MPOL_DEFAULT;
    if (mode != expected_mode)
        wrong(me, "memory policy", "mode", mode, expected_mode);
    if (strcmp(me->bind, "numa") != 0)
        return;
    int node = nth(seen, me->rank % __builtin_popcountll(seen));
    cpu_set_t expected;
    if (!pages_node_cpus(node, &expected))
        expected = me->before;
    CPU_AND(&expected, &expected, &me->before);
    if (!CPU_EQUAL(&expected, &me->now))
        wrong(me, "affinity: not the node's CPUs", "the first", first, first_cpu(&expected));
    if (nodes != (uint64_t)1 << node)
        wrong(me, "memory policy: preferred", "node", nth(nodes, 0), node);
}

/* ---- memory ---- */

static int *look(struct me *me, char *at, size_t bytes)
{
    int *node = malloc(bytes / PAGE * sizeof *node);
    int error = node ? pages_look(at, bytes, node) : -1;
    if (error) {
        wrong(me, "where the pages are", "error", error, 0);
        exit(1);
    }
    return node;
}

/* All pages there are must be on one node, or, without a home, on any that the job has; `least`
 * must be there. */
static void look_at_home(struct me *me, const char *what, char *at, size_t bytes, size_t least)
{
    int *node = look(me, at, bytes);
    size_t there = 0, away = 0;
    int last = -1;
    for (size_t i = 0; i < bytes / PAGE; i++) {
        bool fine = node[i] == ABSENT
            || (me->home >= 0 ? node[i] == me->home : (me->ours >> node[i] & 1) != 0);
        there += node[i] != ABSENT;
        away += !fine;
        last = fine ? last : node[i];
    }
    if (away)
        wrong(me, what, "a page on node", last, me->home);
    if (there < least)
        wrong(me, what, "pages there", (long)there, (long)least);
    free(node);
}

/* Page by page in turn: page i on the (i + some number)-th node. */
static void look_at_turns(struct me *me, const char *what, char *at, size_t bytes, size_t least)
{
    int *node = look(me, at, bytes), n = __builtin_popcountll(me->ours), bias = -1;
    size_t there = 0, away = 0;
    for (size_t i = 0; i < bytes / PAGE; i++) {
        if (node[i] == ABSENT)
            continue;
        int turn = 0;
        while (turn < n && nth(me->ours, turn) != node[i])
            turn++;
        int seen = (turn - (int)(i % (size_t)n) + n) % n;
        bias = there++ == 0 ? seen : bias;
        away += turn == n || seen != bias;
    }
    if (away)
        wrong(me, what, "pages out of turn", (long)away, 0);
    if (there < least)
        wrong(me, what, "pages there", (long)there, (long)least);
    free(node);
}

/* The same share on each node, give or take a huge page. */
static void look_at_shares(struct me *me, const char *what, char *at, size_t bytes)
{
    int *node = look(me, at, bytes);
    long share[NODES] = { 0 }, least = LONG_MAX, most = 0;
    for (size_t i = 0; i < bytes / PAGE; i++)
        if (node[i] >= 0 && node[i] < NODES)
            share[node[i]]++;
    for (int i = 0; i < NODES; i++) {
        if (!(me->ours >> i & 1) && share[i])
            wrong(me, what, "pages on a node that is not the job's", share[i], 0);
        if (me->ours >> i & 1) {
            least = share[i] < least ? share[i] : least;
            most = share[i] > most ? share[i] : most;
        }
    }
    if (most - least > 512)
        wrong(me, what, "pages on the fullest node", most, least);
    free(node);
}

static char *span_of(const struct me *me, int rank)
{
    return arena_span(me->arena, (uint32_t)rank);
}

/* The last pages of the next rank's span, where nothing else comes to lie. */
static void touch_the_next(struct me *me)
{
    char *next = span_of(me, (me->rank + 1) % me->size) + me->arena->header->span_bytes;
    memset(next - TOUCHED, 1, TOUCHED);
}

static void write_letters(struct me *me)
{
    char *out = calloc(1, LARGE), *in = calloc(1, LARGE);
    int to = (me->rank + 1) % me->size, from = (me->rank + me->size - 1) % me->size;
    tutti_work *work[LETTERS + 1];
    for (int i = 0; i <= LETTERS; i++) {
        tutti_call call = { .work = &work[i] };
        must(me,
             tutti_send(out, i < LETTERS ? (size_t)(64 << i % 8) : LARGE, TUTTI_U8, to, i,
                        me->world, &call),
             "send");
    }
    for (int i = 0; i <= LETTERS; i++)
        must(me, tutti_recv(in, LARGE, TUTTI_U8, from, i, NULL, me->world, NULL), "recv");
    for (int i = 0; i <= LETTERS; i++)
        must(me, tutti_wait(work[i], 0), "wait");
    free(out);
    free(in);
}

static void fold_and_store(struct me *me)
{
    float *x = calloc(FLOATS, sizeof *x);
    for (size_t n = 1; n <= FLOATS; n *= 4)
        must(me, tutti_all_reduce(x, x, n, TUTTI_F32, TUTTI_SUM, me->world, NULL), "all_reduce");
    char key[32];
    for (int i = 0; i < KEYS; i++) {
        snprintf(key, sizeof key, "%d.%d", me->rank, i);
        must(me, tutti_set(key, x, VALUE, me->world), "set");
    }
    free(x);
}

static void look_at_span(struct me *me)
{
    char *small = tutti_alloc(SMALL, me->world), *large = tutti_alloc(LARGE, me->world),
         *huge = tutti_alloc(HUGE, me->world);
    char *own = aligned_alloc(PAGE, LARGE);
    if (!small || !large || !huge || !own)
        must(me, -1, "alloc");
    memset(own, 1, LARGE);
    must(me, tutti_register(own, LARGE, me->world), "register");
    touch_the_next(me);
    write_letters(me);
    fold_and_store(me);
    must(me, tutti_barrier(me->world, NULL), "barrier");
    look_at_home(me, "registered memory", own, LARGE, LARGE / PAGE);
    look_at_home(me, "what another rank has touched first",
                 span_of(me, me->rank) + me->arena->header->span_bytes - TOUCHED, TOUCHED,
                 TOUCHED / PAGE);
    look_at_home(me, "tutti_alloc of a megabyte", large, LARGE, LARGE / PAGE);
    look_at_home(me, "tutti_alloc in huge pages", huge, HUGE, HUGE / PAGE);
    look_at_home(me, "the whole span", span_of(me, me->rank), me->arena->header->span_bytes,
                 (LARGE + HUGE + LARGE) / PAGE);
    must(me, tutti_unregister(own, me->world), "unregister");
    must(me,
         tutti_free(small, me->world) | tutti_free(large, me->world) | tutti_free(huge, me->world),
         "free");
    free(own);
}

static void look_at_shared(struct me *me)
{
    const struct arena_header *h = me->arena->header;
    uint64_t nodes;
    look_at_turns(me, "slots", me->arena->base + h->slots_at, h->store_at - h->slots_at, 2);
    /* without the first page: the creator's, made before it is known who comes */
    look_at_turns(me, "the store", me->arena->base + h->store_at + PAGE,
                  h->spans_at - h->store_at - PAGE, (size_t)me->size * KEYS * VALUE / PAGE);
    int mode = pages_policy(span_of(me, me->rank), &nodes);
    if (me->home < 0 && mode != MPOL_DEFAULT)
        wrong(me, "the span of a rank that may run anywhere: policy", "mode", mode, MPOL_DEFAULT);
}

/* Its pages, and then the same addresses again as rank 0's own. */
static void look_at_file(struct me *me, const char *file)
{
    const void *data;
    size_t bytes;
    must(me, tutti_load(file, &data, &bytes, me->world, NULL), "load");
    look_at_shares(me, "a loaded file", (char *)(uintptr_t)data, bytes);
    if (me->rank != 0)
        must(me, tutti_free((void *)(uintptr_t)data, me->world), "free of the file");
    must(me, tutti_barrier(me->world, NULL), "barrier");
    if (me->rank != 0)
        return;
    /* last, so that its memory is rank 0's again at once */
    must(me, tutti_free((void *)(uintptr_t)data, me->world), "free of the file");
    char *at = tutti_alloc(bytes, me->world);
    if (!at)
        must(me, -1, "alloc in the file's place");
    look_at_home(me, "tutti_alloc in a file's place", at, bytes / PAGE * PAGE, bytes / PAGE);
    must(me, tutti_free(at, me->world), "free");
}

/* As numactl --membind would, before the program begins. The node. */
static int ask_for_a_node(void)
{
    uint64_t nodes = pages_nodes();
    const char *rank = getenv("RANK");
    int node = nth(nodes, (rank ? atoi(rank) : 0) % __builtin_popcountll(nodes));
    unsigned long bits = 1ul << node;
    if (syscall(SYS_set_mempolicy, MPOL_BIND, &bits, 8 * sizeof bits) != 0)
        perror("set_mempolicy");
    return node;
}

int rank_run(const char *bind, const char *file)
{
    struct me me = { .bind = bind };
    int asked = strcmp(bind, "asked") ? -1 : ask_for_a_node();
    must(&me, tutti_init(&me.world, NULL), "init");
    me.arena = &me.world->world->arena;
    me.rank = tutti_rank(me.world);
    me.size = tutti_size(me.world);
    sched_getaffinity(getppid(), sizeof me.before, &me.before);
    sched_getaffinity(0, sizeof me.now, &me.now);
    uint64_t mine = pages_nodes_of(&me.now);
    me.home = asked >= 0 ? asked : __builtin_popcountll(mine) == 1 ? nth(mine, 0) : -1;
    must(&me, tutti_all_reduce(&mine, &me.ours, 1, TUTTI_U64, TUTTI_BOR, me.world, NULL),
         "all_reduce");
    look_at_binding(&me);
    look_at_span(&me);
    look_at_shared(&me);
    look_at_file(&me, file);
    must(&me, tutti_barrier(me.world, NULL), "barrier");
    tutti_finalize(me.world);
    return me.wrong ? 1 : 0;
}
